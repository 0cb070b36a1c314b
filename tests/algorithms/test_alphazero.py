import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import alphazero, frames, networks, returns, selfplay
from algorithms.alphazero.loss import Batch, loss
from algorithms.learner import finish
from algorithms.search.config import SearchConfig
from algorithms.search.worlds import search_worlds
from jaxgames import core
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.algorithms.toy_play import losing_lines


@pytest.fixture(scope="module")
def learner():
    return alphazero.make(*learners.toy(), learners.ALPHAZERO)


@pytest.fixture(scope="module")
def taught(learner):
    """The state after the teacher's chunk, with its metrics."""
    state = learner.init(jax.random.key(0))
    assert learner.compiled() == (0, 0)
    state, metrics = learner.run_chunk(state)
    assert learner.compiled() == (0, 1)
    return state, metrics


@pytest.fixture(scope="module")
def early(learner, taught):
    """A state after one chunk of own play, the state after two, the metrics of the second."""
    first, _ = learner.run_chunk(learners.copy(taught[0]))
    second, metrics = learner.run_chunk(learners.copy(first))
    return first, second, metrics


def test_the_teacher_is_copied(taught):
    """Six updates of the teacher's phase are rounded up to the chunk of ten."""
    state, metrics = taught
    assert int(state.updates) == 10
    assert metrics["policy/target_entropy"] == 0.0
    assert metrics["policy/top1_agree"] > 0.5  # of 9 actions, over the whole chunk
    assert "search/top_share" not in metrics
    weights = np.asarray(state.replay.items["weights"])
    masks = np.asarray(state.replay.items["state"].legal_action_mask)
    np.testing.assert_array_equal(weights.argmax(-1), masks.argmax(-1))


def test_short_searches_train_no_policy(early):
    shares = np.asarray(early[1].replay.items["train_policy"])
    assert (shares == shares[:, :1]).all()  # one draw for all games of a step
    assert 0.6 < shares.mean() < 0.9


def test_learns_perfect_tic_tac_toe(learner, early):
    """With its search the agent loses no line of play from either seat."""
    game, model = learners.toy()
    policy = SearchConfig(num_simulations=32, gumbel_scale=0.0).build()
    evaluate = networks.evaluator(game, model)

    @jax.jit
    def choose(params, states):
        player = states.current_player
        return search_worlds(
            game, evaluate, params, jax.random.key(1), states, player, num_worlds=1, policy=policy
        ).action

    state = learners.copy(early[1])
    for _ in range(22):
        state, metrics = learner.run_chunk(state)
    lost = [losing_lines(game, functools.partial(choose, state.params), seat) for seat in (0, 1)]
    assert lost == [0, 0]
    assert metrics["value/explained_var"] > 0.3
    assert metrics["policy/top1_agree"] > 0.6
    assert learner.compiled() == (1, 1)


def test_resumes_exactly(learner, early):
    again, metrics = learner.run_chunk(learners.copy(early[0]))
    learners.assert_equal(again, early[1])
    learners.assert_equal(metrics, early[2])


def test_metrics_and_counters(learner, early):
    _, state, metrics = early
    config = learners.ALPHAZERO
    for name in (
        "loss/policy", "loss/value", "loss/q", "loss/total", "policy/entropy",
        "policy/target_entropy", "policy/kl_target", "policy/top1_agree", "policy/illegal_mass",
        "value/explained_var", "value/bias_abs", "selfplay/length_mean", "selfplay/draws",
        "selfplay/outcome/seat0", "selfplay/outcome/seat1", "selfplay/games", "replay/size",
        "replay/age_p50", "replay/age_p95", "optim/update_ratio", "value/calibration",
        "value/calibration/seat0", "value/calibration/seat1",
        "optim/grad_norm", "optim/clip_share", "optim/nan_skips", "optim/lr",
        "search/visit_entropy", "search/top_share",
    ):  # fmt: skip
        assert metrics[name].shape == () and metrics[name].dtype == jnp.float32, name
        assert np.isfinite(metrics[name]), name
    assert 5 <= metrics["selfplay/length_mean"] <= 9
    assert metrics["selfplay/illegal"] == 0
    assert metrics["selfplay/outcome/seat0"] == -metrics["selfplay/outcome/seat1"]
    assert int(state.updates) == 3 * config.chunk_updates
    per_row = config.chunk_updates * (config.teacher_steps + 2 * config.steps)
    assert int(state.env_steps) == per_row * config.games
    assert int(state.opt_state.count) <= int(state.updates) * config.learn_steps
    assert int(state.games) > 0 and int(state.nan_skips) == 0


def test_outcomes_in_the_replay_are_those_of_their_games(early):
    """Replays every sampled position: the winner found by the rules is the target's winner."""
    game, _ = learners.toy()
    state = early[1]
    ring = state.replay
    game_of, current = np.asarray(ring.game), np.asarray(ring.current)
    cursor = int(ring.cursor)
    order = np.roll(np.arange(game_of.shape[0]), -cursor)
    actions, results = np.asarray(ring.items["action"]), np.asarray(ring.results)
    states = ring.items["state"]
    movers, cells = np.asarray(states.current_player), np.asarray(states.cells)
    step = jax.jit(game.step)
    checked = 0
    for row in range(0, 8):
        for number in np.unique(game_of[:, row]):
            columns = [c for c in order if game_of[c, row] == number]
            if number < 0 or number >= current[row] or cells[columns[0], row].any():
                continue  # unfinished, or its beginning is overwritten
            live = game.init(jax.random.key(0))
            for column in columns:
                assert movers[column, row] == int(live.current_player)
                np.testing.assert_array_equal(cells[column, row], live.cells)
                live = step(live, actions[column, row], jax.random.key(0))
            assert bool(live.done)
            np.testing.assert_array_equal(results[number % len(results), row], live.rewards)
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize(
    ("name", "options", "games", "steps"),
    [
        ("mnk", dict(players=2), 16, 40),
        ("mnk", dict(players=3), 16, 40),
        ("sequence", dict(players=4), 16, 200),
    ],
)
def test_targets_of_every_seat(name, options, games, steps):
    """Random games: the target's first component is what the mover's team got at the end.

    In these games only the team that moved last can have won.
    """
    game = core.make(name, **options)
    teams = np.asarray(game.team_of)

    def choose(key, states):
        return jax.vmap(core.random_bot)(states, jax.random.split(key, games)), ()

    @jax.jit
    def run(key):
        actor = selfplay.start(game, key, games, 0)
        played = selfplay.play(game, choose, jax.random.fold_in(key, 1), actor, steps, 0)[1]
        outcome = played.returns + played.reward
        to_go, known = returns.returns_to_go(played.reward, played.done)
        target = frames.to_relative(to_go, frames.mover_team(game, played.state))
        return played.state.current_player, played.returns, played.done, outcome, target, known

    movers, before, done, outcome, target, known = map(np.asarray, run(jax.random.key(0)))
    seen = set()
    for row in range(games):
        begin = 0
        for end in np.flatnonzero(done[:, row]):
            result, winner = outcome[end, row], teams[movers[end, row]]
            for step in range(begin, end + 1) if result.any() else ():
                won = teams[movers[step, row]] == winner
                expected = 1.0 if won else -1.0 / (game.num_teams - 1)
                assert target[step, row, 0] == expected
                assert known[step, row] and not before[step, row].any()
                seen.add((int(movers[step, row]), bool(won)))
            begin = end + 1
        assert begin > 0 and not known[begin:, row].any()
    assert seen == {(seat, won) for seat in range(game.num_players) for won in (True, False)}


def test_loss_by_hand():
    """Two positions, three actions of which two are legal; a network that says what we say."""

    class Said:
        def apply(self, params, observation):
            del observation
            return networks.Outputs(
                logits=jnp.log(jnp.array([[0.25, 0.75, 1e9], [0.5, 0.5, 1e9]])),
                value=params["value"],
                q=jnp.stack([params["value"]] * 3, 1) * 0.5,
            )

    value = jnp.array([[0.5, -0.5], [0.0, 0.0]])
    batch = Batch(
        observation=None,
        legal=jnp.array([[True, True, False]] * 2),
        weights=jnp.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]),
        train_policy=jnp.array([1.0, 0.0]),
        action=jnp.array([0, 1]),
        target=jnp.array([[1.0, -1.0], [-1.0, 1.0]]),
        mover=jnp.eye(2, dtype=jnp.int32),
    )
    total, metrics = loss(Said(), dict(value=value), batch, 1.0, 2.0)
    mean = {k: float(x) for k, x in finish(metrics).items()}
    assert mean["loss/policy"] == pytest.approx(-np.log(0.25))  # the second is left out
    assert mean["loss/value"] == pytest.approx((0.25 + 1.0) / 2)
    assert mean["loss/q"] == pytest.approx((0.75**2 + 1.0) / 2)
    expected = -np.log(0.25) + 0.625 + 2 * (0.75**2 + 1.0) / 2
    assert float(total) == pytest.approx(expected, rel=1e-5)
    assert mean["policy/illegal_mass"] > 0.99
    assert mean["policy/top1_agree"] == 0.0
    assert mean["value/calibration/seat0"] == 0.5 and mean["value/calibration/seat1"] == 1.0
    assert mean["value/calibration"] == 0.75


def test_bad_numbers_skip_the_step(learner, early):
    first = early[0]
    poisoned = learners.copy(first.params)
    poisoned["value"]["out"]["bias"] *= jnp.nan
    start = dataclasses.replace(learners.copy(first), params=learners.copy(poisoned))
    state, metrics = learner.run_chunk(start)
    steps = learners.ALPHAZERO.learn_steps * learners.ALPHAZERO.chunk_updates
    assert int(metrics["optim/nan_skips"]) == int(state.nan_skips) == steps
    learners.assert_equal(state.params, poisoned)
    learners.assert_equal(state.opt_state, first.opt_state)


@pytest.mark.slow
def test_population_of_two():
    """Numbers are leaves: members with other learning rates are one `vmap`."""
    game, model = learners.toy()
    config = dataclasses.replace(
        learners.ALPHAZERO, games=8, steps=4, replay_length=16, learn_after=1, batch_size=8,
        learn_steps=2, search=SearchConfig(num_simulations=2, max_num_considered_actions=2),
    )  # fmt: skip
    learner = alphazero.make(game, model, config)
    key = jax.random.key(3)
    states = jax.vmap(learner.init)(jnp.stack([key, key]))
    rates = jnp.array([0.0, 1e-2])
    states = dataclasses.replace(states, hyper=states.hyper | {"learning_rate": rates})
    start = states.params
    run = jax.jit(jax.vmap(lambda s: jax.lax.scan(lambda s, _: learner.update(s), s, length=4)))
    states, _ = run(states)
    still, moved = (jax.tree.map(lambda x, i=i: x[i], (start, states.params)) for i in (0, 1))
    learners.assert_equal(still[0], still[1])
    moves = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), *moved)
    assert max(jax.tree.leaves(moves)) > 1e-3


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("games", dict(games=0)),
        ("full_share", dict(full_share=0.0)),
        ("root_share", dict(root_share=1.5)),
        ("value_weight", dict(value_weight=float("nan"))),
        ("replay_length", dict(replay_length=4)),
        ("learn_after", dict(learn_after=10**9)),
        ("teacher", dict(teacher_updates=3)),
        ("opening_plies", dict(opening_plies=-1)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        alphazero.Config(**options)


def test_an_unknown_teacher_is_named():
    config = alphazero.Config(teacher="greedi", teacher_updates=1)
    with pytest.raises(ValueError, match="teacher: unknown name 'greedi'"):
        alphazero.make(*learners.toy(), config)
