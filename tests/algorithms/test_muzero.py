import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.mnk  # noqa: F401  (registers "mnk")
from algorithms import muzero, optim, selfplay
from algorithms.muzero import brain, model_search, play, samples, train
from algorithms.muzero.loss import Weights, loss
from algorithms.networks.muzero import two_hot
from algorithms.replay import Replay, Sample
from algorithms.search.config import SearchConfig
from jaxgames import core
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys.latent import Dense, Switches, remembering

CONFIG = muzero.Config(
    games=16,
    steps=8,
    search=SearchConfig(num_simulations=6, max_num_considered_actions=4, q_scale="outcome"),
    opening_plies=2,
    sample_plies=3,
    replay_length=40,
    learn_after=16,
    batch_size=16,
    batch_end=32,
    batch_updates=4,
    micro_batch=8,
    learn_steps=2,
    unroll=3,
    root_share=0.25,
    priority_exponent=0.5,
    memory_updates=2,
    chunk_updates=2,
    optim=optim.OptimConfig(learning_rate=3e-3, warmup_steps=10),
)


@functools.cache
def toy(**switches):
    """(game, model): three seats on 3x3, three in a row, the first to have it takes all."""
    game = core.make("mnk", players=3)
    return game, Dense(game, game.viewer(), Switches(**switches))


@functools.cache
def board(size, view=0, **switches):
    """(game, model): a square board with symmetries, seen through a crop unless `view` is 0."""
    game = core.make("eight_in_a_row", rows=size, cols=size, win_length=3)
    return game, Dense(game, game.viewer(view), Switches(**switches))


@functools.cache
def trained():
    """(learner, what two of its chunks give)."""
    learner = muzero.make(*toy(memory=True, auxiliary=True), CONFIG)
    return learner, learners.two_chunks(learner)


@pytest.fixture(scope="module")
def learner():
    return trained()[0]


@pytest.fixture(scope="module")
def early():
    """A state after one chunk, the state after two, the metrics of the second."""
    return trained()[1]


# ---- the learner's face ----


def test_resumes_exactly(learner, early):
    again, metrics = learner.run_chunk(learners.copy(early[0]))
    learners.assert_equal(again, early[1])
    learners.assert_equal(metrics, early[2])
    assert learner.compiled() == (1, 0)


def test_metrics_and_counters(early):
    _, state, metrics = early
    for name in (
        "loss/policy", "loss/value", "loss/reward", "loss/consistency", "loss/aux", "loss/total",
        "policy/entropy", "policy/entropy_share", "policy/target_entropy", "policy/kl_target",
        "policy/top1_agree", "policy/illegal_mass", "value/explained_var", "value/bias_abs",
        "value/unrolled_error", "selfplay/length_mean", "selfplay/draws", "selfplay/outcome/seat2",
        "selfplay/games", "replay/size", "replay/age_p50", "replay/age_p95",
        "value/calibration", "value/calibration/seat2", "optim/update_ratio",
        "optim/grad_norm", "optim/lr", "optim/nan_skips",
        "search/visit_entropy", "search/top_share", "search/root_minus_net",
    ):  # fmt: skip
        assert metrics[name].shape == () and metrics[name].dtype == jnp.float32, name
        assert np.isfinite(metrics[name]), name
    assert metrics["selfplay/illegal"] == 0 and metrics["optim/nan_skips"] == 0
    assert 5 <= metrics["selfplay/length_mean"] <= 9
    assert int(state.updates) == 2 * CONFIG.chunk_updates
    assert int(state.env_steps) == int(state.updates) * CONFIG.steps * CONFIG.games
    assert int(state.opt_state.count) <= int(state.updates) * CONFIG.learn_steps


def test_every_finished_game_is_whole_in_the_replay(early):
    """Played again from the replay: views name the moves, the last one ends the game and is paid,
    and outcomes are those of the rules."""
    game, model = toy(memory=True, auxiliary=True)
    ring = early[1].replay
    numbers, actions = np.asarray(ring.game), np.asarray(ring.items["action"])
    done, reward = np.asarray(ring.items["done"]), np.asarray(ring.items["reward"])
    states = samples.unpack(game, ring.items["state"])
    checked = 0
    for row in range(4):
        for number in range(int(ring.current[row])):
            columns = np.flatnonzero(numbers[:, row] == number)
            if len(columns) < 2 or np.any(np.diff(columns) > 1):
                continue
            live = jax.tree.map(lambda x, c=columns[0], r=row: x[c, r], states)
            for column in columns:
                learners.assert_equal(
                    live.replace(rewards=live.rewards * 0),
                    jax.tree.map(lambda x, c=column, r=row: x[c, r], states),
                )
                live = step(live, actions[column, row])
                assert done[column, row] == (column == columns[-1]) == bool(live.done)
                np.testing.assert_array_equal(reward[column, row], live.rewards)
            result = np.asarray(ring.results[number % CONFIG.replay_length, row])
            np.testing.assert_allclose(result[:3], live.rewards)
            assert int(result[3]) == columns[-1]
            checked += 1
    assert checked >= 4


@functools.cache
def sampled(number=64):
    """(ring, sample, made): windows of the toy's replay as the loss gets them, not turned."""
    game, model = toy(memory=True, auxiliary=True)
    state = trained()[1][1]
    config = dataclasses.replace(CONFIG, symmetries=False, root_share=0.0)
    replay = Replay(CONFIG.replay_length, CONFIG.games, CONFIG.unroll, 0.0, wait=True)

    @jax.jit
    def draw(ring):
        sample = replay.sample(ring, jax.random.key(1), number)
        chances = samples.chances(model, config, jax.random.key(2), number)
        return sample, samples.batch(game, model, config, (sample, None, jnp.ones(number), chances))

    return (state, *draw(state.replay))


def test_windows_go_through_the_winning_move():
    """Defect 1: the last action, its reward and what follows are in the unroll."""
    _, sample, made = sampled()
    game, _ = toy(memory=True, auxiliary=True)
    done = np.asarray(sample.items["done"])
    alive, known = np.asarray(made.alive), np.asarray(made.known)
    ends = [(n, k) for n, k in np.argwhere(done[:, :-1]) if alive[n, k]]
    assert len(ends) > 10 and known.all()
    outcome = np.asarray(sample.outcome)[:, :3]
    movers = np.asarray(sample.items["state"].current_player)
    for n, k in ends:
        assert int(made.action[n, k]) == int(sample.items["action"][n, k])
        expected = [outcome[n, (movers[n, k] + i) % 3] for i in range(3)]
        np.testing.assert_allclose(made.reward[n, k], expected, atol=1e-6)
        np.testing.assert_allclose(made.value[n, k], expected, atol=1e-6)  # not a step later
        assert not alive[n, k + 1 :].any() and not np.any(made.value[n, k + 1 :])
        assert not np.any(made.reward[n, k + 1 :])
    # Every step has the outcome in the frame of its own mover (defect 2).
    for n, k in np.argwhere(alive):
        expected = [outcome[n, (movers[n, k] + i) % 3] for i in range(3)]
        np.testing.assert_allclose(made.value[n, k], expected, atol=1e-6)
    plies = np.asarray(made.aux["plies_left"])
    for n, k in ends:
        assert plies[n, k] * 8 == pytest.approx(1.0)  # log2(1 + 1)


# ---- views and symmetries ----


def test_a_window_is_cut_and_named_by_its_roots_view():
    """On 8x8 seen through 5x5: later actions have the numbers of the root's view, or end the
    unroll; policies of other views are renamed, what lies outside is left out."""
    game, model = board(8, view=5)
    viewer = model.viewer
    focus, name = jax.jit(viewer.focus), jax.jit(viewer.from_game)
    actions = [9, 54, 18, 0, 27, 63]
    state, states, views = game.init(jax.random.key(0)), [], []
    for action in actions:
        states.append(state)
        views.append(focus(state))
        state = step(state, action)
    window = jax.tree.map(lambda *xs: jnp.stack(xs)[None], *views)
    root = [int(name(views[0], action)) for action in actions]
    own = [int(name(view, action)) for view, action in zip(views, actions, strict=True)]
    policies = np.zeros((1, 6, viewer.num_actions), np.float16)
    policies[0, range(6), own] = 1.0  # of a move outside its own view: the last slot
    cut = jax.jit(lambda items: samples._in_view(
        viewer, items, jax.tree.map(lambda x: x[:, 0], items["view"]), 6
    ))  # fmt: skip
    weights, share = cut(dict(view=window, weights=jnp.asarray(policies)))
    assert len({tuple(np.asarray(v.corner)) for v in views}) > 1 and min(root) < 0 < max(root)
    shown = [k for k in range(6) if own[k] >= 0]
    assert len(shown) >= 3
    for k in shown:
        assert float(share[0, k]) == (root[k] >= 0)
        if root[k] >= 0:
            assert float(weights[0, k, root[k]]) == 1.0


def test_where_to_look_is_learned_from_what_is_seen_before_looking():
    """A view that followed the heat would give the answer away: the head is trained on the
    observations that it is asked with."""
    game, model = board(8, view=5, focus=True)
    config = dataclasses.replace(CONFIG, unroll=1, symmetries=False)
    states = [game.init(jax.random.key(0))]
    states.append(step(states[0], 0))
    view = jax.jit(model.viewer.focus)(states[0])
    hot = dataclasses.replace(view, corner=jnp.full_like(view.corner, 3))
    assert np.any(hot.corner != view.corner)
    pair = functools.partial(jax.tree.map, lambda *xs: jnp.stack(xs)[None])
    none = jnp.zeros((1, 2, 3))
    items = dict(
        state=samples.pack(pair(*states)), view=pair(hot, hot), action=jnp.array([[0, 1]]),
        reward=none, returns=none, root_value=none, done=jnp.zeros((1, 2), bool),
        weights=jax.nn.one_hot(jnp.array([[24, 24]]), model.viewer.num_actions),
        train_policy=jnp.ones((1, 2), bool),
    )  # fmt: skip
    one = jnp.ones(1, jnp.int32)
    sample = Sample(items, jnp.ones((1, 2), bool), jnp.zeros((1, 4)), one > 0, one, one, one)

    class Asked(Dense):
        def heat(self, params, observation):
            asked.append(observation)
            return super().heat(params, observation)

    @jax.jit
    def observations(sample, root, params):
        """What the head is asked with in play and in the loss; what the network plays on."""
        asking = Asked(**vars(model))
        play.look(asking, params, root)
        chances = samples.chances(model, config, jax.random.key(1), 1)
        made = samples.batch(game, asking, config, (sample, None, jnp.ones(1), chances))
        said(asking, params, made)
        return *asked, jax.tree.map(lambda x: x[:, 0], made.observation)

    asked = []
    root = jax.tree.map(lambda x: x[None], states[0])
    in_play, in_loss, other = observations(sample, root, model.init(jax.random.key(2)))
    learners.assert_equal(in_play, in_loss)
    assert np.any(in_loss["whole"] != other["whole"])


def test_symmetries_turn_observation_policy_and_action_alike():
    game, model = board(4)
    viewer = model.viewer
    assert viewer.symmetries == 8
    state = game.init(jax.random.key(0))
    moves = [1, 6, 11]
    for action in moves:
        state = step(state, action)
    observe = jax.jit(lambda state: viewer.observe(state, state.current_player, ()))
    made = samples.Batch(
        observation=jax.tree.map(lambda x: x[None, None], observe(state)),
        legal=state.legal_action_mask[None, None],
        weights=jax.nn.one_hot(jnp.array([[7]]), 16),
        train_policy=jnp.ones((1, 1)), action=jnp.array([[7]]), value=None, reward=None,
        alive=None, known=None, importance=None, focus=None,
        aux={"next_action": jnp.array([[3]])},
    )  # fmt: skip
    turn = jax.jit(lambda i: samples.turned(viewer, made, i[None]))
    for i in range(8):
        turned = turn(jnp.int32(i))
        where = np.asarray(viewer.turn_action(i))
        again = game.init(jax.random.key(0))
        for action in moves:
            again = step(again, where[action])
        want = observe(again)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0, 0], b), turned.observation, want)
        np.testing.assert_array_equal(turned.legal[0, 0], again.legal_action_mask)
        assert int(turned.action[0, 0]) == int(turned.weights[0, 0].argmax()) == where[7]
        assert int(turned.aux["next_action"][0, 0]) == where[3]


# ---- the loss ----


ALL = Weights()


@jax.jit
def step(state, action):
    return state.game.step(state, jnp.int32(action), jax.random.key(0))


def said(model, params, made, weights=ALL, bank=None):
    return loss(model, weights, params, made, bank)


def test_the_loss_is_scaled_along_the_unroll():
    """Unrolled steps count 1/K each, the root 1; importance multiplies a sample."""
    _, _, made = sampled()
    game, model = toy(memory=True, auxiliary=True)
    params = brain.net(model, brain.init(model, jax.random.key(5)))
    one = jax.jit(functools.partial(said, model, params, weights=Weights(0, 1, 0, 0, 0, 0)))
    total = float(one(made)[0])
    only = [float(one(made._replace(known=made.known & (jnp.arange(4) == k)))[0]) for k in range(4)]
    assert total == pytest.approx(sum(only), rel=1e-5)
    flat = made._replace(importance=jnp.zeros(64).at[3].set(2.0))
    both = made._replace(importance=jnp.zeros(64).at[3].set(2.0).at[5].set(0.5))
    other = made._replace(importance=jnp.zeros(64).at[5].set(1.0))
    parts = [float(one(m)[0]) for m in (flat, other, both)]
    assert min(parts) > 0 and parts[2] == pytest.approx(parts[0] + 0.5 * parts[1], rel=1e-5)

    # By hand, step 2: cross-entropy with the two atoms around the target, a third of it.
    @jax.jit
    def second(made):
        latent = model.represent(params, jax.tree.map(lambda x: x[:, 0], made.observation))
        for k in range(2):
            latent, _ = model.dynamics(params, latent, made.action[:, k])
        return jax.nn.log_softmax(model.predict(params, latent).outcome_logits)

    log = np.asarray(second(made))
    atoms, cross = np.asarray(model.atoms), []
    for n, teams in enumerate(np.asarray(made.value[:, 2])):
        for team, value in enumerate(teams):
            above = min(np.searchsorted(atoms, value - 1e-6), len(atoms) - 1)
            below = max(above - 1, 0) if abs(atoms[above] - value) > 1e-6 else above
            share = (
                1.0 if below == above else (value - atoms[below]) / (atoms[above] - atoms[below])
            )
            cross.append(-(share * log[n, team, above] + (1 - share) * log[n, team, below]))
    assert only[2] == pytest.approx(np.mean(cross) / 3, rel=1e-4)


def test_the_gradient_is_halved_at_every_dynamics_step():
    """A reward k steps deep reaches the encoder with the factor 0.5 ** k."""
    _, _, made = sampled()
    game, model = toy(memory=True, auxiliary=True)
    params = brain.net(model, brain.init(model, jax.random.key(5)))
    grads = jax.jit(jax.grad(lambda p, m: said(model, p, m, Weights(0, 1, 0, 0, 0, 0))[0]))

    def unhalved(params, made, k):
        latent = model.represent(params, jax.tree.map(lambda x: x[:, 0], made.observation))
        for i in range(k):
            latent, _ = model.dynamics(params, latent, made.action[:, i])
        goal = two_hot(made.value[:, k], model.atoms)
        log = jax.nn.log_softmax(model.predict(params, latent).outcome_logits)
        return -(goal * log).sum(-1).mean() / 3

    plain_grads = jax.jit(jax.grad(unhalved), static_argnums=2)
    for k in (1, 3):
        deep = made._replace(known=made.known & (jnp.arange(4) == k))
        plain = plain_grads(params, made, k)
        np.testing.assert_allclose(
            grads(params, deep)["see"], plain["see"] * 0.5**k, rtol=1e-3, atol=1e-7
        )
        # The heads get the whole gradient.
        np.testing.assert_allclose(
            grads(params, deep)["outcome"], plain["outcome"], rtol=1e-3, atol=1e-7
        )


def test_consistency_at_every_unrolled_step_and_only_on_the_prediction():
    _, _, made = sampled()
    game, model = toy(memory=True, auxiliary=True)
    params = brain.net(model, brain.init(model, jax.random.key(5)))
    weights = Weights(0, 0, 0, 1, 0, 0)
    one = jax.jit(lambda m: said(model, params, m, weights)[0])
    parts = [float(one(made._replace(known=made.known & (jnp.arange(4) == k)))) for k in range(4)]
    assert parts[0] == 0.0 and min(parts[1:]) > 0.01
    # The real later positions are a goal, not a way: no gradient goes through them.

    @jax.jit
    @jax.grad
    def moved(seen, alive):
        again = made._replace(observation=seen, alive=alive)
        return said(model, params, again, weights)[0]

    floats = jax.tree.map(lambda x: x.astype(jnp.float32), made.observation)
    found = moved(floats, made.alive)
    assert all(not np.any(x[:, 1:]) for x in jax.tree.leaves(found))
    assert any(np.any(x[:, 0]) for x in jax.tree.leaves(found))
    # Behind the end of a game there may be no position at all.
    nowhere = jax.tree.map(lambda x: x.at[:, 2:].set(jnp.nan), floats)
    found = moved(nowhere, made.alive & (jnp.arange(4) < 2))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(found))


def test_parts_with_weight_zero_change_nothing():
    _, _, made = sampled()
    game, model = toy(memory=True, auxiliary=True)
    params = brain.net(model, brain.init(model, jax.random.key(5)))
    off = jax.jit(jax.grad(lambda p: said(model, p, made, Weights(0, 0, 1, 0, 0, 0))[0]))(params)
    assert np.any(off["reward"]) and not np.any(off["policy"]) and not np.any(off["outcome"])
    assert not np.any(off["project"])


# ---- memory ----


def test_the_memory_is_read_in_the_search_and_in_the_loss():
    """Defect 7: one function for both; another bank changes both."""
    state, _, made = sampled()
    game, model = toy(memory=True, auxiliary=True)
    net = state.params["net"]
    here = {"net": net, "bank": remembering(model, (1.0, -0.5, -0.7))}
    other = {"net": net, "bank": remembering(model, (-1.0, 0.1, 0.7))}
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 2))

    @jax.jit
    def root(params):
        view, observation = play.look(model, params, states)
        return model_search.root(game, model, params, states, view, observation)[0].value

    assert np.abs(root(here) - root(other)).max() > 1e-3
    one = jax.jit(lambda bank: said(model, net, made, bank=bank)[0])
    assert abs(float(one(here["bank"])) - float(one(other["bank"]))) > 1e-4
    assert int(state.params["bank"].count) == model.config.memory_size  # made from the replay


# ---- options ----


@pytest.mark.slow
def test_fresh_searches_replace_policies_of_the_replay(early):
    game, model = toy(memory=True, auxiliary=True)
    state = early[1]
    config = dataclasses.replace(CONFIG, reanalyse=8)
    replay = Replay(CONFIG.replay_length, CONFIG.games, CONFIG.unroll, 0.5, wait=True)
    again = jax.jit(
        lambda ring: train._search_again(
            game, model, config, replay, state.params, ring, jax.random.key(7)
        )
    )(state.replay)
    before, after = state.replay.items, again.items
    changed = np.any(np.asarray(before["weights"]) != np.asarray(after["weights"]), axis=-1)
    assert 1 <= changed.sum() <= 8
    assert np.asarray(after["train_policy"])[changed].all()
    for name in ("state", "action", "view", "done"):
        learners.assert_equal(before[name], after[name])
    weights = np.asarray(after["weights"], np.float32)[changed]
    masks = np.asarray(samples.unpack(game, after["state"]).legal_action_mask)[changed]
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-2)
    assert not weights[~masks].any()


def test_the_batch_grows_with_the_updates():
    sizes = [int(train._batch_size(CONFIG, jnp.int32(u))) for u in (0, 1, 2, 4, 100)]
    assert sizes == [16, 20, 24, 32, 32]
    assert train._batch_size(dataclasses.replace(CONFIG, batch_end=0), jnp.int32(3)) is None


def test_simulations_follow_the_phase_of_the_game():
    phases = dict(phase_plies=(10, 40), phase_simulations=(3, 9, 5))
    config = dataclasses.replace(CONFIG, **phases, fast_simulations=2)
    for ply, want in ((0, 3), (9, 3), (10, 9), (39, 9), (40, 5)):
        index, numbers = train._budget(config, jax.random.key(0), jnp.full(4, ply))
        assert numbers[int(index)] == want
    index, numbers = train._budget(
        dataclasses.replace(config, full_share=1e-9), jax.random.key(0), jnp.zeros(4)
    )
    assert numbers == [3, 9, 5, 2] and numbers[int(index)] == 2


def test_priorities_follow_the_error_of_the_value(early):
    ring = early[1].replay
    priority = np.asarray(ring.priority)[np.asarray(ring.game) >= 0]
    assert len(np.unique(priority)) > 20 and priority.min() >= 1e-3


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("games", dict(games=0)),
        ("full_share", dict(full_share=0.0)),
        ("discount", dict(discount=0.9)),
        ("dynamics", dict(dynamics="guessed")),
        ("batch_end", dict(batch_size=64, batch_end=32)),
        ("phase_plies", dict(phase_plies=(4, 4), phase_simulations=(1, 2, 3))),
        ("phase_simulations", dict(phase_plies=(4,), phase_simulations=(1,))),
        ("search", dict(search=SearchConfig(num_worlds=2))),
        ("replay_length", dict(replay_length=8, unroll=5, td_steps=5, steps=4)),
        ("learn_after", dict(learn_after=10**9)),
        ("unroll", dict(unroll=0)),
        ("td_steps", dict(td_steps=3, teacher="threat", teacher_updates=1)),
        ("priority_beta", dict(priority_beta=2.0)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        muzero.Config(**options)


def test_bad_weights_are_named():
    with pytest.raises(ValueError, match="^consistency: "):
        Weights(consistency=float("nan"))


def test_learned_dynamics_need_rewards():
    game, model = toy(reward=False)
    config = dataclasses.replace(CONFIG, dynamics="learned")
    with pytest.raises(ValueError, match="^muzero_network.reward: "):
        muzero.make(game, model, config)


@pytest.mark.slow
def test_learned_dynamics_and_bootstraps_run():
    """Pure MuZero with n-step targets, in the crop of a larger board, with a focus head."""
    game, model = board(8, view=5, focus=True)
    config = dataclasses.replace(
        CONFIG, dynamics="learned", td_steps=2, discount=0.97, reanalyse=4,
        batch_end=0, chunk_updates=1, paranoid=True, full_share=0.5,
        fast_simulations=2,
    )  # fmt: skip
    learner = muzero.make(game, model, config)
    state = learner.init(jax.random.key(0))
    for _ in range(2):
        state, metrics = learner.run_chunk(state)
    assert metrics["loss/focus"] > 0 and metrics["loss/reward"] > 0
    assert metrics["optim/nan_skips"] == 0 and metrics["selfplay/illegal"] == 0
    assert int(state.opt_state.count) == 2 * config.learn_steps
    assert isinstance(state.actor, selfplay.Actor)


def test_runs_at_the_end_are_relative_to_the_win_length():
    """Defect 9; the view's cells, the mover's seat first."""
    game = core.make("eight_in_a_row", rows=8, cols=8, win_length=4)
    state = game.init(jax.random.key(0))
    for action in (0, 16, 40, 1, 24, 42, 2, 18, 44, 3):  # seat 0: four in the first row
        state = step(state, action)
    assert bool(state.done)
    viewer = game.viewer(5)
    view = jax.jit(viewer.focus)(game.init(jax.random.key(0)))
    view = dataclasses.replace(view, corner=jnp.zeros_like(view.corner))
    seen = np.asarray(jax.jit(viewer.ending)(state, jnp.int32(2), view))  # seats 2, 0, 1
    assert seen.shape == (5, 5, 3, 4)
    np.testing.assert_array_equal(seen[0, :, 1], [[1] * 4] * 4 + [[0] * 4])
    np.testing.assert_array_equal(seen[2, 0, 2], [1, 1, 0, 0])  # seat 1: two in a column
    np.testing.assert_array_equal(seen[2, 2, 2], [1, 0, 0, 0])  # and one alone
    whole = np.asarray(jax.jit(game.viewer().ending)(state, jnp.int32(2), ()))
    np.testing.assert_array_equal(whole[:5, :5], seen)
    assert whole[5, 0, 0, 0] == 1  # seat 2


def test_a_sessions_last_board_is_no_end_of_its_earlier_games():
    game = core.make("eight_in_a_row", rows=8, cols=8, win_length=4, unit="session")
    state = game.init(jax.random.key(0))
    for viewer in (game.viewer(), game.viewer(5)):
        assert viewer.ending(state, jnp.int32(0), None) is None
