"""Hand-computed targets: three plies, every seat, every way to end."""

import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import frames, returns


def test_three_plies_two_teams():
    """Movers 0, 1, 0; team 0 wins with the third ply: everybody's target is the outcome."""
    rewards = jnp.array([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]])
    done = jnp.array([False, False, True])
    total, known = returns.returns_to_go(rewards, done)
    np.testing.assert_array_equal(total, [[1, -1]] * 3)
    assert known.all()
    relative = frames.to_relative(total, jnp.array([0, 1, 0]))
    np.testing.assert_array_equal(relative, [[1, -1], [-1, 1], [1, -1]])


def test_a_team_moves_twice():
    """Movers 0, 0, 1 and team 0 wins: both positions of team 0 keep their sign."""
    rewards = jnp.array([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]])
    done = jnp.array([False, False, True])
    total, _ = returns.returns_to_go(rewards, done)
    relative = frames.to_relative(total, jnp.array([0, 0, 1]))
    np.testing.assert_array_equal(relative, [[1, -1], [1, -1], [-1, 1]])


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_three_teams_every_winner(winner):
    outcome = np.full(3, -0.5, np.float32)
    outcome[winner] = 1.0
    rewards = jnp.zeros((3, 3)).at[2].set(outcome)
    total, _ = returns.returns_to_go(rewards, jnp.array([False, False, True]))
    relative = np.asarray(frames.to_relative(total, jnp.array([0, 1, 2])))
    for mover in range(3):
        assert relative[mover, 0] == (1.0 if mover == winner else -0.5)
        assert relative[mover, (winner - mover) % 3] == 1.0


def test_two_games_in_one_stretch():
    """The first game ends at its second step, the second is cut: nothing leaks backwards."""
    rewards = jnp.array([[0.0, 0.0], [-1.0, 1.0], [0.0, 0.0], [0.25, -0.25]])
    done = jnp.array([False, True, False, False])
    total, known = returns.returns_to_go(rewards, done)
    np.testing.assert_array_equal(total, [[-1, 1], [-1, 1], [0.25, -0.25], [0.25, -0.25]])
    np.testing.assert_array_equal(known, [True, True, False, False])


def test_n_step_by_hand():
    rewards = jnp.array([[1.0, -1.0], [2.0, -2.0]])
    bootstrap = jnp.array([8.0, -8.0])
    running = returns.n_step(rewards, jnp.array([False, False]), bootstrap, 0.5)
    np.testing.assert_allclose(running, [1 + 0.5 * 2 + 0.25 * 8, -(1 + 0.5 * 2 + 0.25 * 8)])
    at_the_end = returns.n_step(rewards, jnp.array([False, True]), bootstrap, 0.5)
    np.testing.assert_allclose(at_the_end, [2, -2])
    at_once = returns.n_step(rewards, jnp.array([True, False]), bootstrap, 0.5)
    np.testing.assert_allclose(at_once, [1, -1])


def test_n_step_keeps_every_team():
    """The next mover's identity plays no part: three teams, no sign anywhere."""
    bootstrap = jnp.array([0.5, -0.25, -0.25])
    out = returns.n_step(jnp.zeros((1, 3)), jnp.array([False]), bootstrap)
    np.testing.assert_array_equal(out, bootstrap)


def test_lambda_between_its_ends():
    rewards = jnp.array([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]])
    done = jnp.array([False, False, True])
    values = jnp.array([[0.2, -0.2], [0.6, -0.6], [9.0, -9.0]])  # the last is never read
    td0 = returns.lambda_returns(rewards, done, values, 0.0)
    np.testing.assert_allclose(td0, [[0.2, -0.2], [0.6, -0.6], [1, -1]])
    full = returns.lambda_returns(rewards, done, values, 1.0)
    np.testing.assert_allclose(full, [[1, -1]] * 3)
    half = returns.lambda_returns(rewards, done, values, 0.5)
    first = 0.5 * 0.2 + 0.5 * (0.5 * 0.6 + 0.5 * 1.0)
    np.testing.assert_allclose(half[:, 0], [first, 0.8, 1.0], rtol=1e-6)


def test_lambda_bootstraps_where_play_was_cut():
    rewards, values = jnp.zeros((2, 2)), jnp.array([[0.1, -0.1], [0.4, -0.4]])
    cut = returns.lambda_returns(rewards, jnp.array([False, False]), values, 1.0)
    np.testing.assert_allclose(cut, [[0.4, -0.4]] * 2)


def test_mixed_target_is_turned_to_the_mover():
    outcome, root = jnp.array([[1.0, -0.5, -0.5]]), jnp.array([[0.0, 0.5, -0.5]])
    out = returns.relative_targets(outcome, root, 0.5, jnp.array([1]))
    np.testing.assert_allclose(out, [[0.0, -0.5, 0.5]])
