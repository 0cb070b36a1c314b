"""Small learners shared by the tests, so that each is compiled once per session."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import alphazero, dqn, networks, optim
from algorithms.search.config import SearchConfig
from tests.toys import mnk

NETWORK = networks.NetworkConfig(channels=16, blocks=1, hidden=32)
FAST = optim.OptimConfig(learning_rate=5e-3, warmup_steps=50)


@dataclasses.dataclass(frozen=True)
class Toy(mnk.MNK):
    """m,n,k with a bot that takes the first free cell."""

    @property
    def bots(self):
        return {"first": lambda state, key: jnp.argmax(state.legal_action_mask), **super().bots}


@functools.cache
def toy(**options):
    """(game, model): by default tic-tac-toe."""
    game = Toy(mnk.Rules(**options))
    return game, networks.build(game, NETWORK)


@functools.cache
def dense_toy():
    """Tic-tac-toe with a network of dense layers and no Q head."""
    game, _ = toy()
    config = networks.NetworkConfig(channels=8, blocks=0, hidden=64, kind="cards", q_head=False)
    return game, networks.build(game, config)


@pytest.fixture(scope="module", autouse=True)
def keys_are_used_once():
    """Every trace in a module that imports this raises if it uses a PRNG key twice."""
    with jax.debug_key_reuse(True):
        yield


class Stub:
    """The base of models made by hand, which are told what the seats to move see, no more."""

    def observe(self, states):
        return jax.vmap(states.game.observe)(states, states.current_player)


def two_chunks(learner):
    """A state after one chunk, the state after two, the metrics of the second."""
    first, _ = learner.run_chunk(learner.init(jax.random.key(0)))
    second, metrics = learner.run_chunk(copy(first))
    return first, second, metrics


ALPHAZERO = alphazero.Config(
    games=64,
    steps=8,
    search=SearchConfig(num_simulations=16, max_num_considered_actions=9),
    full_share=0.75,
    fast_simulations=4,
    opening_plies=4,
    replay_length=128,
    learn_after=256,
    batch_size=256,
    learn_steps=8,
    teacher="first",
    teacher_updates=6,
    teacher_steps=32,
    teacher_learn_steps=8,
    chunk_updates=10,
    optim=FAST,
)
DQN = dqn.Config(
    games=64,
    steps=8,
    opening_plies=4,
    epsilon_updates=100,
    epsilon_end=0.2,
    replay_length=128,
    learn_after=256,
    batch_size=256,
    learn_steps=8,
    horizon=1,
    target_rate=0.05,
    chunk_updates=10,
    optim=FAST,
)


def copy(state):
    """The same state in its own buffers, since running a chunk gives them away."""
    return jax.tree.map(lambda x: x.copy(), state)


def assert_equal(a, b):
    """Bit for bit, PRNG keys included."""

    def plain(x):
        is_key = jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if is_key else x)

    chex.assert_trees_all_equal(jax.tree.map(plain, a), jax.tree.map(plain, b))
