"""Targets for values, per team and in absolute order.

Because every reward and value here is a vector over teams, nothing depends on who moves
next: no sign is flipped, and a team that moves twice, or a third team, needs no care. Only
`relative_targets` turns to a mover's view, through `algorithms.frames`.

Letters: S steps, n steps of a bootstrap, T teams, P seats, B games; leading dimensions are free.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from algorithms import frames
from jaxgames.core import Array


def n_step(rewards: Array, done: Array, bootstrap: Array, discount: float = 1.0) -> Array:
    """Rewards of n steps plus what follows them; [..., T].

    Args:
      rewards: float32[..., n, T], of the steps from the position on.
      done: bool[..., n], the game ended with that step; later rewards do not count.
      bootstrap: float32[..., T], value after the n steps, used if the game still runs.
      discount: per step.
    """
    n = done.shape[-1]
    ended = jnp.cumsum(done.astype(jnp.int32), axis=-1)
    alive = jnp.concatenate([jnp.zeros_like(ended[..., :1]), ended], axis=-1) == 0
    scale = jnp.float32(discount) ** jnp.arange(n + 1)
    # A choice, not a product: nothing after the end may matter, not even a NaN.
    rewards = jnp.where(alive[..., :n, None], rewards, 0.0)
    bootstrap = jnp.where(alive[..., n, None], bootstrap, 0.0)
    return (scale[:n, None] * rewards).sum(-2) + scale[n] * bootstrap


def lambda_returns(
    rewards: Array, done: Array, next_values: Array, lam: float, discount: float = 1.0
) -> Array:
    """TD(lambda) targets along a stretch of play; float32[S, ..., T].

    Args:
      rewards: float32[S, ..., T], of each step.
      done: bool[S, ...], the game ended with that step; the next entry is another game.
      next_values: float32[S, ..., T], value of the position after each step.
      lam: 0 for one-step targets, 1 for the rewards up to the end of the stretch.
      discount: per step.
    """

    def back(later, step):
        reward, ended, value = step
        follows = (1.0 - lam) * value + lam * later
        target = reward + jnp.where(ended[..., None], 0.0, discount * follows)
        return target, target

    return jax.lax.scan(back, next_values[-1], (rewards, done, next_values), reverse=True)[1]


def returns_to_go(rewards: Array, done: Array) -> tuple[Array, Array]:
    """Undiscounted rewards from each step to the end of its game, and whether it ended.

    Args:
      rewards: float32[S, ..., T]; done: bool[S, ...], as in `lambda_returns`.

    Returns:
      float32[S, ..., T] and bool[S, ...]; where the game has not ended the sum is partial.
    """

    def back(later, step):
        total, known = later
        reward, ended = step
        total = reward + jnp.where(ended[..., None], 0.0, total)
        known = known | ended
        return (total, known), (total, known)

    start = (jnp.zeros_like(rewards[0]), jnp.zeros_like(done[0]))
    return jax.lax.scan(back, start, (rewards, done), reverse=True)[1]


def seat_advantages(
    rewards: Array,
    done: Array,
    seat: Array,
    values: Array,
    end_values: Array,
    discount: float,
    lam: float,
) -> Array:
    """Generalised advantages when every seat has decisions of its own; float32[S, B, T].

    What a seat chooses shows in what follows up to its own next decision: all rewards in
    between count to it, and discount and lam apply once per decision of its own. (Schulman et
    al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016,
    one sequence per seat.) Advantage plus value is the target of the value.

    Args:
      rewards: float32[S, B, T], of each step.
      done: bool[S, B], the game ended with that step; the next entry is another game.
      seat: int32[S, B], who decided.
      values: float32[S, B, T], value of the position, as that seat sees it.
      end_values: float32[B, P, T], values after the last step, as every seat sees it.
      discount: per decision of the same seat.
      lam: 0 trusts the value at the next decision, 1 only what came of the game.
    """
    seats = jnp.arange(end_values.shape[1])

    def back(later, step):
        # Per seat: value and advantage at its next decision, rewards before that decision.
        value, advantage, between = later
        reward, ended, mover, here = step
        value, advantage, between = jax.tree.map(
            lambda x: jnp.where(ended[:, None, None], 0.0, x), later
        )
        between = between + reward[:, None]
        delta = between + discount * value - here[:, None]
        gained = delta + discount * lam * advantage  # [B, P, T]
        moves = (seats == mover[:, None])[..., None]
        out = jnp.where(moves, gained, 0.0).sum(1)
        later = (
            jnp.where(moves, here[:, None], value),
            jnp.where(moves, gained, advantage),
            jnp.where(moves, 0.0, between),
        )
        return later, out

    start = (end_values, jnp.zeros_like(end_values), jnp.zeros_like(end_values))
    return jax.lax.scan(back, start, (rewards, done, seat, values), reverse=True)[1]


def relative_targets(
    outcome: Array, root_value: Array, root_share: float | Array, team: Array
) -> Array:
    """What the value head of the mover learns: outcome mixed with the search's value.

    Args:
      outcome, root_value: float32[..., T], absolute order.
      root_share: weight of `root_value`, 0 to 1.
      team: int32[...], the mover's.

    Returns:
      float32[..., T], mover first.
    """
    return frames.to_relative((1.0 - root_share) * outcome + root_share * root_value, team)
