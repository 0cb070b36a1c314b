"""The contract: what a game is.

A game is a frozen dataclass of options with pure, jittable functions over a `State`.

    game = make("sequence", players=2)
    state = game.init(jax.random.key(0))
    state = game.step(state, action, jax.random.key(1))

Letters used in shapes everywhere: A actions, P players (seats), T teams, B batch.

Rules of the contract:

* All chance comes from the key given to `init` and `step`. A state holds no key, no
  observation and no ordered deck, so stepping it can not reveal the future.
* `rewards` are those of the last step, per seat, in absolute seat order. Team t's reward
  is the reward of any of its seats.
* A finished state is absorbing: `step` returns it with zero rewards. Its mask is all
  true, so that a softmax over it stays finite.
* An illegal action in traced code forfeits: the game ends, `illegal` is set and the
  rewards are `game.forfeit_rewards(team)`. `jaxgames.Match` refuses it instead.
* `observe(state, player)` and the bots use only what that seat may know.

A new game subclasses `Game`, implements the methods marked "game", and is announced with
`register("name", "package.module:ClassName")`. `jaxgames.conformance.check_game` tries every
rule of the contract on it.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.choose import choose_uniform
from jaxgames.errors import FieldError as FieldError  # read from here by many
from jaxgames.errors import PositionError, RulesError, nearest
from jaxgames.past import Logged, Past
from jaxgames.reasons import Reasons

Array = jax.Array
#: A bot: `(state, key) -> action int32[]` for the seat to move. Jittable, one state.
Bot = Callable[["State", Array], Array]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """What every game's state holds; games subclass it and add their own fields.

    Subclasses repeat the two decorators above.

    Attributes:
      game: the game this is a position of (static, part of the tree structure).
      current_player: int32[], seat to move.
      legal_action_mask: bool[A]; all true once the game is over.
      rewards: float32[P], of the last step, absolute seat order.
      terminated: bool[], the rules ended the game.
      truncated: bool[], a cap on the length ended it.
      illegal: bool[], the game ended by an illegal action.
    """

    game: Game = dataclasses.field(metadata=dict(static=True))
    current_player: Array
    legal_action_mask: Array
    rewards: Array
    terminated: Array
    truncated: Array
    illegal: Array

    @property
    def done(self) -> Array:
        """bool[], no further move changes anything."""
        return self.terminated | self.truncated

    def replace(self, **changes: Any) -> State:
        return dataclasses.replace(self, **changes)

    def _repr_html_(self) -> str:
        return self.game.draw(self)


@dataclasses.dataclass(frozen=True)
class Game(abc.ABC):
    """A game with its options. Hashable; equal options make equal games.

    Class attributes (game):
      id: registry name.
      version: changes whenever the behaviour changes; records and bundles carry it.
      rules_type: frozen dataclass of options; its `__post_init__` raises `RulesError`.
      presets: name -> options.
    """

    rules: Any

    id: ClassVar[str]
    version: ClassVar[str]
    rules_type: ClassVar[type]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    @property
    def forms(self) -> Mapping[str, Game]:
        """The ways to play it in which strength is reported, by name: games that differ in
        options, this one among them. What is learnt in one plays in all."""
        return {"game": self}

    @property
    def return_unit(self) -> tuple[str, float] | None:
        """What returns count besides wins, and how many of it a return of 1 is; None: nothing."""
        return None

    @property
    def bound_rules(self) -> tuple[str, ...]:
        """Options that trained weights are bound to: they play only under equal values of these."""
        return tuple(field.name for field in dataclasses.fields(self.rules_type))

    # ---- sizes (game) ----

    @property
    @abc.abstractmethod
    def num_players(self) -> int:
        """P, number of seats."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """A, size of the fixed action head."""

    @property
    @abc.abstractmethod
    def team_of(self) -> tuple[int, ...]:
        """Seat -> team, length P; teams are 0..T-1."""

    @property
    def num_teams(self) -> int:
        return max(self.team_of) + 1

    @property
    @abc.abstractmethod
    def max_steps(self) -> int:
        """No game takes more calls of `step` than this."""

    @property
    def reward_sum(self) -> float | None:
        """What a whole game's rewards, one per team, sum to; None: not constant.

        A forfeit at the first move sums to the same.
        """
        return 0.0

    @property
    def outcomes(self) -> tuple[float, ...] | None:
        """What a seat's rewards of a whole game can sum to, rising, forfeits left out; None:
        anything in [-1, 1]."""
        return None

    @property
    def board_shape(self) -> tuple[int, int]:
        """(H, W) of `observe(...)["board"]`, int8[H, W, C]."""
        return (1, 1)

    @property
    def board_actions(self) -> int:
        """Action planes over the board: the first `board_actions * H * W * action_slots`
        actions are [plane, row, col, slot] in C order."""
        return 0

    @property
    def action_slots(self) -> int:
        """Variants of each board action, varying fastest (a card to pick up, say)."""
        return 1

    @property
    def history(self) -> int:
        """The last so many channels of the observed board are the last plays, newest first;
        the last `history * num_players` features say by whom each was made (one-hot, from the
        viewer's seat on, zero where there was none)."""
        return 0

    # ---- dynamics (game) ----

    @abc.abstractmethod
    def _init(self, key: Array) -> State:
        """A first position."""

    @abc.abstractmethod
    def _step(self, state: State, action: Array, key: Array) -> State:
        """The position after a legal action in an unfinished game.

        Sets every public field but `illegal`; the mask of a finished state does not matter.
        """

    def forfeit_rewards(self, team: Array) -> Array:
        """float32[P] when `team` (int32[]) made an illegal move: -1, shared by the others."""
        others = max(self.num_teams - 1, 1)
        teams = np.asarray(self.team_of)
        return jnp.where(teams == team, jnp.float32(-1.0), jnp.float32(1.0 / others))

    # ---- dynamics (shared) ----

    def init(self, key: Array) -> State:
        """A first position, dealt from `key`."""
        return self._init(key)

    def step(self, state: State, action: Array, key: Array) -> State:
        """The position after `action` (int32[]) with chance drawn from `key`."""
        return self._guard(state, action, lambda s, a: self._step(s, a, key))

    def _guard(self, state: State, action: Array, move: Callable[[State, Array], State]) -> State:
        """`move(state, action)` under the rules all games share: a finished state stays, an
        illegal action forfeits. `step_with_chance` of a game with chance goes through here too.
        """
        done = state.done
        # A comparison with every action: under vmap a gather costs twice as much, and this
        # one also refuses ids outside the head.
        legal = jnp.any(state.legal_action_mask & (jnp.arange(self.num_actions) == action))
        nxt = move(state, jnp.where(legal, action, 0))
        keep = done | ~legal
        nxt = jax.tree.map(lambda old, new: jnp.where(keep, old, new), state, nxt)
        forfeit = ~done & ~legal
        penalty = self.forfeit_rewards(jnp.asarray(self.team_of)[state.current_player])
        terminated = nxt.terminated | forfeit
        return nxt.replace(
            rewards=jnp.where(done, 0.0, jnp.where(forfeit, penalty, nxt.rewards)),
            terminated=terminated,
            illegal=state.illegal | forfeit,
            legal_action_mask=nxt.legal_action_mask | terminated | nxt.truncated,
        )

    # ---- knowledge (game) ----

    @abc.abstractmethod
    def observe(self, state: State, player: Array) -> dict[str, Array]:
        """What seat `player` (int32[]) may know, seen from that seat (own team first).

        Returns {"board": int8[H, W, C], "features": float32[F]}.
        """

    @abc.abstractmethod
    def observe_all(self, state: State, player: Array) -> dict[str, Array]:
        """The privileged view, for critics: everything, turned as in `observe`."""

    @abc.abstractmethod
    def resample(self, state: State, player: Array, key: Array) -> State:
        """A state drawn uniformly among those that `player` can not tell from this one.

        Depends only on what `player` knows and on `key`; a game without hidden
        information returns the state itself.
        """

    def viewer(self, size: int = 0) -> Any:
        """The `jaxgames.view.Viewer` through which an agent sees and acts where one head over
        all actions may be too large; `size`: cells of its side, 0: the game's own choice."""
        from jaxgames import view

        return view.Whole(self)

    # ---- hints for searches (game; optional) ----

    def rewind(self, state: State, player: Array, count: int) -> Past | None:
        """The last `count` (static) decisions of the seats other than `player`, newest first, as
        far as the state tells them; None where the game does not offer this.

        Which decisions they were must follow from what all may see; the positions are right if
        the state's hidden parts are. See `Past`.
        """
        return None

    def for_search(self) -> Game:
        """The game as searches step it: with the same states and actions, but moves that are
        nobody's choice made at once where the rules have an option for it."""
        return self

    # ---- games of other options in one program (game; optional) ----

    def holds(self, other: Game) -> bool:
        """Whether games of `other` can be played as games of this one, its options being data of
        the state; each game holds itself."""
        return other == self

    def start_as(self, games: Sequence[Game], which: Array, key: Array) -> State:
        """A first position of `games[which]` (int32[], traced) as a state of this game, which
        holds all of them. `jaxgames.staged.together` finds a game that holds some."""
        del games, which
        return self.init(key)

    # ---- hints for learners (game; optional) ----

    def round_number(self, state: State) -> Array:
        """int32[], rounds finished so far; of a game that is one round always 0."""
        return jnp.int32(0)

    @property
    def shaping_terms(self) -> tuple[str, ...]:
        """Names of what `shaping` counts."""
        return ()

    def shaping(self, before: State, action: Array, after: State) -> Array:
        """float32[K], one number for each of `shaping_terms`: what the seat that moved did well
        (above 0) or badly, judged by what all may see and by its own cards.

        Not asked for the last move of a round, after which `after` may be another deal.
        """
        del before, action, after
        return jnp.zeros(len(self.shaping_terms), jnp.float32)

    @property
    def situations(self) -> Mapping[str, Callable[[State], Array]]:
        """Rare positions worth practising, by name: `state -> bool[]`, for unfinished games."""
        return {}

    @property
    def lead_kinds(self) -> tuple[str, ...]:
        """Names of the kinds of plays that open a trick; see `lead_kind`."""
        return ()

    def lead_kind(self, state: State, action: Array) -> Array:
        """int32[], the place of a leading play's kind in `lead_kinds`; -1: it does not lead."""
        del state, action
        return jnp.int32(-1)

    @property
    def reasons(self) -> Mapping[str, Callable[[State], Reasons]]:
        """By the name of a rule bot: what it finds of the actions it weighs. Jittable."""
        return {}

    def read_logs(self, path: str) -> Iterator[Logged]:
        """The decisions in the logs of a file or folder, one `Logged` per match, on the host.

        Raises ValueError for a log that is broken or of other rules (and here for all: a game
        without logs), OSError where there is nothing.
        """
        raise ValueError(f"{self.id} has no logs, got {path!r}")

    # ---- bots, text and pictures (game; on the host) ----

    @property
    def bots(self) -> Mapping[str, Bot]:
        """Rule bots by name; every game has "random"."""
        return {"random": random_bot}

    @abc.abstractmethod
    def action_to_text(self, state: State, action: int) -> str:
        """Short notation of an action, unique within the action head, on one line, no tab."""

    @abc.abstractmethod
    def action_from_text(self, state: State, text: str) -> int:
        """Inverse of `action_to_text`; raises ValueError. Legality is not its business."""

    @abc.abstractmethod
    def to_text(self, state: State) -> str:
        """A complete position as text; `from_text` gives back every leaf exactly."""

    @abc.abstractmethod
    def from_text(self, text: str) -> State:
        """Inverse of `to_text`; raises `PositionError`."""

    def from_parts(self, parts: Mapping[str, Any]) -> State:
        """A complete position from its parts as JSON values, for those who write no text.

        Raises `PositionError`; here: positions are text only.
        """
        raise PositionError("text", f"positions of {self.id} are given as text")

    def to_knowledge(self, state: State) -> dict[str, Any] | None:
        """What the seat to move may know of a position, as JSON values that `from_knowledge`
        reads; None where the game does not offer this."""
        return None

    def from_knowledge(self, knowledge: Mapping[str, Any]) -> State:
        """A position that a seat can not tell from the one it is in: what it does not know is
        made up, so use of it only what `resample` and `observe` give of the seat to move.

        Raises `PositionError`, also for what tells more than a seat may know; here: the game
        hides nothing, or does not offer this.
        """
        raise PositionError("knowledge", f"{self.id} takes moves or a position")

    def explain_illegal(self, state: State, action: int) -> str | None:
        """The rule that forbids `action` in one sentence, or None when it is legal."""
        if not 0 <= int(action) < self.num_actions:
            return f"action {int(action)} is outside 0..{self.num_actions - 1}"
        if bool(state.done):
            return "the game is over"
        return None if bool(state.legal_action_mask[int(action)]) else "the rules forbid it here"

    def chance_to_text(self, before: State, action: int, after: State) -> str | None:
        """What chance decided in the step from `before` to `after`; None if nothing.

        One line, no tab. Records keep it, so that they replay without the random numbers.
        """
        return None

    def step_with_chance(self, state: State, action: int, chance: str | None) -> State:
        """`step` with chance read from `chance_to_text`'s text instead of a key.

        Raises ValueError for a text that chance can not have produced here. A game whose
        `step` uses its key overrides this and `chance_to_text`. A game whose moves have
        details (see `move_from_text`) takes `detail` as one more argument, None without.
        """
        if chance is not None:
            raise ValueError(f"{self.id} has no chance in its moves, got {chance!r}")
        return jit_step(self)(state, np.int32(action), jax.random.key(0))

    # ---- for people at a table (game; on the host, optional) ----

    def move_from_text(self, state: State, text: str) -> tuple[int, str | None]:
        """(action, detail) of a move; raises ValueError.

        A detail is what a person may decide beside the action, such as which of several equal
        cards to play: "ACTION: DETAIL" is then the move's text. Without one (None) the move is
        the action as `step` plays it. A detail given back has been checked in `state`. Chance
        falls the same with and without it.
        """
        return self.action_from_text(state, text), None

    def readings(self, state: State, text: str) -> list[str]:
        """Legal moves that a person may mean by a text that is no move, such as cards alone.

        Raises ValueError where the text says what can not be played, and why.
        """
        return []

    def action_notes(self, state: State, actions: Sequence[int]) -> list[str]:
        """What legal actions do here, where their texts do not say it; "" where they do."""
        return [""] * len(actions)

    def announce(self, before: State, action: int, after: State) -> list[str]:
        """Lines that everybody at the table may hear of a step: the move as others see it,
        then what else came of it."""
        return [self.action_to_text(before, action)]

    @abc.abstractmethod
    def draw(self, state: State, viewer: int | None = None) -> str:
        """An SVG picture; `viewer` hides what that seat may not see, None shows all."""

    def draw_cell(self, state: State, row: int, col: int) -> tuple[float, float, float] | None:
        """(x, y, side) of a cell of the board in the picture of `draw`; None: not shown."""
        return None

    def draw_text(self, state: State, viewer: int | None = None) -> str:
        """A picture for a terminal; with hidden information, override it to heed `viewer`.

        A game with `move_view` takes its result as one more argument.
        """
        return self.to_text(state)

    def scene_json(self, state: State, viewer: int | None = None) -> dict[str, Any]:
        """What a page draws, as JSON values; "kind" says what the rest means, here a text.

        `viewer` hides what that seat may not see, None shows all.
        """
        return {"kind": "text", "text": self.draw_text(state, viewer)}

    def move_view(self, state: State, view: Any, words: str) -> Any:
        """The part of a board larger than a terminal to show after a person said "view WORDS".

        Args:
          view: the part shown before; None at first: what the game thinks best.

        Raises ValueError with what can be said; here: the picture is always whole.
        """
        raise ValueError("the picture is whole: there is no other part to view")


def random_bot(state: State, key: Array) -> Array:
    """A uniformly random legal action, from one random number."""
    return choose_uniform(state.legal_action_mask, jax.random.uniform(key))


@functools.lru_cache(maxsize=64)
def jit_step(game: Game) -> Callable[[State, Array, Array], State]:
    """`game.step`, jitted once per game; for code on the host."""
    return jax.jit(game.step)


# ---- registry ----

_REGISTRY: dict[str, str] = {}


def register(name: str, target: str) -> None:
    """Announce a game as "module:Class"; the module is imported when the game is made."""
    if _REGISTRY.get(name, target) != target:
        raise ValueError(f"game {name!r} is already registered as {_REGISTRY[name]}")
    _REGISTRY[name] = target


def games() -> tuple[str, ...]:
    """Names that `make` knows."""
    return tuple(sorted(_REGISTRY))


def game_type(name: str) -> type[Game]:
    """The class registered under `name`; raises RulesError with the nearest names."""
    if name not in _REGISTRY:
        raise RulesError("game", f"unknown name {name!r}{nearest(name, _REGISTRY)}")
    module, _, attribute = _REGISTRY[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def make(name: str, preset: str | None = None, **options: Any) -> Game:
    """A game by registry name; `options` are fields of its rules, over those of `preset`.

    Raises:
      RulesError: unknown game, preset or option, or options that contradict each other.
    """
    cls = game_type(name)
    if preset is not None and preset not in cls.presets:
        raise RulesError("preset", f"unknown name {preset!r}{nearest(preset, cls.presets)}")
    fields = {f.name: f.default for f in dataclasses.fields(cls.rules_type)}
    for option, value in options.items():
        if option not in fields:
            raise RulesError(option, f"no such option of {name}{nearest(option, fields)}")
        _check_kind(option, value, fields[option])
    base = dict(cls.presets[preset]) if preset is not None else {}
    return cls(rules=cls.rules_type(**{**base, **options}))


def _check_kind(option: str, value: Any, default: Any) -> None:
    """An option has the type of its default, a whole number serving as a real one too."""
    if default is None or default is dataclasses.MISSING:
        return
    kind = type(default)
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise RulesError(option, f"{kind.__name__}, got {value!r}")
