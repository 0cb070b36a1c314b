"""A match as the platform tells it: positions of the engine become messages, and no socket.

    table = Table(make("guandan", "v1006"), jax.random.key(0))
    told = table.start()                    # rows of four messages, one per seat
    while not table.over:
        message, plays = table.request()    # for table.seat
        told += table.move(plays[0])

Order of messages: the rule book, B4. Cards and readings are exact throughout.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxgames.core import Game, RulesError, State
from jaxgames.guandan import cards
from jaxgames.guandan.exact import (
    PASS_PLAY,
    Play,
    action_of,
    legal_plays,
    return_plays,
    tribute_plays,
    triple_of,
)
from jaxgames.guandan.log.build import LogBuilder
from jaxgames.guandan.notation import counts_of
from jaxgames.guandan.reading import exact_play
from jaxgames.guandan.rules import PLAY, RETURN, SEATS, TRIBUTE
from jaxgames.guandan.wire import protocol

#: What chooses for a seat: (position, seat, key) -> abstract action.
Choose = Callable[[State, int, jax.Array], int]
#: One message per seat.
Row = tuple[dict, dict, dict, dict]

TEAMS = 2
_STAGES = {TRIBUTE: "tribute", RETURN: "back", PLAY: "play"}

#: `jax.random.fold_in` in one call instead of many.
fold_in = jax.jit(jax.random.fold_in)


@functools.lru_cache(maxsize=8)
def programs(game: Game) -> tuple[Callable, Callable, Callable]:
    """`init`, `step_cards` and `resolve` of a game, jitted once."""
    return jax.jit(game.init), jax.jit(game.step_cards), jax.jit(game.resolve)


def bot(game: Game, name: str) -> Choose:
    """A rule bot of the game as a `Choose`."""
    act = jax.jit(game.bots[name])
    return lambda state, seat, key: int(act(state, key))


class Table:
    """One match.

    Attributes:
      state: the engine's position, on the host.
      order: seats in the order in which they went out this round.
      moves: actions so far, tribute and return included.
      rounds: finished rounds.
      log: takes every deal and move; None without one.
    """

    def __init__(
        self,
        game: Game,
        key: jax.Array,
        *,
        ranks: bool = True,
        log: Callable[..., LogBuilder] | None = None,
    ):
        """
        Args:
          ranks: tell the levels in `beginning`, which some clients need (B9).
          log: makes the log; called with the fields of `LogBuilder` that the game decides.

        Raises RulesError for options that no platform has.
        """
        if game.rules.skip_forced:
            raise RulesError("skip_forced", "a platform asks for forced passes, too; say false")
        if game.rules.unit != "match":
            raise RulesError("unit", "a platform plays whole matches; say match")
        self.game, self.profile, self._ranks = game, game.rules.profile, ranks
        self._key = key
        init, self._step, self._resolve = programs(game)
        self.state = jax.device_get(init(fold_in(key, 0)))
        self.moves = self.rounds = 0
        self.log = None if log is None else log(**self._header())
        self._begin_round()

    # ---- the position ----

    @property
    def over(self) -> bool:
        return bool(self.state.done)

    @property
    def seat(self) -> int:
        return int(self.state.current_player)

    @property
    def stage(self) -> int:
        return int(self.state.stage)

    @property
    def level(self) -> int:
        return int(self.state.level)

    @property
    def winner(self) -> int | None:
        """The team that won the finished match; None for a draw."""
        rewards = np.asarray(self.state.rewards)[:TEAMS]
        return None if rewards[0] == rewards[1] else int(rewards.argmax())

    def levels(self, seat: int) -> tuple[int, int]:
        """Levels of the seat's side and of the other, 0..12."""
        levels = np.asarray(self.state.levels)
        return int(levels[seat % TEAMS]), int(levels[1 - seat % TEAMS])

    # ---- telling ----

    def start(self) -> list[Row]:
        """What is told before the first request."""
        return self._beginning()

    def request(self) -> tuple[dict, list[Play]]:
        """The `act` message for the seat to move, and the plays that it lists."""
        seat, hand = self.seat, self.hands[self.seat]
        plays = self.plays()
        self.view.asked(seat, leads=self.best is None)
        message = protocol.act(
            _STAGES[self.stage],
            cards.by_power(hand, self.level),
            self.hands.sum(axis=1).tolist(),
            (*self.levels(seat), self.level),
            self.view,
            [triple_of(play, self.level, self.profile) for play in plays],
        )
        return message, plays

    def plays(self) -> list[Play]:
        """Everything that the seat to move may do."""
        hand = self.hands[self.seat]
        if self.stage == TRIBUTE:
            return tribute_plays(hand, self.level)
        if self.stage == RETURN:
            return return_plays(hand, self.level)
        return legal_plays(hand, self.level, self.best, self.profile)

    def choice(self, choose: Choose, key: jax.Array) -> Play:
        """What an agent plays for the seat to move, suits and wilds resolved by the engine."""
        self.view.asked(self.seat, leads=self.best is None)
        action = np.int32(choose(self.state, self.seat, key))
        counts = np.asarray(self._resolve(self.state, action))
        return exact_play(int(action), counts, self.level, self.profile)

    def move(self, play: Play) -> list[Row]:
        """Plays for the seat to move; what is then told to all, in order.

        Raises ValueError when the engine refuses a play that a list offered.
        """
        seat, stage, before = self.seat, self.stage, self.state
        counts = cards.counts(play.cards)
        action = np.int32(action_of(play, self.level))
        self.moves += 1
        key = fold_in(self._key, self.moves)
        after = jax.device_get(self._step(before, counts, action, key))
        if bool(after.illegal):
            raise ValueError(f"seat {seat}: the engine refuses {play.triple}")
        self.state = after
        if self.log is not None:
            self.log.move(seat, play)
        if stage == PLAY:
            return self._played(seat, play, counts)
        self.hands = counts_of(after.hands)
        if self.stage == stage:
            return []
        if stage == TRIBUTE:
            return [_same(protocol.tributes(self._tributes(after)))]
        return [_same(protocol.tributes(self._returns(after), "back"))]

    def _played(self, seat: int, play: Play, counts: np.ndarray) -> list[Row]:
        level = self._level
        self.view.moved(seat, triple_of(play, level, self.profile))
        told = [_same(protocol.played(self.view))]
        left = self.hands.copy()
        left[seat] -= counts
        if not left[seat].any():
            self.order.append(seat)
        out = set(self.order)
        if any({team, team + TEAMS} <= out for team in range(TEAMS)):
            order = self.order + sorted(set(range(SEATS)) - out)
            rest = {s: cards.by_power(left[s], level) for s in range(SEATS)}
            told.append(_same(protocol.episode_over(level, order, rest)))
            self.rounds += 1
            if not self.over:
                self._begin_round()
                told += self._beginning()
            return told
        self.hands = left
        self.best = None if int(self.state.table) < 0 else self.best if _passed(play) else play
        return told

    def _begin_round(self) -> None:
        self.view, self.best, self.order = protocol.TableView(), None, []
        self.hands, self._level = counts_of(self.state.hands), self.level
        if self.log is not None:
            leader = self.seat if self.rounds == 0 else None
            self.log.deal(self.hands, leader, self.level)

    def _header(self) -> dict[str, Any]:
        owner = int(self.state.owner)
        return dict(
            profile=self.profile,
            levels=tuple(cards.RANKS[level] for level in np.asarray(self.state.levels)),
            owner=None if owner < 0 else owner,
            a_fail_limit=self.game.rules.book.fail_limit,
            max_rounds=self.game.rules.max_rounds,
        )

    def _beginning(self) -> list[Row]:
        def message(seat: int) -> dict:
            hand = cards.by_power(self.hands[seat], self.level)
            ranks = (self.level, *self.levels(seat)) if self._ranks else None
            return protocol.beginning(hand, seat, ranks)

        told: list[Row] = [tuple(message(seat) for seat in range(SEATS))]
        if bool(self.state.anti):  # then all big jokers are on the paying side
            holders = np.flatnonzero(self.hands[:, cards.HR]).tolist()
            told.append(_same(protocol.anti_tribute(holders)))
        return told

    def _tributes(self, state: State) -> list[tuple[int, int, str]]:
        """(payer, receiver, card), the higher-numbered payer first."""
        paid, to = np.asarray(state.tribute), np.asarray(state.to)
        payers = [seat for seat in range(SEATS - 1, -1, -1) if paid[seat] >= 0]
        return [(seat, int(to[seat]), cards.NAMES[paid[seat]]) for seat in payers]

    def _returns(self, state: State) -> list[tuple[int, int, str]]:
        back = np.asarray(state.back)
        return [(to, seat, cards.NAMES[back[to]]) for seat, to, _ in self._tributes(state)]


def _passed(play: Play) -> bool:
    return play == PASS_PLAY


def _same(message: dict[str, Any]) -> Row:
    return (message,) * SEATS
