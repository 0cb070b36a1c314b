"""Options and positions of Guandan. Rules: the rule book, A7 to A12."""

from __future__ import annotations

import dataclasses

import jax

from jaxgames import core
from jaxgames.guandan.cards import RANKS

SEATS = 4
TOP = 12  #: level A; levels are ranks 0 (the 2) .. 12
PLAYS_KEPT = 8

#: Values of `State.stage`.
TRIBUTE, RETURN, PLAY = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class Profile:
    """What differs between the rule books (A12).

    Attributes:
      skip_upstream: after the last play of a seat that is out, the seat before it is not asked:
        its partner leads as soon as it has passed.
      pass_a_place: the worst place of the partner with which a side passes A.
      fail_rule: what counts as a failure at A: "owned" (an owned A round that did not pass),
        "standing" (the side with the first out stood at A and did not pass: at once), or
        "last" (an owned A round won with the partner last).
      fail_limit: failures until the side goes back to 2; 0: never.
      demotion_cap: demotions until the match ends; 0: no cap.
      cap_draws: it then is a draw (else the higher level wins, the owner if they are equal).
      tribute_by_power: of two tributes the higher goes to the first out (else by seat).
      tie_leader: who leads after two equal tributes: "next" (the seat after the first out) or
        "last" (the higher-numbered payer).
      wild_restriction: hearts with wilds are never a plain straight, and three level cards
        with two wilds no full house.
    """

    skip_upstream: bool = False
    pass_a_place: int = 3
    fail_rule: str = "owned"
    fail_limit: int = 3
    demotion_cap: int = 0
    cap_draws: bool = False
    tribute_by_power: bool = True
    tie_leader: str = "next"
    wild_restriction: bool = False


PROFILES = {
    "national": Profile(),
    "v1006": Profile(
        skip_upstream=True,
        pass_a_place=2,
        fail_rule="standing",
        fail_limit=1,
        demotion_cap=50,
        cap_draws=True,
        tribute_by_power=False,
    ),
    "ogd": Profile(
        fail_rule="last",
        fail_limit=4,
        demotion_cap=50,
        tribute_by_power=False,
        tie_leader="last",
        wild_restriction=True,
    ),
}
UNITS = ("round", "match")


@dataclasses.dataclass(frozen=True)
class Rules:
    """Options.

    Attributes:
      profile: "national", "v1006" or "ogd".
      unit: "round" (one deal; rewards are a third of the levels won, or lost) or "match" (from
        the first deal until a side passes A; rewards 1 and -1, 0 for a draw).
      levels: levels of the two teams, such as "2/2" or "T/K"; "sampled": each uniform. A match
        sampled starts at "2/2".
      tribute: a round is not the first of its match: it has an owner, and begins with a
        tribute after a random finish of the round before. A match begins without in any case.
      a_fail_limit: failures at A until a side goes back to 2; -1: that of the profile, 0: never.
      max_rounds: rounds after which a match is cut off, as a draw.
      skip_forced: passes of seats that can do nothing else are played inside `step`.
    """

    profile: str = "national"
    unit: str = "round"
    levels: str = "sampled"
    tribute: bool = True
    a_fail_limit: int = -1
    max_rounds: int = 100
    skip_forced: bool = False

    def __post_init__(self):
        if self.profile not in PROFILES:
            raise core.RulesError(
                "profile", f"unknown name {self.profile!r}{core.nearest(self.profile, PROFILES)}"
            )
        if self.unit not in UNITS:
            raise core.RulesError(
                "unit", f"unknown name {self.unit!r}{core.nearest(self.unit, UNITS)}"
            )
        if not -1 <= self.a_fail_limit <= 100:
            raise core.RulesError("a_fail_limit", f"-1 to 100, got {self.a_fail_limit}")
        if not 1 <= self.max_rounds <= 10_000:
            raise core.RulesError("max_rounds", f"1 to 10000, got {self.max_rounds}")
        self.given_levels  # noqa: B018  (checks the text)

    @property
    def book(self) -> Profile:
        """The rule book with the options that override it."""
        book = PROFILES[self.profile]
        if self.a_fail_limit >= 0:
            book = dataclasses.replace(book, fail_limit=self.a_fail_limit)
        return book

    @property
    def given_levels(self) -> tuple[int, int] | None:
        """Levels 0..12 of the teams at the start; None: sampled."""
        if self.levels == "sampled":
            return None
        parts = [RANKS.find(part) if len(part) == 1 else -1 for part in self.levels.split("/")]
        if len(parts) != 2 or min(parts) < 0:
            raise core.RulesError(
                "levels", f"'sampled' or two levels 2..9 T J Q K A as '2/K', got {self.levels!r}"
            )
        return parts[0], parts[1]


PRESETS = {
    "default": {},
    "national": {},
    "match": {"unit": "match"},
    "v1006": {"profile": "v1006", "unit": "match"},
    "ogd": {"profile": "ogd", "unit": "match"},
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(core.State):
    """A position. Sets of cards are bit planes uint16[8] (cards.py); -1 stands for "none".

    Attributes:
      hands: uint16[4, 8], by seat.
      played: uint16[4, 8], what each seat played this round.
      known: uint16[4, 8], cards that everybody knows to be in a hand: received as tribute or
        return, or shown by an anti-tribute, and not played since.
      levels: int8[2], by team.
      owner: int8[], team whose level is the round's; -1 in the first round of a match.
      level: int8[], of the round; of the last one when a match is over.
      fails: int8[2], failures at A, by team.
      demotions: int8[], in this match.
      rounds: int16[], rounds finished in this match.
      stage: int8[], TRIBUTE, RETURN or PLAY.
      order: int8[4], seats in the order in which they went out; during tribute and return the
        order of the round before (all four).
      tribute: int8[4], card type that each seat paid or has chosen to pay.
      back: int8[4], card type that each seat returned or has chosen to return.
      to: int8[4], the seat that a payer pays (set when all have chosen); returns go back.
      anti: bool[], the tribute of this round was refused by the two big jokers.
      table: int16[], the action to beat; -1 on lead.
      table_seat: int8[], who played it.
      plays: int16[8], the last plays of the round (passes left out), newest first; -1 where none.
      plays_seat: int8[8], who played them.
      plays_cards: uint16[8, 8], their cards.
    """

    hands: jax.Array
    played: jax.Array
    known: jax.Array
    levels: jax.Array
    owner: jax.Array
    level: jax.Array
    fails: jax.Array
    demotions: jax.Array
    rounds: jax.Array
    stage: jax.Array
    order: jax.Array
    tribute: jax.Array
    back: jax.Array
    to: jax.Array
    anti: jax.Array
    table: jax.Array
    table_seat: jax.Array
    plays: jax.Array
    plays_seat: jax.Array
    plays_cards: jax.Array
