"""Rule bots: `(state, key) -> action` for the seat to move, from what that seat may know."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.guandan import actions, cards, legality, strong
from jaxgames.guandan.actions import Kind

_KEY = np.where(actions.KIND == Kind.FULL_HOUSE, actions.EXTRA, actions.KEY).astype(np.int32)
_BY_POWER = np.isin(
    actions.KIND, (Kind.SINGLE, Kind.PAIR, Kind.TRIPLE, Kind.FULL_HOUSE, Kind.BOMB, Kind.RETURN)
)
_PAIR = np.where(actions.KIND == Kind.FULL_HOUSE, actions.KEY, 0).astype(np.int32)


def greedy(state, key):
    """The smallest play that beats the table, bombs last, and a pass only when there is none.

    On lead the play of the lowest key, the most cards first among equal keys. Fewer wilds go
    first. Ties at random.
    """
    level = state.level.astype(jnp.int32)
    power = lambda rank: jnp.where(  # noqa: E731
        rank == level, 12, jnp.where(rank >= cards.NUM_RANKS, rank, rank - (rank > level))
    )
    key_rank = jnp.where(_KEY == actions.WILD_KEY, level, _KEY)
    strength = jnp.where(_BY_POWER, power(key_rank), _KEY)
    cost = 100.0 * strength + 20.0 * actions.WILDS + power(_PAIR)
    cost += jnp.where(state.table < 0, -actions.SIZE, 0)
    cost += 1e4 * (1 + legality.TIER)  # bombs by the ladder; -1 of what is none
    cost = jnp.where(np.arange(actions.NUM_ACTIONS) == actions.PASS, 1e6, cost)
    cost = jnp.where(state.legal_action_mask, cost, jnp.inf)
    return core.choose_uniform(cost == jnp.min(cost), jax.random.uniform(key))


BOTS = {"random": core.random_bot, "greedy": greedy, "strong": strong.strong}
