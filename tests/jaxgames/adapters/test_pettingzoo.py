"""The AEC environment: PettingZoo's own tests, and what they do not look at."""

import warnings

import jax
import numpy as np
import pytest

import jaxgames

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed (extra: adapters)")

from pettingzoo.test import api_test, seed_test  # noqa: E402
from pettingzoo.utils.wrappers import TerminateIllegalWrapper  # noqa: E402

from jaxgames.adapters import pettingzoo  # noqa: E402

GAMES = {
    "sequence": {"players": 2},
    "guandan": {},
    "eight_in_a_row": {"rows": 7, "cols": 7, "win_length": 4},
}


@pytest.mark.parametrize(
    "name", ["sequence", "eight_in_a_row", pytest.param("guandan", marks=pytest.mark.slow)]
)
def test_their_own_tests(name):
    with warnings.catch_warnings():
        # Their list of environments whose observations hold a mask is a list of names.
        warnings.filterwarnings("ignore", "Observation is not a NumPy array")
        warnings.filterwarnings("ignore", "Observation space for each agent probably should be")
        warnings.filterwarnings("ignore", "Action mask numpy array is all zeros")
        api_test(pettingzoo.env(name, **GAMES[name]), num_cycles=40)
    seed_test(lambda: pettingzoo.env(name, **GAMES[name]), num_cycles=20)


def play(env, seed):
    """A random game; the rewards that each agent was told of, summed."""
    env.reset(seed=seed)
    draw, told = np.random.default_rng(seed), dict.fromkeys(env.agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        told[agent] += reward
        if terminated or truncated:
            env.step(None)
        else:
            env.step(int(draw.choice(np.flatnonzero(observation["action_mask"]))))
    return told


def test_rewards_are_those_of_the_game():
    env = pettingzoo.env("eight_in_a_row", **GAMES["eight_in_a_row"])
    outcomes = set()
    for seed in range(4):
        told = play(env, seed)
        result = env.match.result()
        assert result.done and tuple(told.values()) == result.rewards
        outcomes.add(result.rewards)
    assert len(outcomes) > 1


def test_what_a_seat_sees():
    env = pettingzoo.env("sequence", players=2)
    env.reset(seed=3)
    mover = env.agent_selection
    other = next(a for a in env.agents if a != mover)
    assert env.observe(mover)["action_mask"].sum() > 0
    assert not env.observe(other)["action_mask"].any()  # it would tell the mover's hand
    seen = env.observe(other)
    seat = np.int32(env.possible_agents.index(other))
    ours = jax.jit(env.game.observe)(env.match.state, seat)
    np.testing.assert_array_equal(seen["observation"], ours["board"])
    np.testing.assert_array_equal(seen["features"], ours["features"])


def test_seeds():
    env = pettingzoo.env("sequence", players=2)
    deals = []
    for seed in (5, None, 5, None):
        env.reset(seed=seed)
        deals.append(env.game.to_text(env.match.state))
    assert deals[:2] == deals[2:] and deals[0] != deals[1]


def test_illegal_actions():
    env = pettingzoo.env("eight_in_a_row", **GAMES["eight_in_a_row"])
    with pytest.raises(RuntimeError, match="reset"):
        env.observe("player_0")
    env.reset(seed=0)
    env.step(24)
    mover = env.agent_selection
    for action in (24, -1, 49):
        with pytest.raises(jaxgames.IllegalAction):
            env.step(action)
    with pytest.raises(ValueError, match="action"):
        env.step(None)
    assert env.agent_selection == mover and env.match.ply == 1
    wrapped = TerminateIllegalWrapper(env, illegal_reward=-1.0)
    wrapped.reset(seed=0)
    wrapped.step(24)
    mover = wrapped.agent_selection
    wrapped.step(24)
    assert wrapped.terminations[mover] and wrapped.rewards[mover] == -1.0


def test_render():
    env = pettingzoo.env("eight_in_a_row", render_mode="svg")
    env.reset()
    assert env.render().startswith("<svg")
    env = pettingzoo.env("eight_in_a_row", render_mode="ansi")
    env.reset()
    assert len(env.render().splitlines()) > 10
    assert pettingzoo.env("eight_in_a_row").render() is None
    with pytest.raises(ValueError, match="render_mode"):
        pettingzoo.env("eight_in_a_row", render_mode="human")
