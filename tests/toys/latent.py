"""A MuZero network of a few dense layers: the seam of `algorithms.networks.muzero`, compiled in a
moment."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from algorithms.networks.muzero import Entry, Prediction, add, empty_bank, expected
from jaxgames.core import Game


@dataclasses.dataclass(frozen=True)
class Switches:
    hidden: int = 32
    reward: bool = True
    consistency: bool = True
    auxiliary: bool = False
    memory: bool = False
    memory_size: int = 8
    focus: bool = False


@dataclasses.dataclass(frozen=True)
class Dense:
    """Latents float32[B, hidden]."""

    game: Game
    viewer: Any
    config: Switches = Switches()

    @property
    def atoms(self):
        return tuple(self.game.outcomes or (-1.0, -0.5, 0.0, 0.5, 1.0))

    @property
    def reads_bank(self):
        return self.config.memory

    @property
    def looks(self):
        return self.config.focus

    def init(self, key):
        shapes = jax.eval_shape(self._see, jax.random.key(0))
        size = sum(x.size for x in jax.tree.leaves(shapes))
        hidden, actions, teams = self.config.hidden, self.viewer.num_actions, self.game.num_teams
        outs = dict(
            see=(size, hidden), step=(hidden + actions, hidden), policy=(hidden, actions),
            outcome=(hidden, teams * len(self.atoms)), reward=(hidden, teams),
            project=(hidden, 8), forecast=(8, 8), recall=(teams, hidden),
        )  # fmt: skip
        if self.config.focus:
            rows, cols = self.viewer.heat_shape
            outs["heat"] = (size, rows * cols)
        keys = jax.random.split(key, len(outs))
        return {
            name: jax.random.normal(k, shape) / shape[0] ** 0.5
            for k, (name, shape) in zip(keys, outs.items(), strict=True)
        }

    def _see(self, key):
        state = self.game.init(key)
        return self.viewer.observe(state, jnp.int32(0), self.viewer.focus(state))

    def represent(self, params, observation, bank=None):
        latent = jnp.tanh(_flat(observation) @ params["see"])
        if bank is not None:
            near = jax.nn.softmax(latent @ bank.entries.key.T)
            told = jnp.tanh(near @ bank.entries.value @ params["recall"])
            latent = latent + jnp.where(bank.count > 0, told, 0.0)
        return latent

    def predict(self, params, latent):
        shape = (latent.shape[0], self.game.num_teams, len(self.atoms))
        outcome = (0.3 * latent @ params["outcome"]).reshape(shape)
        aux = None
        if self.config.auxiliary:
            logits = latent @ params["policy"]
            shape = (latent.shape[0], *self.viewer.board_shape, self.game.num_players, 4)
            runs = jnp.broadcast_to(latent[:, 1, None, None, None, None], shape)
            aux = {"next_action": -logits, "plies_left": latent[:, 0], "runs": runs}
        value = expected(outcome, self.atoms, self.game.reward_sum)
        return Prediction(0.3 * latent @ params["policy"], outcome, value, aux)

    def dynamics(self, params, latent, action):
        moved = jax.nn.one_hot(action, self.viewer.num_actions)
        after = jnp.tanh(jnp.concatenate([latent, moved], axis=-1) @ params["step"])
        return after, after @ params["reward"] if self.config.reward else None

    def project(self, params, latent):
        return latent @ params["project"]

    def forecast(self, params, projected):
        return projected @ params["forecast"]

    def heat(self, params, observation):
        return _flat(observation) @ params["heat"] if self.config.focus else None

    def empty_bank(self):
        return empty_bank(self.config.memory_size, self.config.hidden, self.game.num_teams)

    def bank_entry(self, latent, value):
        return Entry(latent, value, jnp.zeros(value.shape[0]))


def _flat(observation):
    leaves = [x.reshape(x.shape[0], -1).astype(jnp.float32) for x in jax.tree.leaves(observation)]
    return jnp.concatenate(leaves, axis=1)


def remembering(model, value):
    """A bank of which every entry says `value` float32[T]."""
    size = model.config.memory_size
    keys = jnp.ones((size, model.config.hidden))
    values = jnp.broadcast_to(jnp.asarray(value, jnp.float32), (size, len(value)))
    bank = model.empty_bank()
    return add(bank, Entry(keys, values, jnp.zeros(size)), jnp.ones(size, bool))
