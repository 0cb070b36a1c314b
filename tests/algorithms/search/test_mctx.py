"""Equal to mctx wherever mctx applies."""

import functools

import jax
import mctx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import search
from tests.algorithms.search import problems
from tests.algorithms.search.problems import Problem

POLICIES = {
    "gumbel": (search.gumbel_policy, mctx.gumbel_muzero_policy),
    "puct": (search.puct_policy, mctx.muzero_policy),
}

SLOW = pytest.mark.slow
SIZES = [  # batch, simulations, actions
    (1, 1, 2),
    (1, 50, 5),
    (5, 64, 30),
    (2, 24, 441),
    pytest.param(3, 2, 9, marks=SLOW),
    pytest.param(4, 16, 3, marks=SLOW),
    pytest.param(2, 100, 7, marks=SLOW),
    pytest.param(1, 300, 441, marks=SLOW),
    pytest.param(16, 200, 20, marks=SLOW),
    pytest.param(64, 32, 60, marks=SLOW),
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
        shared = {name: value for name, value in options if name != "short"}
        return reference((), key, root, fn, simulations, invalid, **shared)

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


@settings(deadline=None, max_examples=30, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), policy=st.sampled_from(sorted(POLICIES)))
def test_any_seed(seed, policy):
    compare(policy, Problem(30), 5, 64, seed)


@pytest.mark.parametrize("policy", POLICIES)
def test_ties_everywhere(policy):
    """Equal priors and values of -1, 0, 1: only the rules for ties decide."""
    for seed in range(3):
        compare(policy, Problem(6, flat=True), 4, 60, seed)


STRICT = Problem(12, twice=False, ends=False, rewards=False)
OPTIONS = {
    "no noise": ("gumbel", STRICT, False, dict(gumbel_scale=0.0)),
    "few actions": ("gumbel", Problem(12), True, dict(max_num_considered_actions=5, max_depth=3)),
    "greedy": ("puct", Problem(12), False, dict(pb_c_init=2.0, temperature=0.0)),
    "shortlist": ("gumbel", Problem(30), True, dict(short=16)),
    "short shortlist": ("gumbel", Problem(30), False, dict(short=4, max_num_considered_actions=3)),
    "shallow": ("puct", STRICT, False, dict(dirichlet_fraction=0.0, max_depth=2)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    policy, problem, masked, options = OPTIONS[name]
    for seed in range(4):
        compare(policy, problem, 3, 60, seed, masked=masked, **options)


def test_shortlists_are_left_behind():
    """With four slots some node has more children: both ways of selecting were compared."""
    root, fn = problems.ours(Problem(30), np.uint32(0), 3)
    policy = search.gumbel(60, short=4, max_num_considered_actions=3)
    begun = search.start(policy, jax.random.key(0), root)
    advance = jax.jit(lambda begun: search.advance(policy, (), begun, fn, 60))
    count = np.asarray(advance(begun).tree.short.count)
    assert count.max() > 4 and np.all(np.sort(count)[:, -3] > 1)


@pytest.mark.slow
def test_shortlists_at_full_size():
    compare("gumbel", Problem(441), 16, 300, 1)
    compare("gumbel", Problem(441, ends=False), 16, 800, 2, masked=False)
    compare("gumbel", Problem(349), 64, 32, 3)


def test_the_plan_of_sequential_halving():
    """Each simulation finds an action with the visits that the plan asks for."""
    for considered, simulations in ((1, 5), (3, 9), (4, 16), (16, 32)):
        plan = search.considered_visits(considered, simulations)
        assert plan.shape == (considered + 1, simulations)
        for row in range(1, considered + 1):
            visits = np.zeros(max(row, 1), int)
            for wanted in plan[row]:
                assert wanted in visits
                visits[np.argmax(visits == wanted)] += 1
    assert plan[16].tolist() == [0] * 16 + [1] * 8 + [2] * 4 + [3] * 4
