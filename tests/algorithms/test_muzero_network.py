import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from algorithms.networks import muzero
from algorithms.networks.muzero import attention, config, costs, value
from algorithms.networks.muzero.grid import Grid
from jaxgames import core, view
from tests.toys import mnk

TINY = config.PRESETS["tiny"]
#: Everything on.
FULL = dataclasses.replace(
    TINY, stones=True, line_length=3, auxiliary=True, memory=True, memory_size=6,
    memory_top=3, memory_heads=2, patterns=True, pattern_table=64, pattern_width=4, focus=True,
    focus_width=4, stem=3,
)  # fmt: skip
BATCH = 3


@functools.cache
def built(network=FULL, crop=5, **rules):
    """(model, params) for a three-seat board seen through a crop (0: whole)."""
    game = core.make("eight_in_a_row", **{"rows": 7, "cols": 8, "win_length": 3, **rules})
    model = muzero.build(game, game.viewer(crop), network)
    return model, called(model, "init")(jax.random.key(1))


def seen(model, seed=0, batch=BATCH):
    """Made up observations: every cell one of the seats' stones or empty, slot 0 not used."""
    rng = np.random.default_rng(seed)
    shapes, seats = model.observation_spec, model.game.num_players
    made = {
        name: rng.normal(size=(batch, *spec.shape)).astype(np.float32) if name == "features"
        else rng.integers(0, 100, (batch, *spec.shape)).astype(np.int8)
        for name, spec in shapes.items()
    }  # fmt: skip
    board = np.zeros((batch, *shapes["board"].shape), np.int8)
    board[..., : seats + 1] = np.eye(seats + 1)[rng.integers(0, seats + 1, board.shape[:3])]
    made["board"] = board
    if "around" in made:
        made["around"] %= seats + 2
    if slots := model.grid.slots:
        width = model.viewer.slot_width
        made["features"][:, -slots * width : -(slots - 1) * width] = 0.0
    return made


#: Programs that run once or twice: half the time to compile, and slower.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def called(model, name):
    return jit(getattr(model, name))


def leaves(tree):
    return {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(tree)}


# ---- the seam ----


def test_shapes_and_bounds():
    model, params = built()
    observation, grid, c = seen(model), model.grid, model.config
    assert (grid.patches, grid.slots, grid.tokens) == (4, 16, 21)
    latent = called(model, "represent")(params, observation)
    assert latent.shape == (BATCH, *model.latent_shape) == (BATCH, 21, c.width)
    rms = np.sqrt(np.mean(np.square(latent), axis=-1))
    assert np.all(rms[:, 4] == 0)  # the slot that is not used
    np.testing.assert_allclose(np.delete(rms, 4, 1), 1, atol=1e-3)

    said = called(model, "predict")(params, latent)
    assert said.logits.shape == (BATCH, model.viewer.num_actions)
    assert said.outcome_logits.shape == (BATCH, 3, len(model.atoms))
    np.testing.assert_allclose(said.value.sum(-1), model.game.reward_sum, atol=1e-6)
    assert said.aux["next_action"].shape == said.logits.shape
    assert said.aux["runs"].shape == (BATCH, 5, 5, 3, 4)
    assert said.aux["plies_left"].shape == (BATCH,)
    # Fresh: nearly no preference, nearly no opinion.
    assert np.std(said.logits) < 0.3 and np.abs(said.outcome_logits).max() < 0.5

    projected = called(model, "project")(params, latent)
    assert projected.shape == (BATCH, grid.tokens * c.projection)
    assert called(model, "forecast")(params, projected).shape == projected.shape
    assert called(model, "heat")(params, observation).shape == (BATCH, 21 * 21)


def test_unrolled_latents_stay_bounded():
    model, params = built()
    latent = called(model, "represent")(params, seen(model))
    for i in range(20):
        latent, reward = called(model, "dynamics")(params, latent, jnp.arange(BATCH) + i)
    rms = np.sqrt(np.mean(np.square(latent), axis=-1))
    assert np.all(rms[:, 4] == 0)
    np.testing.assert_allclose(np.delete(rms, 4, 1), 1, atol=1e-3)
    assert reward.shape == (BATCH, 3)


def test_the_same_key_makes_the_same_network():
    model, params = built()
    again, other = (called(model, "init")(jax.random.key(i)) for i in (1, 2))
    jax.tree.map(np.testing.assert_array_equal, params, again)
    different = leaves(jax.tree.map(lambda a, b: np.any(a != b), params, other))
    # All but what starts at zero: biases, norms, and how much likeness counts.
    zero = ("['bias']", "['weight']", "['likeness']")
    assert all(x != name.endswith(zero) for name, x in different.items())
    assert hash(model) == hash(dataclasses.replace(model))
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(params))
    assert model.num_params() == sum(x.size for x in jax.tree.leaves(params))


def everything(model, params, observation, bank=None):
    """One number that depends on every output."""
    latent = model.represent(params, observation, bank)
    after, reward = model.dynamics(params, latent, jnp.array([0, 7, model.viewer.num_actions - 1]))
    outputs = [model.predict(params, after), reward]
    if model.config.consistency:
        outputs.append(model.forecast(params, model.project(params, after)))
    outputs.append(model.heat(params, observation))
    mixed = [
        jnp.sum(x * np.random.default_rng(x.size).normal(size=x.shape))
        for x in jax.tree.leaves(outputs)
    ]
    return sum(mixed)


@pytest.mark.parametrize(
    ("network", "crop"),
    [
        (FULL, 5),
        pytest.param(dataclasses.replace(TINY, attention="plain"), 0, marks=pytest.mark.slow),
    ],
)
def test_every_weight_learns(network, crop):
    model, params = built(network, crop)
    bank = None
    if model.reads_bank:
        latent = called(model, "represent")(params, seen(model, 5))
        entries = model.bank_entry(latent, jnp.array(np.eye(3), jnp.float32), 1.0)
        bank = muzero.add(model.empty_bank(), entries, jnp.ones(3, bool))
    grad = jit(jax.grad(functools.partial(everything, model)))(params, seen(model), bank)
    for name, g in leaves(grad).items():
        assert np.all(np.isfinite(g)) and np.any(g != 0), name


SWITCHES = {
    "reward": {"rewards"}, "consistency": {"consistency"}, "auxiliary": {"auxiliary"},
    "memory": {"memory"}, "patterns": {"patterns"}, "focus": {"focus"},
}  # fmt: skip


@pytest.mark.parametrize("switch", SWITCHES)
def test_switches_take_their_weights_away(switch):
    names = {}
    for on in (True, False):
        network = dataclasses.replace(FULL, **{switch: on})
        model = dataclasses.replace(built()[0], config=network)
        names[on] = set(jax.eval_shape(model.init, jax.random.key(0)))
    assert names[True] - names[False] == SWITCHES[switch]
    assert names[False] < names[True]


def test_switches_change_what_is_said():
    """The same weights without patterns, and another attention, say something else."""
    model, params = built()
    observation = seen(model)
    latent = called(model, "represent")(params, observation)
    bare = dataclasses.replace(model, config=dataclasses.replace(FULL, patterns=False))
    without = {name: x for name, x in params.items() if name != "patterns"}
    assert not np.allclose(jit(bare.represent)(without, observation), latent, atol=1e-3)
    silent = dataclasses.replace(model, config=dataclasses.replace(FULL, reward=False, focus=False))
    assert jax.eval_shape(silent.dynamics, _only(silent), latent, jnp.zeros(BATCH, int))[1] is None
    assert silent.heat(params, observation) is None
    with pytest.raises(ValueError, match="memory"):
        dataclasses.replace(model, config=TINY).represent(params, observation, model.empty_bank())


def _only(model):
    return jax.eval_shape(model.init, jax.random.key(0))


def test_merged_is_the_same_function():
    model, params = built()
    merged = dataclasses.replace(model, config=dataclasses.replace(FULL, merged=True))
    observation = seen(model)
    a = called(model, "represent")(params, observation)
    np.testing.assert_allclose(jit(merged.represent)(params, observation), a, atol=1e-4)


# ---- what must not matter ----


def test_cells_off_the_board_do_not_matter():
    """A board alone, and as the corner of a larger array that is otherwise off the board."""
    network = dataclasses.replace(TINY, stones=True, reward=False, consistency=False)
    small, params = built(network, 0, rows=6, cols=6, bucket=6)
    large, large_params = built(network, 0, rows=6, cols=6, bucket=9)
    size_free = {k: v for k, v in params.items() if k != "step"}
    large_params = {**large_params, **size_free}
    observation = seen(small)
    board = np.zeros((BATCH, 9, 9, observation["board"].shape[-1]), np.int8)
    board[:, :6, :6] = observation["board"]
    board[:, 6:, :, 4:] = 1  # whatever stands in planes that are not stones
    latent = called(small, "represent")(params, observation)
    wide = called(large, "represent")(large_params, {**observation, "board": board})
    patches = np.arange(9).reshape(3, 3)
    there = patches[:2, :2].ravel()
    np.testing.assert_allclose(wide[:, there], latent[:, :4], atol=1e-5)
    np.testing.assert_allclose(wide[:, -1], latent[:, -1], atol=1e-5)
    assert np.all(np.delete(wide, [*there, 9], axis=1) == 0)
    a = called(small, "predict")(params, latent)
    b = called(large, "predict")(large_params, wide)
    np.testing.assert_allclose(b.value, a.value, atol=1e-5)
    logits = np.asarray(b.logits).reshape(BATCH, 9, 9)[:, :6, :6]
    np.testing.assert_allclose(logits.reshape(BATCH, -1), a.logits, atol=1e-5)
    after, _ = called(large, "dynamics")(large_params, wide, jnp.array([0, 10, 20]))
    assert np.all(np.delete(after, [*there, 9], axis=1) == 0)


def test_each_action_leads_elsewhere():
    model, params = built()
    latent = called(model, "represent")(params, seen(model))[:1]
    actions = jnp.arange(model.viewer.num_actions)
    after, _ = called(model, "dynamics")(
        params, jnp.broadcast_to(latent, (len(actions), *latent.shape[1:])), actions
    )
    apart = np.abs(np.asarray(after)[:, None] - np.asarray(after)[None]).max((-1, -2))
    apart[np.diag_indices(len(actions))] = 1.0
    assert apart.min() > 1e-3


def test_positions_of_a_batch_do_not_meet():
    model, params = built()
    observation = seen(model)
    alone = jax.tree.map(lambda x: np.repeat(x[:1], BATCH, 0), observation)
    a = called(model, "represent")(params, observation)[0]
    np.testing.assert_allclose(called(model, "represent")(params, alone)[0], a, atol=1e-5)


# ---- positions ----


def test_rotary_scores_know_differences_only():
    positions = np.stack(np.meshgrid(range(5), range(5), indexing="ij"), -1).reshape(-1, 2)
    turn = attention.rotation(positions, 8)
    q, k = (jax.random.normal(jax.random.key(i), (8,)) for i in (0, 1))
    q, k = (attention.rotate(jnp.broadcast_to(x, (1, 25, 1, 8)), turn)[0, :, 0] for x in (q, k))
    scores = np.asarray(q @ k.T)
    known = {}
    for i, a in enumerate(positions):
        for j, b in enumerate(positions):
            known.setdefault(tuple(b - a), []).append(scores[i, j])
    assert max(np.ptp(x) for x in known.values()) < 1e-5
    means = np.sort([np.mean(x) for x in known.values()])
    assert np.diff(means).min() > 1e-6  # and each difference has its own
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), np.linalg.norm(q[0]), rtol=1e-5)


@pytest.mark.parametrize("kind", [attention.Latent, attention.Plain])
def test_attention_is_the_formula(kind):
    """Against loops over heads in numpy, with a token left out."""
    c = dataclasses.replace(TINY, attention="mla" if kind is attention.Latent else "plain")
    grid = Grid(4, 6, 3, 24)
    layer = kind(c, grid.places)
    rng = np.random.default_rng(0)
    drawn = jax.tree.map(lambda x: x * rng.normal(size=x.shape), nnx.state(layer))
    nnx.update(layer, drawn)
    h = jax.random.normal(jax.random.key(1), (1, 5, c.width))
    there = np.array([[True, True, False, True, True]])
    w = {k: np.asarray(v["kernel"]) for k, v in nnx.to_pure_dict(nnx.state(layer)).items()}
    x, d = np.asarray(h[0]), c.width // c.heads

    def turned(y):
        return np.asarray(attention.rotate(y[None, :, None], attention.rotation(grid.places, 4)))[
            0, :, 0
        ]

    out = []
    for g in range(c.heads):
        part = slice(g * d, (g + 1) * d)
        if c.attention == "mla":
            latent, asked = x @ w["down"], x @ w["down_query"]
            q, k = (asked @ w["queries"])[:, part], (latent @ w["keys"])[:, part]
            v = (latent @ w["values"])[:, part]
            qr = turned((asked @ w["turned_queries"])[:, g * 4 : g * 4 + 4])
            kr = turned(x @ w["turned_keys"])
        else:
            q, k = ((x @ w[n])[:, g * (d + 4) : (g + 1) * (d + 4)] for n in ("queries", "keys"))
            q, qr, k, kr = q[:, :d], turned(q[:, d:]), k[:, :d], turned(k[:, d:])
            v = (x @ w["values"])[:, part]
        scores = (q @ k.T + qr @ kr.T) / np.sqrt(d + 4)
        scores[:, 2] = -np.inf
        p = np.exp(scores - scores.max(1, keepdims=True))
        out.append(p / p.sum(1, keepdims=True) @ v)
    want = np.concatenate(out, 1) @ w["out"]
    np.testing.assert_allclose(jit(layer)(h, jnp.array(there))[0], want, atol=1e-5)


# ---- where things are ----


def test_grid():
    grid = Grid(5, 7, 3, 5 * 7 + 2, 2)
    assert (grid.rows, grid.cols, grid.tokens, grid.others) == (2, 3, 9, 0)
    board = np.arange(2 * 5 * 7 * 2).reshape(2, 5, 7, 2)
    cut = grid.cut(board)
    assert np.array_equal(grid.lay(cut), board)
    for action in range(35):
        token, part = grid.action_tokens[action]
        assert cut[1, token, part, 0] == board[1, action // 7, action % 7, 0]
    assert grid.action_tokens[35:].tolist() == [[6, 9], [7, 9]]


def test_ways_are_differences():
    grid = Grid(6, 9, 3, 54 + 2, 2)
    known = {}
    for i in range(grid.patches):
        for j in range(grid.patches):
            known.setdefault(tuple(grid.places[j] - grid.places[i]), set()).add(grid.ways[i, j])
    assert all(len(x) == 1 for x in known.values())
    assert len(set.union(*known.values())) == len(known) == 15
    ways = grid.ways
    assert ways[6, 6] == ways[7, 7] != ways[6, 7] == ways[7, 6] != ways[8, 8]
    assert len({ways[0, 6], ways[6, 0], ways[0, 8], ways[8, 0], ways[6, 8], ways[8, 6]}) == 6


def test_actions_that_are_no_cells():
    assert Grid(6, 7, 3, 7).cells == 0 and Grid(6, 7, 3, 7).others == 7
    assert Grid(6, 7, 3, 50).action_tokens[-1].tolist() == [6, 9 + 1 + 7]
    with pytest.raises(ValueError, match=r"viewer.slots: 0 or all actions that are no cells \(8"):
        Grid(6, 7, 3, 50, 2)


@pytest.mark.parametrize("name", ["sequence", "mnk"])
def test_any_game(name):
    game = core.make(name)
    model = muzero.build(game, view.Whole(game), TINY)
    params = _only(model)
    assert "focus" not in params
    observation = {
        k: jax.ShapeDtypeStruct((2, *x.shape), x.dtype) for k, x in model.observation_spec.items()
    }
    latent = jax.eval_shape(model.represent, params, observation)
    said = jax.eval_shape(model.predict, params, latent)
    assert said.logits.shape == (2, game.num_actions)
    assert said.value.shape == (2, game.num_teams)
    action = jax.ShapeDtypeStruct((2,), jnp.int32)
    assert jax.eval_shape(model.dynamics, params, latent, action)[0].shape == latent.shape
    assert muzero.build(game).config == muzero.MuZeroNetworkConfig()


# ---- values ----


@pytest.mark.parametrize("atoms", [(-1.0, -0.6, -0.2, -1 / 15, 0.4, 1.0), (-1.0, 0.0, 1.0)])
def test_two_hot(atoms):
    exact = muzero.two_hot(jnp.array(atoms, jnp.float32), atoms)
    assert np.array_equal(exact, np.eye(len(atoms)))
    values = np.linspace(-1, 1, 41).astype(np.float32)
    weights = np.asarray(muzero.two_hot(jnp.asarray(values), atoms))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(weights @ np.array(atoms), values, atol=1e-6)
    for row, v in zip(weights, values, strict=True):
        used = np.flatnonzero(row)
        assert len(used) <= 2 and (len(used) < 2 or used[1] == used[0] + 1)
        assert atoms[used[0]] - 1e-6 <= v <= atoms[used[-1]] + 1e-6
    beyond = muzero.two_hot(jnp.array([-7.0, 7.0]), atoms)
    assert np.array_equal(beyond, np.eye(len(atoms))[[0, -1]])
    assert muzero.two_hot(jnp.zeros((2, 3)), atoms).shape == (2, 3, len(atoms))


def test_expected_outcomes():
    atoms = (-1.0, 0.4, 1.0)
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    logits = jnp.asarray(np.log(p + 1e-12), jnp.float32)
    free = muzero.expected(logits, atoms, None)
    np.testing.assert_allclose(free, p @ np.array(atoms), atol=1e-5)
    bound = muzero.expected(logits, atoms, -0.2)
    np.testing.assert_allclose(bound.sum(), -0.2, atol=1e-6)
    np.testing.assert_allclose(np.diff(bound), np.diff(free), atol=1e-6)
    np.testing.assert_allclose(muzero.first_place(logits), [0.5, 0.0, 0.0], atol=1e-6)


def test_atoms_are_the_payoffs_of_places():
    model, _ = built()
    np.testing.assert_allclose(model.atoms, [-1, -0.6, -0.2, -1 / 15, 0.4, 1], atol=1e-6)
    assert len(value.atoms_of(mnk.MNK(mnk.Rules()), 5)) == 5


# ---- sizes ----


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("width", dict(width=10, heads=4)),
        ("rotary", dict(rotary=6)),
        ("layers", dict(layers=0)),
        ("attention", dict(attention="linear")),
        ("merged", dict(attention="plain", merged=True)),
        ("memory_top", dict(memory=True, memory_size=4, memory_top=5)),
        ("memory_heads", dict(memory=True, memory_heads=3)),
        ("patterns", dict(patterns=True, line_length=5)),
        ("line_length", dict(patterns=True, stones=True)),
        ("line_length", dict(auxiliary=True)),
        ("board_scale", dict(board_scale=0.0)),
    ],
)
def test_sizes_that_can_not_be(field, change):
    with pytest.raises(ValueError, match=f"^{field}: "):
        muzero.MuZeroNetworkConfig(**change)


@pytest.mark.slow
def test_dynamics_is_light():
    """It runs in every simulation: well below a quarter of the encoder."""
    for rows in (15, 30):
        game = core.make("eight_in_a_row", rows=rows, cols=rows, win_length=5)
        model = muzero.build(game, game.viewer(), config.PRESETS["small"])
        found = costs.costs(model, batch=2, repeats=0)
        step = found["dynamics"].flops + found["predict"].flops
        assert 0 < found["predict"].flops < found["dynamics"].flops
        assert step < 0.22 * found["represent"].flops


@pytest.mark.slow
def test_table_of_costs():
    names = [line.split()[0] for line in costs.table(built(TINY, 0)[0], batch=1).splitlines()[1:]]
    assert names == ["represent", "predict", "dynamics"]
