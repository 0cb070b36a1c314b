"""Several games of equal sizes in one program: which of them a position is of is data.

    game = together([make("sequence", sequences_to_win=n) for n in (1, 2)])
    state = game.start_as(game.games, which, key)        # which: int32[], traced

A game whose options are data of its states holds others by itself (`Game.holds`); for the rest
there is `Staged`, which steps a position by the rules of each of its games and keeps the one that
counts: a batch costs as much as all games together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxgames import core
from jaxgames.core import Array, Game

#: What must be equal, beside the shapes of states and observations.
_EQUAL = ("id", "num_players", "num_actions", "team_of", "board_shape", "board_actions",
          "action_slots", "history", "reward_sum", "outcomes")  # fmt: skip


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(core.State):
    """Attributes:
    inner: the position; its `game` is the first of all whatever `stage` says.
    stage: int32[], number of the game that it is of.
    """

    inner: core.State
    stage: Array


@dataclasses.dataclass(frozen=True)
class Staged(Game):
    """Games that differ in options alone, and in nothing that has a shape. See `together`."""

    games: tuple[Game, ...] = ()

    id: ClassVar[str] = "staged"
    version: ClassVar[str] = "1"
    rules_type: ClassVar[type] = object

    # ---- which game ----

    def holds(self, other):
        return other == self or other in self.games

    def start_as(self, games, which, key):
        stage = jnp.asarray([self.games.index(game) for game in games], jnp.int32)[which]
        return self._wrap(self._by_stage(stage, lambda game: self._bare(game.init(key))), stage)

    def game_of(self, state: State) -> tuple[Game, core.State]:
        """The game that a position (on the host) is of, and the position in it."""
        game = self.games[int(state.stage)]
        return game, state.inner.replace(game=game)

    def _by_stage(self, stage: Array, one: Callable[[Game], Any]) -> Any:
        # Not `lax.switch`: a batch of games works out all branches anyway, and there hands the
        # constants of each to it in batches, which `jax.custom_batching` refuses.
        found = [one(game) for game in self.games]
        return jax.tree.map(lambda *x: jax.lax.select_n(stage, *map(jnp.asarray, x)), *found)

    def _in_turn(self, state: State, one: Callable[[Game, core.State], Any]) -> Any:
        """`one(game, position)` of the game that `state` is of."""
        return self._by_stage(state.stage, lambda game: one(game, state.inner.replace(game=game)))

    def _bare(self, inner: core.State) -> core.State:
        return inner.replace(game=self.games[0])

    def _wrap(self, inner: core.State, stage: Array) -> State:
        public = {f.name: getattr(inner, f.name) for f in dataclasses.fields(core.State)}
        return State(**public | {"game": self}, inner=inner, stage=stage)

    # ---- sizes ----

    @property
    def num_players(self):
        return self.games[0].num_players

    @property
    def num_actions(self):
        return self.games[0].num_actions

    @property
    def team_of(self):
        return self.games[0].team_of

    @property
    def max_steps(self):
        return max(game.max_steps for game in self.games)

    @property
    def reward_sum(self):
        return self.games[0].reward_sum

    @property
    def outcomes(self):
        return self.games[0].outcomes

    @property
    def board_shape(self):
        return self.games[0].board_shape

    @property
    def board_actions(self):
        return self.games[0].board_actions

    @property
    def action_slots(self):
        return self.games[0].action_slots

    @property
    def history(self):
        return self.games[0].history

    # ---- dynamics ----

    def _init(self, key):
        return self._wrap(self._bare(self.games[0].init(key)), jnp.int32(0))

    def step(self, state, action, key):
        move = lambda game, inner: self._bare(game.step(inner, action, key))  # noqa: E731
        return self._wrap(self._in_turn(state, move), state.stage)

    _step = step

    def forfeit_rewards(self, team):
        return self.games[0].forfeit_rewards(team)

    # ---- knowledge ----

    def observe(self, state, player):
        return self._in_turn(state, lambda game, inner: game.observe(inner, player))

    def observe_all(self, state, player):
        return self._in_turn(state, lambda game, inner: game.observe_all(inner, player))

    def resample(self, state, player, key):
        deal = lambda game, inner: self._bare(game.resample(inner, player, key))  # noqa: E731
        return self._wrap(self._in_turn(state, deal), state.stage)

    @property
    def bots(self):
        names = set.intersection(*(set(game.bots) for game in self.games))
        return {name: self._bot(name) for name in self.games[0].bots if name in names}

    def _bot(self, name: str) -> core.Bot:
        return lambda state, key: self._in_turn(
            state, lambda game, inner: game.bots[name](inner, key).astype(jnp.int32)
        )

    # ---- text and pictures: those of the game that the position is of ----

    def action_to_text(self, state, action):
        game, inner = self.game_of(state)
        return game.action_to_text(inner, action)

    def action_from_text(self, state, text):
        game, inner = self.game_of(state)
        return game.action_from_text(inner, text)

    def to_text(self, state):
        game, inner = self.game_of(state)
        return f"{int(state.stage)} {game.to_text(inner)}"

    def from_text(self, text):
        number, _, rest = text.partition(" ")
        if not number.isdecimal() or int(number) >= len(self.games):
            known = f"0 to {len(self.games) - 1}"
            raise core.PositionError("stage", f"begins with the game's number, {known}")
        inner = self.games[int(number)].from_text(rest)
        return self._wrap(self._bare(inner), jnp.int32(int(number)))

    def draw(self, state, viewer=None):
        game, inner = self.game_of(state)
        return game.draw(inner, viewer)


def together(games: Sequence[Game]) -> Game:
    """A game that holds all of `games`: one of them where that does, else `Staged` of them.

    Raises ValueError where they differ in something that has a shape.
    """
    for game in games:
        if all(game.holds(other) for other in games):
            return game
    first, *others = games
    for other in others:
        for name in _EQUAL:
            if getattr(first, name) != getattr(other, name):
                ours, theirs = getattr(first, name), getattr(other, name)
                raise ValueError(f"{name}: is {ours} in one and {theirs} in another")
        if _shapes(first) != _shapes(other):
            raise ValueError("options: positions of one have other shapes than those of another")
    return Staged(first.rules, tuple(games))


def _shapes(game: Game) -> list[tuple[tuple[int, ...], Any]]:
    def all_of_it(key):
        state = game.init(key)
        return jax.tree.leaves((state, game.observe(state, jnp.int32(0))))

    return [(x.shape, x.dtype) for x in jax.eval_shape(all_of_it, jax.random.key(0))]
