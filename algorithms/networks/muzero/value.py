"""Values as distributions: for each seat, over what a game can come to.

The places of the distribution ("atoms") are the payoffs of the game's placements where it has
few (`game.outcomes`), so that chances of places can be read off; else even steps on [-1, 1].
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.core import Array, Game


def atoms_of(game: Game, bins: int) -> tuple[float, ...]:
    """O rising values: `game.outcomes`, or `bins` even steps on [-1, 1]."""
    outcomes = game.outcomes
    if outcomes is None or len(outcomes) < 2:
        outcomes = np.linspace(-1.0, 1.0, bins).tolist()
    return tuple(float(v) for v in sorted(outcomes))


def two_hot(values: Array, atoms: tuple[float, ...]) -> Array:
    """Weights float32[..., O] on the two atoms next to each value, with the value as mean.

    Values beyond the atoms count as the nearest one; an atom itself gets all the weight.
    """
    a = np.asarray(atoms, np.float32)
    v = jnp.clip(values.astype(jnp.float32), a[0], a[-1])[..., None]
    gaps = np.diff(a)
    one = np.ones(1, np.float32)
    # Each atom's weight is a hat that falls to 0 at its neighbours.
    rise = (v - np.concatenate([a[:1] - 1, a[:-1]])) / np.concatenate([one, gaps])
    fall = (np.concatenate([a[1:], a[-1:] + 1]) - v) / np.concatenate([gaps, one])
    return jnp.clip(jnp.minimum(rise, fall), 0.0, 1.0)


def expected(logits: Array, atoms: tuple[float, ...], total: float | None) -> Array:
    """Means float32[..., T] of distributions [..., T, O], moved alike so that they sum to
    `total` (None: not)."""
    value = jax.nn.softmax(logits) @ np.asarray(atoms, np.float32)
    if total is None:
        return value
    return value + (total - value.sum(-1, keepdims=True)) / value.shape[-1]


def first_place(logits: Array) -> Array:
    """Chance float32[..., T] of each seat's best outcome, from distributions [..., T, O]."""
    return jax.nn.softmax(logits)[..., -1]
