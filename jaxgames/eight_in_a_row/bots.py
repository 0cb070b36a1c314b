"""Rule bots: `(state, key) -> action` for the seat to move. Rules are those of the rule book."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.eight_in_a_row import lines, observe

#: What lies on a cell for another seat counts so many quarters of its worth.
_OTHERS = 3


def threat(state, key):
    """Duty first (rule book 2), then lines: fast on any board; ties at random.

    1. A winning cell. 2. A cell where the next seat would win. 3. One where the seat after it
    would: that is the next seat's duty too, but two such cells are more than it can block, and
    nobody else need be trusted. 4. The cell on which most lies: `lines.worth` of the own open
    lines through it and three quarters of the others', so that lines grow next to stones and a
    strong line of another seat is cut. The first stone goes to the middle.
    """
    turn = observe.turn_order(state, state.current_player)
    runs = lines.potential(state.cells, turn, state.game.rules.longest)
    wins = runs >= state.sizes[2]
    value = lines.worth(state.cells, turn, state.sizes[2], state.game.rules.longest)
    score = 4 * value[0] + _OTHERS * jnp.sum(value[1:], axis=0)
    score = jnp.where(state.ply == 0, -observe.off_centre(state), score)
    duty = state.cells == 0
    for seat in reversed(range(len(turn))):
        duty = jnp.where(jnp.any(wins[seat]), wins[seat], duty)
    return _best(duty, score, key)


def pairing(state, key, target=None):
    """Blocks one seat by double pairing (rule book 8): a partner of each of its stones.

    Two such bots that block the same seat hold it to runs of at most 4, on any board, so it
    does not win where the win length is 5 or more. A partner is answered where the longest run
    threatens; with all partners taken, the cell on which most lies for the target is. The bot
    wins if it can.

    Args:
      target: the seat to block, int; None or the bot itself: the other seat that could make the
        longest run, the lowest of equals, so that two bots agree (but may have lost time).
    """
    seats, longest = state.game.num_players, state.game.rules.longest
    stones = np.arange(1, seats + 1, dtype=np.int8)
    runs = lines.potential(state.cells, stones, longest)
    me = state.current_player
    reach = jnp.where(np.arange(seats) == me, -1, jnp.max(runs, axis=(1, 2)))
    strongest = jnp.argmax(reach)
    blocked = strongest if target is None else jnp.where(target == me, strongest, target)
    value = lines.worth(state.cells, blocked.astype(jnp.int8) + 1, state.sizes[2], longest)

    empty = state.cells == 0
    open_pairs = _partners(state.cells == blocked + 1) & empty
    wins = runs[me] >= state.sizes[2]
    duty = jnp.where(jnp.any(open_pairs), open_pairs, empty)
    duty = jnp.where(jnp.any(wins), wins, duty)
    urgency = runs[blocked].astype(jnp.int32) << 23
    return _best(duty, urgency + jnp.minimum(value, (1 << 23) - 1), key)


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
    """By name; "pairing_N" blocks seat N."""
    blockers = {f"pairing_{n}": functools.partial(pairing, target=n) for n in range(players)}
    return {"random": core.random_bot, "threat": threat, "pairing": pairing, **blockers}
