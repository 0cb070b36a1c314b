"""Equal to mctx wherever mctx applies."""

import functools

import jax
import mctx
import numpy as np
import pytest

from algorithms import search
from tests.algorithms.search import problems
from tests.algorithms.search.problems import Problem

POLICIES = {
    "gumbel": (search.gumbel_policy, mctx.gumbel_muzero_policy),
    "puct": (search.puct_policy, mctx.muzero_policy),
}

SIZES = [  # batch, simulations, actions
    (1, 1, 2),
    (1, 50, 5),
    (3, 2, 9),
    (4, 16, 3),
    (5, 64, 30),
    (2, 100, 7),
    (2, 24, 441),
]


@functools.cache
def _searches(policy, problem, batch, simulations, masked, options):
    mine, reference = POLICIES[policy]

    def run_mine(seed, key):
        root, fn = problems.ours(problem, seed, batch)
        invalid = problem.invalid(seed, batch) if masked else None
        return mine((), key, root, fn, simulations, invalid, **dict(options))

    def run_reference(seed, key):
        root, fn = problems.theirs(problem, seed, batch)
        invalid = problem.invalid(seed, batch) if masked else None
        return reference((), key, root, fn, simulations, invalid, **dict(options))

    return jax.jit(run_mine), jax.jit(run_reference)


def compare(policy, problem, batch, simulations, seed, masked=True, **options):
    mine, reference = _searches(
        policy, problem, batch, simulations, masked, tuple(sorted(options.items()))
    )
    seed = np.uint32(seed)
    key = jax.random.key(seed)
    problems.assert_equal_outputs(mine(seed, key), reference(seed, key))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch,simulations,actions", SIZES)
def test_sizes(policy, batch, simulations, actions):
    for seed in range(3):
        compare(policy, Problem(actions), batch, simulations, seed)
