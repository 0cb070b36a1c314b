"""Guandan as a `core.Game`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxgames import batch, core
from jaxgames.guandan import (
    actions,
    bots,
    deal,
    knowledge,
    observe,
    play,
    reasons,
    rewind,
    shaping,
    situations,
)
from jaxgames.guandan.cards import DECK
from jaxgames.guandan.rules import PLAYS_KEPT, PRESETS, SEATS, UNITS, Rules


@dataclasses.dataclass(frozen=True)
class Guandan(core.Game):
    """Guandan 掼蛋: four seats in two teams, one round or a whole match."""

    rules: Rules

    id: ClassVar[str] = "guandan"
    version: ClassVar[str] = "1"
    rules_type: ClassVar[type] = Rules
    presets: ClassVar = PRESETS

    @property
    def forms(self) -> Mapping[str, Guandan]:
        return {unit: self._with(unit=unit) for unit in UNITS}

    @property
    def return_unit(self) -> tuple[str, float] | None:
        return ("levels", 3.0) if self.rules.unit == "round" else None

    @property
    def bound_rules(self) -> tuple[str, ...]:
        return ()  # what is seen and what can be done are the same under all options

    # ---- sizes ----

    @property
    def num_players(self) -> int:
        return SEATS

    @property
    def num_actions(self) -> int:
        return actions.NUM_ACTIONS

    @property
    def team_of(self) -> tuple[int, ...]:
        return (0, 1, 0, 1)

    @property
    def max_steps(self) -> int:
        a_round = SEATS * DECK + SEATS  # every card a play, three passes after each; tributes
        return a_round * (self.rules.max_rounds if self.rules.unit == "match" else 1)

    def _with(self, **options) -> Guandan:
        return dataclasses.replace(self, rules=dataclasses.replace(self.rules, **options))

    # ---- dynamics ----

    def _init(self, key):
        state = deal.first_position(self, key)
        return state.replace(legal_action_mask=batch.one_game(play.legal)(state))

    def step(self, state, action, key):
        """As in `core.Game`. Fastest vmapped with the batch last (in_axes and out_axes -1)."""
        data = jax.random.key_data(key)
        return batch.batch_last(play.step)(state, jnp.int32(action), data)

    _step = step

    def step_cards(self, state, cards, action, key):
        """`step` with the exact cards of the action.

        Args:
          cards: int8[54], how many of each card type; none for a pass.
          action: int32[], the reading of the cards: their abstract action.

        A play that the rules do not allow with these cards and that reading is illegal.
        """
        data = jax.random.key_data(key)
        return batch.batch_last(play.step_cards)(state, cards, jnp.int32(action), data)

    def resolve(self, state, action):
        """int8[54], the cards that `step` plays for a legal action."""
        return batch.batch_last(play.counts_of)(state, jnp.int32(action))

    # ---- knowledge ----

    @property
    def board_shape(self):
        return observe.SHAPE

    @property
    def history(self):
        return PLAYS_KEPT

    def observe(self, state, player):
        return observe.observe(state, player)

    def observe_all(self, state, player):
        return observe.observe_all(state, player)

    def resample(self, state, player, key):
        return knowledge.resample(state, player, key)

    # ---- hints for searches ----

    def rewind(self, state, player, count):
        return rewind.rewind(state, player, count)

    def for_search(self):
        return self._with(skip_forced=True)

    # ---- hints for learners ----

    def round_number(self, state):
        return state.rounds.astype(jnp.int32)

    @property
    def shaping_terms(self):
        return shaping.TERMS

    def shaping(self, before, action, after):
        return shaping.terms(before, action, after)

    @property
    def situations(self):
        return situations.SITUATIONS

    @property
    def lead_kinds(self):
        return situations.LEAD_KINDS

    def lead_kind(self, state, action):
        return situations.lead_kind(state, action)

    @property
    def reasons(self):
        return {"strong": reasons.reasons}

    def read_logs(self, path):
        from jaxgames.guandan.log import decisions

        return decisions.logged(self, path)

    @property
    def bots(self):
        return bots.BOTS

    # ---- text and pictures ----

    def action_to_text(self, state, action):
        return actions.NAMES[int(action)]

    def action_from_text(self, state, text):
        from jaxgames.guandan import text as texts

        return texts.action_from_text(text)

    def to_text(self, state):
        from jaxgames.guandan import text

        return text.to_text(state)

    def from_text(self, text):
        from jaxgames.guandan import text as texts

        return texts.from_text(self, text)

    def to_knowledge(self, state):
        from jaxgames.guandan import told

        return told.to_knowledge(state)

    def from_knowledge(self, knowledge):
        from jaxgames.guandan import told

        return told.from_knowledge(self, knowledge)

    def explain_illegal(self, state, action):
        from jaxgames.guandan import text

        return text.explain_illegal(state, action)

    def chance_to_text(self, before, action, after):
        from jaxgames.guandan import text

        return text.chance_to_text(before, action, after)

    def step_with_chance(self, state, action, chance, detail=None):
        """As in `core.Game`; `detail` names the exact cards of the action."""
        from jaxgames.guandan import text

        return text.step_with_chance(state, action, chance, detail)

    def move_from_text(self, state, text):
        """(action, cards or None) of a move such as "pair 9+*: S9 H2"."""
        from jaxgames.guandan import human

        return human.move_from_text(state, text)

    def readings(self, state, text):
        from jaxgames.guandan import human

        return human.readings(state, text)

    def action_notes(self, state, actions):
        from jaxgames.guandan import human

        return human.action_notes(state, actions)

    def announce(self, before, action, after):
        from jaxgames.guandan import human

        return human.announce(before, action, after)

    def draw(self, state, viewer=None):
        from jaxgames.guandan import draw

        return draw.svg(state, viewer)

    def draw_text(self, state, viewer=None):
        from jaxgames.guandan import draw

        return draw.terminal(state, viewer)

    def scene_json(self, state, viewer=None):
        from jaxgames.guandan import page

        return page.scene_json(state, viewer)
