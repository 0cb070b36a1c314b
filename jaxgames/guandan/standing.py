"""Whether the levels, owner and counters of a position can have come about. On the host.

A finished position must be one that the rules make of some position before it: the few that
there can have been are tried with score.py. Rules: the rule book, A8 and A9.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator

import jax
import numpy as np

from jaxgames.core import PositionError
from jaxgames.guandan import score
from jaxgames.guandan.cards import RANKS
from jaxgames.guandan.rules import SEATS, TOP, Rules, State


@dataclasses.dataclass(frozen=True)
class Standing:
    """Levels 0..12 and failures by team, owner (-1: none), level of the round, counters."""

    levels: tuple[int, int]
    owner: int
    level: int
    fails: tuple[int, int]
    rounds: int
    demotions: int


def is_first(rules: Rules, rounds: int) -> bool:
    """Whether a round that begins after so many is the first of its match."""
    return rounds == 0 and (rules.unit == "match" or not rules.tribute)


def check_unfinished(rules: Rules, now: Standing) -> None:
    """Refuses what no round can be played at; PositionError."""
    limit, cap = rules.book.fail_limit, rules.book.demotion_cap
    last = rules.max_rounds - 1 if rules.unit == "match" else 0
    if now.rounds > last:
        raise PositionError("rounds", f"at most {last} before the game is over, got {now.rounds}")
    given = rules.given_levels or ((0, 0) if rules.unit == "match" else None)
    if now.rounds == 0 and given is not None and now.levels != given:
        told = "/".join(RANKS[x] for x in given)
        raise PositionError("levels", f"the first round is played at {told}")
    ownerless = is_first(rules, now.rounds) and given is not None and given[0] == given[1]
    if ownerless != (now.owner < 0):
        what = "nobody owns the first round" if ownerless else "this round has an owner, 0 or 1"
        raise PositionError("owner", what)
    if now.level != now.levels[max(now.owner, 0)]:
        raise PositionError("level", f"{RANKS[now.level]} is not the level of the round's owner")
    for team, fails in enumerate(now.fails):
        if limit and fails >= limit:
            raise PositionError("fails", f"team {team}: {fails}, at {limit} a side is back at 2")
    if now.demotions > now.rounds or (cap and now.demotions >= cap):
        raise PositionError("demotions", f"{now.demotions} can not be after {now.rounds} rounds")
    if sum(now.fails) > now.rounds:
        raise PositionError("fails", f"{sum(now.fails)} can not be after {now.rounds} rounds")


def check(game, now: Standing, order: list[int], status: str, told: str, seat: int) -> np.ndarray:
    """float32[4], the rewards `told`; PositionError when the standing can not be.

    Args:
      order: seats that are out, all four when a round is over.
      status: as in a position's text.
      seat: to move; of a forfeit the offender.
    """
    nothing = np.zeros(SEATS, np.float32)
    if status in ("playing", "illegal"):
        check_unfinished(game.rules, now)
        allowed = [nothing]
        if status == "illegal":
            team = np.arange(SEATS) & 1
            allowed.append(np.where(team == (seat & 1), np.float32(-1), np.float32(1)))
    else:
        if len(order) != SEATS:
            raise PositionError("order", f"all four seats once a round is over, got {order}")
        allowed = [nothing, *_endings(game, now, order, status == "truncated")]
        if len(allowed) == 1:
            told_level = " ".join(RANKS[x] for x in now.levels)
            raise PositionError(
                "status", f"no round that ends with order {order} leaves levels {told_level}, "
                f"level {RANKS[now.level]}, owner {now.owner} and a {status} game",
            )  # fmt: skip
    for rewards in allowed:
        if told == " ".join(f"{r:g}" for r in rewards):
            return rewards
    listed = " or ".join(sorted({repr(" ".join(f"{r:g}" for r in x)) for x in allowed}))
    raise PositionError("rewards", f"{listed}, got {told[:60]!r}")


# ---- ends of rounds ----


def _endings(game, now: Standing, order: list[int], truncated: bool) -> list[np.ndarray]:
    """Rewards of all rounds that end in `now`, an ended game."""
    before = list(_before(game.rules, now, order[0] & 1))
    after = _finish(game)(
        *(np.array([getattr(b, name) for b in before]).T for name in _NAMES),
        np.array([order] * len(before)).T,
    )
    leaves = jax.tree.map(np.asarray, after)
    want = {name: np.array(getattr(now, name)).reshape(-1, 1) for name in _NAMES}
    same = leaves["truncated"] if truncated else leaves["terminated"]
    for name in _NAMES:
        same = same & (leaves[name].reshape(-1, len(before)) == want[name]).all(0)
    found = []
    for i in np.flatnonzero(same):
        try:
            check_unfinished(game.rules, before[i])
        except PositionError:
            continue
        found.append(leaves["rewards"][:, i])
    return found


_NAMES = tuple(f.name for f in dataclasses.fields(Standing))


def _before(rules: Rules, now: Standing, side: int) -> Iterator[Standing]:
    """Standings from which the end of a round might lead to `now`, always as many; `side` had
    the first out."""
    limit = max(rules.book.fail_limit - 1, 0)
    mine, others = range(TOP + 1), (now.levels[1 - side], TOP)
    fails = [(f, f - 1, limit) for f in now.fails]
    for own, other, owner, f0, f1, demotions in itertools.product(
        mine, others, (-1, 0, 1), *fails, (now.demotions, now.demotions - 1)
    ):
        levels = (own, other) if side == 0 else (other, own)
        yield Standing(levels, owner, now.level, (f0, f1), now.rounds - 1, demotions)


@functools.lru_cache(maxsize=64)
def _finish(game):
    """`score.finish_round` of standings [..., B]; a dict of what it changes, by name."""

    def finish(levels, owner, level, fails, rounds, demotions, order):
        size = owner.shape
        small = lambda x: x.astype(np.int8)  # noqa: E731
        none = {f.name: None for f in dataclasses.fields(State)}
        state = State(**none | dict(
            game=game, levels=small(levels), owner=small(owner), level=small(level),
            fails=small(fails), rounds=rounds.astype(np.int16), demotions=small(demotions),
            order=small(order), rewards=np.zeros((SEATS, *size), np.float32),
            terminated=np.zeros(size, bool), truncated=np.zeros(size, bool),
        ))  # fmt: skip
        after = score.finish_round(state, np.ones(size, bool))
        names = (*_NAMES, "rewards", "terminated", "truncated")
        return {name: getattr(after, name) for name in names}

    return jax.jit(finish)
