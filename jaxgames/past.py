"""What was decided before: for searches that weigh it, and for learners that copy it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
import numpy as np

if TYPE_CHECKING:
    from jaxgames.core import Array, State


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Past:
    """Decisions that led to a position, newest first.

    Attributes:
      states: [n], what the seats that decided had before them; what the observation of those
        seats tells of still older moves may be missing.
      action: int32[n], what they chose, legal there.
      valid: bool[n], whether there is such a decision; states and actions mean nothing without.
    """

    states: State
    action: Array
    valid: Array


@dataclasses.dataclass(frozen=True)
class Logged:
    """What was decided in one logged game or match, in order; arrays on the host.

    Attributes:
      source: the file.
      states: [n], positions before the decisions.
      action: int32[n], what was chosen, legal there.
      outcome: float32[n, P], rewards from there to the end of the game, by seat.
    """

    source: str
    states: State
    action: np.ndarray
    outcome: np.ndarray
