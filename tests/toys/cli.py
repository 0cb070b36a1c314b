"""The command line with the toy games registered: `python -m tests.toys.cli train ...`."""

import sys

import tests.toys.mnk  # noqa: F401  (registers "mnk")
from experiments.cli import main

#: A run of seconds; the game is tic-tac-toe.
TINY = (
    "game=mnk",
    "network.channels=4",
    "network.blocks=0",
    "network.hidden=8",
    "alphazero.games=8",
    "alphazero.steps=4",
    "alphazero.search.num_simulations=2",
    "alphazero.search.max_num_considered_actions=2",
    "alphazero.replay_length=16",
    "alphazero.learn_after=16",
    "alphazero.batch_size=8",
    "alphazero.learn_steps=1",
    "alphazero.chunk_updates=2",
    "train.chunks=4",
    "train.save_every=1",
    "train.eval.every=2",
    "train.eval.pairs=4",
    "train.eval.final_pairs=8",
    "train.eval.final_agent=network",
    "train.eval.search.num_simulations=2",
    "train.eval.search.num_worlds=1",
)

if __name__ == "__main__":
    sys.exit(main())
