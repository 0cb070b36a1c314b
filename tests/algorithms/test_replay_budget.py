"""A replay stays within its bytes, and a run within its memory."""

import dataclasses
import gc
import os
import pathlib

import jax
import numpy as np
import pytest

import tests.toys.mnk  # noqa: F401  (registers "mnk")
from algorithms import alphazero, dqn, muzero
from jaxgames import core
from tests.algorithms import learners
from tests.toys.latent import Dense, Switches

SIZES = dict(games=4, steps=4, replay_length=64, learn_after=16, batch_size=8, learn_steps=1)
MUZERO = muzero.Config(**SIZES, unroll=2, micro_batch=8)


def toy():
    game = core.make("mnk", players=3)
    return game, Dense(game, game.viewer(), Switches())


def shapes(make, game, model, config):
    return jax.eval_shape(make(game, model, config).init, jax.random.key(0)).replay


def size(ring):
    return sum(x.size * np.dtype(x.dtype).itemsize for x in jax.tree.leaves(ring))


CASES = [
    (muzero.make, toy, MUZERO),
    (dqn.make, learners.toy, dqn.Config(**SIZES, horizon=1)),
    (alphazero.make, learners.toy, alphazero.Config(**SIZES)),
]


@pytest.mark.parametrize(("make", "build", "config"), CASES, ids=["muzero", "dqn", "alphazero"])
def test_the_length_follows_from_the_bytes(make, build, config):
    game, model = build()
    whole = shapes(make, game, model, config)
    assert whole.game.shape == (64, 4)
    one = size(whole) // 64
    for budget, length in ((size(whole) + 64, 64), (10 * one + 64, 10), (5 * one + 64, 5)):
        short = dataclasses.replace(config, replay_bytes=budget)
        ring = shapes(make, game, model, short)
        assert ring.game.shape[0] == length and size(ring) <= budget
    # what learning needs: 16 positions of 4 games, and the longest stretch
    with pytest.raises(ValueError, match=r"^replay_bytes: at least \d+ for [45] steps of 4 games"):
        make(game, model, dataclasses.replace(config, replay_bytes=3 * one + 64))


def test_the_least_that_is_named_is_enough():
    game, model = toy()
    with pytest.raises(ValueError, match="replay_bytes") as caught:
        muzero.make(game, model, dataclasses.replace(MUZERO, replay_bytes=1))
    least = int(str(caught.value).split("at least ")[1].split()[0])
    short = dataclasses.replace(MUZERO, replay_bytes=least)
    assert size(shapes(muzero.make, game, model, short)) <= least + 64
    with pytest.raises(ValueError, match="replay_bytes"):
        muzero.make(game, model, dataclasses.replace(MUZERO, replay_bytes=least - 1))


@pytest.mark.parametrize("kind", [muzero.Config, dqn.Config, alphazero.Config])
def test_negative_bytes_are_named(kind):
    with pytest.raises(ValueError, match="^replay_bytes: not negative"):
        kind(replay_bytes=-1)


def resident():
    """Bytes of the process now."""
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_memory_is_flat_over_two_hundred_chunks():
    game, model = toy()
    config = dataclasses.replace(MUZERO, replay_bytes=20_000, chunk_updates=1)
    learner = muzero.make(game, model, config)
    state = learner.init(jax.random.key(0))
    budget = size(jax.eval_shape(lambda: state.replay))
    assert budget <= 20_000 and state.replay.game.shape[0] < 64
    seen = []
    for chunk in range(200):
        state, metrics = learner.run_chunk(state)
        jax.block_until_ready(metrics)
        assert size(state.replay) == budget
        if chunk >= 20 and chunk % 20 == 0:
            seen.append(resident())
    assert max(seen) - seen[0] < 8 * 2**20
    assert np.polyfit(range(len(seen)), seen, 1)[0] * len(seen) < 4 * 2**20
    assert int(state.games) > 100 and learner.compiled() == (1, 0)
