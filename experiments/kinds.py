"""The agents that can be trained: how each is built, played, and kept as a bundle."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax

from algorithms import agents, alphazero, dqn, imitation, muzero, ppo
from algorithms.learner import Learner
from algorithms.networks.model import Model, build
from algorithms.search.config import SearchConfig
from jaxgames.core import Game


@dataclasses.dataclass(frozen=True)
class Kind:
    """Attributes:
    make: its learner.
    section: key of its settings.
    head: what it plays by.
    network: key of the settings of its network.
    staged: whether its learner plays the stages of a curriculum.
    """

    make: Callable[..., Learner]
    section: str
    head: str = "policy"
    network: str = "network"
    staged: bool = False

    def model(self, game: Game, config: Any) -> Any:
        """Its network; raises ValueError("SECTION.FIELD: ...") for sizes that do not fit."""
        return build(game, config.network)

    def players(self, model: Any, config: Any) -> dict[str, agents.Agent]:
        """The agents "network" and "search" that evaluation during training plays."""
        return _players(model, config.train.eval.search, self.head)

    def weights(self, spec: str, model: Any) -> Any:
        """As `agents.weights`."""
        return agents.weights(spec, model)

    def shapes(self, model: Any) -> Any:
        """Shapes and dtypes of what a bundle holds."""
        return jax.eval_shape(model.init, jax.random.key(0))

    def about(self, config: Any, model: Any) -> dict[str, Any]:
        """Metadata of its bundles beside the network."""
        del config, model
        return {}


class MuZero(Kind):
    """The network is seen through a viewer, and a search steps what it has learned."""

    def model(self, game, config):
        return muzero.model(game, config.muzero.view, config.muzero_network)

    def players(self, model, config):
        return muzero.players(model, config.train.eval.search, config.muzero.thinking)

    def weights(self, spec, model):
        return muzero.weights(spec, model)

    def shapes(self, model):
        return muzero.shapes(model)

    def about(self, config, model):
        return muzero.describe(config.muzero.thinking, model.viewer.size)


KINDS = {
    "alphazero": Kind(alphazero.make, "alphazero", staged=True),
    "mcts_dqn": Kind(dqn.make, "dqn", "q", staged=True),
    "ppo": Kind(ppo.make, "ppo"),
    "imitation": Kind(imitation.make, "imitation"),
    "muzero": MuZero(muzero.make, "muzero", network="muzero_network", staged=True),
}


@functools.cache  # equal agents are then the same one, compiled once
def _players(model: Model, search: SearchConfig, head: str) -> dict[str, agents.Agent]:
    return {
        "network": agents.network_agent(model.game, model, head=head),
        "search": agents.search_agent(model.game, model, search, head=head),
    }
