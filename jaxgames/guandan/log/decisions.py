"""What was decided in logged matches, as arrays to learn from.

A referee reads a match on the host; then the engine plays its rounds side by side, with the exact
cards of the log, and gives the positions with their masks and the rewards. Nothing is taken
from the log that the engine can tell.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.guandan import actions
from jaxgames.guandan import cards as c
from jaxgames.guandan.log.check import check_all
from jaxgames.guandan.log.engine import start_of
from jaxgames.guandan.log.events import Breach, Deal, MatchLog, Return, RoundEnd, Tribute, Turn
from jaxgames.guandan.log.positions import play_of, positions
from jaxgames.guandan.log.record import files, read
from jaxgames.guandan.log.referee import team
from jaxgames.guandan.reading import action_of
from jaxgames.guandan.rules import SEATS, State

_ROUNDS, _STEPS = 16, 64  # replayed at once


def logged(game: core.Game, path: str) -> Iterator[core.Logged]:
    """The decisions of every match in a file or folder; see `core.Game.read_logs`.

    A game of single rounds takes every round of a match for a game. Where the game skips forced
    passes they are left out. Matches and rounds that were broken off have no outcome and are
    left out, too.

    Raises:
      Breach: a log that is not clean, or of another profile.
      OSError: no such path.
    """
    if not files(path):
        raise Breach("empty", "path", f"no .jsonl file in {path}")
    for match, clean, faults in check_all(read(path)):
        if clean is None:
            fault = next(fault for fault in faults if not fault.repaired)
            raise Breach(fault.kind, match.source, f"{fault.message} (jaxgames data check)")
        _check_rules(game, clean)
        yield core.Logged(match.source, *_decisions(game, clean))


def _check_rules(game: core.Game, match: MatchLog) -> None:
    header, rules = match.header, game.rules
    told = {"profile": header.profile, "a_fail_limit": header.a_fail_limit}
    true = {"profile": rules.profile, "a_fail_limit": rules.book.fail_limit}
    if rules.unit == "match":
        told |= {"unit": header.unit, "max_rounds": header.max_rounds}
        true |= {"unit": rules.unit, "max_rounds": rules.max_rounds}
    for name, want in true.items():
        if told[name] != want:
            message = f"the game has {name} {want!r}, the log {told[name]!r}"
            raise Breach("bad-field", match.source, message)


# ---- on the host ----


@dataclasses.dataclass
class _Round:
    """A finished round: its first position and, per decision, who chose what with which cards."""

    start: State
    seats: list[int]
    actions: list[int]
    cards: list[np.ndarray]


def _rounds(game: core.Game, match: MatchLog) -> list[_Round]:
    found, fresh = [], False
    for referee, event in positions(match):
        if isinstance(event, Deal):
            current, fresh = None, True
        elif isinstance(event, Tribute | Return | Turn):
            if fresh:
                current, fresh = _Round(start_of(game, referee), [], [], []), False
            made = play_of(event, referee)
            current.seats.append(event.seat)
            current.actions.append(action_of(made, referee.level))
            current.cards.append(c.counts(made.cards))
        elif isinstance(event, RoundEnd):
            found.append(current)
    return found


def _decisions(game: core.Game, match: MatchLog) -> tuple[State, np.ndarray, np.ndarray]:
    """States [n], action int32[n], outcome float32[n, 4] of the finished rounds of a match."""
    single = dataclasses.replace(game.rules, unit="round", skip_forced=False)
    rounds = _rounds(dataclasses.replace(game, rules=single), match)
    whole = game.rules.unit == "match"
    if whole and match.events[-1].reason == "stopped":
        rounds = []
    winner = match.events[-1].winner
    sides = np.array([team(seat) for seat in range(SEATS)])
    share = np.zeros(SEATS) if winner is None else np.where(sides == winner, 1.0, -1.0)

    parts = [_empty(game)]
    for begin in range(0, len(rounds), _ROUNDS):
        some = rounds[begin : begin + _ROUNDS]
        for one, states, rewards in zip(some, *_replay(some, match.source), strict=True):
            chosen = np.array(one.actions, np.int32)
            outcome = np.tile(share if whole else rewards, (len(chosen), 1)).astype(np.float32)
            states = states.replace(game=game)
            if game.rules.skip_forced:
                mask = states.legal_action_mask
                real = ~mask[:, actions.PASS] | (mask.sum(-1) > 1)
                states, chosen, outcome = jax.tree.map(
                    lambda x, real=real: x[real], (states, chosen, outcome)
                )
            parts.append((states, chosen, outcome))
    return jax.tree.map(lambda *xs: np.concatenate(xs), *parts)


@functools.lru_cache(maxsize=8)
def _empty(game: core.Game) -> tuple[State, np.ndarray, np.ndarray]:
    shapes = jax.eval_shape(game.init, jax.eval_shape(jax.random.key, 0))
    states = jax.tree.map(lambda x: np.zeros((0, *x.shape), x.dtype), shapes)
    return states, np.zeros(0, np.int32), np.zeros((0, SEATS), np.float32)


# ---- in the engine ----


def _replay(rounds: list[_Round], source: str) -> tuple[list[State], list[np.ndarray]]:
    """Per round: the positions of its decisions, and the rewards float32[4] at its end."""
    lengths = [len(one.actions) for one in rounds]
    steps = -(-max(lengths) // _STEPS) * _STEPS
    filled = rounds + rounds[:1] * (_ROUNDS - len(rounds))
    action = np.zeros((steps, _ROUNDS), np.int32)
    taken = np.zeros((steps, _ROUNDS, c.TYPES), np.int8)
    for row, one in enumerate(filled):
        action[: len(one.actions), row] = one.actions
        taken[: len(one.cards), row] = one.cards
    states = jax.tree.map(lambda *xs: np.stack(xs), *[one.start for one in filled])
    seen, won = [], np.float32(0)
    for begin in range(0, steps, _STEPS):
        part = slice(begin, begin + _STEPS)
        states, befores, rewards = _stretch(states.game)(states, action[part], taken[part])
        seen.append(jax.tree.map(np.asarray, befores))
        won = won + np.asarray(rewards)
    seen = jax.tree.map(lambda *xs: np.concatenate(xs), *seen)
    over, illegal = np.asarray(states.done), np.asarray(states.illegal)
    found = []
    for row, (one, length) in enumerate(zip(rounds, lengths, strict=True)):
        states = jax.tree.map(lambda x, row=row, n=length: x[:n, row], seen)
        if illegal[row] or not over[row] or (states.current_player != one.seats).any():
            raise Breach("play-form", source, "the engine tells a round of the match otherwise")
        found.append(states)
    return found, list(won[: len(rounds)])


@functools.lru_cache(maxsize=8)
def _stretch(game: core.Game) -> Callable:
    """(states[R], action int32[S, R], cards int8[S, R, 54]) -> (states after S decisions,
    those before each [S, R, ...], rewards float32[R, 4]); over games stay as they are."""
    key = np.zeros(2, np.uint32)

    def one(states, chosen):
        step = jax.vmap(game.step_cards, (0, 0, 0, None))
        action, taken = chosen
        after = step(states, taken, action, jax.random.wrap_key_data(jnp.asarray(key)))
        return after, (states, after.rewards)

    def run(states, action, taken):
        states, (befores, rewards) = jax.lax.scan(one, states, (action, taken))
        return states, befores, rewards.sum(0)

    return jax.jit(run)
