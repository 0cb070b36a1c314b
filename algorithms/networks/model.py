"""The seam between networks and everything else: `init(key) -> params`, `apply`.

`params` is a plain nested dict of arrays. Flax stays behind this module: networks are NNX
modules that hold nothing but `nnx.Param`, split and merged under plain jax transforms.

    model = build(game, NetworkConfig())
    params = model.init(jax.random.key(0))
    outputs = model.apply(params, observation)          # every leaf [B, ...]

Letters: B batch, A actions, T teams.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms import frames
from algorithms.networks import cards, conv
from algorithms.networks.heads import Advice, PerAction, Vector, Weighed
from jaxgames.core import Array, Game, State, nearest
from jaxgames.reasons import Reasons

Params = Any
#: Rows that an advising bot looks at at once: more of them leave the cache.
ADVICE_ROWS = 64


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the network.

    Attributes:
      channels: width of the board trunk; cards: of the vector of one play, a multiple of 4.
      blocks: residual blocks: conv: one 3x3 convolution each, after a 3x3 stem; cards: two
        dense layers each.
      hidden: width of the vector path (conv: features, pooled board, value; cards: all).
      board_scale: what int8 planes are multiplied by.
      kind: "conv" (`algorithms.networks.conv`) or "cards" (`algorithms.networks.cards`).
      q_head: whether there is one; what works with Q needs it.
      norm: cards: LayerNorm at the head of each block.
      advice: a rule bot of the game whose move the network is told and learns to follow or not
        (`algorithms.networks.heads.Advice`); empty: none.
      reasons: it is told, instead of the move alone, what that bot finds of all the moves it looked
        at (`Game.reasons`, `algorithms.networks.heads.Weighed`).
      trust: what the advised move's logit begins with on top; with reasons, what a move's logit
        loses for each unit that the bot puts it behind.
    """

    channels: int = 32
    blocks: int = 2
    hidden: int = 64
    board_scale: float = 0.5
    kind: Literal["conv", "cards"] = "conv"
    q_head: bool = True
    norm: bool = True
    advice: str = ""
    reasons: bool = False
    trust: float = 3.0

    def __post_init__(self):
        if not isinstance(self.advice, str):
            raise ValueError(f"advice: the name of a rule bot, or empty, got {self.advice!r}")
        if self.reasons and not self.advice:
            raise ValueError("reasons: needs a network.advice, the bot whose reasons they are")
        if not 0.0 <= self.trust <= 100.0:
            raise ValueError(f"trust: 0 to 100, got {self.trust}")
        if self.kind not in ("conv", "cards"):
            raise ValueError(f"kind: conv or cards, got {self.kind!r}")
        if self.kind == "cards" and self.channels % cards.HEADS:
            raise ValueError(f"channels: a multiple of {cards.HEADS}, got {self.channels}")
        for name, low, high in (("channels", 1, 1024), ("blocks", 0, 64), ("hidden", 1, 4096)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}: {low} to {high}, got {getattr(self, name)}")
        if not 0.0 < self.board_scale < 1000.0:
            raise ValueError(f"board_scale: above 0, below 1000, got {self.board_scale}")


class Outputs(NamedTuple):
    """What a network says of a batch of observations.

    Attributes:
      logits: float32[B, A], not masked; None of a critic.
      value: float32[B, T], expected outcome, mover first; sums to `game.reward_sum` if that
        is constant. Outcomes lie in [-1, 1].
      q: float32[B, A, T], the same after each action, mover (of now) first; None without a
        Q head.
    """

    logits: Array | None
    value: Array
    q: Array | None


class Network(nnx.Module):
    """Trunk with policy, value and Q heads; Q is the value plus what the action adds. A critic
    has the value head alone."""

    def __init__(
        self,
        game: Game,
        config: NetworkConfig,
        planes: int,
        features: int,
        critic: bool,
        *,
        rngs: nnx.Rngs,
    ):
        c = config
        self.scale, self.total = c.board_scale, game.reward_sum
        if c.kind == "cards":
            sizes = (c.channels, c.blocks, c.hidden, c.norm)
            self.trunk = cards.Trunk(game, planes, features, *sizes, rngs=rngs)
            head = functools.partial(cards.PerAction, game, c.hidden)
        else:
            self.trunk = conv.Trunk(planes, features, c.channels, c.blocks, c.hidden, rngs=rngs)
            head = functools.partial(PerAction, game, c.channels, c.hidden)
        self.value = Vector(c.hidden, (game.num_teams,), rngs=rngs)
        self.critic, self.q_head = critic, c.q_head and not critic
        self.weighs = c.reasons and not critic
        self.advised = bool(c.advice) and not c.reasons and not critic
        if not critic:
            self.policy = head(1, rngs=rngs)
        if self.weighs:
            facts = reasons_spec(game, c.advice).facts.shape[-1]
            self.reasons = Weighed(game.num_actions, facts, c.hidden, c.trust, rngs=rngs)
        if self.advised:
            self.advice = Advice(game.num_actions, c.hidden, c.trust, rngs=rngs)
        if self.q_head:
            self.gain = head(game.num_teams, rngs=rngs)

    def __call__(self, observation: dict[str, Array]) -> Outputs:
        board = observation["board"].astype(jnp.float32) * self.scale
        x, vector = self.trunk(board, observation["features"])
        value = self.value(vector)
        q = outcome(value[:, None] + self.gain(x, vector), self.total) if self.q_head else None
        return Outputs(self.logits(x, vector, observation), outcome(value, self.total), q)

    def logits(self, x: Array, vector: Array, observation: dict[str, Array]) -> Array | None:
        if self.critic:
            return None
        if self.weighs:
            weighed = self.reasons(vector, observation["considered"], observation["facts"])
            return self.policy(x, vector)[..., 0] + weighed
        if not self.advised:
            return self.policy(x, vector)[..., 0]
        heard = self.advice.hear(vector, observation["advice"])
        return self.policy(x, heard)[..., 0] + self.advice.push(heard, observation["advice"])


def outcome(raw: Array, total: float | None) -> Array:
    """Raw scores [..., T] as outcomes in about [-1, 1] that sum to `total` (None: free)."""
    if total is None:
        return jnp.tanh(raw)
    bounded = jnp.tanh(raw - raw.mean(-1, keepdims=True))
    return bounded - bounded.mean(-1, keepdims=True) + total / raw.shape[-1]


@dataclasses.dataclass(frozen=True)
class Model:
    """A network's two functions; hashable, equal for equal game and sizes.

    Attributes:
      critic: it sees everything (`game.observe_all`) and says what a position is worth, no more:
        for learners, whose judgement of a move then does not hang on luck with hidden cards.
    """

    game: Game
    config: NetworkConfig
    critic: bool = False

    def init(self, key: Array) -> Params:
        """Fresh weights, a plain nested dict of float32 arrays; consumes `key`."""
        return nnx.to_pure_dict(nnx.split(self._network(key), nnx.Param)[1])

    def apply(self, params: Params, observation: dict[str, Array]) -> Outputs:
        """Outputs for a batch of observations, every leaf [B, ...]."""
        return nnx.merge(_graph(self), params)(observation)

    def observe(self, states: State, player: Array | None = None) -> dict[str, Array]:
        """What the seats `player` (int32[B]; None: those to move) see in `states` [B], with
        all that this network has to be told.

        That is `game.observe`, and for an advised network "advice" int32[B]: what its bot would
        play, which hangs on the position alone; -1 for seats that are not to move. One that is
        told reasons also gets "considered" int32[B, K], -1 for seats that are not to move, and
        "facts" float32[B, K, F], 0 for these; see `jaxgames.reasons`.
        """
        seat = states.current_player if player is None else player
        seen = jax.vmap(self.game.observe)(states, seat)
        name = self.config.advice
        if not name:
            return seen
        mine = jnp.ones(seat.shape, bool) if player is None else player == states.current_player
        if self.config.reasons:
            ask = self.game.reasons[name]
        else:
            ask = functools.partial(self.game.bots[name], key=jax.random.key(0))
        said = jax.lax.map(ask, states, batch_size=ADVICE_ROWS)
        if not self.config.reasons:
            return seen | {"advice": jnp.where(mine, said.astype(jnp.int32), -1)}
        considered = jnp.where(mine[:, None], said.action, -1)
        facts = jnp.where(mine[:, None, None], said.facts, 0.0)  # of the mover's own cards
        advice = jnp.where(mine, said.best, -1)
        return seen | {"advice": advice, "considered": considered, "facts": facts}

    def num_params(self) -> int:
        """How many numbers the weights hold."""
        shapes = jax.eval_shape(self.init, jax.random.key(0))
        return sum(leaf.size for leaf in jax.tree.leaves(shapes))

    def _network(self, key: Array) -> Network:
        spec = observation_spec(self.game, self.critic)
        sizes = (spec["board"].shape[-1], spec["features"].shape[-1], self.critic)
        return Network(self.game, self.config, *sizes, rngs=nnx.Rngs(key))


@functools.cache
def _graph(model: Model) -> nnx.GraphDef:
    abstract = nnx.eval_shape(lambda: model._network(jax.random.key(0)))
    return nnx.split(abstract, nnx.Param)[0]


@functools.cache
def observation_spec(game: Game, everything: bool = False) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and dtypes of `game.observe`, or of `game.observe_all`."""
    look = game.observe_all if everything else game.observe
    return jax.eval_shape(lambda key: look(game.init(key), jnp.int32(0)), jax.random.key(0))


def reasons_spec(game: Game, name: str) -> Reasons:
    """Shapes and dtypes of the reasons of the bot `name`, of one position."""
    return jax.eval_shape(lambda key: game.reasons[name](game.init(key)), jax.random.key(0))


def build(game: Game, config: NetworkConfig | None = None, critic: bool = False) -> Model:
    """The network of `game`, or a critic for it.

    Raises:
      ValueError: "network.advice: ..." for a bot that the game does not have.
    """
    config = config or NetworkConfig()
    if config.advice and config.advice not in game.bots:
        near = nearest(config.advice, game.bots)
        raise ValueError(f"network.advice: unknown name {config.advice!r}{near}")
    if config.reasons and config.advice not in game.reasons:
        able = " or ".join(game.reasons) or "no bot of this game"
        raise ValueError(f"network.reasons: {able} gives reasons, got {config.advice!r}")
    return Model(game, config, critic)


def require_q_head(model: Model) -> None:
    """Raises ValueError("network.q_head: ...") for a network without one."""
    if not model.config.q_head:
        raise ValueError("network.q_head: must be true, Q values are needed here")


#: `(params, states[B]) -> (prior logits float32[B, A], value float32[B, T] absolute)`
Evaluate = Callable[[Params, State], tuple[Array, Array]]


def observe_all(game: Game, states: State) -> dict[str, Array]:
    """Everything in `states` [B], turned to the seats to move."""
    return jax.vmap(game.observe_all)(states, states.current_player)


def evaluator(game: Game, model: Model, head: str = "policy", temperature: float = 0.1) -> Evaluate:
    """The bridge from a network to the search.

    Args:
      head: "policy": the policy's logits and the value head. "q": the mover's Q divided by
        `temperature` as logits, and the whole Q vector of the best legal action as value.
    """
    if head not in ("policy", "q"):
        raise ValueError(f"head: policy or q, got {head!r}")
    if head == "q":
        require_q_head(model)
    if not temperature > 0.0:
        raise ValueError(f"temperature: above 0, got {temperature}")

    def evaluate(params, states):
        outputs = model.apply(params, model.observe(states))
        team = frames.mover_team(game, states)
        if head == "policy":
            return outputs.logits, frames.to_absolute(outputs.value, team)
        best = jnp.argmax(masked(outputs.q[..., 0], states.legal_action_mask), axis=-1)
        value = jnp.take_along_axis(outputs.q, best[:, None, None], axis=1)[:, 0]
        return outputs.q[..., 0] / temperature, frames.to_absolute(value, team)

    return evaluate


def masked(values: Array, legal: Array) -> Array:
    """`values` with -1e9 where `legal` is false; finite, so that a softmax never is NaN."""
    return jnp.where(legal, values, jnp.float32(-1e9))
