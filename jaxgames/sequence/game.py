"""Sequence as a `core.Game`."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxgames import batch, core
from jaxgames.sequence import board, bots, contest, knowledge, observe, play, rules
from jaxgames.sequence.rules import PRESETS, Rules


def _kernels(game):
    """The two functions in which the games differ: (advance, legal), batch last."""
    return (contest if game.rules.draft else play).KERNELS


def _step_kernel(game):
    advance, legal = _kernels(game)
    return functools.partial(play.step, advance=advance, legal=legal)


@dataclasses.dataclass(frozen=True)
class Sequence(core.Game):
    """Sequence for 2 to 12 seats in 2 or 3 teams, and its contest variant with a draft."""

    rules: Rules

    id: ClassVar[str] = "sequence"
    version: ClassVar[str] = "1"
    rules_type: ClassVar[type] = Rules
    presets: ClassVar = PRESETS

    # ---- sizes ----

    @property
    def num_players(self) -> int:
        return self.rules.players

    @property
    def num_actions(self) -> int:
        return rules.ACTIONS * self.action_slots

    @property
    def team_of(self) -> tuple[int, ...]:
        return tuple(seat % self.rules.teams for seat in range(self.rules.players))

    @property
    def max_steps(self) -> int:
        return self.rules.ply_cap * (1 + self.rules.swaps_per_turn)

    @property
    def board_shape(self) -> tuple[int, int]:
        return (board.SIZE, board.SIZE)

    @property
    def board_actions(self) -> int:
        return 3

    @property
    def action_slots(self) -> int:
        return max(self.rules.draft, 1)

    # ---- dynamics ----

    def _init(self, key):
        state = rules.deal(self, key)
        # not batch_last: XLA would fold the empty boards of the whole batch while compiling
        return state.replace(legal_action_mask=batch.one_game(_kernels(self)[1])(state))

    def step(self, state, action, key):
        """As in `core.Game`. Fastest vmapped with the batch last (in_axes and out_axes -1)."""
        return self.step_with_bits(state, action, jax.random.bits(key, dtype=jnp.uint32))

    _step = step

    def step_with_bits(self, state, action, bits):
        """`step` with the 32 random bits (uint32[]) that decide the draw; see play.draw_one."""
        return batch.batch_last(_step_kernel(self))(state, jnp.int32(action), bits)

    def _legal(self, state):
        return batch.batch_last(_kernels(self)[1])(state)

    # ---- knowledge ----

    def observe(self, state, player):
        return observe.observe(state, player)

    def observe_all(self, state, player):
        return observe.observe_all(state, player)

    def resample(self, state, player, key):
        state = knowledge.resample(state, player, key)
        return state.replace(legal_action_mask=self._legal(state) | state.done)

    @property
    def bots(self):
        return bots.BOTS

    # ---- text and pictures ----

    def action_to_text(self, state, action):
        from jaxgames.sequence import text

        return text.action_to_text(self, action, state)

    def action_from_text(self, state, string):
        from jaxgames.sequence import text

        return text.action_from_text(self, string, state)

    def to_text(self, state):
        from jaxgames.sequence import text

        return text.to_text(state)

    def from_text(self, string):
        from jaxgames.sequence import text

        return text.from_text(self, string)

    def to_knowledge(self, state):
        from jaxgames.sequence import told

        return told.to_knowledge(state)

    def from_knowledge(self, knowledge):
        from jaxgames.sequence import told

        return told.from_knowledge(self, knowledge)

    def explain_illegal(self, state, action):
        from jaxgames.sequence import text

        return text.explain_illegal(state, action)

    def chance_to_text(self, before, action, after):
        from jaxgames.sequence import text

        return text.chance_to_text(before, action, after)

    def step_with_chance(self, state, action, chance):
        from jaxgames.sequence import text

        return text.step_with_chance(state, action, chance)

    def draw(self, state, viewer=None):
        from jaxgames.sequence import draw

        return draw.svg(state, viewer)

    def draw_cell(self, state, row, col):
        from jaxgames.sequence import draw

        return draw.cell(row, col)

    def draw_text(self, state, viewer=None):
        from jaxgames.sequence import draw

        return draw.terminal(state, viewer)

    def scene_json(self, state, viewer=None):
        from jaxgames.sequence import page

        return page.scene_json(state, viewer)
