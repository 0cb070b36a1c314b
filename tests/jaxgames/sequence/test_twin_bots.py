"""The engine's bots against the plain-Python bots, and those against the reference figures."""

import functools
import random

import jax
import numpy as np
import pytest

from tests.jaxgames.sequence import games, test_twin
from tests.reference import sequence_bots as reference
from tests.reference import sequence_twin as twin

# Section 14 of the rules: games behind each figure, and means per game of 2 players.
FIGURES = {
    "random": (20_000, dict(plies=80.4, swaps=3.56, removals=3.63, reshuffle=0.249, double=0.081)),
    "greedy": (6_000, dict(plies=60.9, swaps=1.02, removals=1.04, reshuffle=0.022, double=0.027)),
}
FIGURES["random"][1].update({"pass": 0.015, "seat 0": 0.517, "seat 1": 0.474})
FIGURES["greedy"][1].update({"pass": 0.009, "seat 0": 0.519, "seat 1": 0.474})
CHOICES = {"random": reference.random_choices, "greedy": reference.greedy_choices}


@pytest.mark.parametrize(
    "case",
    [pytest.param(("official", 2, 2), marks=pytest.mark.slow), ("official", 12, 3)],
    ids=str,
)
def test_bots_choose_what_the_reference_allows(case):
    game = games.make(*case)
    actions, records = games.rollout(game, 3)
    state = records["leaves"]
    drawn = test_twin.cards_drawn(game, actions, state)
    done = state.terminated | state.truncated
    lengths = done.argmax(0)
    mask = np.unpackbits(
        records["legal_action_mask"], axis=-1, count=game.num_actions, bitorder="little"
    )
    rng = np.random.default_rng(0)
    which = np.repeat(np.arange(games.BATCH), 4)
    steps = rng.integers(lengths[which])
    mask = mask.astype(bool)[steps, which]
    sampled = jax.tree.map(lambda x: x[steps, which], state.replace(legal_action_mask=done))
    # The greedy bot seldom removes a chip here: ask it besides for the best removal.
    removals = mask & (np.arange(game.num_actions) // 100 == 2)
    keys = jax.random.split(jax.random.key(0), len(which))

    def choose(name, mask):
        bot = jax.jit(jax.vmap(game.bots[name]))
        return np.asarray(bot(sampled.replace(legal_action_mask=mask), keys))

    chosen = {name: choose(name, mask) for name in CHOICES}
    removed = choose("greedy", removals)
    long_runs = 0
    for g in range(games.BATCH):
        position = test_twin.dealt(game, state, g)
        here = dict(zip(steps[which == g].tolist(), np.flatnonzero(which == g), strict=True))
        for step, (action, card) in enumerate(test_twin.moves(actions, drawn, g, lengths[g])):
            if step in here:
                i = here[step]
                for name, choices in CHOICES.items():
                    assert chosen[name][i] in choices(position), (name, g, step)
                if removals[i].any():
                    scores = reference.greedy_scores(position)
                    best = max(score for a, score in scores.items() if 200 <= a < 300)
                    assert scores[int(removed[i])] == best, (g, step)
                    long_runs += best > 6
            position.apply(action, card)
    assert long_runs > 10 and np.bincount(chosen["greedy"] // 100)[3] > 10


def test_greedy_scores_by_hand():
    hands = [bytearray(50), bytearray(50)]
    for card in ("2S", "5H", "J1", "J2", "KS", "QS", "AS"):
        hands[0][twin.NAMES.index(card)] = 1
    for card in ("TS", "9S", "8S", "7S", "6S", "5S", "4S"):
        hands[1][twin.NAMES.index(card)] = 1
    game = twin.Twin(twin.options("official", 2), hands)
    game.chips = [twin.bits([2, 3]), twin.bits([33, 34, 35, 36])]
    scores = reference.greedy_scores(game)
    # 2S on (0, 1): own runs 4, 1, 1, 1 with the corner; the rival's 2, 1, 1, 1 with it.
    assert scores[1] == 60 * (16 + 3) / 4 + 60 * (4 + 3) / 6
    # The two-eyed jack on (3, 2): the rival's run would be five.
    assert scores[132] == 60 * 4 / 4 + 60 * (25 + 3) / 6 + 60 * 20 - 60 * 12
    assert scores[233] == 60 * 3.5
    game.chips[1] = twin.bits([33, 34, 35])
    assert reference.greedy_scores(game)[233] == 60 * 0.1


@functools.cache
def played(name, count):
    rng = random.Random(7)
    return [reference.play(twin.options("official", 2), CHOICES[name], rng) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "figure"), [(n, f) for n in FIGURES for f in FIGURES[n][1]])
def test_reference_figures(name, figure):
    there, want = FIGURES[name][0], FIGURES[name][1][figure]
    values = np.array([game[figure] for game in played(name, 4_000)], float)
    error = values.std() * (1 / len(values) + 1 / there) ** 0.5
    rounding = 0.05 if figure == "plies" else 0.005 if want > 1 else 0.0005
    assert abs(values.mean() - want) < 3 * error + rounding
