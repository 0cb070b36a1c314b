"""A game as pgx has them: `init(key)`, `step(state, action, key)`, `observe(state)`.

    env = jaxgames.adapters.pgx.make("sequence", players=2)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 512))
    state = jax.jit(jax.vmap(env.step))(state, action, keys)
    state.observation                                # float32[B, H, W, C + F]

States carry the observation of the seat to move as one array: the board's planes, and every
feature as a constant plane behind them. Seats are pgx's player ids. Illegal actions end the game
with a penalty, finished games stay with zero rewards and an all-true mask, as they do there.
pgx itself is not needed.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from jaxgames import core
from jaxgames.adapters.chance import moves_have_chance
from jaxgames.core import Array, Game


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """What pgx's states have.

    Attributes:
      current_player: int32[], seat to move.
      observation: float32[H, W, C + F], of that seat.
      rewards: float32[P], of the last step.
      terminated: bool[], the game is over: programs written for pgx look at nothing else.
      truncated: bool[], it is over because of a cap on its length.
      legal_action_mask: bool[A]; all true once the game is over.
      _step_count: int32[], calls of `step`.
      _x: our state.
    """

    current_player: Array
    observation: Array
    rewards: Array
    terminated: Array
    truncated: Array
    legal_action_mask: Array
    _step_count: Array
    _x: core.State

    @property
    def env_id(self) -> str:
        """Registry name of the game."""
        return self._x.game.id

    def replace(self, **changes: Any) -> State:
        return dataclasses.replace(self, **changes)

    def to_svg(self, **_: Any) -> str:
        """The picture with all hands open; of a batch, its first game."""
        batch = self._step_count.ndim
        return self._x.game.draw(jax.tree.map(lambda leaf: leaf[(0,) * batch], self._x))

    def save_svg(self, filename: str, **_: Any) -> None:
        """Write `to_svg()` to a file, whose name must end with .svg."""
        if not str(filename).endswith(".svg"):
            raise ValueError(f"filename: must end with .svg, got {filename!r}")
        pathlib.Path(filename).write_text(self.to_svg(), "utf-8")

    def _repr_html_(self) -> str:
        return self.to_svg()


class Env:
    """pgx's environment over a game; every method but the properties is jittable."""

    def __init__(self, game: Game):
        self.game = game

    @property
    def id(self) -> str:
        return self.game.id

    @property
    def version(self) -> str:
        return self.game.version

    @property
    def num_players(self) -> int:
        return self.game.num_players

    @property
    def num_actions(self) -> int:
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return jax.eval_shape(lambda key: self.init(key).observation, jax.random.key(0)).shape

    def init(self, key: Array) -> State:
        """A first position; takes keys of `jax.random.key` and of `PRNGKey`."""
        return self._wrap(self.game.init(_typed(key)), jnp.int32(0))

    def step(self, state: State, action: Array, key: Array | None = None) -> State:
        """The position after `action`.

        Raises ValueError without a key in a game whose moves draw cards.
        """
        if key is None:
            if moves_have_chance(self.game):
                raise ValueError(f"key: moves of {self.game.id} have chance, step needs a key")
            key = jax.random.key(0)
        after = self.game.step(state._x, action, _typed(key))
        return self._wrap(after, state._step_count + jnp.where(state._x.done, 0, 1))

    def observe(self, state: State, player_id: Array | None = None) -> Array:
        """float32[H, W, C + F], what seat `player_id` (None: that to move) may know."""
        seat = state.current_player if player_id is None else jnp.asarray(player_id, jnp.int32)
        return _planes(self.game.observe(state._x, seat))

    def _wrap(self, x: core.State, count: Array) -> State:
        return State(
            current_player=x.current_player,
            observation=_planes(self.game.observe(x, x.current_player)),
            rewards=x.rewards,
            terminated=x.done,
            truncated=x.truncated,
            legal_action_mask=x.legal_action_mask,
            _step_count=count.astype(jnp.int32),
            _x=x,
        )


def make(name: str, preset: str | None = None, **options: Any) -> Env:
    """The environment of `jaxgames.make(name, preset, **options)`."""
    return Env(core.make(name, preset, **options))


def _typed(key: Array) -> Array:
    """A key of `jax.random.key` from either kind."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)


def _planes(seen: dict[str, Array]) -> Array:
    board, features = seen["board"].astype(jnp.float32), seen["features"]
    return jnp.concatenate(
        [board, jnp.broadcast_to(features, (*board.shape[:2], *features.shape))], axis=-1
    )
