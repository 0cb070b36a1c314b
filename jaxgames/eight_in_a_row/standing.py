"""Who comes before whom, and what the places are worth (rule book 1.4, 1.5)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def ahead_by_runs(runs: jax.Array) -> jax.Array:
    """bool[P, P]: seat p's chain profile is above seat q's.

    Comparing lists of (length, count) by falling length, a prefix being smaller, is comparing
    the counts of all lengths from the longest down: where the lists part, the one with the
    longer length or the higher count has the higher count of that length.
    """
    more = jnp.zeros((len(runs), len(runs)), jnp.int32)
    for counts in jnp.moveaxis(runs.astype(jnp.int32), 1, 0):  # shortest first, longest decides
        sign = jnp.sign(counts[:, None] - counts[None, :])
        more = jnp.where(sign != 0, sign, more)
    return more > 0


def winner_first(ahead: jax.Array, winner: jax.Array) -> jax.Array:
    """`ahead` bool[P, P] with seat `winner` (int32[], -1: nobody) before everybody else."""
    seats = np.arange(len(ahead))
    wins = seats == winner
    return (wins[:, None] | (ahead & ~wins[None, :])) & (seats[:, None] != seats[None, :])


def shares(values: tuple[float, ...]) -> np.ndarray:
    """float64[P, P]: what each of n seats gets that together take places a, a+1, ..., a+n-1.

    Entry [a, n - 1] is the mean of those places' `values`; 0 where there are no such places.
    """
    p = len(values)
    return np.array(
        [
            [np.mean(values[a : a + n]) if a + n <= p else 0.0 for n in range(1, p + 1)]
            for a in range(p)
        ]
    )


def places(ahead: jax.Array, shared: bool) -> tuple[jax.Array, jax.Array]:
    """(int32[P] seats before each, int32[P] seats that share its place with it, itself too).

    Where places are not shared, equal seats stand by seat, the lower one first.
    """
    behind = ahead.T
    equal = ~ahead & ~behind
    if not shared:
        seats = np.arange(len(ahead))
        behind = behind | (equal & (seats[None, :] < seats[:, None]))
        equal = jnp.asarray(seats[None, :] == seats[:, None])
    return jnp.sum(behind, axis=1, dtype=jnp.int32), jnp.sum(equal, axis=1, dtype=jnp.int32)


def paid(place: tuple[jax.Array, jax.Array], table: np.ndarray) -> jax.Array:
    """[P] of the table's type: entry [seats before, seats sharing - 1] of `table` [P, P]."""
    before, sharing = place
    i = np.arange(len(table))
    hit = (before[:, None, None] == i[:, None]) & (sharing[:, None, None] == i + 1)
    return jnp.sum(jnp.where(hit, table, 0), axis=(1, 2), dtype=table.dtype)
