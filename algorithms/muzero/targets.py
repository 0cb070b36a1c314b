"""What every unrolled step is to predict, in the frame of the seat that moves there.

Prediction k belongs to the position k actions after the root, the root's being number 0: its
value is what the rest of the game brings from there on, its reward what action k - 1 brought to
reach it. Nothing is shifted against anything, and the last action of a game is an action like
any other: it leads to an absorbing state, worth nothing, whatever is done there.

Letters: N windows, S entries of a window, K unrolled steps, T teams.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from algorithms import frames, returns
from jaxgames.core import Array


class Window(NamedTuple):
    """S consecutive entries of one row of the replay; all vectors in absolute order.

    Attributes:
      reward: float32[N, S, T], of the entry's action.
      done: bool[N, S], that action ended the game.
      same_game: bool[N, S], the entry belongs to the game of the first.
      to_go: float32[N, S, T], rewards from the entry to the end of the game; read only where
        `td_steps` is 0.
      root_value: float32[N, S, T], what the search made of the position.
      team: int32[N, S], the mover's.
    """

    reward: Array
    done: Array
    same_game: Array
    to_go: Array
    root_value: Array
    team: Array


class Targets(NamedTuple):
    """Attributes:
    value: float32[N, K + 1, T], the mover of that step first; 0 after the end.
    reward: float32[N, K, T], of actions 0..K-1, whoever chose the action first; 0 after the end.
    alive: bool[N, K + 1], the game still ran there.
    """

    value: Array
    reward: Array
    alive: Array


def unrolled(
    window: Window,
    unroll: int,
    td_steps: int,
    discount: float = 1.0,
    root_share: float | Array = 0.0,
) -> Targets:
    """Targets of K = `unroll` steps from the first entry of each window.

    Args:
      window: at least K + 1 + td_steps entries.
      td_steps: rewards of so many steps, then the searched value of the position reached;
        0: all rewards to the end of the game, undiscounted.
      root_share: weight of the searched value of the position itself, 0 to 1; one number, or
        [N, K + 1, 1].
    """
    steps = slice(unroll + 1)
    alive = window.same_game[:, steps]
    if td_steps:
        parts = [_n_step(window, k, td_steps, discount) for k in range(unroll + 1)]
        value = jnp.stack(parts, axis=1)
    else:
        value = window.to_go[:, steps]
    value = returns.relative_targets(
        value, window.root_value[:, steps], root_share, window.team[:, steps]
    )
    reward = frames.to_relative(window.reward[:, :unroll], window.team[:, :unroll])
    return Targets(
        value=jnp.where(alive[..., None], value, 0.0),
        reward=jnp.where(alive[:, :unroll, None], reward, 0.0),
        alive=alive,
    )


def _n_step(window: Window, k: int, steps: int, discount: float) -> Array:
    """float32[N, T], absolute order."""
    within = slice(k, k + steps)
    return returns.n_step(
        window.reward[:, within], window.done[:, within], window.root_value[:, k + steps], discount
    )
