"""One network for boards of every size: what it sees through a crop does not tell them apart."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import agents, bundle, muzero
from algorithms.muzero import brain, model_search, play
from algorithms.networks.muzero import patterns
from algorithms.networks.muzero.config import PRESETS
from experiments.cli import main
from jaxgames import core
from jaxgames.eight_in_a_row.view import View
from tests.jaxgames.eight_in_a_row.poses import pose, random_cells

#: Everything that a crop could get wrong.
NETWORK = dataclasses.replace(
    PRESETS["tiny"], stones=True, line_length=8, patterns=True, pattern_table=64, pattern_width=4,
    focus=True, focus_width=4, auxiliary=True,
)  # fmt: skip
SIZE = 12
#: The same board of 12 x 12, five in a row: alone, and as data in a larger array.
ALONE = dict(rows=SIZE, cols=SIZE, win_length=5)
INSIDE = {**ALONE, "bucket": 30}
#: Programs that run once: half the time to compile, and slower.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def built(view=21, **options):
    game = core.make("eight_in_a_row", **options)
    return game, muzero.model(game, view, NETWORK)


def drawn(model, seed=1):
    """Some weights, whatever a fresh network's would be."""
    rng = np.random.default_rng(seed)
    draw = lambda x: jnp.asarray(rng.normal(size=x.shape) * 0.1, jnp.float32)  # noqa: E731
    return jax.tree.map(draw, brain.shapes(model))


def seen(game, viewer, rows, seed=3):
    """(observation, legal) of a made up position on `rows` x `rows` cells."""
    start = game.init(jax.random.key(0))
    cells = random_cells(np.random.default_rng(seed), rows, rows, fill=0.4)
    whole = np.full(start.cells.shape, -1, np.int8)
    whole[:rows, :rows] = cells
    last = [int(np.argwhere(cells == s + 1)[3] @ (whole.shape[1], 1)) for s in range(3)]
    state = pose(start, whole, 1, last)

    @jit
    def look(state):
        view = viewer.focus(state)
        return viewer.observe(state, jnp.int32(1), view), viewer.legal(state, view)

    return look(state)


def test_weights_of_one_bucket_speak_in_another():
    """No weight has a size of the board; the same position looks alike and gets the same answer,
    alone and in a larger array."""
    looks = [seen(game, model.viewer, SIZE) for game, model in
             (built(**ALONE), built(**INSIDE))]  # fmt: skip
    assert looks[0][1].sum() > 40
    jax.tree.map(np.testing.assert_array_equal, *looks)

    large = built(rows=30, cols=30, win_length=6, bucket=30)
    models = [built(**ALONE)[1], built(**INSIDE)[1], large[1]]
    shapes = [brain.shapes(model) for model in models]
    assert shapes[0] == shapes[1] == shapes[2]
    weights = drawn(models[0])
    answers = []
    for model, look in ((models[0], looks[0]), (models[2], seen(large[0], large[1].viewer, 30))):

        def speak(observation, model=model):
            latent = model.represent(weights, observation)
            latent, _ = model.dynamics(weights, latent, jnp.array([450]))
            return model.predict(weights, latent).logits, model.heat(weights, observation)

        answers.append(jit(speak)(jax.tree.map(lambda x: x[None], look[0])))
    assert [x.shape for x in answers[0]] == [x.shape for x in answers[1]]
    assert np.abs(answers[0][0] - answers[1][0]).max() > 1e-4


def test_lines_go_on_beyond_the_crop():
    """Patterns of a crop's cells are those of the same cells on the whole board."""
    game, model = built(view=7, rows=30, cols=30, win_length=5)
    cells = random_cells(np.random.default_rng(0), 30, 30, fill=0.4)
    state = pose(game.init(jax.random.key(0)), cells, 2)
    viewer = model.viewer
    look = jit(viewer.observe)
    index = jit(patterns.places, static_argnums=(1, 2, 3, 4))
    for corner in ((11, 12), (0, 23)):
        view = View(jnp.array(corner, jnp.int16), jnp.full(16, -1), jnp.zeros((16, 3), jnp.int8))
        observation = look(state, jnp.int32(2), view)
        around = observation["around"][None]
        got = np.asarray(index(around, 3, 8, (61, 59), 7))
        code = np.where(cells == 0, 3, (cells - 3) % 3)[None]
        whole = np.asarray(index(jnp.asarray(code), 3, 8, (61, 59), 0))
        row, col = corner
        np.testing.assert_array_equal(got, whole[:, row : row + 7, col : col + 7])
        alone = index(around[:, 7:-7, 7:-7], 3, 8, (61, 59), 0)
        assert np.mean(np.asarray(alone) != got) > 0.2  # the crop's border is no edge


def test_a_line_that_leaves_the_view_ends_at_the_networks_judgement():
    """A held view may run out of cells: the tree neither forfeits nor goes on there."""
    game, model = built(view=3, rows=9, cols=9, win_length=8)
    cells = random_cells(np.random.default_rng(1), 9, 9, fill=0.0)
    cells[3:6, 3:6] = [[1, 2, 1], [2, 0, 2], [1, 2, 0]]
    state = pose(game.init(jax.random.key(0)), cells, 0)
    states = jax.tree.map(lambda x: x[None], state)
    viewer = model.viewer
    corner = jnp.array([3, 3], jnp.int16)
    view = View(corner, jnp.full(16, -1, jnp.int32), jnp.zeros((16, 3), jnp.int8))
    views = jax.tree.map(lambda x: x[None], view)
    weights = drawn(model)
    step = jit(functools.partial(model_search.rules_fn(game, model, views, 0.9), weights))
    key, embedding = jax.random.key(0), (jnp.ones((1, *model.latent_shape)), states)
    first, embedding = step(key, jnp.array([4]), embedding)
    assert float(first.discount[0]) == np.float32(0.9) and not np.any(first.reward)
    last, (_, states) = step(key, jnp.array([8]), embedding)
    assert not bool(states.done[0]) and not bool(viewer.legal(states_of(states), view).any())
    assert float(last.discount[0]) == 0.0
    np.testing.assert_allclose(last.reward, 0.9 * last.value, rtol=1e-6)
    assert np.all(last.prior_logits > -1e8)


def states_of(states):
    return jax.tree.map(lambda x: x[0], states)


# ---- bundles ----


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Bundles of fresh weights: through a crop of 5 x 5, and of a whole small board."""
    root = tmp_path_factory.mktemp("bundles")
    network = dataclasses.replace(PRESETS["tiny"], stones=True)
    for name, view, options in (
        ("crop", 5, dict(rows=7, cols=7, win_length=4)),
        ("whole", 0, dict(rows=7, cols=7, win_length=4)),
        ("large", 0, dict(rows=30, cols=30, win_length=6)),
    ):
        game = core.make("eight_in_a_row", **options)
        model = muzero.model(game, view, network)
        about = muzero.describe(play.Thinking(), model.viewer.size)
        meta = bundle.describe(game, agent="muzero", network=network, **about)
        bundle.save(root / name, drawn(model), meta)
    return root


BOARDS = (
    dict(rows=5, cols=5, win_length=3),
    dict(rows=9, cols=12, win_length=5, bucket=12),
    dict(rows=40, cols=40, win_length=7),
)


@pytest.mark.parametrize("options", BOARDS, ids=str)
def test_a_bundle_of_a_crop_fits_every_board(folder, options):
    game = core.make("eight_in_a_row", **options)
    seat = agents.from_spec(f"{folder}/crop:sims=4", game)
    model = muzero.model(game, 5, dataclasses.replace(PRESETS["tiny"], stones=True))
    assert set(muzero.weights(f"{folder}/crop", model)) == set(seat.params)


def test_a_large_boards_own_view_is_a_crop_on_a_small_board(folder):
    meta = bundle.read_meta(folder / "large")
    assert meta["view"] == 21 and meta["num_actions"] == 457
    assert meta["observation"]["board"] == ["int8", [21, 21, 22]]
    bundle.check_game(meta, core.make("eight_in_a_row"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(rows=9, cols=9, win_length=4), r"trained with other rules \(rows, cols\)"),
        (dict(rows=7, cols=7, win_length=3), r"trained with other rules \(win_length\)"),
        (dict(rows=7, cols=7, win_length=4, bucket=9), r"trained with other rules \(bucket\)"),
        (dict(rows=30, cols=30, win_length=4), "chooses among 49 actions, in this game it would"),
    ],
)
def test_a_bundle_of_a_whole_board_fits_that_board(folder, options, message):
    with pytest.raises(bundle.BundleError, match=message):
        agents.from_spec(f"{folder}/whole", core.make("eight_in_a_row", **options))


def test_what_is_played_for_binds_a_crop_too(folder):
    game = core.make("eight_in_a_row", rows=7, cols=7, win_length=4, profile="classic")
    with pytest.raises(bundle.BundleError, match=r"other rules \(profile\)"):
        agents.from_spec(f"{folder}/crop", game)


@pytest.mark.slow
def test_evaluate_plays_a_bundle_on_another_board(folder, capsys):
    texts = [f"game.options.{text}" for text in ("rows=4", "cols=5", "win_length=3", "bucket=6")]
    command = ["evaluate", "game=eight_in_a_row", *texts, f"eval.agent='{folder}/crop:net'"]
    assert main([*command, "eval.opponent=random", "eval.pairs=1", "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["games"] == 6 and report["illegal"] == 0
