"""The cards that an abstract action takes: right, and chosen with care."""

import numpy as np
import pytest

from jaxgames.guandan import actions, cards, rules
from jaxgames.guandan.exact import action_of, legal_plays, parse_play, wild_of
from tests.jaxgames.guandan.hands import (
    draw_hands,
    lead,
    masks_of,
    realises_of,
    resolve_of,
)

N = 512


def random_actions(masks: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(np.flatnonzero(column)) for column in masks.T], np.int32)


@pytest.mark.parametrize("profile", rules.PROFILES)
def test_cards_are_in_hand_and_realise_the_action(profile):
    counts, levels = draw_hands(seed=5, number=N)
    masks = np.asarray(masks_of(profile)(counts, levels, lead(levels)))
    for seed in range(4):
        chosen = random_actions(masks, seed)
        taken, realised = map(np.asarray, resolve_of(profile)(counts, levels, chosen))
        assert realised.all()
        assert (taken <= counts).all()
        assert (taken.sum(0) == actions.SIZE[chosen]).all()


@pytest.mark.parametrize("profile", rules.PROFILES)
def test_realises_agrees_with_the_exact_readings(profile):
    """Every exact play realises its own action, and of the others only what it also reads as."""
    counts, levels = draw_hands(seed=6, number=24, sizes=(4, 14))
    rng = np.random.default_rng(7)
    cases, want = [], []
    for i in range(counts.shape[1]):
        level = int(levels[i])
        plays = legal_plays(counts[:, i], level, None, profile)
        read = {}
        for play in plays:
            key = tuple(sorted(play.cards))
            read.setdefault(key, set()).add(action_of(play, level))
        keys = [sorted(read)[j] for j in rng.choice(len(read), min(8, len(read)), replace=False)]
        for key in keys:
            of_size = np.flatnonzero(actions.SIZE == len(key))
            some = rng.choice(of_size, min(12, len(of_size)), replace=False)
            for action in {*read[key], *some.tolist()}:
                cases.append((cards.counts(key), level, action))
                want.append(action in read[key])
    tried, at, action = (np.stack(column) for column in zip(*cases, strict=True))
    found = realises_of(profile)(tried.T, at.astype(np.int8), action.astype(np.int32))
    wrong = np.flatnonzero(np.asarray(found) != np.array(want))
    assert not len(wrong), [
        (cards.names(tried[i]), int(at[i]), actions.NAMES[action[i]], want[i]) for i in wrong[:5]
    ]


def bombs_and_flushes(counts: np.ndarray, level: int) -> tuple[int, bool]:
    """(ranks with four natural cards or more, whether a natural straight flush is there)."""
    natural = counts.copy()
    natural[wild_of(level)] = 0
    suits = natural[: cards.SB].reshape(4, 13)
    wheel = np.concatenate([suits[:, 12:], suits], axis=1) > 0
    runs = [wheel[:, i : i + 5].all(1).any() for i in range(10)]
    return int((suits.sum(0) >= 4).sum()), bool(np.any(runs))


def spared(before, after):
    return after[0] >= before[0] and after[1] >= before[1]


@pytest.mark.parametrize("packed", [False, True])
def test_no_bomb_or_straight_flush_is_broken_when_another_choice_exists(packed):
    """Never in hands of 27 as they are dealt; in hands packed into two suits and six ranks,
    where everything is in several straight flushes, in less than one choice of 200."""
    sizes = (8, 22) if packed else (25, 25)
    counts, levels = draw_hands(seed=8, number=40, sizes=sizes)
    counts, levels = counts[:, packed::2], levels[packed::2]
    number = counts.shape[1]
    masks = np.asarray(masks_of("national")(counts, levels, lead(levels)))
    rows = [(i, a) for i in range(number) for a in np.flatnonzero(masks[:, i])]
    column, chosen = map(np.array, zip(*rows, strict=True))
    pad = -len(column) % 512
    column, chosen = np.pad(column, (0, pad)), np.pad(chosen, (0, pad)).astype(np.int32)
    taken = np.concatenate(
        [
            np.asarray(resolve_of("national")(counts[:, c], levels[c], a)[0])
            for c, a in zip(column.reshape(-1, 512), chosen.reshape(-1, 512), strict=True)
        ],
        axis=1,
    )
    exact = {}
    for i in range(number):
        for play in legal_plays(counts[:, i], int(levels[i])):
            key = i, action_of(play, int(levels[i]))
            exact.setdefault(key, []).append(cards.counts(play.cards))
    asked, broken = 0, []
    for n, (i, action) in enumerate(rows):
        wild = wild_of(int(levels[i]))
        before = bombs_and_flushes(counts[:, i], levels[i])
        after = bombs_and_flushes(counts[:, i] - taken[:, n], levels[i])
        if before == (0, False):
            continue
        asked += 1
        if not spared(before, after) and any(
            spared(before, bombs_and_flushes(counts[:, i] - other, levels[i]))
            for other in exact[i, int(action)]
            if other[wild] == taken[wild, n]  # a full house takes as few wilds as can be
        ):
            broken.append((cards.names(counts[:, i]), actions.NAMES[action]))
    assert asked > 500
    assert len(broken) <= (asked / 200 if packed else 0), broken[:3]


@pytest.mark.parametrize(
    ("hand", "level", "text", "taken"),
    [
        # the spade belongs to a straight flush, the club does not
        ("S4 S5 S6 S7 S8 C6 H9", "2", "single 6", "C6"),
        # three of four: the straight flush keeps its card
        ("S4 S5 S6 S7 S8 C6 D6 H6", "2", "triple 6", "H6 C6 D6"),
        # a wild may replace any card: the bomb keeps its four
        ("S3 D4 C5 H5 D5 S5 S6 D7 H2", "2", "straight 3-7+*", "S3 D4 S6 D7 H2"),
        # a plain straight never comes out in one suit
        ("S3 S4 S5 S6 S7 D5", "2", "straight 3-7", "S3 S4 D5 S6 S7"),
        # the faces H4 H5 H6 H7 and the wild H8 would be a straight flush
        ("H4 H5 H6 H7 C6 H8", "8", "straight 4-8+*", "H4 H5 C6 H7 H8"),
    ],
)
def test_choices(hand, level, text, taken):
    counts = cards.counts(hand.split())
    level = np.array([cards.RANKS.index(level)], np.int8)
    action = np.array([actions.NUMBER[text.upper()]], np.int32)
    found, realised = resolve_of("national")(counts[:, None], level, action)
    assert realised.all()
    assert cards.names(found[:, 0]) == cards.names(cards.counts(taken.split()))


def test_parse_play_agrees_on_what_was_taken():
    counts, levels = draw_hands(seed=10, number=N)
    masks = np.asarray(masks_of("national")(counts, levels, lead(levels)))
    chosen = random_actions(masks, 11)
    taken, _ = resolve_of("national")(counts, levels, chosen)
    words = {1: "Single", 2: "Pair", 3: "Trips", 4: "ThreeWithTwo", 5: "Straight"}
    for i in range(0, N, 8):
        kind = int(actions.KIND[chosen[i]])
        if kind not in words or actions.KEY[chosen[i]] >= 13:
            continue
        key = actions.EXTRA[chosen[i]] if kind == 4 else actions.KEY[chosen[i]]
        rank = (actions.WINDOW_NAMES if kind == 5 else actions.RANK_NAMES)[key]
        triple = [words[kind], rank, cards.names(np.asarray(taken)[:, i])]
        assert action_of(parse_play(triple, int(levels[i])), int(levels[i])) == chosen[i]
