"""Shaping terms, situations and kinds of leads, in positions made by hand."""

import functools

import jax
import numpy as np
import pytest

from jaxgames import batch
from jaxgames.guandan import actions, cards, play, shaping, situations
from jaxgames.guandan.rules import PLAY
from tests.jaxgames.guandan import positions


@functools.cache
def _terms():
    return jax.jit(shaping.terms)


def position(
    hands: dict[int, str], seat: int, table: str = "", by: int = -1, plays: tuple = (), level="2"
):
    """Seat `seat` is to move with these hands; `plays` (seat, action name), newest first, are
    those that are remembered beside the one on the table."""
    state = positions.opening({})
    planes = np.stack(
        [np.asarray(cards.to_planes(cards.counts(hands[q].split()))) for q in range(4)]
    )
    made = ([(by, table)] if table else []) + list(plays)
    names, seats = np.full(8, -1, np.int16), np.full(8, -1, np.int8)
    for i, (who, name) in enumerate(made):
        names[i], seats[i] = actions.NUMBER[name.upper()], who
    state = state.replace(
        current_player=np.int32(seat),
        hands=planes,
        known=np.zeros_like(planes),
        level=np.int8(cards.RANKS.index(level)),
        table=np.int16(names[0] if table else -1),
        table_seat=np.int8(by),
        plays=names,
        plays_seat=seats,
    )
    return state.replace(legal_action_mask=_legal()(state))


@functools.cache
def _legal():
    return jax.jit(batch.one_game(play.legal))


def judged(state, name: str) -> dict[str, float]:
    """The terms that are not 0."""
    action = actions.NUMBER[name.upper()]
    assert bool(state.legal_action_mask[action]), name
    after = positions.step(state, action)
    values = np.asarray(_terms()(state, np.int32(action), after))
    return {term: v for term, v in zip(shaping.TERMS, values.tolist(), strict=True) if v}


LONG = "S3 S4 S6 S7 S8 S9 SJ SQ SK SA C3"  # eleven cards
MINE = "D9 DT DQ DK H2 C9 CT HT CQ H6 C6 D6 S6 D3"
FOUR = {0: MINE, 1: LONG, 2: "D4 D5 D7 D8 DJ", 3: "C3 C4 C7 C8 CJ CK CA H3 H4 H7 H8"}
ONE_LEFT = FOUR | {3: "C3"}


@pytest.mark.parametrize(
    ("seat", "table", "by", "plays", "hands", "move", "expected"),
    [
        # effective
        (0, "single 8", 3, (), FOUR, "single 9", {"effective": 1}),
        (0, "single 8", 3, (), FOUR, "single Q", {}),
        (0, "single 8", 1, (), FOUR, "single 9", {"effective": 1}),
        (0, "single 8", 2, (), FOUR, "single 9", {}),  # the partner's
        (0, "single A", 3, (), FOUR, "single *", {}),  # a wild is not the smallest means
        (0, "pair 8", 3, (), FOUR, "pair 9", {"effective": 1}),
        (0, "pair 8", 3, (), FOUR, "pair 9+*", {}),
        (0, "pair 8", 3, (), FOUR, "pass", {}),
        # cover
        (0, "single 8", 3, ((2, "single 7"),), FOUR, "single Q", {"cover": 1}),
        (0, "single 8", 3, ((2, "single 7"),), FOUR, "single 9", {"cover": 1, "effective": 1}),
        (0, "single 8", 3, ((1, "single 7"), (2, "single 5")), FOUR, "single Q", {}),
        (0, "single 8", 3, (), ONE_LEFT, "single Q", {}),  # the partner may still beat it
        (0, "single 8", 3, (), ONE_LEFT | {2: ""}, "single Q", {"cover": 1}),
        (0, "single 8", 1, (), FOUR | {1: "S3"}, "single Q", {"cover": 1}),  # partner has passed
        # probe
        (0, "", -1, (), FOUR, "single 6", {"probe": 1}),
        (0, "", -1, (), FOUR, "pair T", {}),  # not low
        (0, "", -1, (), FOUR, "single *", {}),
        (0, "", -1, (), FOUR, "bomb 4x6", {}),
        (0, "", -1, ((1, "single 3"),), FOUR, "single 6", {}),  # singles have been seen
        (0, "", -1, ((1, "pair 3"), (2, "single 3")), FOUR, "single 6", {"probe": 1}),
        # waste
        (0, "single K", 2, (), FOUR, "bomb 4x6", {"waste": -1}),
        (0, "single K", 2, (), FOUR, "single *", {"waste": -1}),
        (0, "single 7", 1, (), FOUR, "bomb 4x6", {"waste": -1}),
        (0, "single 9", 1, (), FOUR, "bomb 4x6", {}),  # not low
        (0, "single 7", 1, (), FOUR | {3: "C3 C4"}, "bomb 4x6", {}),  # no longer early
        (0, "triple 7", 1, (), FOUR, "bomb 4x6", {}),
        # going out
        (0, "single K", 2, (), FOUR | {0: "H2"}, "single *", {}),
        (0, "single 8", 3, ((2, "single 7"),), FOUR | {0: "D9"}, "single 9", {}),
    ],
)  # fmt: skip
def test_terms(seat, table, by, plays, hands, move, expected):
    assert judged(position(hands, seat, table, by, plays), move) == expected


def test_the_level_is_high():
    """At level 6 a six is above the ace: no low lead, not the smallest means."""
    state = position(FOUR | {0: "D7 D6 DK D3"}, 0, "single 5", 3, level="6")
    assert judged(state, "single 7") == {"effective": 1}
    assert judged(state, "single 6") == {}
    assert judged(position(FOUR, 0, level="6"), "single 6") == {}
    assert judged(position(FOUR, 0, level="6"), "single 3") == {"probe": 1}


def test_every_seat_is_judged_alike():
    """The same position with all seats turned gives the same terms."""
    turned = {(q + 1) & 3: hand for q, hand in FOUR.items()}
    state = position(turned, 1, "single 8", 0, ((3, "single 7"),))
    assert judged(state, "single 9") == {"cover": 1, "effective": 1}


# ---- situations ----


@functools.cache
def _situations():
    return jax.jit(lambda state: {name: f(state) for name, f in situations.SITUATIONS.items()})


def held(state) -> set[str]:
    return {name for name, value in _situations()(state).items() if bool(value)}


def test_nearly_out():
    few, none = "S3 S4 S5 S6", ""
    assert held(position(FOUR, 0)) == set()
    assert held(position(FOUR | {2: few}, 0)) == {"partner_nearly_out"}
    assert held(position(FOUR | {2: few}, 2)) == set()
    assert held(position(FOUR | {2: few}, 1)) == {"opponent_nearly_out"}
    assert held(position(FOUR | {1: few}, 0)) == {"opponent_nearly_out"}
    assert held(position(FOUR | {1: few, 3: "C3"}, 0)) == set()
    assert held(position(FOUR | {1: few, 3: none}, 0)) == set()
    assert held(position(FOUR | {2: few, 1: "C3"}, 0)) == {"opponent_nearly_out"}
    assert held(position(FOUR | {2: none}, 0)) == set()


def test_double_tribute():
    """From the first payer's choice to the end of a round, after both of a side came last."""
    found = []
    for seed in range(6):
        rows = list(positions.steps(positions.make(), seed))
        first = rows[0][0]
        order = [int(x) for x in first.order]
        double = first.stage != PLAY and sorted(order[:2]) in ([0, 2], [1, 3])
        for before, _, _ in rows[::9]:
            assert ("double_tribute" in held(before)) == double
        found.append(double)
    assert True in found and False in found


# ---- kinds of leads ----


def test_lead_kinds():
    kind = jax.jit(situations.lead_kind)
    told = lambda state, name: int(kind(state, np.int32(actions.NUMBER[name.upper()])))  # noqa: E731
    lead = position(FOUR, 0)
    assert situations.LEAD_KINDS[told(lead, "single 6")] == "single"
    assert situations.LEAD_KINDS[told(lead, "pair T")] == "pair"
    assert situations.LEAD_KINDS[told(lead, "joker bomb")] == "joker_bomb"
    assert told(position(FOUR, 0, "single 8", 3), "single 9") == -1
    paying = next(s for s, _, _ in positions.steps(positions.make(), 1))
    assert paying.stage != PLAY and told(paying, "tribute A") == -1


@pytest.mark.slow  # a new deal takes long to compile
def test_a_new_deal_keeps_the_situation():
    """What a situation is follows from what all may see."""
    deal = jax.jit(lambda state, seat, key: state.game.resample(state, seat, key))
    state = position(FOUR | {2: "S3 S4 S5"}, 0)
    again = deal(state, np.int32(1), jax.random.key(0))
    assert (np.asarray(again.hands) != np.asarray(state.hands)).any()
    assert held(again) == held(state) == {"partner_nearly_out"}
