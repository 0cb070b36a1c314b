"""The same league for learners that search and for those of Q: one test for each."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import alphazero, dqn
from algorithms import league as leagues
from algorithms.league import LeagueConfig
from algorithms.networks import masked
from algorithms.search.config import SearchConfig
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)

LEAGUE = LeagueConfig(
    share=0.75, groups=2, opponent_updates=1, snapshots=2, snapshot_updates=2, bots=("first",),
    temperature=0.0,
)  # fmt: skip
ALPHAZERO = alphazero.Config(
    games=8, steps=6, search=SearchConfig(num_simulations=2, max_num_considered_actions=2),
    replay_length=24, learn_after=16, batch_size=8, learn_steps=1, chunk_updates=2, league=LEAGUE,
)  # fmt: skip
DQN = dqn.Config(
    games=8, steps=6, epsilon_start=0.0, epsilon_end=0.0, replay_length=24, learn_after=16,
    batch_size=8, learn_steps=1, chunk_updates=2, league=LEAGUE,
)  # fmt: skip


def says(kind, params, states):
    """The best move of the bare network."""
    _, model = learners.toy()
    out = model.apply(params, model.observe(states))
    logits = out.q[..., 0] if kind is dqn else out.logits
    return np.asarray(jnp.argmax(masked(logits, states.legal_action_mask), axis=-1))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "config"), [(alphazero, ALPHAZERO), (dqn, DQN)])
def test_a_league_of_two_teams(kind, config):
    game, _ = learners.toy()
    learner = kind.make(*learners.toy(), config)
    states = [learner.init(jax.random.key(0))]
    for _ in range(2):
        state, metrics = learner.run_chunk(learners.copy(states[-1]))
        states.append(state)
    assert sorted(np.asarray(state.league.born)) == [0, 2]
    learners.assert_equal(learner.members(state)[1][1], states[1].params)
    told = learner.standings(state)
    assert {"league/rate/0", "league/rate/2", "league/n/first"} <= set(told)
    assert np.isfinite(metrics["league/win"]) and metrics["league/games"] > 0

    ring, columns = state.replay, (int(state.replay.cursor) - 6 + np.arange(6)) % 24
    items = jax.tree.map(lambda x: x[columns], ring.items)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), items["state"])
    does = {2: np.argmax(np.asarray(flat.legal_action_mask), -1).reshape(6, 8)}
    for place in (0, 1):
        weights = jax.tree.map(lambda x, i=place: x[i], state.league.params)
        does[place] = says(kind, weights, flat).reshape(6, 8)
    seat = np.asarray(items["state"].current_player)[:, 2:]
    theirs = seat != np.asarray(leagues.sides(game, 2, 3)).ravel()
    for row in range(6):
        member = int(state.league.opponent[row // 3, 0])
        at = theirs[:, row]
        action = np.asarray(items["action"])[:, 2 + row]
        np.testing.assert_array_equal(action[at], does[member][:, 2 + row][at])
    if kind is alphazero:
        np.testing.assert_array_equal(np.asarray(items["train_policy"])[:, 2:], ~theirs)
        assert np.asarray(items["train_policy"])[:, :2].all()

    again, same = learner.run_chunk(learners.copy(states[1]))
    learners.assert_equal(again, states[2])
    learners.assert_equal(same, metrics)


@pytest.mark.parametrize(("kind", "config"), [(alphazero, ALPHAZERO), (dqn, DQN)])
def test_what_does_not_fit_is_named(kind, config):
    few = dataclasses.replace(LEAGUE, share=0.1)
    with pytest.raises(ValueError, match="^league.share: at least 0.25 for 2 groups"):
        dataclasses.replace(config, league=few)
    odd = dataclasses.replace(config, league=dataclasses.replace(LEAGUE, bots=("frist",)))
    with pytest.raises(ValueError, match="^league.bots: unknown name 'frist'; did you mean first"):
        kind.make(*learners.toy(), odd)
