import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401  (registers "highcard")
from algorithms import alphazero, dqn, networks
from algorithms.networks import conv
from algorithms.networks.heads import PerAction
from algorithms.networks.model import outcome
from jaxgames import core
from tests.toys import mnk

SMALL = networks.NetworkConfig(channels=8, blocks=1, hidden=12)


@functools.cache
def played(name="mnk", batch=4, **options):
    """(game, model, params, states[batch] some moves into the game)."""
    game = core.make(name, **options)
    model = networks.build(game, SMALL)
    params = jax.jit(model.init)(jax.random.key(1))

    def some_moves(key):
        state = game.init(key)
        for i in range(3):
            move_key, step_key = jax.random.split(jax.random.fold_in(key, i))
            state = game.step(state, core.random_bot(state, move_key), step_key)
        return state

    return (
        game,
        model,
        params,
        jax.jit(jax.vmap(some_moves))(jax.random.split(jax.random.key(2), batch)),
    )


@functools.cache
def forward(game, model):
    """`(params, states[B]) -> Outputs`, compiled."""
    return jax.jit(lambda p, s: model.apply(p, model.observe(s)))


@functools.cache
def applied(name="mnk", batch=4, **options):
    game, model, params, states = played(name, batch, **options)
    return forward(game, model)(params, states)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_gradient_of_the_convolution(size):
    """Against XLA's own gradient; board and channel counts all different."""
    x = jax.random.normal(jax.random.key(0), (3, 5, 6, 4))
    kernel = jax.random.normal(jax.random.key(1), (size, size, 4, 7))

    def grad(convolve):
        return jax.jit(jax.grad(lambda *a: jnp.sin(convolve(*a)).sum(), (0, 1)))(x, kernel)

    ours, theirs = grad(conv.convolve), grad(conv._convolve)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_params_are_a_plain_dict_of_float32():
    _, model, params, _ = played()

    def check(node):
        if isinstance(node, dict):
            for key, child in node.items():
                assert isinstance(key, str)
                check(child)
        else:
            assert isinstance(node, jax.Array) and node.dtype == jnp.float32

    check(params)
    assert model.num_params() == sum(leaf.size for leaf in jax.tree.leaves(params))


def test_equal_architectures_are_equal():
    game, model, _, _ = played()
    assert model == networks.build(game, SMALL)
    assert hash(model) == hash(networks.build(game, SMALL))
    assert model != networks.build(game, networks.NetworkConfig(channels=9, blocks=1, hidden=12))


@pytest.mark.parametrize(
    ("name", "options"),
    [("mnk", dict()), ("mnk", dict(players=3, rows=4, cols=5)), ("sequence", dict(players=3))],
)
def test_shapes_and_sums(name, options):
    game, _, _, _ = played(name, **options)
    outputs = applied(name, **options)
    actions, teams = game.num_actions, game.num_teams
    assert outputs.logits.shape == (4, actions)
    assert outputs.value.shape == (4, teams)
    assert outputs.q.shape == (4, actions, teams)
    for values in (outputs.value, outputs.q):
        assert values.dtype == jnp.float32
        np.testing.assert_allclose(values.sum(-1), game.reward_sum, atol=1e-6)


def test_outcomes_are_bounded_and_centred():
    raw = jnp.array([[5.0, -1.0], [0.3, 0.1]])
    np.testing.assert_allclose(outcome(raw, 0.0).sum(-1), 0.0, atol=1e-6)
    assert (jnp.abs(outcome(raw, 0.0)) <= 1.0).all()
    np.testing.assert_allclose(outcome(raw, 1.0).sum(-1), 1.0, atol=1e-6)
    np.testing.assert_allclose(outcome(raw, None), jnp.tanh(raw))


def test_board_actions_are_plane_row_column_slot():
    """A head that reads one cell moves the logits of exactly that cell's actions."""

    class Layout:
        board_shape, board_actions, action_slots = (3, 4), 2, 5
        num_actions = 2 * 3 * 4 * 5 + 7

    from flax import nnx

    head = PerAction(Layout, 6, 4, 1, rngs=nnx.Rngs(0))
    vector = jax.random.normal(jax.random.key(0), (1, 4))
    x = jax.random.normal(jax.random.key(1), (1, 3, 4, 6))
    changed = head(x, vector) != head(x.at[0, 1, 2].add(1.0), vector)
    on_board = np.asarray(changed[0, :120, 0]).reshape(2, 3, 4, 5)
    assert on_board[:, 1, 2].all()
    assert on_board.sum() == 10 and not changed[0, 120:].any()


def test_apply_is_independent_of_the_batch():
    game, model, params, states = played()
    whole = applied()
    one = jax.tree.map(lambda x: x[2:3], states)
    alone = forward(game, model)(params, one)
    np.testing.assert_allclose(alone.logits[0], whole.logits[2], atol=1e-6)
    np.testing.assert_allclose(alone.q[0], whole.q[2], atol=1e-6)


def test_vmap_over_a_population():
    game, model, params, states = played()
    members = jax.jit(jax.vmap(model.init))(jax.random.split(jax.random.key(5), 2))
    members = jax.tree.map(lambda many, one: many.at[1].set(one), members, params)
    both = jax.jit(jax.vmap(lambda p: forward(game, model)(p, states)))(members)
    np.testing.assert_allclose(both.value[1], applied().value, atol=1e-6)
    assert not np.allclose(both.value[0], both.value[1], atol=1e-3)


def test_evaluator_turns_values_to_absolute_order():
    game, model, params, states = played(players=3, rows=4, cols=5)
    evaluate = jax.jit(networks.evaluator(game, model))
    for seat in range(3):
        moved = states.replace(current_player=jnp.full(4, seat, jnp.int32))
        out = forward(game, model)(params, moved)
        logits, value = evaluate(params, moved)
        np.testing.assert_allclose(logits, out.logits, atol=1e-6)
        np.testing.assert_allclose(value, np.roll(out.value, seat, axis=-1), atol=1e-6)


def test_q_evaluator_picks_the_best_legal_action():
    game, model, params, states = played()
    outputs = applied()
    logits, value = jax.jit(networks.evaluator(game, model, "q", temperature=0.5))(params, states)
    np.testing.assert_allclose(logits, outputs.q[..., 0] / 0.5, rtol=1e-5)
    for row in range(4):
        team = int(states.current_player[row])
        legal = np.flatnonzero(states.legal_action_mask[row])
        best = legal[np.argmax(np.asarray(outputs.q[row, legal, 0]))]
        expected = np.roll(np.asarray(outputs.q[row, best]), team)
        np.testing.assert_allclose(value[row], expected, atol=1e-6)


# ---- cards ----

CARDS = networks.NetworkConfig(kind="cards", channels=8, blocks=1, hidden=16, q_head=False)
HISTORY = 3


@dataclasses.dataclass(frozen=True)
class Table(mnk.MNK):
    """m,n,k whose board begins with two channels of noise and ends with three plays; a play is
    shown where `plays` has one, with the seat that made it."""

    @property
    def history(self):
        return HISTORY

    def observe(self, state, player):
        seen = super().observe(state, player)
        plays = jnp.zeros((3, 3, HISTORY), jnp.int8)
        return {
            "board": jnp.concatenate([seen["board"], plays], axis=-1),
            "features": jnp.zeros(5 + HISTORY * self.num_players, jnp.float32),
        }


@functools.cache
def table():
    """(model, params, an observation of six rows with two plays, the third missing)."""
    game = Table(mnk.Rules())
    model = networks.build(game, CARDS)
    fresh = jax.jit(model.init)(jax.random.key(1))
    # Blocks and heads begin at zero or near it: here everything shall show.
    params = jax.tree.map(lambda x: x + 0.3 * np.cos(np.arange(x.size)).reshape(x.shape), fresh)
    board = jax.random.randint(jax.random.key(2), (6, 3, 3, 5), 0, 3).astype(jnp.int8)
    features = jax.random.normal(jax.random.key(3), (6, 11))
    makers = jnp.array([1.0, 0, 0, 1, 0, 0])
    observation = {"board": board.at[..., 4].set(0), "features": features.at[:, 5:].set(makers)}
    return model, params, observation


@functools.cache
def table_forward():
    return jax.jit(table()[0].apply)


def test_cards_shapes_and_no_q():
    model, params, observation = table()
    out = table_forward()(params, observation)
    assert out.logits.shape == (6, 9) and out.value.shape == (6, 2) and out.q is None
    np.testing.assert_allclose(out.value.sum(-1), 0.0, atol=1e-6)
    with_q = networks.build(model.game, dataclasses.replace(CARDS, q_head=True))
    shapes = jax.eval_shape(
        with_q.apply, jax.eval_shape(with_q.init, jax.random.key(0)), observation
    )
    assert shapes.q.shape == (6, 9, 2)
    assert with_q.num_params() - model.num_params() == 17 * 9 * 2


def test_a_missing_play_does_not_count_and_others_do():
    _, params, observation = table()
    board, features = observation["board"], observation["features"]
    before = table_forward()(params, observation).logits

    def after(board, features):
        return np.abs(
            table_forward()(params, {"board": board, "features": features}).logits - before
        )

    assert after(board.at[..., 4].add(1), features).max() == 0.0  # nobody made it
    for play in (0, 1):
        assert (after(board.at[..., 2 + play].add(1), features).max(-1) > 1e-4).all()
    swapped = features.at[:, 5:].set(jnp.array([0, 1.0, 1, 0, 0, 0]))
    assert (after(board, swapped).max(-1) > 1e-4).all()
    turned = board[..., jnp.array([0, 1, 3, 2, 4])]  # which is the newest matters
    assert after(turned, features).max() > 1e-4
    none = features.at[:, 5:].set(0.0)
    assert np.isfinite(after(board, none)).all()
    assert after(board.at[0, 0, 0, 0].add(1), features)[0].max() > 1e-4


def test_cards_without_plays_and_without_norm():
    """Any game's observation will do."""
    game, _, _, states = played("mnk")
    model = networks.build(game, dataclasses.replace(CARDS, norm=False))
    params = jax.jit(model.init)(jax.random.key(0))
    assert "plays" not in params["trunk"] and "norm" not in params["trunk"]["block0"]
    out = jax.jit(lambda p, s: model.apply(p, model.observe(s)))(params, states)
    assert out.logits.shape == (4, 9) and np.isfinite(out.logits).all()


def test_the_plays_of_guandan_come_last():
    game = core.make("guandan")
    from jaxgames.guandan import observe

    assert game.history == 8
    assert observe.PLANES[-8:] == tuple(f"play {i}" for i in range(8))
    makers = observe.FEATURES[-8 * game.num_players :]
    assert makers[0] == "play 0: by own" and makers[-1] == "play 7: by previous"
    small = networks.NetworkConfig(kind="cards", blocks=1, hidden=192, q_head=False)
    assert 4 * networks.build(game, small).num_params() < 6e6  # bytes of a bundle


def test_a_critic_sees_everything_and_gives_values_only():
    """Its value changes with a hidden card, the network's own does not."""
    game, _, _, states = played("highcard")
    sizes = dataclasses.replace(CARDS, q_head=False)
    actor, critic = networks.build(game, sizes), networks.build(game, sizes, critic=True)
    wave = lambda x: x + 0.2 * np.sin(np.arange(x.size)).reshape(x.shape)  # noqa: E731
    mine, theirs = (jax.tree.map(wave, m.init(jax.random.key(0))) for m in (actor, critic))
    assert "policy" not in theirs and critic.num_params() < actor.num_params()

    @jax.jit
    def values(states):
        out = critic.apply(theirs, networks.observe_all(game, states))
        assert out.logits is None and out.q is None
        return out.value, actor.apply(mine, actor.observe(states)).value

    rows = states.current_player.shape[0]
    deal = jax.jit(jax.vmap(game.resample))
    worlds = deal(states, states.current_player, jax.random.split(jax.random.key(1), rows))
    (all_seen, own), (all_again, own_again) = values(states), values(worlds)
    np.testing.assert_array_equal(own, own_again)
    assert (np.abs(all_seen - all_again) > 1e-4).any()
    np.testing.assert_allclose(all_seen.sum(-1), game.reward_sum, atol=1e-5)


def test_what_needs_q_says_so():
    game, _, _, _ = played()
    model = networks.build(game, CARDS)
    for need in (
        lambda: networks.evaluator(game, model, "q"),
        lambda: dqn.make(game, model, dqn.Config()),
        lambda: alphazero.make(game, model, alphazero.Config()),
    ):
        with pytest.raises(ValueError, match="^network.q_head: must be true"):
            need()


def test_bad_arguments_are_named():
    game, model, _, _ = played()
    for options in (dict(kind="conf"), dict(kind="cards", channels=6)):
        with pytest.raises(ValueError, match="^(kind|channels): "):
            networks.NetworkConfig(**options)
    with pytest.raises(ValueError, match="head"):
        networks.evaluator(game, model, "value")
    with pytest.raises(ValueError, match="temperature"):
        networks.evaluator(game, model, "q", temperature=0.0)
    for field, value in (("channels", 0), ("blocks", -1), ("hidden", 0), ("board_scale", 0.0)):
        with pytest.raises(ValueError, match=field):
            networks.NetworkConfig(**{field: value})


def test_a_stored_pair():
    """A network whose weights are a formula: catches a changed architecture or frame."""
    game = core.make("mnk")
    model = networks.build(game, networks.NetworkConfig(channels=4, blocks=1, hidden=3))
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    leaves, structure = jax.tree.flatten(shapes)
    numbers = [np.sin(1.7 * np.arange(x.size) + i).reshape(x.shape) for i, x in enumerate(leaves)]
    params = jax.tree.unflatten(structure, [jnp.asarray(n / 2 + 0.1, jnp.float32) for n in numbers])
    cells = np.array([[[1, 2, 0], [0, 1, 0], [0, 0, 0]]], np.int8)
    states = jax.tree.map(lambda x: x[None], game.init(jax.random.key(0)))
    out = forward(game, model)(params, states.replace(cells=jnp.asarray(cells)))
    np.testing.assert_allclose(out.logits[0, 3:6], STORED["logits"], atol=2e-4)
    np.testing.assert_allclose(out.value[0], STORED["value"], atol=2e-4)
    np.testing.assert_allclose(out.q[0, 4], STORED["q"], atol=2e-4)


STORED = dict(
    logits=[-0.01115319, 0.151926, 0.04269399],
    value=[0.9704849, -0.9704849],
    q=[0.9669734, -0.9669734],
)
