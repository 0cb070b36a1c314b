"""Agents share one face, and their names one grammar."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401  (registers "highcard")
from algorithms import agents, bundle, frames
from algorithms.networks.model import NetworkConfig, build
from algorithms.search.config import SearchConfig
from jaxgames import core

MNK = core.make("mnk")
CARDS = core.make("highcard", players=4)
SMALL = NetworkConfig(channels=4, blocks=0, hidden=8)
FEW = dataclasses.replace(agents.PLAY_SEARCH, num_simulations=8, num_worlds=3)


@functools.partial(jax.jit, static_argnames=("game", "batch", "plies"))
def _states(game, batch, plies=0):
    """Positions after some random plies, states [batch]."""
    key = jax.random.key(0)
    states = jax.vmap(game.init)(jax.random.split(key, batch))
    for ply in range(plies):
        keys = jax.random.split(jax.random.fold_in(key, ply), 2 * batch)
        actions = jax.vmap(core.random_bot)(states, keys[:batch])
        states = jax.vmap(game.step)(states, actions, keys[batch:])
    return states


@functools.partial(jax.jit, static_argnames="model")
def _outputs(model, params, states):
    return model.apply(params, model.observe(states))


@pytest.fixture(scope="module")
def cards():
    """(model, params) for the card game."""
    model = build(CARDS, SMALL)
    return model, model.init(jax.random.key(1))


@pytest.fixture(scope="module")
def toy():
    """(model, params) for tic-tac-toe."""
    model = build(MNK, SMALL)
    return model, model.init(jax.random.key(2))


def test_bot_rows_do_not_depend_on_each_other():
    seat = agents.from_spec("random", MNK)
    states, keys = _states(MNK, 8), jax.random.split(jax.random.key(1), 8)
    act = jax.jit(seat.agent.act)
    whole = act(None, keys, states, states.current_player)
    part = jax.tree.map(lambda x: x[3:5], states)
    np.testing.assert_array_equal(whole[3:5], act(None, keys[3:5], part, part.current_player))
    one = act(None, jax.random.key(2), states, states.current_player)
    assert one.shape == (8,) and one.dtype == np.int32


@pytest.mark.parametrize("head", ["policy", "q"])
def test_a_network_takes_its_best_legal_action(toy, head):
    model, params = toy
    states = _states(MNK, 32, plies=3)
    agent = agents.network_agent(MNK, model, head=head)
    found = jax.jit(agent.analyse)(params, jax.random.key(0), states, states.current_player)
    outputs = _outputs(model, params, states)
    scores = outputs.logits if head == "policy" else outputs.q[..., 0]
    legal = np.asarray(states.legal_action_mask)
    want = np.argmax(np.where(legal, scores, -np.inf), axis=1)
    np.testing.assert_array_equal(found.action, want)
    acted = jax.jit(agent.act)(params, jax.random.key(1), states, states.current_player)
    np.testing.assert_array_equal(acted, want)
    np.testing.assert_allclose(found.prior.sum(axis=1), 1, rtol=1e-5)
    assert np.all(np.asarray(found.prior)[~legal] == 0)
    if head == "policy":
        team = frames.mover_team(MNK, states)
        np.testing.assert_allclose(found.value, frames.to_absolute(outputs.value, team), atol=1e-6)
        assert np.isnan(found.q).all()
    else:
        np.testing.assert_allclose(np.asarray(found.q)[legal], np.asarray(scores)[legal], atol=1e-6)


def test_temperature_draws_from_the_softmax(toy):
    model, params = toy
    state = jax.tree.map(lambda x: jnp.repeat(x, 4000, axis=0), _states(MNK, 1, plies=2))
    agent = agents.network_agent(MNK, model, temperature=0.5)
    found = jax.jit(agent.analyse)(params, jax.random.key(0), state, state.current_player)
    shares = np.bincount(np.asarray(found.action), minlength=9) / 4000
    np.testing.assert_allclose(shares, found.weights[0], atol=4 * 0.5 / np.sqrt(4000))
    sharper = np.asarray(found.prior[0]) ** 2
    np.testing.assert_allclose(found.weights[0], sharper / sharper.sum(), atol=1e-5)


@pytest.fixture(scope="module", params=["gumbel", "puct"])
def searching(request, cards):
    """(agent, its compiled analyse)."""
    agent = agents.search_agent(CARDS, cards[0], dataclasses.replace(FEW, policy=request.param))
    return agent, jax.jit(agent.analyse)


def test_no_temperature_lifts_illegal_actions(toy):
    model, params = toy
    states = _states(MNK, 64, plies=3)
    agent = agents.network_agent(MNK, model, temperature=1e8)
    found = jax.jit(agent.analyse)(params, jax.random.key(0), states, states.current_player)
    legal = np.asarray(states.legal_action_mask)
    assert np.asarray(found.weights)[~legal].max() == 0
    assert np.take_along_axis(legal, np.asarray(found.action)[:, None], axis=1).all()


def test_a_search_never_sees_the_hidden_cards(cards, searching):
    """Re-deal what the mover can not know: its analysis stays the same, bit for bit."""
    params, (_, analyse) = cards[1], searching
    states = _states(CARDS, 16, plies=2)
    player = states.current_player
    redeal = jax.jit(jax.vmap(CARDS.resample))
    other = redeal(states, player, jax.random.split(jax.random.key(9), 16))
    assert not np.array_equal(states.hands, other.hands)
    for a, b in zip(
        jax.tree.leaves(analyse(params, jax.random.key(3), states, player)),
        jax.tree.leaves(analyse(params, jax.random.key(3), other, player)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_a_search_is_what_it_says(cards, searching):
    params, (agent, analyse) = cards[1], searching
    assert agent.capacity == agents.SEARCH_ROWS // 3
    states = _states(CARDS, 16, plies=1)
    found = analyse(params, jax.random.key(3), states, states.current_player)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-5)
    legal = np.asarray(states.legal_action_mask)
    assert legal[np.arange(16), found.action].all()
    assert not np.asarray(found.visits)[~legal].any()
    np.testing.assert_array_equal(np.isnan(found.q), np.asarray(found.visits) == 0)
    assert found.value.shape == (16, CARDS.num_teams)


def test_mcts_dqn_uses_the_q_head(cards):
    model, params = cards
    states = _states(CARDS, 8, plies=1)
    player = states.current_player
    found = jax.jit(agents.mcts_dqn_agent(CARDS, model, FEW).analyse)(
        params, jax.random.key(0), states, player
    )
    q = _outputs(model, params, states).q[..., 0]
    want = jax.nn.softmax(jnp.where(states.legal_action_mask, q / 0.1, -1e9))
    np.testing.assert_allclose(found.prior, want, atol=1e-5)


def test_hidden_information_is_noticed():
    assert agents.hides_something(CARDS)
    assert not agents.hides_something(MNK)


# ---- names ----


@pytest.fixture(scope="module")
def folder(tmp_path_factory, toy, cards):
    """Bundles az (policy), dqn (Q) and cards, and a run with one in best/."""
    root = tmp_path_factory.mktemp("bundles")
    for name, kind, game, (model, params) in (
        ("az", "alphazero", MNK, toy),
        ("dqn", "mcts_dqn", MNK, toy),
        ("run/best", "alphazero", MNK, toy),
        ("cards", "alphazero", CARDS, cards),
    ):
        meta = bundle.describe(game, agent=kind, network=model.config, step=5, run="r")
        bundle.save(root / name, params, meta)
    return root


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("az", "az:sims=32:worlds=1"),
        ("run", "run:sims=32:worlds=1"),
        ("az:search:sims=4", "az:sims=4:worlds=1"),
        ("az:worlds=2:policy=puct", "az:sims=32:worlds=2:policy=puct"),
        ("az:net", "az:net"),
        ("az:temp=0.5", "az:net:temp=0.5"),
        ("dqn:net", "dqn:net"),
        ("dqn:head=policy", "dqn:sims=32:worlds=1:head=policy"),
    ],
)
def test_bundles_by_path_and_options(folder, spec, name):
    seat = agents.from_spec(f"{folder}/{spec}", MNK)
    assert seat.agent.name == f"{folder}/{name}"
    assert seat.meta["step"] == 5 and len(seat.meta["sha256"]) == 64


def test_a_bundle_plays_as_its_agent(folder, toy):
    model, params = toy
    states = _states(MNK, 16, plies=2)
    for spec, head in (("az:net", "policy"), ("dqn:net", "q")):
        seat = agents.from_spec(f"{folder}/{spec}", MNK)
        key, player = jax.random.key(0), states.current_player
        want = jax.jit(agents.network_agent(MNK, model, head=head).act)(params, key, states, player)
        acted = jax.jit(seat.agent.act)(seat.params, key, states, player)
        np.testing.assert_array_equal(acted, want)


def test_hidden_information_gets_four_worlds(folder):
    seat = agents.from_spec(f"{folder}/cards", CARDS)
    assert seat.agent.name.endswith(":sims=32:worlds=4")


def test_packaged_bundles_come_by_name(folder, monkeypatch):
    monkeypatch.setattr(agents, "BUNDLES", folder / "shipped")
    assert agents.packaged(MNK) == ()
    assert agents.default_spec(MNK) == "random"
    shipped = folder / "shipped" / "mnk"
    shipped.mkdir(parents=True)
    (shipped / "az").symlink_to(folder / "az")
    assert agents.packaged(MNK) == ("az",)
    assert agents.default_spec(MNK) == "az"
    assert agents.from_spec("az:net", MNK).agent.name == "az:net"
    assert agents.packaged(core.make("mnk", rows=4)) == ()  # trained under other rules


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("randon", "agent"),
        ("", "agent"),
        ("random:sims=3", "agent"),
        ("no/such/bundle", "agent"),
        ("../mnk", "agent"),
        ("{}", "agent"),
        ("{}/az:simz=3", "agent"),
        ("{}/az:sims", "sims"),
        ("{}/az:sims=", "sims"),
        ("{}/az:sims=x", "sims"),
        ("{}/az:sims=0", "agent"),
        ("{}/az:sims=3:sims=4", "sims"),
        ("{}/az:net=1", "net"),
        ("{}/az:net:sims=3", "sims"),
        ("{}/az:temp=-1", "temp"),
        ("{}/az:temp=nan", "temp"),
        ("{}/az:policy=best", "agent"),
        ("{}/az:candidates=8", "agent"),
        ("{}/az:head=value", "head"),
    ],
)
def test_what_names_no_agent_is_refused(folder, spec, field):
    with pytest.raises(agents.AgentError) as error:
        agents.from_spec(spec.format(folder), MNK)
    assert error.value.field == field


def test_near_names_are_suggested(folder):
    with pytest.raises(agents.AgentError, match="did you mean random"):
        agents.from_spec("randm", MNK)
    with pytest.raises(agents.AgentError, match="did you mean sims"):
        agents.from_spec(f"{folder}/az:simz=3", MNK)


def test_a_bundle_of_another_game_is_refused(folder):
    with pytest.raises(bundle.BundleError):
        agents.from_spec(f"{folder}/cards", MNK)
    with pytest.raises(bundle.BundleError, match="rows"):
        agents.from_spec(f"{folder}/az", core.make("mnk", rows=4))


def test_weights_of_guandan_play_under_all_its_rules(tmp_path):
    """Trained on rounds without forced passes; matches and other rule books look the same."""
    trained = core.make("guandan", skip_forced=True)
    config = NetworkConfig(kind="cards", channels=4, blocks=0, hidden=8, q_head=False)
    meta = bundle.describe(trained, agent="ppo", network=config)
    assert meta["rules"]["skip_forced"] is True and meta["rules"]["unit"] == "round"
    bundle.save(tmp_path / "p", build(trained, config).init(jax.random.key(0)), meta)
    for preset in ("match", "ogd"):
        agents.from_spec(f"{tmp_path}/p:net", core.make("guandan", preset))
    game = core.make("guandan", "v1006")
    seat = agents.from_spec(f"{tmp_path}/p:net", game)
    states = _states(game, 4)
    action = jax.jit(seat.agent.act)(seat.params, jax.random.key(0), states, states.current_player)
    assert np.asarray(states.legal_action_mask)[np.arange(4), action].all()
    with pytest.raises(bundle.BundleError, match="^game: "):
        agents.from_spec(f"{tmp_path}/p:net", MNK)


def test_weights_of_sequence_are_bound_to_its_rules(tmp_path):
    trained = core.make("sequence")
    meta = bundle.describe(trained, agent="alphazero", network=SMALL)
    bundle.save(tmp_path / "s", {"w": np.zeros(1, np.float32)}, meta)
    bundle.load(tmp_path / "s", game=trained)
    other = core.make("sequence", "comp090054")
    with pytest.raises(bundle.BundleError, match=r"^rules: trained with other rules \("):
        bundle.load(tmp_path / "s", game=other)


@pytest.mark.parametrize(
    "change", [dict(channels=8), dict(channels="4"), dict(extra=1), dict(channels=0), None]
)
def test_a_bundle_with_wrong_sizes_is_refused(tmp_path, toy, change):
    model, params = toy
    network = {**dataclasses.asdict(SMALL), **change} if change else {}
    meta = bundle.describe(MNK, agent="alphazero", network=network)
    bundle.save(tmp_path / "bad", params, meta)
    with pytest.raises(bundle.BundleError):
        agents.from_spec(f"{tmp_path}/bad", MNK)


def test_a_bundle_from_before_there_were_kinds_of_networks_plays(tmp_path, toy):
    model, params = toy
    network = dataclasses.asdict(SMALL)
    for name in ("kind", "q_head", "norm"):
        del network[name]
    meta = bundle.describe(MNK, agent="alphazero", network=network)
    bundle.save(tmp_path / "old", params, meta)
    seat = agents.from_spec(f"{tmp_path}/old:net", MNK)
    states = _states(MNK, 4, plies=2)
    action = jax.jit(seat.agent.act)(seat.params, jax.random.key(0), states, states.current_player)
    logits = np.where(states.legal_action_mask, _outputs(model, params, states).logits, -np.inf)
    np.testing.assert_array_equal(action, logits.argmax(-1))


def test_a_bundle_without_q_plays_by_its_policy_only(tmp_path):
    config = NetworkConfig(kind="cards", channels=4, blocks=0, hidden=8, q_head=False)
    model = build(MNK, config)
    meta = bundle.describe(MNK, agent="ppo", network=config)
    bundle.save(tmp_path / "p", model.init(jax.random.key(0)), meta)
    assert agents.from_spec(f"{tmp_path}/p", MNK).agent.name == f"{tmp_path}/p:net"
    searching = agents.from_spec(f"{tmp_path}/p:search", MNK).agent.name
    assert searching.startswith(f"{tmp_path}/p:sims")
    with pytest.raises(agents.AgentError, match="head: .*no Q head"):
        agents.from_spec(f"{tmp_path}/p:net:head=q", MNK)


def test_search_settings_have_one_home():
    """Every option of a spec is a field of SearchConfig."""
    fields = {f.name for f in dataclasses.fields(SearchConfig)}
    assert {field for field, _ in agents._SEARCH_OPTIONS.values()} <= fields
