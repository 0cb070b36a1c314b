"""A game played on the host: history, undo, and refusal of illegal actions.

    match = Match(make("sequence"), seed=7)
    match.play("...")          # or an action id; IllegalAction names the rule it breaks
    match.legal()              # [(action, text), ...]
    match.undo_to(seat=0)      # back to seat 0's last decision

All chance follows from the seed and the ply, so undoing a move and playing it again draws
the same cards.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable

import jax
import numpy as np

from jaxgames.core import Array, Game, State, jit_step

#: Bytes that the positions of a match may take, and what one takes besides its leaves.
MATCH_BYTES, _PLY_BYTES = 1 << 30, 16 << 10


class IllegalAction(ValueError):
    """A refused action: `seat`, its text `action`, and the `rule` it breaks, a sentence."""

    def __init__(self, seat: int, action: str, rule: str):
        super().__init__(f"seat {seat} can not play {action!r}: {rule}")
        self.seat = seat
        self.action = action
        self.rule = rule


@dataclasses.dataclass(frozen=True)
class Result:
    """Where a game stands: per seat the sum of its rewards so far, and whether it ended."""

    rewards: tuple[float, ...]
    terminated: bool
    truncated: bool

    @property
    def done(self) -> bool:
        return self.terminated or self.truncated


class Match:
    """One game and its history.

    Args:
      game: the game.
      seed: 0..2**32 - 1; the key of the deal and of every ply is one `fold_in` of its key.
      state: starts from this position instead of a deal.

    Attributes:
      states: the positions so far, `len(actions) + 1` of them.
      actions: the actions played.
      most_plies: a longer game is refused, for every position is kept.
    """

    def __init__(self, game: Game, seed: int = 0, state: State | None = None):
        seed = operator.index(seed)
        if not 0 <= seed < 2**32:
            raise ValueError(f"seed: 0 to 2**32 - 1, got {seed}")
        if state is not None and state.game != game:
            raise ValueError("state: is a position of another game")
        self.game = game
        self.seed = seed
        self._root = jax.random.key(seed)
        self.most_plies = MATCH_BYTES // (_PLY_BYTES + _state_bytes(game))
        if state is None:
            state = _jit_init(game)(jax.random.fold_in(self._root, 0))
        self._states = [state]
        self._actions: list[int] = []
        self._details: list[str | None] = []

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(self._states)

    @property
    def actions(self) -> tuple[int, ...]:
        return tuple(self._actions)

    @property
    def state(self) -> State:
        """The position now."""
        return self._states[-1]

    @property
    def ply(self) -> int:
        """Number of actions played."""
        return len(self._actions)

    @property
    def seat(self) -> int:
        """The seat to move."""
        return int(self.state.current_player)

    @property
    def done(self) -> bool:
        return bool(self.state.done)

    def legal(self) -> list[tuple[int, str]]:
        """Legal actions with their texts, by action id; none when the game is over."""
        if self.done:
            return []
        actions = np.flatnonzero(np.asarray(self.state.legal_action_mask)).tolist()
        return [(a, self.game.action_to_text(self.state, a)) for a in actions]

    def play(self, action: int | str) -> State:
        """Plays an action id or text for the seat to move, with chance from the seed.

        Raises:
          IllegalAction: the action is not legal here; the match is unchanged.
        """
        action, detail = self._admit(action)
        key = jax.random.fold_in(self._root, self.ply + 1)
        after = jit_step(self.game)(self.state, np.int32(action), key)
        if detail is not None:
            chance = self.game.chance_to_text(self.state, action, after)
            after = self.game.step_with_chance(self.state, action, chance, detail)
        return self._push(action, detail, after)

    def play_with_chance(self, action: int | str, chance: str | None) -> State:
        """`play` with chance given as text (`Game.chance_to_text`); for replays.

        Raises:
          IllegalAction: as `play`.
          ValueError: chance can not have produced that text here.
        """
        action, detail = self._admit(action)
        more = () if detail is None else (detail,)
        after = self.game.step_with_chance(self.state, action, chance, *more)
        return self._push(action, detail, after)

    def chance(self, ply: int) -> str | None:
        """What chance decided at `ply`, as text; None if nothing."""
        before, after = self._states[ply], self._states[ply + 1]
        return self.game.chance_to_text(before, self._actions[ply], after)

    def move_text(self, ply: int) -> str:
        """The move at `ply` as `play` takes it: its action's text, and its detail if it had one."""
        text = self.game.action_to_text(self._states[ply], self._actions[ply])
        detail = self._details[ply]
        return text if detail is None else f"{text}: {detail}"

    def undo(self, n: int = 1) -> None:
        """Takes back the last `n` plies; ValueError when there are fewer."""
        if not 0 <= n <= self.ply:
            raise ValueError(f"undo: {n} plies of {self.ply}")
        keep = self.ply - n
        del self._actions[keep:], self._details[keep:], self._states[keep + 1 :]

    def undo_to(self, seat: int) -> None:
        """Back to the last decision that `seat` made; ValueError when it made none."""
        for ply in reversed(range(self.ply)):
            if int(self._states[ply].current_player) == seat:
                return self.undo(self.ply - ply)
        raise ValueError(f"undo: seat {seat} has not moved yet")

    def result(self) -> Result:
        """The rewards so far, per seat in absolute order, and whether the game ended."""
        rewards = np.zeros(self.game.num_players)
        for step in jax.device_get([state.rewards for state in self._states[1:]]):
            rewards += step
        state = self.state
        return Result(tuple(rewards.tolist()), bool(state.terminated), bool(state.truncated))

    def _push(self, action: int, detail: str | None, state: State) -> State:
        self._states.append(state)
        self._actions.append(action)
        self._details.append(detail)
        return state

    def _admit(self, action: int | str) -> tuple[int, str | None]:
        """(id, detail) of a legal action; raises IllegalAction."""
        state, game, detail = self.state, self.game, None
        if isinstance(action, str):
            text = action
            if self.done:
                raise IllegalAction(self.seat, text, "the game is over")
            try:
                action, detail = game.move_from_text(state, text)
            except ValueError as error:
                raise IllegalAction(self.seat, text, str(error)) from None
        else:
            action = operator.index(action)
            in_head = 0 <= action < game.num_actions
            text = game.action_to_text(state, action) if in_head else str(action)
            if self.done:
                raise IllegalAction(self.seat, text, "the game is over")
        if self.ply >= self.most_plies:
            rule = f"a match of this game holds at most {self.most_plies} plies"
            raise IllegalAction(self.seat, text, rule)
        if not 0 <= action < game.num_actions or not bool(state.legal_action_mask[action]):
            rule = game.explain_illegal(state, action) or "the rules forbid it here"
            raise IllegalAction(self.seat, text, rule)
        return action, detail


@functools.lru_cache(maxsize=64)
def _state_bytes(game: Game) -> int:
    """Of one position."""
    shapes = jax.eval_shape(game.init, jax.random.key(0))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


@functools.lru_cache(maxsize=64)
def _jit_init(game: Game) -> Callable[[Array], State]:
    return jax.jit(game.init)
