"""Shaping: what is earned is repaid, whatever is played."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import selfplay
from algorithms.ppo import shaping
from jaxgames.core import random_bot
from tests.toys import buttons

CONFIG = shaping.ShapingConfig(terms=("bell", "odd"), weights=(0.1, 0.02), caps=(0.15, 1.0))
DISCOUNT, GAMES, STEPS = 0.9, 5, 50


def random_play(key, states):
    return jax.vmap(random_bot)(states, jax.random.split(key, GAMES)), ()


def farming(key, states):
    return buttons.play(states, buttons.BELL), ()


@functools.cache
def stretch(choose):
    """(played, states after it) of 50 steps: games of 12 moves in rounds of 4."""
    game = buttons.make()

    @jax.jit
    def run(key):
        begin_key, play_key = jax.random.split(key)
        actor = selfplay.start(game, begin_key, GAMES, 0)
        actor, played, _ = selfplay.play(game, choose, play_key, actor, STEPS, 0)
        return played, actor.states

    return run(jax.random.key(0))


def paid(choose, discount=DISCOUNT):
    """What shaping pays, by its definition and one seat and game at a time.

    Returns lists of rounds of one seat: [(step, game, potential before, F), ...].
    """
    played, _ = stretch(choose)
    action, seat = np.asarray(played.action), np.asarray(played.state.current_player)
    turn = np.asarray(played.state.cells[:, :, 0, 2])
    rounds = []
    for b in range(GAMES):
        for player in (0, 1):
            mine = []  # of the round: (step, game, potential before)
            bells = odd = 0
            for s in range(STEPS + 1):
                if s == STEPS or turn[s, b] % buttons.ROUND == 0:
                    after = [p for *_, p in mine[1:]] + [0.0]
                    pay = [discount * q - p for (*_, p), q in zip(mine, after, strict=False)]
                    if mine:
                        rounds.append([(*m, x) for m, x in zip(mine, pay, strict=True)])
                    mine, bells, odd = [], 0, 0
                if s < STEPS and seat[s, b] == player:
                    mine.append((s, b, min(0.1 * bells, 0.15) + max(-0.02 * odd, -1.0)))
                    bells += action[s, b] == buttons.BELL
                    odd += (turn[s, b] + 1) % 2
    return rounds


@functools.cache
def shaped(choose, lam, discount=DISCOUNT):
    """(potential, advantage) of every step, float32[S, B] each."""
    game = buttons.make()
    played, last = stretch(choose)
    seat = played.state.current_player
    terms, ends = shaping.judge(game, CONFIG, played, last)
    _, before = shaping.potentials(CONFIG, shaping.start(game, CONFIG, GAMES), seat, terms, ends)
    gained = shaping.advantages(before, ends, seat, 2, discount, lam)
    return np.asarray(before), np.asarray(gained)


@pytest.mark.parametrize("choose", [random_play, farming])
def test_what_is_earned_is_repaid(choose):
    """From any decision on the discounted sum is -potential; from a round's first one it is 0."""
    before, gained = shaped(choose, 1.0)
    rounds = paid(choose)
    assert sum(len(r) for r in rounds) == GAMES * STEPS
    for decisions in rounds:
        for i, (s, b, potential, _) in enumerate(decisions):
            later = sum(DISCOUNT**j * pay for j, (_, _, _, pay) in enumerate(decisions[i:]))
            assert later == pytest.approx(-potential, abs=1e-6)
            assert before[s, b] == pytest.approx(potential, abs=1e-6)
            assert gained[s, b] == pytest.approx(-potential, abs=1e-6)
        assert decisions[0][2] == 0.0
    assert max(before.max(), -before.min()) > 0.05


@pytest.mark.parametrize("choose", [random_play, farming])
def test_advantages_follow_what_is_paid(choose):
    """With lam below 1: sums of F discounted by discount * lam; and the form in the docstring."""
    lam = 0.8
    before, gained = shaped(choose, lam)
    for decisions in paid(choose):
        for i, (s, b, potential, _) in enumerate(decisions):
            weight = (DISCOUNT * lam) ** np.arange(len(decisions) - i)
            by_pay = np.dot(weight, [pay for *_, pay in decisions[i:]])
            later = [p for _, _, p, _ in decisions[i + 1 :]] + [0.0]
            by_potential = DISCOUNT * (1 - lam) * np.dot(weight, later)
            assert gained[s, b] == pytest.approx(by_pay, abs=1e-6)
            assert gained[s, b] + potential == pytest.approx(by_potential, abs=1e-6)


def test_caps_hold():
    """Two bells of a round are worth 0.2; the cap leaves 0.15, and the whole never goes beyond."""
    before, _ = shaped(farming, 1.0)
    turn = np.asarray(stretch(farming)[0].state.cells[:, :, 0, 2])
    second = turn % buttons.ROUND == 3  # of seat 1, which "odd" never judges
    np.testing.assert_allclose(before[second], 0.1, rtol=1e-5)
    for low, earned, expected in (
        (0.15, [2.0, 0.0], 0.15),
        (0.15, [9.0, 1.0], 0.17),
        (0.15, [-9.0, 0.0], -0.15),
        (0.0, [9.0, 0.0], 0.0),
    ):
        config = shaping.ShapingConfig(("bell", "odd"), (0.1, 0.02), (low, 1.0))
        got = shaping.potential(config, jnp.array(earned))
        assert float(got) == pytest.approx(expected)


def test_what_is_owed_goes_on_in_the_next_stretch():
    """Cut in two at any step, the potentials are those of one stretch."""
    game = buttons.make()
    played, last = stretch(random_play)
    seat = played.state.current_player
    terms, ends = shaping.judge(game, CONFIG, played, last)
    nothing = shaping.start(game, CONFIG, GAMES)
    end, whole = shaping.potentials(CONFIG, nothing, seat, terms, ends)
    run = jax.jit(functools.partial(shaping.potentials, CONFIG))
    for cut in (1, 2, 11, 14, 49):
        middle, first = run(nothing, seat[:cut], terms[:cut], ends[:cut])
        last_earned, second = run(middle, seat[cut:], terms[cut:], ends[cut:])
        np.testing.assert_array_equal(jnp.concatenate([first, second]), whole)
        np.testing.assert_array_equal(last_earned, end)
        assert cut not in (14,) or float(jnp.abs(middle).max()) > 0


def test_the_weights_fade():
    config = shaping.ShapingConfig(("bell",), (1.0,), (1.0,), updates=4)
    got = [float(shaping.share(config, jnp.int32(n))) for n in (0, 1, 2, 4, 99)]
    assert got == [1.0, 0.75, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("terms", dict(terms=("a", "a"), weights=(1.0, 1.0), caps=(1.0, 1.0))),
        ("weights", dict(terms=("a",), caps=(1.0,))),
        ("caps", dict(terms=("a",), weights=(1.0,))),
        ("weights", dict(terms=("a",), weights=(-1.0,), caps=(1.0,))),
        ("caps", dict(terms=("a",), weights=(1.0,), caps=(float("nan"),))),
        ("updates", dict(updates=0)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        shaping.ShapingConfig(**options)


def test_an_unknown_term_is_named():
    config = shaping.ShapingConfig(("bel",), (1.0,), (1.0,))
    with pytest.raises(ValueError, match="^shaping.terms: .*did you mean bell"):
        shaping.check(buttons.make(), config)
