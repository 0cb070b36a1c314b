"""Between the engine and logs: a game played there is logged, a log is replayed there.

log = begin(state, names, seed=7)               # state: a first position of a game
after = game.step(state, action, key)
follow(log, state, action, after)               # cards as `game.resolve` picks them
for state, event in replay(game, clean): ...    # engine positions of a log, its own deals
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.core import Game
from jaxgames.guandan import cards as c
from jaxgames.guandan import deal, play
from jaxgames.guandan.log import referee as stages
from jaxgames.guandan.log.build import LogBuilder
from jaxgames.guandan.log.events import Breach, Deal, MatchLog, Return, Tribute, Turn
from jaxgames.guandan.log.positions import play_of, positions
from jaxgames.guandan.log.referee import Referee, partner, team
from jaxgames.guandan.notation import counts_of
from jaxgames.guandan.reading import action_of, exact_play
from jaxgames.guandan.rules import PLAY, SEATS, State

# ---- from the engine ----


def begin(state: State, seats: Sequence[str], **others: Any) -> LogBuilder:
    """The log of the match or round that begins with `state`, its deal written.

    Args:
      seats: four names; `others`: further arguments of `LogBuilder` (seed, versions, meta, sink).
    """
    rules, owner = state.game.rules, int(state.owner)
    log = LogBuilder(
        rules.profile,
        seats,
        unit=rules.unit,
        levels=tuple(c.RANKS[level] for level in np.asarray(state.levels)),
        owner=None if owner < 0 else owner,
        previous=_previous(state),
        fails=tuple(int(n) for n in state.fails),
        demotions=int(state.demotions),
        rounds=int(state.rounds),
        a_fail_limit=rules.book.fail_limit,
        max_rounds=rules.max_rounds,
        **others,
    )
    leader = int(state.current_player) if log.referee.previous is None else None
    log.deal(counts_of(state.hands), leader, int(state.level))
    return log


def follow(
    log: LogBuilder, before: State, action: int, after: State, counts: np.ndarray | None = None
) -> None:
    """Logs the step from `before` to `after`, and the deal that came with it.

    `counts`: the cards int8[54] that were played, if not those that the engine picks.
    """
    if counts is None:
        counts = _programs(before.game)[1](before, np.int32(action))
    rules, level = before.game.rules, int(before.level)
    made = exact_play(int(action), np.asarray(counts), level, rules.profile)
    log.move(int(before.current_player), made, skipped=rules.skip_forced)
    if log.referee.stage == stages.DEAL:
        log.deal(counts_of(after.hands))


def _previous(state: State) -> tuple[int, ...] | None:
    """The finish before the tribute of a first position; None when there is none.

    A refused tribute leaves only the first out and the holders of the big jokers: some finish
    with the same payers.
    """
    if int(state.stage) != PLAY:
        return tuple(int(seat) for seat in state.order)
    if not bool(state.anti):
        return None
    first = int(state.current_player)
    holders = [seat for seat, hand in enumerate(counts_of(state.hands)) if hand[c.HR]]
    if len(holders) == 2:
        return (first, partner(first), *holders)
    rest = [seat for seat in range(SEATS) if seat not in (first, *holders)]
    if team(rest[0]) == team(first):
        rest.reverse()  # an opponent second: the last one pays alone
    return (first, *rest, *holders)


# ---- to the engine ----


def start_of(game: Game, referee: Referee) -> State:
    """The engine's position where a referee is after a deal, before the first decision."""
    began = referee.stage != stages.DEAL and not (referee.paid or referee.back or referee.out)
    if not began or referee.table is not None:
        raise Breach("deal-missing", "event", "only the beginning of a round can be set up")
    leads = referee.seat if referee.previous is None else 0
    owner = -1 if referee.owner is None else referee.owner
    counts = jnp.asarray(np.stack(referee.hands).T, jnp.int8)
    previous = (-1,) * SEATS if referee.previous is None else referee.previous
    state = deal.blank(
        game,
        current_player=jnp.int32(leads),
        hands=c.to_planes(counts).T,
        levels=jnp.asarray(referee.levels, jnp.int8),
        owner=jnp.int8(owner),
        level=jnp.int8(referee.level),
        fails=jnp.asarray(referee.fails, jnp.int8),
        demotions=jnp.int8(referee.demotions),
        rounds=jnp.int16(referee.rounds),
        order=jnp.asarray(previous, jnp.int8),
    )
    return _programs(game)[2](state)


def replay(game: Game, match: MatchLog) -> Iterator[tuple[State, Tribute | Return | Turn]]:
    """(the engine's position, decision) for every decision of a clean match.

    `game` needs the profile and options of the log, and forced passes played like any other.

    Raises:
      Breach: the engine refuses a decision, or tells another game.
    """
    _check_game(game, match)
    step = _programs(game)[0]
    key, state, fresh = jax.random.key(0), None, False
    for referee, event in positions(match):
        if isinstance(event, Deal):
            fresh = True
        if not isinstance(event, Tribute | Return | Turn):
            continue
        if fresh:
            state, fresh = start_of(game, referee), False
        if int(state.current_player) != event.seat:
            seat = int(state.current_player)
            raise Breach("turn", "seat", f"seat {seat} is to move in the engine, not {event.seat}")
        yield state, event
        made = play_of(event, referee)
        action = np.int32(action_of(made, referee.level))
        state = step(state, c.counts(made.cards), action, key)
        if bool(state.illegal):
            raise Breach("play-form", "play", f"the engine refuses {made.triple}")


def _check_game(game: Game, match: MatchLog) -> None:
    header, rules = match.header, game.rules
    for name in ("profile", "unit", "max_rounds"):
        if getattr(header, name) != getattr(rules, name):
            told, true = getattr(header, name), getattr(rules, name)
            raise Breach("bad-field", name, f"the game has {true!r}, the log {told!r}")
    if header.a_fail_limit != rules.book.fail_limit or rules.skip_forced:
        raise Breach("bad-field", "a_fail_limit", "the game has other options than the log")


@functools.lru_cache(maxsize=8)
def _programs(game: Game) -> tuple[Callable, Callable, Callable]:
    """`step_cards`, `resolve`, and the beginning of a round with its mask, jitted once."""

    def start(state: State) -> State:
        state = batch.one_game(deal.begin)(state)
        return state.replace(legal_action_mask=batch.one_game(play.legal)(state))

    return jax.jit(game.step_cards), jax.jit(game.resolve), jax.jit(start)
