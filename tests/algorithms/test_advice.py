"""Networks that are told a rule bot's move: all who ask tell them, and none need follow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from algorithms import agents, arena, bundle, networks, optim, ppo
from algorithms.ppo import rollout, train
from algorithms.search.config import SearchConfig
from jaxgames.core import Game
from jaxgames.reasons import Reasons
from tests.algorithms import learners
from tests.toys import highcard


class Timid(highcard.HighCard):
    """High card with a bot that throws nothing but the lowest rank, which is too little."""

    @property
    def bots(self):
        def timid(state, key):
            own = state.hands[state.current_player]
            return jnp.where(own == 0, highcard.SWAP, highcard.KEEP)

        return {"timid": timid, **super().bots}

    @property
    def reasons(self):
        """SWAP first; an action behind by 1, with the own card as a fact of both."""

        def timid(state):
            best = self.bots["timid"](state, None)
            swap = jnp.where(state.legal_action_mask[highcard.SWAP], highcard.SWAP, -1)
            action = jnp.stack([swap, highcard.KEEP, -1])
            own = state.hands[state.current_player] / 8
            facts = jnp.stack([jnp.where(action == best, 0.0, -1.0), jnp.full(3, own)], axis=-1)
            return Reasons(best, action, jnp.where((action < 0)[:, None], 0.0, facts))

        return {"timid": timid}


GAME = Timid(highcard.Rules(ranks=8))
PLAIN = networks.NetworkConfig(channels=4, blocks=0, hidden=32, kind="cards", q_head=False)
ADVISED = dataclasses.replace(PLAIN, advice="timid", trust=4.0)
REASONED = dataclasses.replace(ADVISED, reasons=True)


def positions(game: Game, batch: int, plies: int):
    @jax.jit
    def make(key):
        states = jax.vmap(game.init)(jax.random.split(key, batch))
        for ply in range(plies):
            keys = jax.random.split(jax.random.fold_in(key, ply), batch)
            first = jnp.argmax(states.legal_action_mask, axis=-1)
            states = jax.vmap(game.step)(states, first, keys)
        return states

    return make(jax.random.key(0))


def waved(model):
    """Weights that are nowhere at their beginning."""
    wave = lambda x: x + 0.3 * np.sin(np.arange(x.size)).reshape(x.shape)  # noqa: E731
    return jax.tree.map(wave, model.init(jax.random.key(1)))


@pytest.mark.parametrize("kind", ["cards", "conv"])
def test_what_a_network_is_told(kind):
    model = networks.build(GAME, dataclasses.replace(ADVISED, kind=kind))
    params, states = waved(model), positions(GAME, 64, 1)
    bot = jax.jit(jax.vmap(GAME.bots["timid"], (0, None)))(states, jax.random.key(0))
    seen = jax.jit(model.observe)(states)
    np.testing.assert_array_equal(seen["advice"], bot)
    assert len(np.unique(bot)) == 2
    other = jax.jit(model.observe)(states, 1 - states.current_player)
    assert (other["advice"] == -1).all()

    outputs = jax.jit(model.apply)(params, seen)
    untold = jax.jit(model.apply)(params, seen | {"advice": jnp.full(64, -1)})
    assert (jnp.abs(outputs.logits - untold.logits).max(-1) > 0.1).all()
    np.testing.assert_array_equal(outputs.value, untold.value)  # the value is the position's
    with pytest.raises(KeyError, match="advice"):
        model.apply(params, {k: v for k, v in seen.items() if k != "advice"})


@pytest.mark.parametrize("kind", ["cards", "conv"])
def test_what_a_network_makes_of_reasons(kind):
    model = networks.build(GAME, dataclasses.replace(REASONED, kind=kind))
    states = positions(GAME, 64, 1)
    seen, fresh = jax.jit(model.observe)(states), model.init(jax.random.key(1))
    action, facts, apply = seen["considered"], seen["facts"], jax.jit(model.apply)
    other = jax.jit(model.observe)(states, 1 - states.current_player)
    assert (other["considered"] == -1).all() and (other["advice"] == -1).all()
    assert (other["facts"] == 0).all() and (facts != 0).any()

    # Afresh the better action is ahead by the trust, but for what a fresh policy says.
    logits, best = apply(fresh, seen).logits, np.asarray(seen["advice"])
    rows = np.flatnonzero(states.legal_action_mask.all(-1))
    ahead = logits[rows, best[rows]] - logits[rows, 1 - best[rows]]
    assert len(rows) > 20
    np.testing.assert_allclose(ahead, 4.0, atol=0.5)

    params = waved(model)

    def told(action, facts):
        return apply(params, seen | {"considered": action, "facts": facts}).logits

    logits = told(action, facts)
    # An order means nothing, nor do facts about no action; what is known of an action matters.
    np.testing.assert_allclose(told(action[:, ::-1], facts[:, ::-1]), logits, atol=1e-5)
    noise = jnp.where((action < 0)[..., None], 7.0, facts)
    np.testing.assert_array_equal(told(action, noise), logits)
    assert np.abs(told(action, facts + 0.5) - logits).max(-1).min() > 1e-3
    (rows,) = export.symbolic_shape("rows")
    shape = lambda x: jax.ShapeDtypeStruct((rows, *x.shape[1:]), x.dtype)  # noqa: E731
    blob = export.export(apply)(params, jax.tree.map(shape, seen))  # for any number of rows
    np.testing.assert_array_equal(blob.call(params, seen).logits, logits)


@pytest.mark.parametrize("config", [ADVISED, REASONED], ids=["advice", "reasons"])
def test_all_who_ask_the_network_tell_it(config):
    """Rollout, agent and search get the same logits."""
    model = networks.build(GAME, config)
    params, states = waved(model), positions(GAME, 64, 1)
    note = jax.jit(rollout.own_play(GAME, model, params))(jax.random.key(2), states)[1]
    seen = note["observation"]
    learners.assert_equal(seen["advice"], jax.jit(model.observe)(states)["advice"])
    logits = networks.masked(model.apply(params, seen).logits, states.legal_action_mask)
    prior = jax.nn.softmax(logits)
    np.testing.assert_allclose(note["doubt"], 1.0 - prior.max(-1), atol=1e-5)
    few = SearchConfig(num_simulations=2, num_worlds=1, gumbel_scale=0.0)
    for agent in (agents.network_agent(GAME, model), agents.search_agent(GAME, model, few)):
        found = jax.jit(agent.analyse)(params, jax.random.key(3), states, states.current_player)
        np.testing.assert_allclose(found.prior, prior, atol=1e-5)
        assert states.legal_action_mask[jnp.arange(64), found.action].all()


def test_a_bundle_without_advice_begins_an_advised_network(tmp_path):
    """Its logits stay as they were, but for the trust on top of the advised move."""
    model, plain = (networks.build(GAME, config) for config in (ADVISED, PLAIN))
    old = plain.init(jax.random.key(5))
    meta = bundle.describe(GAME, agent="imitation", network=PLAIN)
    del meta["network"]["advice"], meta["network"]["trust"]  # as they were once
    bundle.save(tmp_path / "old", old, meta)
    new = agents.weights(str(tmp_path / "old"), model)
    learners.assert_equal({k: v for k, v in new.items() if k != "advice"}, old)
    assert jax.tree.structure(new) == jax.tree.structure(model.init(jax.random.key(0)))

    states = positions(GAME, 64, 1)
    before = jax.jit(lambda: plain.apply(old, plain.observe(states)).logits)()
    seen = jax.jit(model.observe)(states)
    after = jax.jit(model.apply)(new, seen).logits
    on_top = 4.0 * np.asarray(jax.nn.one_hot(seen["advice"], GAME.num_actions))
    np.testing.assert_allclose(after, before + on_top, atol=1e-5)

    told = bundle.describe(GAME, agent="ppo", network=ADVISED)
    bundle.save(tmp_path / "told", new, told)
    learners.assert_equal(agents.weights(str(tmp_path / "told"), model), new)
    seat = agents.from_spec(str(tmp_path / "told"), GAME)
    acted = jax.jit(seat.agent.act)(seat.params, jax.random.key(0), states, states.current_player)
    np.testing.assert_array_equal(acted, seen["advice"])
    for config, field, spec in (
        (PLAIN, "network.advice", "told"),  # nothing is left out
        (dataclasses.replace(ADVISED, advice="random"), "network.advice", "told"),
        (dataclasses.replace(ADVISED, trust=1.0), "network.trust", "told"),
        (dataclasses.replace(ADVISED, hidden=16), "network.hidden", "old"),
    ):
        with pytest.raises(bundle.BundleError, match=f"{field}: it has"):
            agents.weights(str(tmp_path / spec), networks.build(GAME, config))
    lost = bundle.describe(GAME, agent="ppo", network=dataclasses.replace(ADVISED, advice="tmid"))
    bundle.save(tmp_path / "lost", new, lost)
    with pytest.raises(bundle.BundleError, match="network.advice: unknown name 'tmid'"):
        agents.from_spec(str(tmp_path / "lost"), GAME)


def test_a_bundle_without_reasons_begins_a_network_with_them(tmp_path):
    plain, model = (networks.build(GAME, config) for config in (PLAIN, REASONED))
    old = plain.init(jax.random.key(5))
    bundle.save(tmp_path, old, bundle.describe(GAME, agent="imitation", network=PLAIN))
    new = agents.weights(str(tmp_path), model)
    learners.assert_equal({k: v for k, v in new.items() if k != "reasons"}, old)
    assert jax.tree.structure(new) == jax.tree.structure(model.init(jax.random.key(0)))
    bundle.save(tmp_path / "new", new, bundle.describe(GAME, agent="ppo", network=REASONED))
    seat = agents.from_spec(str(tmp_path / "new"), GAME)
    learners.assert_equal(seat.params, new)
    with pytest.raises(bundle.BundleError, match="network.reasons: it has True"):
        agents.weights(str(tmp_path / "new"), networks.build(GAME, ADVISED))


def test_settings_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="reasons: needs a network.advice"):
        dataclasses.replace(PLAIN, reasons=True)
    with pytest.raises(ValueError, match="network.reasons: timid gives reasons, got 'random'"):
        networks.build(GAME, dataclasses.replace(REASONED, advice="random"))
    with pytest.raises(ValueError, match="learns: .*policy.*, got 'polcy'"):
        ppo.make(GAME, networks.build(GAME, PLAIN), ppo.Config(learns=("polcy",)))
    with pytest.raises(ValueError, match="network.advice: unknown name 'tmid'; did you mean timid"):
        networks.build(GAME, dataclasses.replace(ADVISED, advice="tmid"))
    with pytest.raises(ValueError, match="trust: 0 to 100, got -1"):
        networks.NetworkConfig(trust=-1.0)
    with pytest.raises(ValueError, match="network: no advice for a critic"):
        ppo.CriticConfig(network=ADVISED)
    with pytest.raises(ValueError, match="learn_share: above 0"):
        ppo.Config(learn_share=0.0)


@pytest.mark.parametrize(
    "network, learns",
    [pytest.param(ADVISED, (), marks=pytest.mark.slow), (REASONED, ("reasons", "value"))],
    ids=["advice", "reasons"],
)
def test_it_begins_as_the_bot_and_grows_beyond_it(network, learns):
    """Learning from the half of its decisions that it doubts most, against the bot. Parts that
    are not to learn stay bit for bit, the decay of weights included."""
    model = networks.build(GAME, network)
    config = ppo.Config(
        learns=learns,
        games=64, steps=16, minibatch=128, learn_share=0.5, entropy_start=0.05, entropy_end=0.01,
        entropy_updates=60, discount=1.0, opponent_share=0.5, groups=1, snapshots=1,
        bots=("timid",), bot_share=1.0, chunk_updates=20,
        optim=optim.OptimConfig(
            learning_rate=5e-3, warmup_steps=10, clip_norm=1.0, weight_decay=1e-3
        ),
    )  # fmt: skip
    learner = ppo.make(GAME, model, config)
    state = learner.init(jax.random.key(0))
    before = jax.tree.map(np.asarray, state.params)
    states = positions(GAME, 64, 1)
    agent = agents.network_agent(GAME, model)
    act = jax.jit(agent.act)
    bot = model.observe(states)["advice"]
    played = act(state.params, jax.random.key(0), states, states.current_player)
    np.testing.assert_array_equal(played, bot)
    for _ in range(10):
        state, metrics = learner.run_chunk(state)
    assert metrics["league/win/timid"] > 0.5 and metrics["selfplay/illegal"] == 0
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), before, state.params)
    changed = {name for name, part in moved.items() if any(jax.tree.leaves(part))}
    assert changed == (set(learns) or set(before))
    played = act(state.params, jax.random.key(0), states, states.current_player)
    assert 0.05 < (played != bot).mean() < 0.9
    rival = agents.Seat(agents.bot_agent(GAME, "timid"))
    rate = arena.evaluate_paired(GAME, agents.Seat(agent, state.params), rival, 1000, 0).winrate
    assert rate.low > 0.5, rate


def test_the_most_doubtful_decisions_are_learnt_from():
    config = ppo.Config(games=4, steps=6, minibatch=4, learn_share=0.5, opponent_share=0.0)
    doubt = jax.random.uniform(jax.random.key(0), (6, 4))
    own = jnp.ones((6, 4), bool).at[:, 0].set(False)
    chosen = np.asarray(train._doubtful(GAME, config, own, doubt))
    assert chosen.sum() == 12 and not chosen[:, 0].any()  # half of 24
    left = np.asarray(own) & ~chosen
    assert np.asarray(doubt)[chosen].min() > np.asarray(doubt)[left].max()
    whole = dataclasses.replace(config, learn_share=1.0)
    np.testing.assert_array_equal(train._doubtful(GAME, whole, own, doubt), own)
