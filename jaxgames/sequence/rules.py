"""Options and state of Sequence. Numbers of sections refer to the rules summary in README.md."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.sequence import board

#: Cards dealt to each seat, by number of seats (the printed table).
HAND_SIZES = {2: 7, 3: 6, 4: 6, 6: 5, 8: 4, 9: 4, 10: 3, 12: 3}
#: Suits of the jacks that place a chip; the other two suits' jacks remove one.
JACK_MAPS = {"diamonds_clubs": "DC", "black": "CS", "red": "DH"}
DRAFT_HAND_SIZE = 6


@dataclasses.dataclass(frozen=True)
class Rules:
    """Options; None means: what the published table says. Contradictions raise RulesError.

    Attributes:
      players: seats; 2, 3, 4, 6, 8, 9, 10 or 12.
      teams: 2 or 3, dividing `players`; None: 2 for an even number of seats, else 3.
      sequences_to_win: None: 2 for two teams, 1 for three.
      hand_size: cards per seat; None: 7 for two seats down to 3 for twelve (draft: 6).
      lock_rule: "run": every chip on a run of five or more is safe from one-eyed jacks;
        "five": only the five chips named when a sequence is completed.
      reshuffle: the discards become a new deck when a draw finds the deck empty.
      swaps_per_turn: dead cards a seat may turn in before its play.
      draft: 0: draws are blind; 5: the contest rules, with five open cards to pick from.
      heart: the four centre cells held by one team count as two sequences.
      jack_map: suits of the two-eyed jacks, one of `JACK_MAPS`; only names change.
      ply_cap: plays and passes after which the game is a draw (truncated).
    """

    players: int = 2
    teams: int | None = None
    sequences_to_win: int | None = None
    hand_size: int | None = None
    lock_rule: str = "run"
    reshuffle: bool = True
    swaps_per_turn: int = 1
    draft: int = 0
    heart: bool = False
    jack_map: str = "diamonds_clubs"
    ply_cap: int = 400

    choices: ClassVar[dict[str, tuple]] = {
        "players": tuple(HAND_SIZES),
        "teams": (2, 3),
        "lock_rule": ("run", "five"),
        "reshuffle": (False, True),
        "draft": (0, 5),
        "heart": (False, True),
        "jack_map": tuple(JACK_MAPS),
    }
    ranges: ClassVar[dict[str, tuple[int, int]]] = {
        "sequences_to_win": (1, 8),
        "hand_size": (1, 52),
        "swaps_per_turn": (0, 7),
        "ply_cap": (1, 10_000),
    }

    def __post_init__(self):
        self._check_own_values()
        self._derive("teams", 2 if self.players % 2 == 0 else 3)
        self._derive("sequences_to_win", 2 if self.teams == 2 else 1)
        self._derive("hand_size", DRAFT_HAND_SIZE if self.draft else HAND_SIZES[self.players])
        self._check_together()

    def _derive(self, field: str, value: int) -> None:
        if getattr(self, field) is None:
            object.__setattr__(self, field, value)

    def _check_own_values(self) -> None:
        for field, allowed in self.choices.items():
            value = getattr(self, field)
            same = [a for a in allowed if a == value and type(a) is type(value)]
            if not same and not (value is None and field == "teams"):
                listed = ", ".join(map(str, allowed))
                raise core.RulesError(field, f"one of {listed}; got {value!r}")
        for field, (low, high) in self.ranges.items():
            value = getattr(self, field)
            if value is None and field in ("sequences_to_win", "hand_size"):
                continue
            if type(value) is not int or not low <= value <= high:
                raise core.RulesError(field, f"a whole number {low} to {high}; got {value!r}")

    def _check_together(self) -> None:
        if self.players % self.teams:
            raise core.RulesError(
                "teams", f"{self.players} players can not form {self.teams} equal teams"
            )
        cards = self.players * self.hand_size + self.draft
        if cards > 104:
            raise core.RulesError(
                "hand_size",
                f"{self.players} hands of {self.hand_size} cards"
                + (f" and a draft of {self.draft}" if self.draft else "")
                + f" need {cards} of 104 cards",
            )
        if self.heart and self.sequences_to_win > 2:
            raise core.RulesError("heart", "needs sequences_to_win of 1 or 2: it wins the game")
        if self.draft:
            wanted = {"reshuffle": False, "lock_rule": "five", "swaps_per_turn": 1, "teams": 2}
            for field, value in wanted.items():
                if getattr(self, field) != value:
                    raise core.RulesError(field, f"the draft game needs {value!r}")
            if self.players not in (2, 4):
                raise core.RulesError("players", "the draft game needs 2 or 4")


PRESETS = {
    "official": {},
    "official_five": {"lock_rule": "five"},
    "comp090054": {"draft": 5, "heart": True, "lock_rule": "five", "reshuffle": False},
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(core.State):
    """A position. P seats, T teams, 50 card types (board.py), team of seat = seat mod T.

    The deck has no order and the discards are not stored: they are the cards of the two
    packs that are neither in the deck, nor in a hand, nor in the draft (`discards`).

    Attributes:
      chips: uint16[T, 10], bit c of chips[t, r]: a chip of team t on (r, c). Corners have none.
      locked: uint16[10], chips of any team that one-eyed jacks can not remove.
      scores: int8[T], sequences of each team.
      hands: int8[P, 50], copies of each card type in each hand.
      deck: int8[50], copies left in the deck.
      known: int8[P, 50], row q: cards that seat q showed to hold and has not played since: its
        hand at the last reshuffle (all unseen cards were in the hands then), or cards taken
        from the draft. Without a draft a later play of a card that was not among them counts
        -1, since it may be an equal card of another hand; what a seat may conclude is
        `known_to`. All zero before the first reshuffle.
      swaps: int8[], swaps made in this turn (draft game: 1 after a trade or after "keep").
      passes: int8[], passes in a row up to now, over all seats.
      plies: int16[], plays and passes so far.
      reshuffles: int16[], times the deck was renewed.
      last_play: int16[], the last play or pass as an action of the 349 block; -1 at first.
    """

    chips: jax.Array
    locked: jax.Array
    scores: jax.Array
    hands: jax.Array
    deck: jax.Array
    known: jax.Array
    swaps: jax.Array
    passes: jax.Array
    plies: jax.Array
    reshuffles: jax.Array
    last_play: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DraftState(State):
    """A position of the draft game (`Rules.draft == 5`).

    Attributes:
      draft: int8[50], the open cards; as slots they are sorted by card id.
    """

    draft: jax.Array


def discards(state: State) -> jax.Array:
    """int8[50], cards played or turned in since the last reshuffle (all public)."""
    left = board.COPIES - state.deck - state.hands.sum(0, dtype=state.hands.dtype)
    return left - state.draft if isinstance(state, DraftState) else left


def known_to(state: State, player: jax.Array) -> jax.Array:
    """int8[50], cards that seat `player` knows to be in the other hands.

    Exact for two seats. For more it is what the other seats hold together for certain.
    """
    others = np.arange(state.game.rules.players) != player
    return jnp.maximum(jnp.sum(jnp.where(others[:, None], state.known, 0), 0, dtype=jnp.int8), 0)


def hand_of(state: State, player: jax.Array) -> jax.Array:
    """int8[50], the hand of seat `player`."""
    mine = np.arange(state.game.rules.players) == player
    return jnp.sum(jnp.where(mine[:, None], state.hands, 0), 0, dtype=jnp.int8)


def own_first(by_team: jax.Array, team: jax.Array, teams: int) -> jax.Array:
    """Rows [T, ...] rotated so that `team` comes first, the others in turn order."""
    turned = by_team
    for first in range(1, teams):
        turned = jnp.where(team == first, jnp.roll(by_team, -first, axis=0), turned)
    return turned


def draft_slots(draft: jax.Array) -> jax.Array:
    """bool[5, 50], the card in each slot of the draft (sorted by card id), none if empty."""
    upto = jnp.cumsum(draft, dtype=jnp.int8)
    i = np.arange(5, dtype=np.int8)[:, None]
    return (upto > i) & (upto - draft <= i)


# ---- actions: one head of 349 ----

PLACE_JACK, REMOVE, SWAP, PASS = 100, 200, 300, 348
ACTIONS = 349


# ---- the deal ----


def deal_ranks(key: jax.Array, copies: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A random order of the cards `copies` int8[50]: int32[48, 2] and int32[2, 4].

    Entry [type, copy] is the place of that copy in the order; copies that are not there come
    last, at 104 or later.
    """
    natural, jacks = copies[: board.NATURALS, None], copies[board.NATURALS :, None]
    absent = jnp.concatenate([(np.arange(2) >= natural).ravel(), (np.arange(4) >= jacks).ravel()])
    order = jnp.argsort(jnp.where(absent, 2.0, jax.random.uniform(key, (board.NUM_CARDS,))))
    place = jnp.argsort(order) + board.NUM_CARDS * absent
    return place[:96].reshape(48, 2), place[96:].reshape(2, 4)


def cards_between(places: tuple[jax.Array, jax.Array], low, high) -> jax.Array:
    """int8[50], the cards at places low <= i < high of an order from `deal_ranks`."""
    return jnp.concatenate(
        [jnp.sum((p >= low) & (p < high), axis=1, dtype=jnp.int8) for p in places]
    )


def deal(game: core.Game, key: jax.Array) -> State:
    """A first position, without its mask."""
    rules = game.rules
    seats = rules.players
    places = deal_ranks(key, jnp.asarray(board.COPIES))
    end = seats * rules.hand_size
    hands = [
        cards_between(places, q * rules.hand_size, (q + 1) * rules.hand_size) for q in range(seats)
    ]
    fields = dict(
        game=game,
        current_player=jnp.int32(0),
        legal_action_mask=jnp.zeros(game.num_actions, bool),
        rewards=jnp.zeros(seats, jnp.float32),
        terminated=jnp.bool_(False),
        truncated=jnp.bool_(False),
        illegal=jnp.bool_(False),
        chips=jnp.zeros((rules.teams, board.SIZE), jnp.uint16),
        locked=jnp.zeros(board.SIZE, jnp.uint16),
        scores=jnp.zeros(rules.teams, jnp.int8),
        hands=jnp.stack(hands),
        deck=cards_between(places, end + rules.draft, board.NUM_CARDS),
        known=jnp.zeros((seats, board.CARDS), jnp.int8),
        swaps=jnp.int8(0),
        passes=jnp.int8(0),
        plies=jnp.int16(0),
        reshuffles=jnp.int16(0),
        last_play=jnp.int16(-1),
    )
    if rules.draft:
        return DraftState(**fields, draft=cards_between(places, end, end + rules.draft))
    return State(**fields)
