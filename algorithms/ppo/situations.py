"""Rare positions practised more often than they come up.

Positions of a game's `situations` that came up in play are kept in a ring for each. A share of
the games that begin in an update begin from one of them, what some seat can not see dealt anew
(`Game.resample`), so that no deal is played twice. Such a game starts with nothing won so far
and tells nothing about how strong an opponent is: the league does not count it.

Letters: N situations, R places of a ring, S steps, B games.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import selfplay
from algorithms.learner import Metrics, mean, require
from algorithms.selfplay import Actor
from jaxgames.core import Array, Game, State, nearest


@dataclasses.dataclass(frozen=True)
class SituationsConfig:
    """Attributes:
    share: of the games that may begin in an update, so many begin from a kept position.
    names: those of the game's `situations` that count; none given: all.
    kept: positions kept of each.
    added: positions added to each per update at most, drawn from those that came up.
    """

    share: float = 0.0
    names: tuple[str, ...] = ()
    kept: int = 64
    added: int = 4

    def __post_init__(self):
        require(self, "share", 0.0 <= self.share <= 1.0, "0 to 1")
        require(self, "names", len(set(self.names)) == len(self.names), "each once")
        require(self, "kept", 1 <= self.kept <= 10_000, "1 to 10000")
        require(self, "added", 1 <= self.added <= self.kept, f"1 to {self.kept}, as many as kept")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Kept:
    """Attributes:
    states: [N, R] positions.
    added: int32[N], positions added so far; the first min(added, R) places of a ring hold one.
    special: bool[B], the game of the row began from a kept position.
    """

    states: Any
    added: Array
    special: Array


def chosen(game: Game, config: SituationsConfig) -> tuple[str, ...]:
    """The situations that count, in order.

    Raises:
      ValueError: "situations.names: ..." for one that the game does not have, or
        "situations.share: ..." where it has none at all.
    """
    for name in config.names:
        if name not in game.situations:
            raise ValueError(f"situations.names: unknown name {name!r}{_known(name, game)}")
    if config.share and not game.situations:
        raise ValueError(f"situations.share: 0 for {game.id}, which names no situations")
    return config.names or tuple(game.situations)


def _known(name: str, game: Game) -> str:
    return nearest(name, game.situations) if game.situations else "; the game has none"


def start(game: Game, config: SituationsConfig, states: State) -> Kept:
    """Nothing kept yet; `states` [B] are those of the games being played."""
    number, rows = len(chosen(game, config)), states.current_player.shape[0]

    def places(x):
        return jnp.broadcast_to(x[0], (number, config.kept, *x.shape[1:]))

    return Kept(
        states=jax.tree.map(places, states),
        added=jnp.zeros(number, jnp.int32),
        special=jnp.zeros(rows, bool),
    )


def keep(game: Game, config: SituationsConfig, kept: Kept, key: Array, states: State) -> Kept:
    """Adds some of `states` [S, B], unfinished ones, to the rings; consumes `key`."""
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states)
    names = chosen(game, config)
    found = jnp.stack([jax.vmap(game.situations[name])(flat) for name in names])  # [N, S * B]
    noise = jnp.where(found, jax.random.uniform(key, found.shape), -1.0)
    best, index = jax.lax.top_k(noise, config.added)  # [N, added], those found come first
    place = (kept.added[:, None] + jnp.arange(config.added)) % config.kept
    place = jnp.where(best >= 0, place, config.kept)  # past the end: not written
    ring = jnp.arange(len(names))[:, None]
    return dataclasses.replace(
        kept,
        states=jax.tree.map(
            lambda old, new: old.at[ring, place].set(new[index], mode="drop"), kept.states, flat
        ),
        added=kept.added + (best >= 0).sum(-1, dtype=jnp.int32),
    )


def draw(
    game: Game, config: SituationsConfig, kept: Kept, key: Array, fresh: Actor
) -> tuple[Actor, Array]:
    """(games to begin, bool[B] from a kept position): `fresh` with a share of the rows replaced.

    Each of them takes a situation at random, then one of its positions, then a seat from whose
    view the rest is dealt anew. Before anything is kept, none is replaced. Consumes `key`.
    """
    rows = fresh.ply.shape[0]
    number = round(config.share * rows)
    row_key, ring_key, place_key, seat_key, deal_key = jax.random.split(key, 5)
    row = jax.random.permutation(row_key, rows)[:number]
    some = kept.added > 0
    logits = jnp.where(some | ~some.any(), 0.0, -jnp.inf)
    ring = jax.random.categorical(ring_key, logits, shape=(number,))
    held = jnp.minimum(kept.added, config.kept)[ring]
    place = jax.random.randint(place_key, (number,), 0, jnp.maximum(held, 1))
    states = jax.tree.map(lambda x: x[ring, place], kept.states)
    seat = jax.random.randint(seat_key, (number,), 0, game.num_players, jnp.int32)
    states = jax.vmap(game.resample)(states, seat, jax.random.split(deal_key, number))
    row = jnp.where(some.any(), row, rows)
    begun = jax.tree.map(lambda old, new: old.at[row].set(new, mode="drop"), fresh.states, states)
    special = jnp.zeros(rows, bool).at[row].set(True, mode="drop")
    return dataclasses.replace(fresh, states=begun), special


def follow(kept: Kept, done: Array, begun: Array) -> tuple[Kept, Array]:
    """Which games are special along a stretch of play.

    Args:
      done: bool[S, B], a game ended with the step; begun: bool[B], as `draw` returns it: what
        the row's next games of this stretch begin from.

    Returns:
      `kept` with the flags after the last step, and bool[S, B], the game of each step is special.
    """
    ended = jnp.cumsum(done, axis=0) - done > 0  # before the step
    special = jnp.where(ended, begun, kept.special)
    after = jnp.where(done.any(0), begun, kept.special)
    return dataclasses.replace(kept, special=after), special


def play(
    game: Game,
    config: SituationsConfig,
    kept: Kept,
    choose: selfplay.Choose,
    key: Array,
    actor: Actor,
    steps: int,
) -> tuple[Actor, selfplay.Played, Metrics, Kept, Array]:
    """`selfplay.play` where a share of the new games begin from kept positions, and positions
    met are kept for later; consumes `key`.

    Returns:
      What `selfplay.play` returns, `kept` after it, and bool[S, B], the game of each step began
      from a kept position.
    """
    deal_key, draw_key, play_key, keep_key = jax.random.split(key, 4)
    fresh = selfplay.start(game, deal_key, actor.ply.shape[0], 0)
    fresh, begun = draw(game, config, kept, draw_key, fresh)
    actor, played, metrics = selfplay.play(game, choose, play_key, actor, steps, 0, fresh)
    kept, special = follow(kept, played.done, begun)
    kept = keep(game, config, kept, keep_key, played.state)
    full = jnp.minimum(kept.added, config.kept) / config.kept
    for i, name in enumerate(chosen(game, config)):
        metrics[f"situations/kept/{name}"] = mean(full[i])
    return actor, played, metrics | {"situations/share": mean(special)}, kept, special
