"""Trained for a minute or two, the search's play lies within the truth about small boards."""

import functools

import jax
import numpy as np
import pytest

from algorithms import muzero, optim
from algorithms.muzero import agent
from algorithms.networks.muzero import MuZeroNetworkConfig
from algorithms.search.config import SearchConfig
from jaxgames import core
from tests.algorithms.toy_play import losing_lines
from tests.reference.eight_in_a_row_solver import Solver

NETWORK = MuZeroNetworkConfig(
    width=32, heads=2, layers=1, kv_latent=8, q_latent=16, rotary=4, ffn=64, patch=1,
    dynamics_layers=1, projection=16, prediction=16, stones=True,
)  # fmt: skip
CONFIG = muzero.Config(
    games=64,
    steps=8,
    search=SearchConfig(num_simulations=16, max_num_considered_actions=9, q_scale="outcome"),
    opening_plies=4,
    replay_length=96,
    learn_after=512,
    batch_size=128,
    micro_batch=128,
    learn_steps=4,
    unroll=3,
    chunk_updates=10,
    optim=optim.OptimConfig(learning_rate=3e-3, warmup_steps=50),
)
PLAY = SearchConfig(
    num_simulations=48, max_num_considered_actions=12, gumbel_scale=0.0, q_scale="outcome"
)


def trained(chunks, **rules):
    """(game, choose) after so many chunks."""
    game = core.make("eight_in_a_row", profile="wdl", **rules)
    model = muzero.model(game, 0, NETWORK)
    learner = muzero.make(game, model, CONFIG)
    state = learner.init(jax.random.key(0))
    for _ in range(chunks):
        state, metrics = learner.run_chunk(state)
    assert learner.compiled() == (1, 0) and metrics["optim/nan_skips"] == 0
    player = agent.search_agent(game, model, PLAY)

    @jax.jit
    def choose(params, states):
        return player.act(params, jax.random.key(1), states, states.current_player)

    return game, functools.partial(choose, state.params)


@pytest.mark.slow
def test_tic_tac_toe_is_not_lost():
    """Two seats on 3x3: a draw, against every reply."""
    game, choose = trained(60, rows=3, cols=3, win_length=3, players=2)
    assert [losing_lines(game, choose, seat) for seat in (0, 1)] == [0, 0]


@pytest.mark.slow
def test_three_seats_on_3x4_end_in_an_equilibrium():
    """The empty board ends in a draw, the only outcome of perfect play (rule book 8); positions
    after four to eight random stones end in one of their equilibrium outcomes."""
    game, choose = trained(90, rows=3, cols=4, win_length=3, players=3)
    solver, rows = Solver(3, 4, 3, players=3, profile="wdl"), 64
    step = jax.jit(jax.vmap(lambda s, a: game.step(s, a, jax.random.key(0))))
    bots = jax.jit(jax.vmap(core.random_bot))
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), rows))
    plies = np.where(np.arange(rows) == 0, 0, 4 + np.arange(rows) % 5)
    for ply in range(8):
        random = step(states, bots(states, jax.random.split(jax.random.key(ply), rows)))
        keep = (ply < plies) & ~np.asarray(random.done)
        states = jax.tree.map(
            lambda new, old, k=keep: np.where(k.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            random, states,
        )  # fmt: skip
    begin = states
    results = results_of(game, begin, choose, step)
    assert not np.any(results[0])
    inside = [
        tuple(results[row]) in outcomes(solver, np.asarray(begin.cells[row]))
        for row in range(1, rows)
    ]
    assert np.mean(inside) >= 0.9, np.mean(inside)


def results_of(game, states, choose, step):
    """float32[B, P], rewards of the games that the agent plays to their ends on all seats."""
    results = np.zeros((len(states.current_player), game.num_players), np.float32)
    while not np.asarray(states.done).all():
        states = step(states, choose(states))
        results = results + np.asarray(states.rewards)
    return results


def outcomes(solver, cells):
    """Equilibrium outcomes of a position as tuples of floats."""
    bits = [0, 0, 0]
    for cell, stone in enumerate(cells.ravel()):
        if stone > 0:
            bits[stone - 1] |= 1 << cell
    return {tuple(float(v) for v in vector) for vector in solver.tables(tuple(bits))[1]}
