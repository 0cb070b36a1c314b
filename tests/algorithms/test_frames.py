import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import frames
from jaxgames import core


def test_relative_puts_the_mover_first():
    values = jnp.array([10.0, 11.0, 12.0])
    for team, expected in enumerate(([10, 11, 12], [11, 12, 10], [12, 10, 11])):
        np.testing.assert_array_equal(frames.to_relative(values, jnp.int32(team)), expected)


def test_absolute_puts_them_back():
    relative = jnp.array([1.0, 2.0, 3.0])  # team 2 moves: its own value, then 0's, then 1's
    np.testing.assert_array_equal(frames.to_absolute(relative, jnp.int32(2)), [2, 3, 1])


@pytest.mark.parametrize("teams", [1, 2, 3, 4])
def test_round_trip_over_leading_dimensions(teams):
    values = jax.random.normal(jax.random.key(0), (5, 7, teams))
    team = jax.random.randint(jax.random.key(1), (5, 7), 0, teams)
    relative = frames.to_relative(values, team)
    np.testing.assert_array_equal(frames.to_absolute(relative, team), values)
    own = jnp.take_along_axis(values, team[..., None], -1)[..., 0]
    np.testing.assert_array_equal(relative[..., 0], own)


def test_one_team_for_many_rows():
    """Q values: [B, A, T] with one mover per row."""
    values = jnp.arange(12.0).reshape(2, 2, 3)
    out = frames.to_relative(values, jnp.array([[1], [2]]))
    np.testing.assert_array_equal(out[0], [[1, 2, 0], [4, 5, 3]])
    np.testing.assert_array_equal(out[1], [[8, 6, 7], [11, 9, 10]])


def test_team_rewards_and_mover():
    game = core.make("sequence", players=6, teams=3)
    assert game.team_of == (0, 1, 2, 0, 1, 2)
    rewards = jnp.array([1.0, -0.5, -0.25, 1.0, -0.5, -0.25])
    np.testing.assert_array_equal(frames.team_rewards(game, rewards), [1.0, -0.5, -0.25])
    state = jax.jit(game.init)(jax.random.key(0))
    for seat in range(6):
        moved = state.replace(current_player=jnp.int32(seat))
        assert int(frames.mover_team(game, moved)) == seat % 3
