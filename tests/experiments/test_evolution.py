"""A population in a run: measured, bred, told, and resumed exactly."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.checkpoint import Checkpoints
from algorithms.population import Generation, PopulationConfig
from experiments import evolution
from experiments.evolution import Evolution
from tests.algorithms.test_checkpoint import bits
from tests.toys import climber

CONFIG = PopulationConfig(members=3, tuned=("learning_rate",), mutation=1.0)


def rates(params, seed):
    """Of two opponents, the same for all members of a generation."""
    near = 1.0 - abs(float(params["w"]) - 1.0)
    return [near, near + seed % 2]


def lived(evolve, learner, state, chunks):
    """(state, fitness, generations) after so many chunks."""
    generations, fitness = [], None
    for number in chunks:
        state, _ = learner.run_chunk(state)
        fitness = evolve.measure(state, rates, number)
        state, generation = evolve.breed(state, fitness, number)
        generations.append(generation)
    return state, fitness, generations


def test_a_population_resumes_exactly(tmp_path):
    """Two generations and two more, from a checkpoint, are four, bit for bit."""
    evolve = Evolution(CONFIG, climber.NUMBERS, seed=5)
    learner = evolve.learner(climber.make())
    whole, fitness, generations = lived(evolve, learner, learner.init(jax.random.key(0)), range(4))
    assert any(one.changes for one in generations)

    half, _, first = lived(evolve, learner, learner.init(jax.random.key(0)), range(2))
    with Checkpoints(tmp_path) as saved:
        saved.save(1, half, {})
        abstract = jax.eval_shape(learner.init, jax.random.key(0))
        half, _ = saved.restore(abstract)
    again, same, rest = lived(evolve, learner, half, range(2, 4))
    assert bits(again) == bits(whole) and same == fitness and first + rest == generations


def test_the_fittest_stands_for_the_run():
    evolve = Evolution(CONFIG, climber.NUMBERS, seed=5)
    state = evolve.learner(climber.make()).init(jax.random.key(0))
    state = dataclasses.replace(state, params={"w": jnp.array([0.2, jnp.nan, 0.9])})
    fitness = evolve.measure(state, rates, 0)
    assert fitness[1] == evolution.BROKEN and fitness[2] > fitness[0] > 0
    lead = evolution.lead(state, fitness)
    assert float(lead.params["w"]) == pytest.approx(0.9) and lead.replay == ()
    assert float(evolution.lead(state, None).params["w"]) == pytest.approx(0.2)
    _, generation = evolve.breed(state, fitness, 0)
    assert generation.parents == (0, 2, 2)
    values = evolution.told(fitness, generation)
    assert values["population/best"] == 2 and values["population/parent/1"] == 2
    assert values["population/fitness/0"] == fitness[0]
    assert values["population/learning_rate/1"] == generation.numbers["learning_rate"][1]
    event = evolution.event(fitness, generation)
    assert event["best"] == 2 and event["changes"][0]["member"] == 1
    numbers = evolve.result(lead, fitness)
    assert numbers["best"] == 2 and set(numbers) == {"best", "fitness", "learning_rate"}
    assert evolution.told(fitness, None).keys() < values.keys()
    assert isinstance(generation, Generation)


def test_metrics_are_those_of_the_fittest_that_is_whole():
    metrics = {"loss/total": np.array([1.0, np.nan, 3.0]), "optim/lr": np.array([0.1, 0.2, 0.3])}
    told = evolution.of_lead(metrics, [0.5, 0.9, 0.6])
    assert told["loss/total"] == 3.0 and told["optim/lr"] == 0.3
    assert told["population/broken"] == 1.0
    assert "population/loss/total/1" not in told and told["population/loss/total/0"] == 1.0
    assert evolution.of_lead(metrics, None)["loss/total"] == 1.0
    broken = {name: np.full(3, np.nan) for name in metrics}
    assert np.isnan(evolution.of_lead(broken, None)["loss/total"])
