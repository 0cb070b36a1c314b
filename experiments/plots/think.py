"""What an agent thinks of one position, on the host."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from algorithms import agents
from algorithms.search import outline
from experiments.plots.picture import PlotError
from jaxgames.core import State

#: Nodes of a tree that are told, and children of each: what a page can show.
NODES, TOP = 24, 4


@dataclasses.dataclass(frozen=True)
class Thought:
    """Attributes:
    name: of the agent.
    action: int, its choice.
    prior, visits, weights: float[A], see `algorithms.agents.Analysis`; zero for a bot.
    q: float[A], for the team to move; nan where unknown.
    value: float[P], per seat; nan for a bot.
    tree: the search tree (`search.outline.branches`); None without a search.
    """

    name: str
    action: int
    prior: np.ndarray
    visits: np.ndarray
    weights: np.ndarray
    q: np.ndarray
    value: np.ndarray
    tree: dict[str, Any] | None = None


def think(
    state: State, agent: str | agents.Seat = "", seed: int = 0, nodes: int = NODES
) -> Thought:
    """`agent` about the position: a spec (`agents.from_spec`; empty: the default player) or a
    seat.

    Raises:
      PlotError: the game is over. agents.AgentError, bundle.BundleError: no such agent.
    """
    game = state.game
    if bool(state.done):
        raise PlotError("plot.ply: the game is over there, nobody is to move")
    if isinstance(agent, str):
        agent = agents.from_spec(agent or agents.default_spec(game), game)
    states = jax.tree.map(lambda leaf: leaf[None], state)
    keys = jax.random.key(seed)[None]
    made = _programs(agent.agent)
    if made.search is not None:
        search = made.search(agent.params, keys, states, states.current_player)
        found, tree = jax.device_get((made.read(search), made.outline(search)))
        one = jax.tree.map(lambda leaf: leaf[0], tree)
        told = outline.branches(game, one, top=TOP, nodes=nodes)
    elif made.analyse is not None:
        found = made.analyse(agent.params, keys, states, states.current_player)
        found, told = jax.device_get(found), None
    else:
        action = int(made.act(agent.params, keys, states, states.current_player)[0])
        nothing, unknown = np.zeros(game.num_actions), np.full(game.num_actions, np.nan)
        one = np.eye(1, game.num_actions, action)[0]
        value = np.full(game.num_players, np.nan)
        return Thought(agent.agent.name, action, nothing, nothing, one, unknown, value)
    return Thought(
        name=agent.agent.name,
        action=int(found.action[0]),
        prior=np.asarray(found.prior[0], np.float64),
        visits=np.asarray(found.visits[0], np.float64),
        weights=np.asarray(found.weights[0], np.float64),
        q=np.asarray(found.q[0], np.float64),
        value=np.asarray(found.value[0], np.float64)[np.asarray(game.team_of)],
        tree=told,
    )


@dataclasses.dataclass(frozen=True)
class _Programs:
    """What is compiled of an agent; `search` runs to its end."""

    act: Any
    analyse: Any
    search: Any
    read: Any
    outline: Any


@functools.lru_cache(maxsize=8)
def _programs(agent: agents.Agent) -> _Programs:
    rounds, analyse = agent.rounds, agent.analyse
    if rounds is None:
        return _Programs(jax.jit(agent.act), analyse and jax.jit(analyse), None, None, None)

    def search(params, keys, states, player):
        begun = rounds.begin(params, keys, states, player)
        return rounds.advance(params, begun, rounds.simulations)

    return _Programs(None, None, jax.jit(search), jax.jit(rounds.read), jax.jit(rounds.outline))
