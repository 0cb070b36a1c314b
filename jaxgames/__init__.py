"""Hard multi-player card and board games as pure, jittable JAX functions."""

from jaxgames.core import (
    Bot,
    FieldError,
    Game,
    PositionError,
    RulesError,
    State,
    game_type,
    games,
    make,
    register,
)
from jaxgames.match import IllegalAction, Match, Result
from jaxgames.record import Record, RecordError

register("sequence", "jaxgames.sequence.game:Sequence")
register("guandan", "jaxgames.guandan.game:Guandan")
register("eight_in_a_row", "jaxgames.eight_in_a_row.game:EightInARow")

__version__ = "0.1.0"
__all__ = [
    "Bot",
    "FieldError",
    "Game",
    "IllegalAction",
    "Match",
    "PositionError",
    "Record",
    "RecordError",
    "Result",
    "RulesError",
    "State",
    "game_type",
    "games",
    "make",
    "register",
]
