"""PPO on toys: it learns, only from its own decisions; the league; exact resumption."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import agents, arena, networks, optim, ppo, selfplay
from algorithms import league as leagues
from algorithms.ppo import critic as critics
from algorithms.ppo import rollout, train
from algorithms.ppo.loss import Batch, loss
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys import highcard

PPO = ppo.Config(
    games=64,
    steps=16,
    epochs=2,
    minibatch=256,
    entropy_start=0.15,
    entropy_end=0.05,
    entropy_updates=60,
    discount=1.0,
    kl_stop=0.1,
    opponent_share=0.5,
    groups=2,
    opponent_updates=2,
    snapshots=3,
    snapshot_updates=4,
    bots=("first", "random"),
    bot_share=0.75,
    chunk_updates=10,
    optim=optim.OptimConfig(learning_rate=3e-3, warmup_steps=20, clip_norm=1.0),
)


@pytest.fixture(scope="module")
def learner():
    return ppo.make(*learners.dense_toy(), PPO)


@pytest.fixture(scope="module")
def early(learner):
    return learners.two_chunks(learner)


# ---- learning ----


def test_learns_tic_tac_toe(learner, early):
    """From scratch to a clear lead over random play, some of which it has met."""
    game, model = learners.dense_toy()
    state = learners.copy(early[1])
    against_random = []
    for _ in range(50):
        state, metrics = learner.run_chunk(state)
        against_random.append(float(metrics["league/win/random"]))
    seat = agents.Seat(agents.network_agent(game, model), state.params)
    rival = agents.Seat(agents.bot_agent(game, "random"))
    rate = arena.evaluate_paired(game, seat, rival, 200, 0).winrate
    assert rate.low > 0.85, rate
    assert max(against_random[-10:]) > 0.7  # its moves are drawn, not the best
    assert 0.02 < metrics["policy/entropy_share"] < 0.8
    assert metrics["value/explained_var"] > 0.2
    assert learner.compiled()[0] == 1


def test_resumes_exactly(learner, early):
    again, metrics = learner.run_chunk(learners.copy(early[0]))
    learners.assert_equal(again, early[1])
    learners.assert_equal(metrics, early[2])


def test_metrics_and_counters(early):
    first, state, metrics = early
    for name in (
        "loss/policy", "loss/value", "loss/total", "policy/entropy", "policy/entropy_share",
        "policy/kl", "policy/clip_share", "policy/ratio_max", "policy/entropy_weight",
        "value/explained_var", "value/advantage_spread", "selfplay/length_mean",
        "league/win", "league/win/snapshots", "league/win/first", "league/games",
        "league/snapshots", "optim/grad_norm", "optim/stopped", "rollout/own_share",
    ):  # fmt: skip
        assert metrics[name].shape == () and np.isfinite(metrics[name]), name
    assert int(state.updates) == 2 * PPO.chunk_updates
    assert int(state.env_steps) == 2 * PPO.chunk_updates * PPO.games * PPO.steps
    assert metrics["selfplay/illegal"] == 0 and int(state.nan_skips) == 0
    # Half of the decisions against opponents, and all of the others.
    assert abs(float(metrics["rollout/own_share"]) - (0.5 + 0.5 / 2)) < 0.02
    assert int(first.league.taken) == 3 and int(state.league.taken) == 5
    assert sorted(np.asarray(state.league.born)) == [8, 12, 16]


def test_bad_numbers_skip_the_step(learner, early):
    first = early[0]
    poisoned = learners.copy(first.params)
    poisoned["value"]["out"]["bias"] *= jnp.nan
    start = dataclasses.replace(learners.copy(first), params=learners.copy(poisoned))
    state, metrics = learner.run_chunk(start)
    steps = int(metrics["optim/nan_skips"])
    rows = PPO.steps * (PPO.games - PPO.against // 2)
    assert steps == int(state.nan_skips) == 2 * (rows // PPO.minibatch) * PPO.chunk_updates
    learners.assert_equal(state.params, poisoned)
    learners.assert_equal(state.opt_state, first.opt_state)


# ---- the critic ----


def hidden_toy():
    """A game of hidden cards with an actor; its critic sees them."""
    game = highcard.HighCard(highcard.Rules())
    config = networks.NetworkConfig(channels=4, blocks=0, hidden=32, kind="cards", q_head=False)
    return game, networks.build(game, config)


@pytest.fixture(scope="module")
def critical():
    """A learner that asks its critic about three moves, and its first state."""
    game, model = hidden_toy()
    sizes = dataclasses.replace(model.config, hidden=48)
    critic = ppo.CriticConfig(enabled=True, candidates=3, updates=8, rate=2.0, network=sizes)
    assert PPO.optim.weight_decay > 0  # which must not move weights that do not learn yet
    options = dict(bots=(), opponent_share=0.0, discount=1.0, chunk_updates=8)
    learner = ppo.make(game, model, dataclasses.replace(PPO, critic=critic, **options))
    return game, model, learner, learner.init(jax.random.key(0))


def test_a_critic_learns_alone_at_first(critical):
    game, model, learner, start = critical
    state, before = learner.run_chunk(learners.copy(start))
    learners.assert_equal(state.params, start.params)
    assert before["loss/policy"] != 0
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), state.critic, start.critic)
    assert any(jax.tree.leaves(moved))
    for _ in range(12):
        state, metrics = learner.run_chunk(state)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), state.params, start.params)
    assert all(jax.tree.leaves(moved["policy"]))
    # The cards of the others tell what the seat itself can not know.
    assert metrics["loss/critic"] < 0.9 * metrics["loss/value"]
    assert metrics["loss/critic"] < before["loss/critic"]
    seat = agents.Seat(agents.network_agent(game, model), state.params)
    rival = agents.Seat(agents.bot_agent(game, "random"))
    rate = arena.evaluate_paired(game, seat, rival, 400, 0).winrate
    assert rate.low > 0.55, rate


def test_a_sum_over_the_moves_judged_is_the_expectation():
    """Over many draws, share times anything sums to its mean under the whole policy."""
    game, model = learners.dense_toy()
    params = model.init(jax.random.key(0))
    params["policy"]["out"]["bias"] += jnp.linspace(0.0, 3.0, 9)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(1), 1))
    states = jax.tree.map(lambda x: jnp.repeat(x, 20_000, axis=0), states)
    action, note = jax.jit(rollout.own_play(game, model, params, 4))(jax.random.key(2), states)
    assert note["actions"].shape == (20_000, 4)
    np.testing.assert_array_equal(note["actions"][:, -1], action)
    worth = jnp.arange(9.0) ** 2
    policy = jax.nn.softmax(rollout.think(game, model, params, states)[1][0])
    got = (note["share"] * worth[note["actions"]]).sum(-1)
    expected = float((policy * worth).sum())
    assert abs(float(got.mean()) - expected) < 4 * float(got.std()) / 20_000**0.5
    np.testing.assert_allclose(jnp.exp(note["log_prob"]), policy[note["actions"]], rtol=1e-4)
    np.testing.assert_allclose(note["share"].sum(-1).mean(), 1.0, atol=0.02)


def test_the_critic_is_asked_about_the_position_after_a_move(critical):
    game, _, _, start = critical
    config = ppo.CriticConfig(network=critics.model(game, ppo.CriticConfig()).config)
    params = critics.start(game, config, jax.random.key(3)).params
    states = start.actor.states
    actions = jnp.stack([states.legal_action_mask.argmax(-1)] * 2, axis=-1)
    look = functools.partial(critics.look_ahead, game, config, params, jax.random.key(0))
    q = np.asarray(jax.jit(look)(states, actions, 0.5))
    np.testing.assert_allclose(q[:, 0], q[:, 1], atol=1e-5)

    @jax.jit
    def expected(states, action):
        after = jax.vmap(game.step)(states, action, jax.random.split(jax.random.key(7), 64))
        value = critics.judge(game, config, params, after)[1]
        return after, value

    after, value = expected(states, actions[:, 0])
    team = np.asarray(game.team_of)[np.asarray(states.current_player)]
    value = np.where(np.asarray(after.done), 0.0, np.asarray(value)[np.arange(64), team])
    reward = np.asarray(after.rewards)[np.arange(64), np.asarray(states.current_player)]
    np.testing.assert_allclose(q[:, 0], reward + 0.5 * value, atol=1e-5)


def test_advantages_are_over_the_likeliest_moves():
    q = jnp.array([[0.5, -0.5, 0.1]])
    got = critics.advantages(q, jnp.array([[0.6, 0.2, 1.0]]))
    base = (0.6 * 0.5 - 0.2 * 0.5) / 0.8
    np.testing.assert_allclose(got, q - base, rtol=1e-6)


def test_advantages_of_the_game_played_by_hand():
    """Two steps of one game, then another game's first; lam 0.5, no discount, absolute order."""
    value = jnp.array([[[0.5, -0.5]], [[0.25, -0.25]], [[0.0, 0.0]]])
    reward = jnp.array([[[0.0, 0.0]], [[1.0, -1.0]], [[0.0, 0.0]]])
    done = jnp.array([[False], [True], [False]])
    played = types.SimpleNamespace(reward=reward, done=done, note=dict(judged=value))
    gained, judged = critics.followed(played, jnp.array([[0.125, -0.125]]), 1.0, 0.5)
    # Last: 0.125 - 0. Middle: 1 - 0.25. First: half the next value, half what came of it.
    expected = [0.5 * 0.25 + 0.5 * 1.0 - 0.5, 0.75, 0.125]
    np.testing.assert_allclose(gained[:, 0, 0], expected)
    np.testing.assert_allclose(gained[:, 0, 1], -np.array(expected))
    np.testing.assert_array_equal(judged, value)


# ---- the loss ----


def made_batch(model, params, states, advantage, weight):
    game = model.game
    observation, logits, _ = rollout.think(game, model, params, states)
    action = jnp.argmax(states.legal_action_mask, axis=-1)
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], -1)[:, 0]
    value = model.apply(params, observation).value
    moves = (action[:, None], log_prob[:, None], jnp.ones((len(action), 1)))
    legal, gain = states.legal_action_mask, advantage[:, None]
    return Batch(observation, None, legal, *moves, value, value, gain, weight)


@functools.cache
def some_batch():
    game, model = learners.dense_toy()
    advantage = jnp.array([1.0, -2.0, 0.5, 0.25, -1.0, 3.0])

    @jax.jit
    def make(key):
        params = model.init(key)
        # Away from the uniform policy of a fresh network, three moves into the game.
        wave = lambda x: 0.2 * np.sin(np.arange(x.size)).reshape(x.shape)  # noqa: E731
        params = jax.tree.map(lambda x: x + wave(x), params)
        states = jax.vmap(game.init)(jax.random.split(key, 6))
        for move in (jnp.arange(6), jnp.arange(6) + 1, jnp.full(6, 8)):
            states = jax.vmap(game.step)(states, move, jax.random.split(key, 6))
        return params, made_batch(model, params, states, advantage, jnp.ones(6))

    with jax.debug_key_reuse(False):
        return model, *make(jax.random.key(1))


@functools.cache
def gradient():
    model = some_batch()[0]

    def value(params, batch, entropy):
        return loss(model, params, batch, 0.2, 0.2, 0.5, entropy)

    return jax.jit(jax.value_and_grad(value, has_aux=True))


def norm(tree):
    return float(optim.optax.tree.norm(tree))


def test_the_first_step_is_the_plain_policy_gradient():
    """The policy has not moved: ratio 1, nothing clipped, no distance, values on target."""
    model, params, batch = some_batch()
    (value, metrics), grads = gradient()(params, batch, jnp.float32(0.0))
    assert norm(grads) > 0.01
    mean = {k: float(m[0] / m[1]) for k, m in metrics.items()}
    assert mean["policy/clip_share"] == 0.0 and mean["loss/value"] == 0.0
    assert abs(mean["policy/kl"]) < 1e-6 and abs(mean["policy/ratio_max"] - 1.0) < 1e-6
    np.testing.assert_allclose(value, -batch.advantage.mean(), rtol=1e-5)

    def plain(params):
        logits = model.apply(params, batch.observation).logits
        log_policy = jax.nn.log_softmax(networks.masked(logits, batch.legal))
        picked = jnp.take_along_axis(log_policy, batch.actions, -1)
        return -(picked * batch.advantage).mean()

    expected = jax.jit(jax.grad(plain))(params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), grads, expected)


def test_no_advantage_no_gradient():
    _, params, batch = some_batch()
    still = dataclasses.replace(batch, advantage=jnp.zeros((6, 1)))
    assert norm(gradient()(params, still, jnp.float32(0.0))[1]) < 1e-6
    assert norm(gradient()(params, still, jnp.float32(0.1))[1]) > 1e-6  # the entropy's


def test_beyond_the_clip_there_is_no_gradient():
    """Probabilities that have already moved the right way by more than the clip."""
    _, params, batch = some_batch()
    away = batch.log_prob - jnp.sign(batch.advantage) * 0.5
    moved = dataclasses.replace(batch, log_prob=away)
    (_, metrics), grads = gradient()(params, moved, jnp.float32(0.0))
    assert norm(grads) == 0.0 and float(metrics["policy/clip_share"][0]) == 6
    back = dataclasses.replace(batch, log_prob=batch.log_prob + jnp.sign(batch.advantage) * 0.5)
    assert norm(gradient()(params, back, jnp.float32(0.0))[1]) > 1e-3


def test_rows_without_weight_do_not_matter():
    model, params, batch = some_batch()
    half = dataclasses.replace(batch, weight=jnp.array([1.0, 0, 1, 0, 0, 1]))
    spoilt = dataclasses.replace(
        half,
        advantage=jnp.where(half.weight[:, None] > 0, half.advantage, 1e6),
        target=jnp.where(half.weight[:, None] > 0, half.target, jnp.nan),
        actions=jnp.where(half.weight[:, None] > 0, half.actions, 8),
    )
    for entropy in (0.0, 0.1):
        one = gradient()(params, half, jnp.float32(entropy))
        two = gradient()(params, spoilt, jnp.float32(entropy))
        learners.assert_equal(one[0], two[0])


def test_value_clip_by_hand():
    """Old value 0, target 1: at 0.5 the clipped one (0.2) is the worse, at -0.5 the new one."""

    class Said:
        def apply(self, params, observation):
            del observation
            value = jnp.stack([params, -params], axis=-1)
            return networks.Outputs(jnp.zeros((2, 2)), value, None)

    batch = Batch(
        None, None, jnp.ones((2, 2), bool), jnp.zeros((2, 1), jnp.int32),
        jnp.full((2, 1), jnp.log(0.5)), jnp.ones((2, 1)),
        jnp.zeros((2, 2)), jnp.array([[1.0, -1.0]] * 2), jnp.zeros((2, 1)), jnp.ones(2),
    )  # fmt: skip
    params = jnp.array([0.5, -0.5])
    total, metrics = loss(Said(), params, batch, 0.2, 0.2, 1.0, jnp.float32(0.0))
    assert float(total) == pytest.approx((0.8**2 + 1.5**2) / 2, rel=1e-5)
    assert float(loss(Said(), params, batch, 0.2, 0.0, 1.0, 0.0)[0]) == pytest.approx(1.25)
    assert float(metrics["policy/entropy_share"][0]) == pytest.approx(2.0, rel=1e-5)


# ---- who decides ----


def test_samples_are_legal_and_fair():
    legal = jnp.array([[True, False, True, True, False]])
    logits = networks.masked(jnp.log(jnp.array([[0.5, 9.0, 0.25, 0.25, 9.0]])), legal)
    many = jax.jit(rollout.sample)(jax.random.key(0), jnp.repeat(logits, 40_000, axis=0))
    shares = np.bincount(np.asarray(many), minlength=5) / 40_000
    np.testing.assert_allclose(shares, [0.5, 0, 0.25, 0.25, 0], atol=0.01)
    broken = jax.jit(rollout.sample)(jax.random.key(0), jnp.full((3, 5), jnp.nan))
    assert ((broken >= 0) & (broken < 5)).all()


@pytest.fixture(scope="module")
def played(early):
    """Twelve steps against the bot and a snapshot, and the decisions to learn from."""
    game, model = learners.dense_toy()
    state = early[1]
    league = dataclasses.replace(state.league, opponent=jnp.array([[3], [0]]))  # bot, snapshot
    choose = rollout.league_play(game, model, state.params, league, PPO.bots)

    @jax.jit
    def run(key, actor):
        actor, played, _ = selfplay.play(game, choose, key, actor, 12, 0)
        ends = rollout.end_values(game, model, state.params, actor.states)
        return played, train._decisions(game, PPO, played, *train._by_seat(PPO, played, ends))[0]

    return run(jax.random.key(0), state.actor)


def test_opponents_move_their_own_seats(played):
    """In games against the bot its moves are the bot's and do not count; elsewhere all do."""
    game, _ = learners.dense_toy()
    played, _ = played
    own, seat = np.asarray(played.note["own"]), np.asarray(played.state.current_player)
    assert own[:, : -PPO.against].all()
    team = np.asarray(leagues.sides(game, PPO.groups, PPO.rows)).ravel()
    np.testing.assert_array_equal(own[:, -PPO.against :], seat[:, -PPO.against :] == team)
    assert set(team) == {0, 1}
    bots = slice(-PPO.against, -PPO.rows)
    first = np.asarray(played.state.legal_action_mask)[:, bots].argmax(-1)
    action = np.asarray(played.action)[:, bots]
    theirs = ~own[:, bots]
    np.testing.assert_array_equal(action[theirs], first[theirs])
    assert (action[~theirs] != first[~theirs]).any()


def test_only_own_decisions_are_learnt_from(played):
    played, data = played
    own = np.asarray(played.note["own"])
    np.testing.assert_array_equal(data.weight, own.astype(np.float32).ravel())
    counted = np.asarray(data.advantage)[np.asarray(data.weight) > 0]
    assert abs(counted.mean()) < 1e-5 and abs(counted.std() - 1.0) < 1e-3

    def seen(carry, batch):
        return carry, {"own": train.mean(batch.weight)}

    config = dataclasses.replace(PPO, minibatch=32, kl_stop=0.0)
    rows = int(own.sum()) - 32
    learn = jax.jit(lambda key: train._passes(config, seen, rows, (), data, key)[1]["own"])
    total, amount = np.asarray(learn(jax.random.key(1)))
    assert total == amount == 2 * (rows // 32) * 32


# ---- settings ----


def test_the_entropy_weight_falls():
    for updates, expected in ((0, 0.15), (30, 0.1), (60, 0.05), (999, 0.05)):
        got = train.entropy_weight(PPO, jnp.int32(updates))
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("games", dict(games=0)),
        ("clip", dict(clip=0.0)),
        ("lam", dict(lam=1.5)),
        ("snapshots", dict(snapshots=21)),
        ("opponent_share", dict(games=8, groups=4, opponent_share=0.25)),
        ("bots", dict(bots=("a",), opponent_share=0.0)),
        ("value_weight", dict(value_weight=float("nan"))),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        ppo.Config(**options)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("bots", dict(bots=("frist",))),
        ("minibatch", dict(minibatch=2000)),
    ],
)
def test_what_the_game_does_not_have_is_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        ppo.make(*learners.dense_toy(), dataclasses.replace(PPO, **options))
