"""What a rule bot finds of the actions it weighs."""

from __future__ import annotations

from typing import NamedTuple

import jax


class Reasons(NamedTuple):
    """Of one position, for the seat to move, from what it may know; K is fixed by the bot.

    Attributes:
      best: int32[], the action that the bot plays.
      action: int32[K], the actions it looked at, each once; -1: none.
      facts: float32[K, F], numbers of about -1 to 1 that say what the bot finds of each; the first
        is 0 or less: how far it puts the action behind its best, in its own units.
    """

    best: jax.Array
    action: jax.Array
    facts: jax.Array
