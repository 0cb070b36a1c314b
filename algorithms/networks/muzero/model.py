"""The seam between the MuZero network and its learner and search.

    model = build(game, viewer, MuZeroNetworkConfig())
    params = model.init(jax.random.key(0))                      # plain nested dict of float32
    latent = model.represent(params, observation)               # every leaf [B, ...]
    prediction = model.predict(params, latent)
    latent, reward = model.dynamics(params, latent, action)     # the next mover's

A latent is float32[B, N, D]: a token for each patch of the board, for each slot of the view, and a
summary (`grid`), each of root mean square 1, or 0 for a patch off the board and a slot not used;
so it stays bounded however far it is unrolled.

Letters: B batch, V actions of the view, T teams, O atoms of a value, N tokens, D width.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from algorithms.networks.muzero import memory
from algorithms.networks.muzero.backbone import Layer, Slots, Tokens
from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.consistency import Consistency
from algorithms.networks.muzero.dynamics import Dynamics
from algorithms.networks.muzero.focus import Focus
from algorithms.networks.muzero.grid import Grid
from algorithms.networks.muzero.heads import Auxiliary, Policy, Summed
from algorithms.networks.muzero.layers import keep, unit
from algorithms.networks.muzero.patterns import Patterns
from algorithms.networks.muzero.value import atoms_of, expected
from jaxgames.core import Array, Game
from jaxgames.view import Viewer

Params = Any


class Prediction(NamedTuple):
    """What is said of a batch of latents.

    Attributes:
      logits: float32[B, V], not masked.
      outcome_logits: float32[B, T, O] over `model.atoms`, the mover's team first.
      value: float32[B, T], their means, the mover first; sums to `game.reward_sum` if that is
        constant.
      aux: see `heads.Auxiliary`; None without.
    """

    logits: Array
    outcome_logits: Array
    value: Array
    aux: dict[str, Array] | None


class Network(nnx.Module):
    """All parts; see the modules they come from."""

    def __init__(self, model: Model):
        c, game, grid, spec = model.config, model.game, model.grid, model.observation_spec
        self.config, self.atoms, self.total = c, model.atoms, game.reward_sum
        self.tokens = Tokens(c, grid, game.num_players, spec)
        for i in range(c.layers):
            setattr(self, f"layer{i}", Layer(c, grid.places))
        self.has_slots, self.has_gaps = grid.slots > 0, grid.slots > 0 or c.stones
        if grid.slots:
            self.slots = Slots(grid.slots, model.viewer.slot_width, c.width)
        self.step = Dynamics(c, grid)
        self.policy = Policy(c, grid)
        self.outcome = Summed(c.width, (game.num_teams, len(self.atoms)))
        if c.reward:
            self.rewards = Summed(c.width, (game.num_teams,))
        if c.consistency:
            self.consistency = Consistency(c.width, c.projection, c.prediction)
        if c.auxiliary:
            self.auxiliary = Auxiliary(c, grid, game.num_players)
        if c.memory:
            self.memory = memory.Memory(c, game.num_teams)
        if c.patterns:
            self.patterns = Patterns(c, grid, game.num_players)
        if model.looks:
            planes, features = spec["whole"].shape[-1], spec["features"].shape[-1]
            self.focus = Focus(planes, features, c.focus_width)

    def represent(self, observation: dict[str, Array], bank: memory.Bank | None) -> Array:
        h, there = self.tokens(observation)
        for i in range(self.config.layers):
            # Lines are asked for once tokens have seen each other.
            if self.config.patterns and i == min(1, self.config.layers - 1):
                h = self.patterns(h, observation)
            h = getattr(self, f"layer{i}")(h, there)
        if self.has_slots:
            slots, used = self.slots(observation["features"])
            there = jnp.ones(h.shape[:2], bool) if there is None else there
            put = lambda x, y: jnp.concatenate([x[:, :-1], y, x[:, -1:]], axis=1)  # noqa: E731
            h, there = put(h, slots), put(there, used)
        latent = keep(unit(h), there)
        return latent if bank is None else self.memory(latent, bank)

    def predict(self, latent: Array) -> Prediction:
        outcome = self.outcome(latent, self._there(latent))
        value = expected(outcome, self.atoms, self.total)
        aux = self.auxiliary(latent, self._there(latent)) if self.config.auxiliary else None
        return Prediction(self.policy(latent), outcome, value, aux)

    def dynamics(self, latent: Array, action: Array) -> tuple[Array, Array | None]:
        there = self._there(latent)
        latent = self.step(latent, action, there)
        return latent, self.rewards(latent, there) if self.config.reward else None

    def project(self, latent: Array) -> Array:
        return self.consistency.project(latent, self._there(latent))

    def forecast(self, projected: Array) -> Array:
        return self.consistency.forecast(projected)

    def heat(self, observation: dict[str, Array]) -> Array:
        whole = observation["whole"].astype(jnp.float32) * self.config.whole_scale
        return self.focus(whole, observation["features"])

    def _there(self, latent: Array) -> Array | None:
        """bool[B, N], tokens that say something; None: all."""
        return (latent != 0).any(-1) if self.has_gaps else None


@dataclasses.dataclass(frozen=True)
class Model:
    """A network's functions; hashable, equal for equal game, viewer and sizes."""

    game: Game
    viewer: Viewer
    config: MuZeroNetworkConfig

    @property
    def grid(self) -> Grid:
        """Tokens and actions of the view."""
        v = self.viewer
        return Grid(*v.board_shape, self.config.patch, v.num_actions, v.slots)

    @property
    def atoms(self) -> tuple[float, ...]:
        """O values that a seat's outcome is distributed over."""
        return atoms_of(self.game, self.config.bins)

    @property
    def observation_spec(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes and dtypes of one observation of the viewer."""
        return _observation_spec(self.game, self.viewer)

    @property
    def latent_shape(self) -> tuple[int, int]:
        """(N, D)."""
        return (self.grid.tokens, self.config.width)

    @property
    def reads_bank(self) -> bool:
        """Whether `represent` takes a bank."""
        return self.config.memory

    @property
    def looks(self) -> bool:
        """Whether there is a focus head, and something for it to see."""
        return self.config.focus and "whole" in self.observation_spec

    def init(self, key: Array) -> Params:
        """Fresh weights, a plain nested dict of float32 arrays; consumes `key`."""
        spreads = nnx.to_pure_dict(nnx.split(Network(self), nnx.Param)[1])
        sizes, structure = jax.tree.flatten(spreads)
        noise = jax.random.normal(key, (sum(x.size for x in sizes),))
        noise = jax.lax.optimization_barrier(noise)  # or it is drawn anew for every weight
        parts = jnp.split(noise, np.cumsum([x.size for x in sizes])[:-1])
        drawn = [x * part.reshape(x.shape) for x, part in zip(sizes, parts, strict=True)]
        return jax.tree.unflatten(structure, drawn)

    def represent(
        self, params: Params, observation: dict[str, Array], bank: memory.Bank | None = None
    ) -> Array:
        """Latents float32[B, N, D] of observations [B, ...], in the viewer's frame.

        Args:
          bank: what the episodic memory holds, one for all; None: nothing.
        """
        if bank is not None and not self.reads_bank:
            raise ValueError("bank: this network has no memory, set network.memory")
        return self._bind(params).represent(observation, bank)

    def predict(self, params: Params, latent: Array) -> Prediction:
        """What latents [B, N, D] say."""
        return self._bind(params).predict(latent)

    def dynamics(self, params: Params, latent: Array, action: Array) -> tuple[Array, Array | None]:
        """After actions int32[B] of the view: the latents of the next movers, and the rewards
        float32[B, T] of the moves, the seat that moved first (None without `reward`)."""
        return self._bind(params).dynamics(latent, action)

    def project(self, params: Params, latent: Array) -> Array:
        """P1: vectors float32[B, X] of latents, to be compared by their cosine."""
        return self._bind(params).project(latent)

    def forecast(self, params: Params, projected: Array) -> Array:
        """P2: from the projection of an unrolled latent to that of the real one, [B, X]."""
        return self._bind(params).forecast(projected)

    def heat(self, params: Params, observation: dict[str, Array]) -> Array | None:
        """Logits float32[B, h * w] over the coarse board for where to look; None where there is
        no focus head or no crop."""
        return self._bind(params).heat(observation) if self.looks else None

    def empty_bank(self) -> memory.Bank:
        """A bank with nothing in it."""
        return memory.empty_bank(self.config.memory_size, self.config.width, self.game.num_teams)

    def bank_entry(
        self, latent: Array, value: Array, priority: Array | float = 0.0
    ) -> memory.Entry:
        """Entries [B] for `memory.add`: latents that came to value float32[B, T], mover first."""
        priority = jnp.broadcast_to(jnp.asarray(priority, jnp.float32), value.shape[:1])
        return memory.Entry(memory.key_of(latent), value, priority)

    def num_params(self) -> int:
        """How many numbers the weights hold."""
        shapes = jax.eval_shape(self.init, jax.random.key(0))
        return sum(leaf.size for leaf in jax.tree.leaves(shapes))

    def _bind(self, params: Params) -> Network:
        return nnx.merge(_graph(self), params)


@functools.cache
def _graph(model: Model) -> nnx.GraphDef:
    abstract = nnx.eval_shape(lambda: Network(model))
    return nnx.split(abstract, nnx.Param)[0]


@functools.cache
def _observation_spec(game: Game, viewer: Viewer) -> dict[str, jax.ShapeDtypeStruct]:
    def look(key):
        state = game.init(key)
        return viewer.observe(state, jnp.int32(0), viewer.focus(state))

    return jax.eval_shape(look, jax.random.key(0))


def build(
    game: Game, viewer: Viewer | None = None, config: MuZeroNetworkConfig | None = None
) -> Model:
    """The network of `game` seen through `viewer` (None: the game's own)."""
    viewer = game.viewer() if viewer is None else viewer
    return Model(game, viewer, config or MuZeroNetworkConfig())
