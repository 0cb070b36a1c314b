import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import dqn, networks
from algorithms.dqn import loss as losses
from algorithms.dqn.loss import Batch
from algorithms.dqn.train import epsilon, follow
from algorithms.search.config import SearchConfig
from algorithms.search.worlds import search_worlds
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.algorithms.toy_play import losing_lines


@pytest.fixture(scope="module")
def learner():
    return dqn.make(*learners.toy(), learners.DQN)


@pytest.fixture(scope="module")
def early(learner):
    return learners.two_chunks(learner)


@pytest.mark.slow
def test_learns_tic_tac_toe(learner, early):
    """Searching with Q as prior and value, no line of play is lost from either seat."""
    game, model = learners.toy()
    policy = SearchConfig(num_simulations=32, gumbel_scale=0.0).build()
    evaluate = networks.evaluator(game, model, "q")

    @jax.jit
    def searched(params, states):
        player = states.current_player
        return search_worlds(
            game, evaluate, params, jax.random.key(1), states, player, num_worlds=1, policy=policy
        ).action

    @jax.jit
    def greedy(params, states):
        q = model.apply(params, model.observe(states)).q[..., 0]
        return jnp.argmax(networks.masked(q, states.legal_action_mask), axis=-1)

    def lost(choose, params):
        return sum(losing_lines(game, functools.partial(choose, params), s) for s in (0, 1))

    fresh = learner.init(jax.random.key(9)).params
    state = learners.copy(early[1])
    for _ in range(28):
        state, metrics = learner.run_chunk(state)
    assert lost(searched, state.params) == 0
    assert lost(greedy, state.params) < lost(greedy, fresh) / 4
    assert metrics["value/explained_var"] > 0.5
    assert learner.compiled() == (1, 0)


def test_resumes_exactly(learner, early):
    again, metrics = learner.run_chunk(learners.copy(early[0]))
    learners.assert_equal(again, early[1])
    learners.assert_equal(metrics, early[2])


def test_metrics(early):
    _, state, metrics = early
    for name in (
        "loss/q", "loss/total", "value/explained_var", "value/bias_abs", "value/td_abs",
        "selfplay/length_mean", "selfplay/draws", "selfplay/outcome/seat0", "selfplay/epsilon",
        "replay/size", "replay/age_p95", "optim/grad_norm", "optim/nan_skips",
        "optim/update_ratio", "value/calibration", "value/calibration/seat1",
    ):  # fmt: skip
        assert metrics[name].shape == () and np.isfinite(metrics[name]), name
    assert metrics["selfplay/illegal"] == 0
    assert float(jnp.ptp(state.replay.priority)) > 0.1  # errors have become priorities


class Table(learners.Stub):
    """A "network" that reads Q off a table by the number of stones on the board."""

    def apply(self, params, observation):
        stones = observation["board"].astype(jnp.int32).sum((1, 2, 3))
        q = params[stones]
        return networks.Outputs(logits=q[..., 0], value=q[:, 0], q=q)


TABLE = Table()
targets = jax.jit(losses.targets, static_argnums=(0, 1))
loss = jax.jit(losses.loss, static_argnums=(0, 1))


def batch_of(game, states, next_states, **changes):
    rows = states.current_player.shape[0]
    teams = game.num_teams
    plain = dict(
        states=states,
        action=jnp.zeros(rows, jnp.int32),
        taught=jnp.full(rows, -1, jnp.int32),
        rewards=jnp.zeros((rows, 1, teams)),
        done=jnp.zeros((rows, 1), bool),
        next_states=next_states,
        outcome=jnp.zeros((rows, teams)),
        over=jnp.zeros(rows, bool),
        weight=jnp.ones(rows),
    )
    return Batch(**(plain | changes))


def some_state(game, cells, mover):
    state = game.init(jax.random.key(0))
    cells = jnp.asarray(cells, jnp.int8).reshape(game.board_shape)
    state = state.replace(
        cells=cells, legal_action_mask=cells.ravel() == 0, current_player=jnp.int32(mover)
    )
    return jax.tree.map(lambda x: x[None], state)


@pytest.mark.parametrize("next_mover", [0, 1, 2])
def test_target_by_hand_for_every_next_mover(next_mover):
    """Three teams: the next mover's best legal action by the online network, the target
    network's vector of it, turned to absolute order. The best action of all is illegal."""
    game, _ = learners.toy(players=3, rows=2, cols=2, k=2)
    state = some_state(game, [0, 0, 0, 0], 0)
    after = some_state(game, [1, 0, 0, 0], next_mover)
    online = jnp.zeros((5, 4, 3)).at[1, :, 0].set(jnp.array([9.0, 0.1, 0.7, 0.2]))
    target = jnp.zeros((5, 4, 3)).at[1, 2].set(jnp.array([0.6, -0.1, -0.5]))
    batch = batch_of(game, state, after)
    out = np.asarray(targets(game, TABLE, online, target, batch, 1.0, 0.0))[0]
    expected = np.zeros(3)
    expected[(next_mover + np.arange(3)) % 3] = [0.6, -0.1, -0.5]
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_target_ends_with_the_game_and_mixes_the_outcome():
    game, _ = learners.toy()
    state, after = some_state(game, [0] * 9, 0), some_state(game, [1] + [0] * 8, 1)
    tables = jnp.ones((10, 9, 2)) * jnp.array([0.5, -0.5])
    reward = jnp.array([[[1.0, -1.0]]])
    ended = batch_of(game, state, after, rewards=reward, done=jnp.array([[True]]))
    np.testing.assert_allclose(targets(game, TABLE, tables, tables, ended, 1.0, 0.0), [[1.0, -1.0]])
    known = batch_of(game, state, after, outcome=jnp.array([[1.0, -1.0]]), over=jnp.array([True]))
    half = targets(game, TABLE, tables, tables, known, 1.0, 0.5)
    np.testing.assert_allclose(half, [[0.25, -0.25]])  # seat 1 moves next: (-0.5 + 1) / 2


def test_importance_weights_enter_the_loss():
    game, _ = learners.toy()
    two = jax.tree.map(lambda x: jnp.concatenate([x, x]), some_state(game, [0] * 9, 0))
    table = jnp.zeros((10, 9, 2))
    target = jnp.array([[0.5, -0.5], [-0.25, 0.25]])
    for weight in ([1.0, 1.0], [1.0, 0.25], [0.0, 1.0]):
        batch = batch_of(game, two, two, weight=jnp.array(weight))
        total, (error, _) = loss(game, TABLE, table, batch, target, 0.1, 0.5)
        per_item = np.array([0.5**2, 0.25**2]) / 2
        np.testing.assert_allclose(total, np.mean(np.array(weight) * per_item), rtol=1e-6)
        np.testing.assert_allclose(error, [0.5, 0.25])


def test_a_taught_move_must_lead():
    game, _ = learners.toy()
    state = some_state(game, [1] + [0] * 8, 1)
    table = jnp.zeros((10, 9, 2)).at[1, :, 0].set(jnp.array([9.0, 0.3, 0.25] + [0.0] * 6))
    margins = {1: 0.05, 2: 0.15}  # rival at -0.05 + 0.1, rival at +0.05 + 0.1; cell 0 is taken
    for taught, expected in margins.items():
        batch = batch_of(game, state, state, taught=jnp.array([taught]), weight=jnp.zeros(1))
        total, _ = loss(game, TABLE, table, batch, jnp.zeros((1, 2)), 0.1, 1.0)
        np.testing.assert_allclose(total, expected, rtol=1e-5)


def test_epsilon_falls_after_the_teacher():
    config = dqn.Config(
        epsilon_start=0.5, epsilon_end=0.1, epsilon_updates=10, teacher="random", teacher_updates=4
    )
    for updates, expected in ((0, 0.5), (4, 0.5), (9, 0.3), (14, 0.1), (99, 0.1)):
        np.testing.assert_allclose(epsilon(config, jnp.int32(updates)), expected, rtol=1e-6)


def test_target_network_copies_and_follows():
    target, params = dict(w=jnp.zeros(2)), dict(w=jnp.array([1.0, -3.0]))
    copies = dqn.Config(target_period=4, target_rate=1.0)
    for steps in (3, 4, 5, 8):
        new = follow(copies, jnp.int32(steps), target, params)
        np.testing.assert_array_equal(new["w"], params["w"] if steps % 4 == 0 else target["w"])
    polyak = dqn.Config(target_period=1, target_rate=0.25)
    new = follow(polyak, jnp.int32(7), target, params)
    np.testing.assert_allclose(new["w"], [0.25, -0.75])


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("epsilon_start", dict(epsilon_start=1.5)),
        ("discount", dict(discount=-0.1)),
        ("target_rate", dict(target_rate=0.0)),
        ("replay_length", dict(horizon=256)),
        ("margin_weight", dict(margin_weight=float("nan"))),
        ("teacher", dict(teacher_updates=1)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        dqn.Config(**options)
