"""Population based training: members side by side, who is replaced by whom, and with what."""

import dataclasses
import os
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import alphazero, dqn, imitation, muzero, optim, population, ppo
from algorithms.dqn import train as dqn_train
from algorithms.learner import TrainState
from algorithms.muzero import train as muzero_train
from algorithms.population import PopulationConfig
from algorithms.ppo import train as ppo_train
from jaxgames import core
from tests.algorithms import learners
from tests.toys import climber
from tests.toys.latent import Dense, Switches

CONFIG = PopulationConfig(
    members=4, tuned=("learning_rate",), spread=1.0, mutation=1.0, resample=0.0
)


@pytest.fixture(scope="module")
def climbers():
    """(learner of four, its state with the second and the last member planted: one that does not
    learn, one that is hopeless)."""
    learner = population.make(climber.make(), CONFIG, climber.NUMBERS)
    state = learner.init(jax.random.key(0))
    rates = jnp.array([0.02, 0.0, 0.05, 1.0])
    return learner, dataclasses.replace(state, hyper=state.hyper | {"learning_rate": rates})


def bred(state, config=CONFIG, seed=0):
    now = {name: np.asarray(state.hyper[name]) for name in config.tuned}
    rng = np.random.default_rng(seed)
    return population.breed(config, climber.NUMBERS, now, climber.fitness(state), rng)


# ---- members side by side ----


def test_members_are_learners_of_their_own(climbers):
    """Each does what it would do alone; all with keys of their own."""
    learner, state = climbers
    alone = climber.make()
    after, metrics = learner.run_chunk(learners.copy(state))
    assert metrics["loss/total"].shape == (4,)
    for i in range(4):
        one, told = alone.run_chunk(learners.copy(population.member(state, i)))
        same = population.member(after, i)
        learners.assert_equal(one.key, same.key)
        learners.assert_equal(one.env_steps, same.env_steps)
        for field in ("params", "actor", "hyper"):
            chex.assert_trees_all_close(getattr(one, field), getattr(same, field), rtol=1e-5)
        chex.assert_trees_all_close(told, {n: v[i] for n, v in metrics.items()}, rtol=1e-4)
    assert len(set(np.asarray(after.actor).tolist())) == 4
    assert learner.compiled() == (1, 0)


def test_the_first_numbers_lie_around_the_presets():
    config = PopulationConfig(members=32, spread=4.0)
    numbers = optim.OptimConfig(learning_rate=0.3, weight_decay=1e-3)
    found = population.first(config, numbers, jax.random.key(0))
    assert set(found) == {"learning_rate", "weight_decay"}
    for name, limit in (("learning_rate", 1.0), ("weight_decay", 4e-3)):
        value, preset = np.asarray(found[name]), getattr(numbers, name)
        assert value.shape == (32,) and value[0] == pytest.approx(preset)
        assert value.min() >= preset / 4.001 and value.max() <= limit * 1.0001
        assert len(np.unique(value)) > 20


# ---- generations ----


def test_planted_bad_members_are_replaced(climbers):
    """The one that does not learn becomes a copy of the best; what it had lived through stays its
    own. After a few generations all are near the top, whatever they began with."""
    learner, state = climbers
    state, _ = learner.run_chunk(learners.copy(state))
    fitness = climber.fitness(state)
    worst, best = int(np.argmin(fitness)), int(np.argmax(fitness))
    assert worst in (1, 3)
    generation = bred(state)
    wanted = [0, 1, 2, 3]
    wanted[worst] = best
    assert list(generation.parents) == wanted
    (change,) = generation.changes
    assert change["member"] == worst and change["parent"] == best
    had, has = change["learning_rate"]
    assert had == pytest.approx(float(state.hyper["learning_rate"][worst]))
    factor = has / float(state.hyper["learning_rate"][best])
    assert min(abs(factor - 0.8), abs(factor - 1.2)) < 1e-4
    after = population.replace(state, generation)
    for kept in ("key", "actor", "replay", "env_steps"):
        learners.assert_equal(getattr(after, kept), getattr(state, kept))
    for i in range(4):
        source = best if i == worst else i
        for name in ("params", "opt_state"):
            learners.assert_equal(
                jax.tree.map(lambda x, i=i: x[i], getattr(after, name)),
                jax.tree.map(lambda x, i=source: x[i], getattr(state, name)),
            )
    for seed in range(6):
        after, _ = learner.run_chunk(after)
        after = population.replace(after, bred(after, seed=seed))
    assert min(climber.fitness(after)) > -0.2


def test_nobody_is_replaced_by_who_is_not_better():
    rng = np.random.default_rng(0)
    config = dataclasses.replace(CONFIG, replaced=0.5)
    now = {"learning_rate": [0.1, 0.2, 0.3, 0.4]}
    for fitness, parents in (
        ([0.5, 0.5, 0.5, 0.5], [0, 1, 2, 3]),
        ([0.1, 0.9, 0.5, 0.4], [1, 1, 2, 2]),  # the worst of the best, the next of the next
        ([0.1, 0.9, 0.1, 0.1], [0, 1, 2, 1]),
        ([0.9, 0.8, 0.7, 0.6], [0, 1, 1, 0]),
        ([-1.0, 0.0, 0.0, 0.0], [1, 1, 2, 3]),
    ):
        generation = population.breed(config, climber.NUMBERS, now, fitness, rng)
        assert list(generation.parents) == parents, fitness
        for i, parent in enumerate(parents):
            assert fitness[parent] >= fitness[i]
            if parent == i:
                assert generation.numbers["learning_rate"][i] == now["learning_rate"][i]


def test_numbers_are_explored_within_limits():
    numbers = optim.OptimConfig(learning_rate=0.9)
    now, fitness = {"learning_rate": [0.9, 0.9, 0.9, 0.9]}, [1.0, 0.5, 0.5, 0.0]

    def given(**options):
        config = dataclasses.replace(CONFIG, **options)
        return [
            population.breed(config, numbers, now, fitness, np.random.default_rng(seed)).numbers[
                "learning_rate"
            ][3]
            for seed in range(40)
        ]

    np.testing.assert_allclose(sorted(set(given())), [0.72, 1.0], rtol=1e-5)  # 1.08 is too much
    np.testing.assert_allclose(given(mutation=0.0), 0.9, rtol=1e-6)
    anew = given(resample=1.0, spread=3.0)
    assert min(anew) >= 0.2999 and max(anew) <= 1.0 and len(set(anew)) > 10
    assert given(resample=0.5) == given(resample=0.5)


def test_broken_weights_are_seen():
    state = population.make(climber.make(), CONFIG, climber.NUMBERS).init(jax.random.key(0))
    broken = dataclasses.replace(state, params={"w": jnp.array([0.0, jnp.nan, 1.0, jnp.inf])})
    np.testing.assert_array_equal(population.finite(broken), [True, False, True, False])


def test_all_that_was_learned_is_copied():
    """Every learner's weights, whatever it keeps them in; games, replays and leagues stay."""
    base = ("params", "opt_state", "hyper")
    assert TrainState.learned == base
    assert dqn_train.DQNState.learned == (*base, "target")
    assert ppo_train.State.learned == (*base, "critic")
    assert muzero_train.State.learned == (*base, "hill")
    for kind in (dqn_train.DQNState, ppo_train.State, muzero_train.State):
        assert set(kind.learned) <= {f.name for f in dataclasses.fields(kind)}


# ---- several devices ----

SPREAD = """
import jax, numpy as np
from algorithms import population
from tests.algorithms.test_population import CONFIG
from tests.toys import climber
from tests.toys.latent import Dense, Switches
assert len(jax.devices()) == 2
assert len(population.devices(4)) == 2 and len(population.devices(3)) == 1
runs = []
for over in (jax.devices()[:1], jax.devices()):
    learner = population.make(climber.make(), CONFIG, climber.NUMBERS, over)
    state = learner.init(jax.random.key(0))
    state, metrics = learner.run_chunk(state)
    state, metrics = learner.run_chunk(state)
    assert len(state.params["w"].sharding.device_set) == len(over)
    runs.append([np.asarray(x) for x in jax.tree.leaves((state.params, state.actor, metrics))])
for one, two in zip(*runs, strict=True):
    np.testing.assert_array_equal(one, two)
print("same")
"""


@pytest.mark.slow
def test_members_are_spread_over_devices():
    """Two devices hold two members each, and nothing changes."""
    env = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", SPREAD], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "same", done.stderr[-2000:]


# ---- settings ----


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("members", dict(members=0)),
        ("members", dict(members=65)),
        ("every", dict(every=0)),
        ("replaced", dict(replaced=0.6)),
        ("tuned", dict(tuned=("learning_rat",))),
        ("tuned", dict(tuned=("decay_steps",))),
        ("tuned", dict(tuned=("clip_norm", "clip_norm"))),
        ("spread", dict(spread=0.5)),
        ("mutation", dict(mutation=float("nan"))),
        ("factors", dict(factors=())),
        ("factors", dict(factors=(0.0,))),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        PopulationConfig(**options)


# ---- every learner ----


def learner_of(kind):
    if kind is muzero:
        game = core.make("mnk", players=3)
        return muzero.make(game, Dense(game, game.viewer(), Switches()), muzero.Config())
    if kind is imitation:
        return imitation.make(*learners.dense_toy(), imitation.Config(teacher="first"))
    if kind is ppo:
        return ppo.make(*learners.dense_toy(), ppo.Config(games=16, steps=4, minibatch=8))
    return kind.make(*learners.toy(), kind.Config())


@pytest.mark.parametrize(
    "kind",
    [dqn, ppo, *(pytest.param(k, marks=pytest.mark.slow) for k in (alphazero, imitation, muzero))],
)
def test_every_learner_can_be_of_a_population(kind):
    """Traced, not compiled: all has a leading axis of members, and what is copied is there."""
    one = learner_of(kind)
    learner = population.make(one, CONFIG, optim.OptimConfig())
    state = jax.eval_shape(learner.init, jax.random.key(0))
    alone = jax.eval_shape(one.init, jax.random.key(0))
    whole, part = jax.tree.leaves(state), jax.tree.leaves(alone)
    assert [x.shape for x in whole] == [(4, *x.shape) for x in part]
    after, metrics = jax.eval_shape(learner.chunk, state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert all(x.shape == (4,) for x in metrics.values())
    next_ones = population.Generation((0, 0, 2, 3), {"learning_rate": (0.1,) * 4}, ())
    copied = jax.eval_shape(lambda state: population.replace(state, next_ones), state)
    assert jax.tree.structure(copied) == jax.tree.structure(state)
