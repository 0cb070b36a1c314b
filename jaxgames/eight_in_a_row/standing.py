"""Who comes before whom, and what the places are worth (rule book 1.4, 1.5).

Seats are few, so every pair of them is a scalar of its own: under vmap each operation then runs
over whole rows of games, which is ten times faster than over [P, P] arrays of one game.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

#: (p, q), p < q -> int32[]: 1 seat p is ahead of seat q, -1 behind, 0 level with it.
Order = dict[tuple[int, int], jax.Array]
#: Per seat int32[]: seats before it; seats that share its place, itself among them.
Places = tuple[list[jax.Array], list[jax.Array]]


def by_values(values: jax.Array) -> Order:
    """Seats compared by `values` int[P, N], the last column first.

    On counts of runs, runs[p, j-1] of length j, that is the comparison of chain profiles: of two
    lists of (length, count) by falling length, a prefix being the smaller one, the list with the
    longer length or the higher count where they part has the higher count of that length.
    """
    seats, columns = values.shape
    order = {}
    for p, q in itertools.combinations(range(seats), 2):
        sign = jnp.int32(0)
        for j in range(columns):  # a later column overrules
            one, other = values[p, j], values[q, j]
            sign = jnp.where(one > other, 1, jnp.where(one < other, -1, sign))
        order[p, q] = sign
    return order


def winner_first(order: Order, winner: jax.Array) -> Order:
    """`order` with seat `winner` (int32[]; -1: nobody) ahead of everybody."""
    return {
        (p, q): jnp.where(winner == p, 1, jnp.where(winner == q, -1, sign))
        for (p, q), sign in order.items()
    }


def places(order: Order, seats: int, shared: bool) -> Places:
    """The places in an order; where none are shared, of level seats the lower one is ahead."""
    before = [jnp.int32(0) for _ in range(seats)]
    sharing = [jnp.int32(1) for _ in range(seats)]
    for (p, q), sign in order.items():
        if not shared:
            sign = jnp.where(sign == 0, 1, sign)
        before[p] = before[p] + (sign < 0)
        before[q] = before[q] + (sign > 0)
        sharing[p] = sharing[p] + (sign == 0)
        sharing[q] = sharing[q] + (sign == 0)
    return before, sharing


def shares(values: tuple[float, ...]) -> np.ndarray:
    """float64[P, P]: what each of n seats gets that together take places a, a+1, ..., a+n-1.

    Entry [a, n - 1] is the mean of those places' `values`; 0 where there are no such places.
    """
    p = len(values)
    table = np.zeros((p, p))
    for a in range(p):
        for n in range(1, p - a + 1):
            table[a, n - 1] = np.mean(values[a : a + n])
    return table


def paid(place: Places, table: np.ndarray) -> jax.Array:
    """[P] of the table's type: entry [seats before, seats sharing - 1] of `table` [P, P]."""
    seats = len(table)
    paid_to = []
    for before, sharing in zip(*place, strict=True):
        value = jnp.zeros((), table.dtype)
        for a in range(seats):
            for n in range(1, seats - a + 1):
                value = jnp.where((before == a) & (sharing == n), table[a, n - 1], value)
        paid_to.append(value)
    return jnp.stack(paid_to)
