"""Rule bots: `(state, key) -> action` for the seat to move. Rules are those of the rule book."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.eight_in_a_row import lines, observe

#: What a cell is worth for the other seats counts so many quarters: for the next seat, for the
#: ones after it. The best of a few tried in games of one such bot against two others.
_NEXT, _LATER = 3, 4


def threat(state, key):
    """Duty first (rule book 2), then lines; fast on any board; ties at random.

    1. A winning cell. 2. A cell where the next seat would win. 3. One where the seat after it
    would: that is the next seat's duty too, but two such cells are more than it can block, and
    nobody else need be trusted. 4. The cell on which most lies: `lines.worth` of the open lines
    through it, own and others', so that lines grow next to stones and a strong line of another
    seat is cut. The first stone goes to the middle.
    """
    turn = observe.turn_order(state, state.current_player)
    longest, win_length = state.game.rules.longest, state.sizes[2]
    value = lines.worth(state.cells, turn, win_length, longest)
    score = 4 * value[0] + _NEXT * jnp.sum(value[1:2], 0) + _LATER * jnp.sum(value[2:], 0)
    score = jnp.where(state.ply == 0, -observe.off_centre(state), score)
    wins = lines.potential(state.cells, turn, longest) >= win_length
    return _best(_duty(wins, state.cells == 0), score, key)


def pairing(state, key, target=None):
    """Blocks one seat by double pairing (rule book 8): a partner of each of its stones.

    Two such bots with the same target hold it to runs of at most 4, on any board. The partner
    on which the longest run threatens comes first; with all partners taken, the cell on which
    most lies for the target. The bot wins if it can.

    Args:
      target: the seat to block, int. None, or the bot's own: the other seat that could make the
        longest run, the lowest of equals, and anybody's win before that. Two bots need not
        agree on it then, so that nothing is certain.
    """
    seats, longest, me = state.game.num_players, state.game.rules.longest, state.current_player
    stones = np.arange(1, seats + 1, dtype=np.int8)
    runs = lines.potential(state.cells, stones, longest)
    wins = jnp.roll(runs, -me, axis=0) >= state.sizes[2]
    reach = jnp.where(np.arange(seats) == me, -1, jnp.max(runs, axis=(1, 2)))
    strongest = jnp.argmax(reach)
    told = jnp.bool_(False) if target is None else target != me
    blocked = jnp.where(told, -1 if target is None else target, strongest)

    empty = state.cells == 0
    partners = _partners(state.cells == blocked + 1) & empty
    move = jnp.where(jnp.any(partners), partners, empty)
    duty = jnp.where(told, _duty(wins[:1], move), _duty(wins, move))
    value = lines.worth(state.cells, blocked.astype(jnp.int8) + 1, state.sizes[2], longest)
    urgency = runs[blocked].astype(jnp.int32) << 23
    return _best(duty, urgency + jnp.minimum(value, (1 << 23) - 1), key)


def _duty(wins, otherwise):
    """bool[H, W]: the first of the planes `wins` [n, H, W] that holds a cell, else `otherwise`."""
    for plane in wins[::-1]:
        otherwise = jnp.where(jnp.any(plane), plane, otherwise)
    return otherwise


def _partners(stones: jax.Array) -> jax.Array:
    """bool[H, W]: the cells paired with the `stones` (bool[H, W]), by column and by row."""
    height, width = stones.shape
    found = jnp.zeros_like(stones)
    row, col = np.arange(height)[:, None] % 4, np.arange(width)[None, :] % 4
    by_col = ((0, 1), (0, -1), (1, 1), (-1, -1))
    by_row = ((1, 0), (-1, 0), (1, -1), (-1, 1))
    for at, steps in ((col, by_col), (row, by_row)):
        for residue, (down, right) in enumerate(steps):
            found |= lines.shift(stones & (at == residue), -down, -right)
    return found


def _best(allowed, score, key):
    """int32[], the cell of the best score among `allowed`, ties at random."""
    score = jnp.where(allowed, score, jnp.iinfo(jnp.int32).min)
    ties = allowed & (score == jnp.max(score))
    return core.choose_uniform(ties.reshape(-1), jax.random.uniform(key))


def bots(players: int) -> dict[str, core.Bot]:
    """By name, the strongest last; "pairing_N" blocks seat N."""
    blockers = {f"pairing_{n}": functools.partial(pairing, target=n) for n in range(players)}
    return {"random": core.random_bot, "pairing": pairing, **blockers, "threat": threat}
