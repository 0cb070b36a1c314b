"""Single games written down while training, for people to look at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from algorithms.agents import Agent, Seat
from jaxgames import record
from jaxgames.core import Game
from jaxgames.match import Match


def play(
    game: Game, seats: Sequence[Seat], names: Sequence[str], seed: int, meta: dict[str, Any]
) -> record.Record:
    """One game to its end, an agent per seat; `seed` decides the deal and all the agents draw."""
    match = Match(game, seed)
    key = jax.random.fold_in(jax.random.key(seed), 1)
    while not match.done:
        legal = np.flatnonzero(match.state.legal_action_mask)
        seat = seats[match.seat]
        if legal.size == 1:
            match.play(int(legal[0]))
        else:
            choice = jax.random.fold_in(key, match.ply)
            match.play(int(_act(seat.agent)(seat.params, choice, match.state)))
    return record.from_match(match, names, meta=meta)


@functools.lru_cache(maxsize=16)
def _act(agent: Agent) -> Callable:
    """`(params, key, state) -> action` for one position."""

    def act(params, key, state):
        states = jax.tree.map(lambda x: x[None], state)
        return agent.act(params, key, states, states.current_player)[0]

    return jax.jit(act)
