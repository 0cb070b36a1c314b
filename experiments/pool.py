"""Ratings of a pool during training: the learner, some of its former selves, and the opponents of
the evaluation, in one fit of full rankings with ties (Plackett-Luce; of two teams that is Bradley
and Terry's).

These games are few and the pool changes as the learner does: what a run is judged by are the
evaluations against fixed opponents, ratings come second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import arena, free_for_all
from algorithms.agents import Agent, Seat
from algorithms.plackett_luce import Ranking, plackett_luce
from jaxgames.core import Game

#: Name of the learner as it is now.
LEARNER = "learner"
PRIOR = 1.0


def seats(
    agent: Agent, params: Any, former: Sequence[tuple[int, Any]], number: int
) -> dict[str, Seat]:
    """The learner and at most `number` of its former selves (updates, weights), evenly from the
    oldest to the newest; all play as `agent` does."""
    if len(former) > number:
        places = np.linspace(0, len(former) - 1, number).round().astype(int)
        former = [former[i] for i in places]
    weights = {LEARNER: params} | {str(updates): params for updates, params in former}
    return {name: Seat(agent, jax.tree.map(jnp.asarray, w)) for name, w in weights.items()}


def rate(
    game: Game, seats: Mapping[str, Seat], pairs: int, seed: int, opening: int
) -> dict[str, float]:
    """`rating/NAME` of every seat in logistic Elo above the first one, with `/low` and `/high`, two
    standard deviations to both sides, and `payoff/NAME/OTHER`, how often it is placed above the
    other, a tie being half."""
    names, players = list(seats), list(seats.values())
    numbers = range(len(names))
    if game.num_teams == 2:
        met = arena.round_robin(game, players, pairs, seed, opening=opening)
        above = {(i, j): one.winrate.mean for (i, j), one in met.items()}
        rankings = _of_two({key: one.scores for key, one in met.items()})
    else:
        games = free_for_all.play(game, players, pairs, seed, opening=opening)
        above = {(i, j): games.above(i, j).mean for i in numbers for j in numbers if i < j}
        rankings = games.rankings
    ratings = plackett_luce(rankings, len(names), 0, PRIOR)
    values: dict[str, float] = {}
    for name, rating in zip(names, ratings, strict=True):
        values |= {
            f"rating/{name}": rating.mean,
            f"rating/{name}/low": rating.low,
            f"rating/{name}/high": rating.high,
        }
    for (i, j), share in above.items():
        values[f"payoff/{names[i]}/{names[j]}"] = share
        values[f"payoff/{names[j]}/{names[i]}"] = 1.0 - share
    return values


def _of_two(scores: Mapping[tuple[int, int], np.ndarray]) -> dict[Ranking, float]:
    """How often each ranking came out, of scores 1, 1/2 and 0 of the first of two agents."""
    found: dict[Ranking, float] = {}
    for (i, j), score in scores.items():
        for ranking, hits in (
            (((i,), (j,)), score > 0.5),
            (((j,), (i,)), score < 0.5),
            (((i, j),), score == 0.5),
        ):
            found[ranking] = float(np.sum(hits))
    return {ranking: times for ranking, times in found.items() if times}
