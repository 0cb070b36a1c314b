"""Advantages per seat against a slow loop, and on a game whose values are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import returns, selfplay
from jaxgames import core
from tests.toys import highcard


def slow(rewards, done, seat, values, end_values, discount, lam):
    """One game at a time, one decision at a time: forward through that seat's own decisions."""
    steps, games, teams = values.shape
    out = np.zeros((steps, games, teams))
    for b in range(games):
        for s in range(steps):
            weight = 1.0
            here = s
            while True:
                gain, at, follows = np.zeros(teams), here, None
                while True:
                    gain += rewards[at, b]
                    if done[at, b]:
                        follows = np.zeros(teams)
                    elif at + 1 == steps:
                        follows = end_values[b, seat[s, b]]
                    elif seat[at + 1, b] == seat[s, b]:
                        follows = values[at + 1, b]
                    if follows is not None:
                        break
                    at += 1
                out[s, b] += weight * (gain + discount * follows - values[here, b])
                if done[at, b] or at + 1 == steps:
                    break
                weight *= discount * lam
                here = at + 1
    return out


@pytest.mark.parametrize(
    ("seats", "teams", "discount", "lam"),
    [(1, 1, 0.9, 0.7), (2, 2, 1.0, 1.0), (4, 2, 0.99, 0.95), (4, 2, 0.5, 0.0), (3, 3, 0.8, 0.6)],
)
def test_against_a_slow_loop(seats, teams, discount, lam):
    """Any order of seats, also the same one several times on end, and games that end."""
    rng = np.random.default_rng(seats + teams)
    steps, games = 23, 5
    args = (
        rng.normal(size=(steps, games, teams)).astype(np.float32),
        rng.random((steps, games)) < 0.15,
        rng.integers(0, seats, (steps, games)).astype(np.int32),
        rng.normal(size=(steps, games, teams)).astype(np.float32),
        rng.normal(size=(games, seats, teams)).astype(np.float32),
    )
    got = jax.jit(returns.seat_advantages, static_argnums=(5, 6))(*args, discount, lam)
    np.testing.assert_allclose(got, slow(*args, discount, lam), atol=2e-5)


def test_nothing_crosses_the_end_of_a_game():
    """Values and rewards of the next game, NaN included, do not matter."""
    rewards = jnp.array([[[0.0, 0.0]], [[1.0, -1.0]], [[jnp.nan, jnp.nan]]])
    done = jnp.array([[False], [True], [False]])
    seat = jnp.array([[0], [1], [0]])
    values = jnp.array([[[0.25, -0.25]], [[-0.5, 0.5]], [[jnp.nan, jnp.nan]]])
    got = returns.seat_advantages(
        rewards, done, seat, values, jnp.full((1, 2, 2), jnp.nan), 0.9, 0.8
    )
    np.testing.assert_allclose(got[:2, 0], [[0.75, -0.75], [1.5, -1.5]], rtol=1e-6)


def test_true_values_leave_no_advantage_on_average():
    """Everybody keeps: the value of a card is known, and so advantages average to zero for
    every card, whoever holds it. Two teams of two seats; frames are absolute.
    """
    game = highcard.HighCard(highcard.Rules(players=2, ranks=4, copies=2, rounds=2))
    games, steps = 512, 10
    # Of the other seven cards: those below minus those above, as team 0 and as team 1.
    edge = np.array([(2 * card - 2 * (3 - card)) / 7 for card in range(4)], np.float32)

    def value(states, player):
        mine = jnp.asarray(edge)[states.hands[jnp.arange(games), player]]
        sign = jnp.where(player == 0, 1.0, -1.0)
        return jnp.stack([mine * sign, -mine * sign], axis=-1)

    def keep(key, states):
        del key
        return jnp.zeros(games, jnp.int32), value(states, states.current_player)

    @jax.jit
    def run(key):
        actor = selfplay.start(game, key, games, 0)
        actor, played, _ = selfplay.play(game, keep, jax.random.key(1), actor, steps, 0)
        ends = [value(actor.states, jnp.full(games, p)) for p in range(2)]
        seat = played.state.current_player
        advantage = functools.partial(
            returns.seat_advantages, played.reward, played.done, seat, played.note,
            jnp.stack(ends, axis=1), 1.0,
        )  # fmt: skip
        card = jnp.take_along_axis(played.state.hands, seat[..., None], -1)[..., 0]
        return advantage(0.95), advantage(0.0), seat, card, played.done

    wide, narrow, seat, card, done = map(np.asarray, run(jax.random.key(0)))
    assert done.any() and not done[-1].any()
    for advantage in (wide, narrow):
        np.testing.assert_allclose(advantage.sum(-1), 0.0, atol=1e-5)
        for s in range(2):
            for c in range(4):
                some = advantage[(seat == s) & (card == c)][:, 0]
                assert abs(some.mean()) < 0.1 and some.size > 200
    # With lambda 0 a seat's first decision is judged by its own next value, which is the same.
    first = narrow[0]
    np.testing.assert_allclose(first, 0.0, atol=1e-6)


def test_random_play_ends_as_it_does():
    """lam 1, no discount and no values: the rewards to the end of the game for every seat."""
    game = core.make("mnk", players=3, rows=3, cols=3)

    def choose(key, states):
        return jax.vmap(core.random_bot)(states, jax.random.split(key, 8)), ()

    @jax.jit
    def run(key):
        actor = selfplay.start(game, key, 8, 0)
        played = selfplay.play(game, choose, jax.random.key(3), actor, 30, 0)[1]
        nothing = jnp.zeros_like(played.reward)
        got = returns.seat_advantages(
            played.reward, played.done, played.state.current_player, nothing,
            jnp.zeros((8, 3, 3)), 1.0, 1.0,
        )  # fmt: skip
        return got, *returns.returns_to_go(played.reward, played.done)

    got, expected, known = map(np.asarray, run(jax.random.key(0)))
    np.testing.assert_array_equal(got[known], expected[known])
    assert known.sum() > 100
