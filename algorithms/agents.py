"""Agents: one face for bots, networks and searches.

`act` and `analyse` take a batch of states and are jittable; the weights travel beside the
agent in a `Seat`, so that new weights need no new compilation. An agent sees a state only
through `game.observe`, `game.resample` and the legal mask of the seat to move.

Letters: B batch, A actions, T teams.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgames.core import Array, Game, State, nearest

#: (params, key[] or key[B], states[B], player int32[B]) -> int32[B]
Act = Callable[[Any, Array, State, Array], Array]


class AgentError(ValueError):
    """A text that names no agent; `field` is the offending part."""

    def __init__(self, field: str, message: str):
        super().__init__(f"{field}: {message}")
        self.field = field


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Analysis:
    """What an agent thinks of a batch of positions.

    Attributes:
      action: int32[B], its choice.
      weights: float32[B, A], its distribution over actions.
      value: float32[B, T], absolute team order.
      prior: float32[B, A], the network's distribution over legal actions.
      visits: float32[B, A], search visits over all worlds; zero without a search.
      q: float32[B, A], value of each action for the team to move; nan where unknown.
    """

    action: Array
    weights: Array
    value: Array
    prior: Array
    visits: Array
    q: Array


@dataclasses.dataclass(frozen=True)
class Agent:
    """Attributes:
    name: shown to people.
    act: see `Act`. With key[B] the rows are independent of each other where the agent
      allows it (bots, networks); a search draws for its whole batch from the first key.
    analyse: as `act`, returns `Analysis`; None for agents with nothing to show.
    capacity: rows it likes to act on at once.
    """

    name: str
    act: Act
    analyse: Callable[[Any, Array, State, Array], Analysis] | None = None
    capacity: int = 1024


@dataclasses.dataclass(frozen=True)
class Seat:
    """An agent with its weights (None for bots)."""

    agent: Agent
    params: Any = None


def row_keys(key: Array, rows: int) -> Array:
    """key[rows] from one key, or the given key[rows]."""
    return key if key.ndim else jax.random.split(key, rows)


def batch_key(key: Array) -> Array:
    """One key for the whole batch."""
    return key[0] if key.ndim else key


def bot_agent(game: Game, name: str) -> Agent:
    """A rule bot of `game.bots`. Raises AgentError with the nearest names."""
    bots = game.bots
    if name not in bots:
        raise AgentError("agent", f"unknown name {name!r}{nearest(name, bots)}")
    bot = bots[name]

    def act(params, key, states, player):
        del params
        return jax.vmap(bot)(states, row_keys(key, player.shape[0])).astype(jnp.int32)

    return Agent(name, act)


def from_spec(spec: str, game: Game) -> Seat:
    """The agent that `spec` names: `NAME[:OPTION[=VALUE]]...`, NAME a bot of the game."""
    name, *options = spec.split(":")
    if name in game.bots:
        if options:
            raise AgentError("agent", f"{spec!r}: the bot {name} takes no options")
        return Seat(bot_agent(game, name))
    raise AgentError("agent", f"unknown name {name!r}{nearest(name, game.bots)}")
