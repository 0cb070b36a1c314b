"""Behaviour cloning on toys: it copies, what is kept for validation stays out, exact figures."""

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import agents, arena, imitation, networks, optim, selfplay
from algorithms.imitation import sources, teachers, train
from algorithms.imitation.loss import BINS, Batch, calibration, loss, validation
from algorithms.learner import finish
from jaxgames import core
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)

CLONE = imitation.Config(
    teacher="first",
    games=32,
    steps=8,
    random_share=0.4,
    replay_length=32,
    learn_after=128,
    validation_share=0.25,
    validation_batch=128,
    batch_size=128,
    micro_batch=128,
    learn_steps=4,
    chunk_updates=10,
    optim=optim.OptimConfig(learning_rate=3e-3, warmup_steps=20),
)

KEY = jax.eval_shape(jax.random.key, 0)


@pytest.fixture(scope="module")
def learner():
    return imitation.make(*learners.dense_toy(), CLONE)


@pytest.fixture(scope="module")
def early(learner):
    return learners.two_chunks(learner)


# ---- learning ----


def test_copies_its_teacher(learner, early):
    """After some chunks it plays as its teacher does, also in positions nobody taught it, and
    knows what they are worth."""
    game, model = learners.dense_toy()
    state = learners.copy(early[1])
    for _ in range(8):
        state, metrics = learner.run_chunk(state)
    assert metrics["val/policy/top1_agree_choice"] > 0.97
    assert metrics["val/loss/bc"] < 0.2
    assert metrics["val/calibration"] < 0.06
    assert metrics["val/value/explained_var"] > 0.1  # a random move decides many games
    own = agents.Seat(agents.network_agent(game, model), state.params)
    bot = agents.Seat(agents.bot_agent(game, "first"))
    rate = arena.evaluate_paired(game, own, bot, 8, 0).winrate
    assert rate.mean == 0.5  # the same moves from both sides
    assert learner.compiled() == (1, 0)


def test_resumes_exactly(learner, early):
    again, metrics = learner.run_chunk(learners.copy(early[0]))
    learners.assert_equal(again, early[1])
    learners.assert_equal(metrics, early[2])


def test_metrics_and_counters(early):
    _, state, metrics = early
    names = ["loss/bc", "loss/value", "loss/total", "policy/top1_agree", "policy/entropy",
             "policy/top1_agree_choice", "policy/entropy_share", "value/explained_var"]  # fmt: skip
    names += [f"val/{name}" for name in names]
    names += [f"val/bin{i}/{what}" for i in range(BINS) for what in ("accuracy", "confidence")]
    names += ["val/calibration", "replay/size", "optim/grad_norm", "selfplay/length_mean"]
    for name in names:
        assert metrics[name].shape == () and np.isfinite(metrics[name]), name
    assert int(state.updates) == 20 and int(state.env_steps) == 20 * 32 * 8
    assert int(state.games) > 500 and metrics["selfplay/illegal"] == 0
    assert int(state.opt_state.count) <= 20 * 4


def test_begins_with_given_weights(learner, early):
    given = learners.copy(early[1].params)
    state = learner.init(jax.random.key(3), given)
    learners.assert_equal(state.params, early[1].params)
    fresh = learner.init(jax.random.key(3))
    learners.assert_equal(
        dataclasses.replace(state, params=()), dataclasses.replace(fresh, params=())
    )


def test_the_network_may_play_while_its_teacher_teaches():
    """Half of the moves are the network's, here the last free cell; the labels stay the bot's."""
    game, _ = learners.dense_toy()
    bot = imitation.teacher(game, "first", 0.0)
    choose = teachers.mixed(game, Last(), bot, 0.5, None)
    actor = selfplay.start(game, jax.random.key(0), 64, 0)

    @jax.jit
    def run(key):
        return selfplay.play(game, choose, key, actor, 8, 0)[1]

    played = run(jax.random.key(1))
    legal = np.asarray(played.state.legal_action_mask)
    first, last = legal.argmax(-1), 8 - legal[..., ::-1].argmax(-1)
    np.testing.assert_array_equal(played.note, first)
    action = np.asarray(played.action)
    assert ((action == first) | (action == last)).all()
    assert abs((action == last)[first != last].mean() - 0.5) < 0.1


class Last(learners.Stub):
    """A model that prefers the last cell."""

    def apply(self, params, observation):
        rows = observation["board"].shape[0]
        logits = jnp.broadcast_to(jnp.arange(9.0), (rows, 9))
        return networks.Outputs(logits, jnp.zeros((rows, 2)), None)


# ---- validation by match ----


def spoilt(state, ring):
    """`state` with wrong labels and outcomes in one of its rings."""
    old = state.replay[ring]
    items = dict(old.items, action=jnp.zeros_like(old.items["action"]) + 8)
    bad = dataclasses.replace(old, items=items, results=old.results * jnp.nan)
    return dataclasses.replace(state, replay={**state.replay, ring: bad})


def test_validation_gives_no_gradient(learner, early):
    """Whatever is in its ring, the weights come out the same to the bit; not so the other's."""
    first, second, metrics = early
    after, seen = learner.run_chunk(spoilt(learners.copy(first), "validation"))
    learners.assert_equal(after.params, second.params)
    learners.assert_equal(after.opt_state, second.opt_state)
    assert not np.isfinite(seen["val/loss/value"]) and seen["loss/bc"] == metrics["loss/bc"]
    after, _ = learner.run_chunk(spoilt(learners.copy(first), "learn"))
    assert int(after.nan_skips) > 0


def test_games_for_validation_never_change_sides():
    """The rings hold other games, row by row, in every update."""
    source = train._source(*learners.dense_toy(), CLONE)
    replay, actor = jax.jit(source.start)(jax.random.key(0))
    replay, _, moves, games, _ = jax.jit(source.gather)(jax.random.key(1), (), replay, actor)
    assert replay["learn"].game.shape == (32, 24) and replay["validation"].game.shape == (32, 8)
    assert int(moves) == 256 and int(games) == sum(int(r.current.sum()) for r in replay.values())


def test_without_validation_all_games_are_learnt_from():
    config = dataclasses.replace(CLONE, validation_share=0.0, chunk_updates=3)
    learner = imitation.make(*learners.dense_toy(), config)
    state, metrics = jax.eval_shape(lambda key: learner.run_chunk(learner.init(key)), KEY)
    assert not any(name.startswith("val/") for name in metrics)
    assert state.replay["learn"].game.shape[1] == 32


# ---- logs ----


class Noted(learners.Toy):
    """Tic-tac-toe whose logs are files of moves, one game each."""

    def read_logs(self, path):
        step = core.jit_step(self)
        for file in sorted(pathlib.Path(path).iterdir()):
            moves = [int(move) for move in file.read_text()]
            states = [self.init(jax.random.key(0))]
            for move in moves:
                states.append(step(states[-1], np.int32(move), jax.random.key(0)))
            befores = jax.tree.map(lambda *xs: np.stack(xs), *states[:-1])
            outcome = np.tile(states[-1].rewards, (len(moves), 1))
            yield core.Logged(str(file), befores, np.array(moves, np.int32), outcome)


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    """A folder with ten games: cells in order, from another one on in each; 7 or 8 or 9 moves."""
    folder = tmp_path_factory.mktemp("logs")
    for game in range(10):
        later = [cell for cell in range(9) if cell != game % 9]
        moves = [game % 9, *later]
        (folder / f"match{game}").write_text("".join(map(str, moves[: _length(moves)])))
    return folder


def _length(moves):
    """After how many of these moves tic-tac-toe is over."""
    lines = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}]
    ends = (n for n in range(1, 9) if any(x <= set(moves[:n][n % 2 - 1 :: -2]) for x in lines))
    return next(ends, 9)


@pytest.fixture(scope="module")
def reader(noted):
    """The learner of those games, 40 % of them for validation, and a state."""
    with jax.debug_key_reuse(False):
        game = Noted(learners.dense_toy()[0].rules)
        model = networks.build(game, learners.dense_toy()[1].config)
        config = dataclasses.replace(
            CLONE, data=str(noted), validation_share=0.4, teacher="", chunk_updates=30
        )
        source = train._source(game, model, config)
    learner = imitation.make(game, model, config)
    return learner, source, learner.init(jax.random.key(0))


def test_logs_are_learnt_by_heart(reader):
    learner, source, state = reader
    state, metrics = learner.run_chunk(learners.copy(state))
    for _ in range(2):
        state, metrics = learner.run_chunk(state)
    assert metrics["policy/top1_agree_choice"] > 0.85  # two games may begin alike
    assert metrics["replay/size"] == len(source.data["learn"].action)
    assert int(state.env_steps) == 0 and int(state.opt_state.count) == 3 * 30 * 4


def test_files_are_split_by_their_names(noted, reader):
    _, source, _ = reader
    names = [path.name for path in noted.iterdir()]
    out = {name for name in names if sources.held_out(f"elsewhere/{name}", 0.4)}
    assert 0 < len(out) < 10
    amount = lambda some: sum(len((noted / name).read_text()) for name in some)  # noqa: E731
    assert len(source.data["validation"].action) == amount(out)
    assert len(source.data["learn"].action) == amount(set(names) - out)
    shares = [np.mean([sources.held_out(f"{n}.jsonl", 0.25) for n in range(4000)])]
    np.testing.assert_allclose(shares, 0.25, atol=0.03)


def test_logged_outcomes_are_the_movers(noted, reader):
    """The winner's decisions are worth 1 to its team, whoever moves."""
    _, source, _ = reader
    game, model = learners.dense_toy()
    noted_toy = (Noted(game.rules), model)
    for part in source.data.values():
        batch = jax.jit(functools.partial(train._batch, *noted_toy))(part)
        np.testing.assert_allclose(batch.target.sum(-1), 0.0, atol=1e-6)
        mover = np.asarray(part.state.current_player)
        won = np.take_along_axis(np.asarray(part.outcome), mover[:, None], 1)[:, 0]
        np.testing.assert_array_equal(batch.target[:, 0], won)


def test_logs_for_validation_give_no_gradient(reader):
    """Other labels and outcomes there: the weights come out the same to the bit."""
    learner, source, state = reader
    (compiled,) = {learner.run_chunk.func}
    wrong = lambda d: dataclasses.replace(d, action=d.action * 0 + 8, outcome=d.outcome * jnp.nan)  # noqa: E731
    data = source.data
    want, _ = compiled(data, learners.copy(state))
    got, seen = compiled({**data, "validation": wrong(data["validation"])}, learners.copy(state))
    learners.assert_equal(got.params, want.params)
    assert not np.isfinite(seen["val/loss/value"]) and np.isfinite(seen["loss/value"])
    got, _ = compiled({**data, "learn": wrong(data["learn"])}, learners.copy(state))
    assert int(got.nan_skips) > 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (dict(data="nowhere"), "^data: .*nowhere"),
        (dict(validation_share=1e-6), "^validation_share: leaves no decision of the 10 logs"),
    ],
)
def test_logs_that_do_not_serve_are_named(noted, options, why):
    game = Noted(learners.dense_toy()[0].rules)
    config = dataclasses.replace(CLONE, **(dict(data=str(noted)) | options))
    with pytest.raises(ValueError, match=why):
        imitation.make(game, networks.build(game, learners.dense_toy()[1].config), config)
    with pytest.raises(ValueError, match="^data: mnk has no logs"):
        imitation.make(*learners.dense_toy(), config)


# ---- positions kept small ----


def test_packed_positions_come_back():
    game, _ = learners.dense_toy()
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 3))
    states = jax.vmap(game.step, (0, 0, None))(states, jnp.arange(3), jax.random.key(1))
    packed = sources.pack(states)
    assert packed.legal_action_mask.shape == (3, 2)
    learners.assert_equal(sources.unpack(packed), states)


# ---- the loss ----


class Said:
    """A model whose outputs are its weights."""

    def apply(self, params, observation):
        del observation
        return networks.Outputs(params[0], params[1], None)


def by_hand():
    """Two decisions: probabilities 1/2, 1/4, 1/4 over three legal actions; one legal action."""
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25, 0.9], [0.1, 0.2, 0.3, 0.4]]))
    value = jnp.array([[0.5, -0.5], [0.0, 0.0]])
    legal = jnp.array([[True, True, True, False], [False, True, False, False]])
    batch = Batch(None, legal, jnp.array([1, 1]), jnp.array([[1.0, -1.0], [0.5, -0.5]]))
    return (logits, value), batch


def test_loss_by_hand():
    params, batch = by_hand()
    total, metrics = loss(Said(), params, batch, 0.3, 2.0)
    even = (np.log(2) + 2 * np.log(4)) / 3
    cross = 0.7 * np.log(4) + 0.3 * even
    assert float(total) == pytest.approx((cross + 2 * 0.25 + 2 * 0.25) / 2, rel=1e-5)
    values = {name: float(x) for name, x in finish(metrics).items()}
    assert values["loss/bc"] == pytest.approx(np.log(4), rel=1e-5)
    assert values["loss/value"] == pytest.approx(0.25)
    assert values["policy/top1_agree"] == 0.5 and values["policy/top1_agree_choice"] == 0.0
    assert values["policy/entropy"] == pytest.approx(1.5 * np.log(2), rel=1e-5)
    assert values["policy/entropy_share"] == pytest.approx(1.5 * np.log(2) / np.log(3), rel=1e-5)


def test_no_choice_no_gradient():
    params, batch = by_hand()
    for smoothing in (0.0, 0.3):
        grads = jax.grad(lambda p, s=smoothing: loss(Said(), p, batch, s, 1.0)[0])(params)
        assert not grads[0][1].any() and grads[0][0, :3].all() and grads[0][0, 3] == 0
        assert grads[1].any(-1).all()


def test_calibration_by_hand():
    """Four decisions in two bins: 0.55 twice, right once; 0.95 twice, always right."""
    top = np.array([0.55, 0.55, 0.95, 0.95, 0.95])
    logits = jnp.log(jnp.stack([top, 1 - top, np.zeros(5)], axis=-1))
    legal = jnp.array([[True, True, False]] * 4 + [[True, False, False]])
    batch = Batch(None, legal, jnp.array([0, 1, 0, 0, 0]), jnp.zeros((5, 2)))
    values = finish(validation(Said(), (logits, jnp.zeros((5, 2))), batch, 0.0, 1.0))
    assert [float(values[f"val/bin{i}/decisions"]) for i in (4, 5, 9)] == [0, 2, 2]
    assert float(values["val/bin5/accuracy"]) == 0.5 and float(values["val/bin9/accuracy"]) == 1.0
    assert float(values["val/bin5/confidence"]) == pytest.approx(0.55)
    assert float(calibration(values)) == pytest.approx((0.05 * 2 + 0.05 * 2) / 4, abs=1e-6)


# ---- settings ----


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("games", dict(games=0)),
        ("smoothing", dict(smoothing=1.5)),
        ("own_share", dict(own_share=-0.1)),
        ("validation_share", dict(games=8, validation_share=0.1)),
        ("validation_share", dict(validation_share=1.0)),
        ("replay_length", dict(steps=20, replay_length=10)),
        ("learn_after", dict(games=4, replay_length=16, validation_share=0.5, learn_after=33)),
        ("value_weight", dict(value_weight=float("nan"))),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        imitation.Config(**options)


def test_a_teacher_that_the_game_does_not_have_is_named():
    with pytest.raises(ValueError, match="^teacher: unknown name 'frist'; did you mean first"):
        imitation.make(*learners.dense_toy(), dataclasses.replace(CLONE, teacher="frist"))
