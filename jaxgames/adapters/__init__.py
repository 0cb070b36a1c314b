"""Our games behind the interfaces of other libraries.

    jaxgames.adapters.pettingzoo    an AEC environment
    jaxgames.adapters.open_spiel    games that pyspiel.load_game knows
    jaxgames.adapters.pgx           an Env with init, step and observe as in pgx

Each module imports its library alone, and says which extra has it when it is missing. `pgx`
needs none: it looks like that library, and does not use it.
"""
