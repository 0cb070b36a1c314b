"""The end of a round: places, levels, passing A, rewards. Rules: A8, A9.

Arrays end in the batch axis B. Letters as in A9: X owns the round, Y has the first out.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.guandan.deal import pick, team
from jaxgames.guandan.rules import SEATS, TOP, State

_SEAT = np.arange(SEATS, dtype=np.int8)[:, None]
_TEAM = np.arange(2, dtype=np.int8)[:, None]


def complete_order(order: jax.Array) -> jax.Array:
    """int8[4, B]: the seats that are left follow those that are out, in ascending order."""
    out = jnp.any(order[:, None] == _SEAT, axis=0)  # [seat, B]
    through = np.tril(np.ones((SEATS, SEATS), bool))[..., None]
    before = jnp.sum(jnp.where(through, ~out, False), axis=1)  # left seats up to each
    place = jnp.sum(order >= 0, axis=0) + before - 1
    late = jnp.sum(jnp.where(~out & (place == _SEAT[:, None]), _SEAT, 0), axis=1)
    return jnp.where(order >= 0, order, late).astype(jnp.int8)


def partner_place(order: jax.Array) -> jax.Array:
    """int[B], 2 to 4: the place of the first out's partner in a complete order."""
    partner = (order[0] + 2) & 3
    return 1 + jnp.sum(jnp.where(order == partner, _SEAT, 0), axis=0)


def finish_round(state: State, over: jax.Array) -> State:
    """Places, levels, failures, the owner and the rewards where a round is `over` bool[B]."""
    rules, book = state.game.rules, state.game.rules.book
    order = complete_order(state.order)
    place = partner_place(order)
    side = team(order[0])  # Y
    won = 5 - place  # levels: 3, 2, 1
    at_top = state.level == TOP
    owned = at_top & (state.owner == side)
    passed = owned & (place <= book.pass_a_place)

    mine = _TEAM == side
    upgraded = jnp.where(mine, jnp.minimum(state.levels + won, TOP), state.levels)
    if book.fail_rule == "owned":
        failing = (_TEAM == state.owner) & at_top
    elif book.fail_rule == "standing":
        failing = mine & (pick(state.levels, side) == TOP)
    else:
        failing = mine & owned & (place == SEATS)
    fails = jnp.minimum(state.fails + (failing & ~passed), 100)  # int8; no limit is higher
    demoted = failing & ~passed & (fails >= book.fail_limit) if book.fail_limit else failing & False
    levels = jnp.where(demoted, 0, jnp.where(passed, state.levels, upgraded))
    demotions = state.demotions + jnp.any(demoted, axis=0)

    ended, winner, truncated = passed, side, jnp.zeros_like(passed)
    draw = jnp.zeros_like(passed)
    if book.demotion_cap:
        capped = demotions >= book.demotion_cap
        leader = jnp.where(levels[0] == levels[1], state.owner, levels[1] > levels[0])
        ended = passed | capped
        winner = jnp.where(passed, side, leader)
        draw = capped & ~passed & book.cap_draws
    rounds = state.rounds + 1
    points = jnp.where(draw, 0.0, 1.0)
    if rules.unit == "round":
        ended, winner, points = jnp.ones_like(passed), side, won / 3.0
    else:
        truncated = ~ended & (rounds >= rules.max_rounds)
    rewards = jnp.where(team(_SEAT) == winner, points, -points)

    def change(new, old):
        return jnp.where(over, new, old).astype(old.dtype)

    return state.replace(
        order=change(order, state.order),
        levels=change(levels, state.levels),
        owner=change(side, state.owner),
        level=jnp.where(over & ~ended & ~truncated, pick(levels, side), state.level).astype(
            jnp.int8
        ),
        fails=change(jnp.where(demoted, 0, fails), state.fails),
        demotions=change(demotions, state.demotions),
        rounds=change(rounds, state.rounds),
        rewards=jnp.where(over & ended, rewards, state.rewards).astype(jnp.float32),
        terminated=state.terminated | (over & ended),
        truncated=state.truncated | (over & truncated),
    )
