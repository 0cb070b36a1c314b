"""MuZero's agents from bundles: options, analysis in actions of the game, nothing made up."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import agents, bundle, muzero
from algorithms.muzero import brain, play
from algorithms.networks.muzero.config import PRESETS
from algorithms.search import outline
from jaxgames import core

TINY = dataclasses.replace(
    PRESETS["tiny"], stones=True, focus=True, focus_width=4, memory=True, memory_size=4,
    memory_top=2, memory_heads=2,
)  # fmt: skip
GAME = core.make("eight_in_a_row", rows=9, cols=9, win_length=4)
VIEW = 5
RULES = play.Thinking()


@pytest.fixture(scope="module")
def model():
    return muzero.model(GAME, VIEW, TINY)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    root = tmp_path_factory.mktemp("bundles")
    params = jax.jit(lambda key: brain.init(model, key))(jax.random.key(1))
    meta = bundle.describe(
        GAME, agent="muzero", network=TINY, step=3, **muzero.describe(RULES, VIEW)
    )
    bundle.save(root / "mz", params, meta)
    return root


@pytest.fixture(scope="module")
def states():
    state = GAME.init(jax.random.key(0))
    for action in (40, 41, 31, 3):
        state = GAME.step(state, jnp.int32(action), jax.random.key(0))
    return jax.tree.map(lambda x: jnp.stack([x, x]), state)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("mz", "mz:sims=64"),
        ("mz:search:sims=4", "mz:search:sims=4"),
        ("mz:sims=4:paranoid:dynamics=learned", "mz:sims=4:paranoid:dynamics=learned"),
        ("mz:prove:qscale=siblings", "mz:prove:qscale=siblings:sims=64"),
        ("mz:net", "mz:net"),
        ("mz:temp=0.5", "mz:net:temp=0.5"),
    ],
)
def test_specs(folder, spec, name):
    seat = agents.from_spec(f"{folder}/{spec}", GAME)
    assert seat.agent.name == f"{folder}/{name}"
    assert seat.meta["step"] == 3 and seat.meta["agent"] == "muzero"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("mz:worlds=2", "worlds"),
        ("mz:head=q", "head"),
        ("mz:sims=0", "agent"),
        ("mz:sims=many", "sims"),
        ("mz:dynamics=guessed", "agent"),
        ("mz:net:paranoid", "paranoid"),
        ("mz:temp=-1", "temp"),
    ],
)
def test_bad_specs_are_named(folder, spec, field):
    with pytest.raises(agents.AgentError) as caught:
        agents.from_spec(f"{folder}/{spec}", GAME)
    assert caught.value.field == field


@pytest.mark.parametrize("options", ["net", "sims=6"])
def test_analysis_is_in_actions_of_the_game(folder, states, options):
    seat = agents.from_spec(f"{folder}/mz:{options}", GAME)
    key, player = jax.random.key(2), states.current_player
    said = jax.jit(seat.agent.analyse)(seat.params, key, states, player)
    legal = np.asarray(states.legal_action_mask)
    assert legal[0, said.action[0]] and legal[1, said.action[1]]
    if options == "net":
        action = jax.jit(seat.agent.act)(seat.params, key, states, player)
        np.testing.assert_array_equal(action, said.action)
    for share in (said.weights, said.prior):
        np.testing.assert_allclose(share.sum(-1), 1.0, atol=1e-5)
        assert not np.asarray(share)[~legal].any()
    assert (legal >= said.seen).all() and legal.sum() > said.seen.sum() >= 2 * (VIEW**2 - 4)
    assert not np.asarray(said.prior)[~np.asarray(said.seen)].any()
    assert said.value.shape == (2, 3)
    visits = np.asarray(said.visits)
    assert visits.sum() == (12 if "sims" in options else 0)
    np.testing.assert_array_equal(np.isfinite(said.q), visits > 0)


@pytest.mark.parametrize(
    "options",
    [
        "sims=6:paranoid",
        pytest.param("sims=6", marks=pytest.mark.slow),
        pytest.param("sims=6:dynamics=learned", marks=pytest.mark.slow),
    ],
)
def test_its_tree_is_told_in_actions_of_the_game(folder, states, options):
    seat = agents.from_spec(f"{folder}/mz:{options}", GAME)
    rounds = seat.agent.rounds

    @jax.jit
    def think(params, keys, states):
        begun = rounds.begin(params, keys, states, states.current_player)
        done = rounds.advance(params, begun, jnp.int32(6))
        return rounds.read(done), rounds.outline(done)

    keys = jax.random.split(jax.random.key(2), 2)
    said, told = jax.device_get(think(seat.params, keys, states))
    for i in range(2):
        tree = outline.branches(GAME, jax.tree.map(lambda leaf, i=i: leaf[i], told), top=99)
        mover = int(states.current_player[i])
        assert tree["seat"] == mover
        found = {GAME.action_from_text(None, c["text"]): c for c in tree["children"]}
        visits = {a: v for a, v in enumerate(said.visits[i]) if v}
        assert {action: child["visits"] for action, child in found.items()} == visits
        for action, child in found.items():
            assert len(child["value"]) == 3
            assert child["value"][mover] == pytest.approx(said.q[i, action], abs=1e-3)
            for below in child["children"]:
                assert below["seat"] == (mover + 1) % 3
        np.testing.assert_allclose(tree["value"], said.value[i], atol=1e-3)


def test_weights_go_on_in_training_where_all_fits(folder, model):
    found = muzero.weights(str(folder / "mz"), model)
    assert set(found) == {"net", "bank"}
    wider = muzero.model(GAME, VIEW, dataclasses.replace(TINY, width=32))
    with pytest.raises(bundle.BundleError, match="^muzero_network.width: it has 16, not 32"):
        muzero.weights(str(folder / "mz"), wider)
    with pytest.raises(bundle.BundleError, match="^view: "):
        muzero.weights(str(folder / "mz"), muzero.model(GAME, 7, TINY))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda meta: meta["network"].update(width=17), "network"),
        (lambda meta: meta["network"].update(width="16"), "network.width"),
        (lambda meta: meta["network"].pop("layers"), "network.layers"),
        (lambda meta: meta["network"].update(colour=1), "network.colour"),
        (lambda meta: meta.update(view=-1), "view"),
        (lambda meta: meta.update(thinking={"dynamics": "guessed"}), "thinking"),
        (lambda meta: meta.update(thinking={"speed": 1}), "thinking"),
    ],
)
def test_a_broken_bundle_never_plays(folder, tmp_path, change, field):
    """Defect 12: no random weights, no random moves in place of an error."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in (bundle.TENSORS, bundle.META):
        (broken / name).write_bytes((folder / "mz" / name).read_bytes())
    meta = json.loads((broken / bundle.META).read_text())
    change(meta)
    (broken / bundle.META).write_text(json.dumps(meta))
    with pytest.raises(bundle.BundleError) as caught:
        agents.from_spec(str(broken), GAME)
    assert caught.value.field == field
