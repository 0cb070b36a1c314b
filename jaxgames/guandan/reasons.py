"""What the strong bot finds: facts about actions and hands for a network to learn from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.batch import settle
from jaxgames.guandan import actions, cards, legality, plan, strong
from jaxgames.guandan.deal import pick
from jaxgames.guandan.rules import SEATS
from jaxgames.reasons import Reasons

#: Of every action, after how far its score lies behind the best one's: what it leaves in hand (its
#: value behind the best candidate's in turns, plays, weak plays), whether it holds, what it is,
#: whether an opponent or the partner could just go out over it, whose play it beats, and last
#: the best candidate's value, which is the hand's.
FACTS = (
    *("value", "plays", "weak", "hold", "sure", "wins", "bomb", "wilds", "size", "pass"),
    *("gift", "feed", "over opponent", "over partner", "hand"),
)
FAR = 4.0  #: turns behind; more makes no difference


def reasons(state) -> Reasons:
    """The facts about the strong bot's candidates, see `jaxgames.reasons.Reasons`."""
    return Reasons(*batch.batch_last(_reasons)(state))


def _reasons(state) -> tuple[jax.Array, jax.Array, jax.Array]:
    judged = strong.judge(state, strong.WEIGHTS)
    option, view = judged.option, judged.view
    opponents = ~view.on_lead & (view.ahead != 2)
    partners = ~view.on_lead & (view.ahead == 2)
    behind = lambda x: jnp.clip(x - jnp.max(x, axis=0), -FAR, 0.0)  # noqa: E731
    value = jnp.clip(option.value, -16.0, 16.0)
    facts = [
        behind(judged.score),
        behind(value),
        option.plays / 8,
        option.weak / 8,
        option.hold,
        option.sure,
        option.wins,
        option.bomb,
        jnp.asarray(actions.WILDS)[judged.action.astype(jnp.int32)] / 2,
        option.size / 6,
        option.size == 0,
        (option.size == view.left) | (option.size == view.right),
        option.size == view.partner,
        jnp.broadcast_to(opponents, value.shape),
        jnp.broadcast_to(partners, value.shape),
        jnp.broadcast_to(jnp.max(value, axis=0) / 8, value.shape),
    ]
    facts = jnp.stack([jnp.asarray(x, jnp.float32) for x in facts], axis=1)
    number = jnp.sum(state.legal_action_mask, axis=0)
    listed = np.arange(strong.CANDIDATES)[:, None] < number  # the rest only repeats one
    action = jnp.where(listed, judged.action.astype(jnp.int32), -1)
    return strong.best(judged), action, jnp.where(listed[:, None], facts, 0.0)


#: What `worths` says of every hand.
WORTH = ("value", "plays", "weak")


def worths(state, player) -> jax.Array:
    """float32[12], how the four hands fall into plays (`WORTH` of each), the seat `player` first,
    each against the true hands of its opponents. All hands are looked at."""
    return batch.batch_last(_worths)(state, jnp.int32(player))


def _worths(state, player) -> jax.Array:
    seats = [pick(state.hands, (player + i) & 3) for i in range(SEATS)]
    size = player.shape[-1]
    hands = jnp.concatenate(seats, axis=-1)  # one after the other along the batch
    level = jnp.tile(state.level.astype(jnp.int32), SEATS)
    theirs = [jnp.concatenate([seats[(i + 1) & 3], seats[(i + 3) & 3]]) for i in range(SEATS)]
    theirs = settle(strong.per_rank(jnp.concatenate(theirs, axis=-1)))[0]
    many = cards.count(hands)
    most = jnp.maximum(jnp.roll(many, -size), jnp.roll(many, size))
    everything = jnp.ones(level.shape, jnp.float32)
    held = legality.hold(hands, level)
    holds = strong.holds(theirs, level, everything, most, strong.WEIGHTS)
    rates = strong.rates_of(holds.chance, holds.sure, strong.WEIGHTS)
    rates = jax.tree.unflatten(jax.tree.structure(rates), settle(*jax.tree.leaves(rates)))
    found = plan.best_worth(plan.plans(held, rates).total)
    values = [jnp.clip(found.value / plan.UNIT, -16.0, 16.0) / 8, found.plays / 8, found.weak / 8]
    values = jnp.stack([x.reshape(SEATS, size) for x in values], axis=1)
    return values.reshape(SEATS * len(WORTH), size).astype(jnp.float32)
