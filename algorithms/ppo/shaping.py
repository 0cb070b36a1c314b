"""Shaping that can not be farmed: a nudge towards what a game calls good habits.

A seat's potential is what it has earned by the game's `shaping_terms` in the round so far, each
term weighted and kept within its cap. Potential p before a decision and p' before the seat's
next one pay F = discount * p' - p, where p' is 0 once the round is over (Ng, Harada, Russell,
"Policy invariance under reward transformations", 1999): what is earned is paid at once and
repaid by the round's last decision. From any decision on, the discounted sum is -p, whatever
is played; from the first one it is 0. A cap bounds what is ever owed.

F belongs to the seat that moved, not to its team, so it does not go among the rewards. It is
added to the policy's advantages; values and their targets stay those of the game. With lam = 1
the advantage of F is -p, which no action changes. With lam < 1 what comes later counts less,
the repayment too, and (with p, known before the action, added as a baseline) there remains

    advantage_k = discount * (1 - lam) * sum_j (discount * lam)^j p_(k + j + 1)

This is the nudge. A critic that knew p would leave nothing of it (Wiewiora, "Potential-based
shaping and Q-value initialization are equivalent", 2003); as p is no part of what networks see,
it would go on for ever, and a policy would come to prefer a useless action for its bonus. So
it fades over the first `updates` updates, about as many as a critic would take to learn p; from
then on the learner is the one without shaping. What a nudge has left behind in between only
the game's own rewards and the entropy bonus mend: keep `updates` small.

Letters: S steps, B games, P seats, K terms.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.learner import Metrics, mean, require
from algorithms.selfplay import Played
from jaxgames.core import Array, Game, State, nearest


@dataclasses.dataclass(frozen=True)
class ShapingConfig:
    """Attributes:
    terms: those of the game's `shaping_terms` that count; none: no shaping.
    weights: of each of them, in units of reward.
    caps: what each may add to a seat's potential in a round at most, or take away.
    updates: the weights fall along a line to 0 over so many updates of own play.
    """

    terms: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    caps: tuple[float, ...] = ()
    updates: int = 20

    def __post_init__(self):
        require(self, "terms", len(set(self.terms)) == len(self.terms), "each once")
        for field in ("weights", "caps"):
            values = getattr(self, field)
            require(self, field, len(values) == len(self.terms), f"{len(self.terms)}, one per term")
            require(self, field, all(0.0 <= x <= 1e3 for x in values), "each 0 to 1000")
        require(self, "updates", self.updates >= 1, "at least 1")


def check(game: Game, config: ShapingConfig) -> None:
    """Raises ValueError("shaping.terms: ...") for a term that the game does not have."""
    for name in config.terms:
        if name not in game.shaping_terms:
            known = nearest(name, game.shaping_terms) if game.shaping_terms else "; it has none"
            raise ValueError(f"shaping.terms: unknown name {name!r}{known}")


def start(game: Game, config: ShapingConfig, games: int) -> Array:
    """float32[B, P, K], what each seat has earned in its round: nothing."""
    return jnp.zeros((games, game.num_players, len(config.terms)), jnp.float32)


def share(config: ShapingConfig, own_updates: Array) -> Array:
    """float32[], what is left of the weights after so many updates of own play."""
    return 1.0 - jnp.clip(own_updates / config.updates, 0.0, 1.0)


def judge(game: Game, config: ShapingConfig, played: Played, last: State) -> tuple[Array, Array]:
    """What every step earned its mover, and where rounds ended.

    Args:
      last: [B], the positions after the last step (fresh ones where a game ended).

    Returns:
      float32[S, B, K], the terms in the order of the config; bool[S, B]. What ends a round
      earns nothing: it would be repaid at once.
    """
    before = played.state
    # Where a game ended this is another game's first position; nothing is read from it.
    after = jax.tree.map(lambda x, end: jnp.concatenate([x[1:], end[None]]), before, last)
    number = jax.vmap(jax.vmap(game.round_number))
    ends = played.done | (number(after) != number(before))
    places = np.array([game.shaping_terms.index(name) for name in config.terms], np.int32)
    terms = jax.vmap(jax.vmap(game.shaping))(before, played.action, after)[..., places]
    return jnp.where(ends[..., None], 0.0, terms), ends


def potential(config: ShapingConfig, earned: Array) -> Array:
    """float32[...] of sums of terms float32[..., K]."""
    caps = np.array(config.caps, np.float32)
    return jnp.clip(earned * np.array(config.weights, np.float32), -caps, caps).sum(-1)


def potentials(
    config: ShapingConfig, earned: Array, seat: Array, terms: Array, ends: Array
) -> tuple[Array, Array]:
    """The potential of each mover before its decision, along a stretch of play.

    Args:
      earned: float32[B, P, K], of the seats before the first step.
      seat: int32[S, B], who decided; terms, ends: as `judge` returns them.

    Returns:
      float32[B, P, K], what is earned after the last step, and float32[S, B].
    """
    seats = np.arange(earned.shape[1])

    def step(earned, now):
        seat, terms, ends = now
        moves = (seats == seat[:, None])[..., None]  # [B, P, 1]
        mine = jnp.where(moves, earned, 0.0).sum(1)
        earned = jnp.where(moves, earned + terms[:, None], earned)
        return jnp.where(ends[:, None, None], 0.0, earned), potential(config, mine)

    return jax.lax.scan(step, earned, (seat, terms, ends))


def advantages(
    potential: Array, ends: Array, seat: Array, players: int, discount: float, lam: float
) -> Array:
    """Generalised advantages of F, one sequence per seat, values taken as 0; float32[S, B].

    What is owed where the stretch ends counts as repaid there, so that with lam = 1 they are
    exactly -potential.

    Args:
      potential: float32[S, B], of the mover before its decision; ends: bool[S, B], the round
        ended with that step; seat: int32[S, B].
      discount, lam: as in `returns.seat_advantages`.
    """
    seats = np.arange(players)

    def back(later, step):
        owed, gain = jax.tree.map(lambda x: jnp.where(step[1][:, None], 0.0, x), later)
        here = step[0][:, None]
        gained = discount * owed - here + discount * lam * gain  # [B, P]
        moves = seats == step[2][:, None]
        later = (jnp.where(moves, here, owed), jnp.where(moves, gained, gain))
        return later, jnp.where(moves, gained, 0.0).sum(1)

    nothing = jnp.zeros((potential.shape[1], players), jnp.float32)
    return jax.lax.scan(back, (nothing, nothing), (potential, ends, seat), reverse=True)[1]


def shape(
    game: Game,
    config: ShapingConfig,
    earned: Array,
    played: Played,
    last: State,
    updates: Array,
    discount: float,
    lam: float,
) -> tuple[Array, Array, Metrics]:
    """(earned, nudge, metrics): what is earned after the stretch float32[B, P, K], and what
    shaping adds to the mover's advantages, float32[S, B].

    Args:
      updates: int32[], of own play so far. Metrics speak of the network's own decisions
        (`played.note["own"]`, bool[S, B]).
    """
    seat, own, left = played.state.current_player, played.note["own"], share(config, updates)
    terms, ends = judge(game, config, played, last)
    earned, before = potentials(config, earned, seat, terms, ends)
    gained = advantages(before, ends, seat, game.num_players, discount, lam)
    metrics = {f"shaping/{name}": mean(terms[..., i], own) for i, name in enumerate(config.terms)}
    metrics |= {"shaping/potential": mean(before, own), "shaping/share": mean(left)}
    return earned, left * (gained + before), metrics
