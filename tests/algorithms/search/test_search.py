"""Storage, rounds, early stop, reuse, and what must not go wrong."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import search
from tests.algorithms.search import problems
from tests.algorithms.search.problems import Problem

PROBLEM = Problem(9)
BATCH, SIMULATIONS = 4, 40
KINDS = {"gumbel": search.gumbel, "puct": search.puct}


@functools.cache
def _compiled(kind, simulations, options):
    policy = KINDS[kind](simulations, **dict(options))
    _, fn = problems.ours(PROBLEM, np.uint32(0), BATCH)
    advance = jax.jit(lambda search_, n: search.advance(policy, (), search_, fn, n))
    finish = jax.jit(lambda search_: search.finish(policy, search_))
    start = jax.jit(lambda key, root, invalid: search.start(policy, key, root, invalid))
    return policy, start, advance, finish


def begin(kind, seed=0, simulations=SIMULATIONS, **options):
    """(policy, search not yet advanced, jitted advance(search, n), jitted finish(search))."""
    policy, start, advance, finish = _compiled(kind, simulations, tuple(sorted(options.items())))
    root, _ = problems.ours(PROBLEM, np.uint32(seed), BATCH)
    invalid = PROBLEM.invalid(np.uint32(seed), BATCH)
    begun = start(jax.random.key(seed), root, invalid)
    return policy, begun, advance, finish


def test_memory_per_node_and_action():
    batch, simulations, actions = 2, 20, 441
    root, _ = problems.ours(Problem(actions), np.uint32(0), batch)
    tree = search.start(search.gumbel(simulations), jax.random.key(0), root).tree
    pairs = batch * (simulations + 1) * actions
    wide = [leaf for leaf in jax.tree.leaves(tree) if leaf.ndim > 2 and leaf.shape[-1] == actions]
    assert sum(leaf.nbytes for leaf in wide) <= 6 * pairs
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(tree)) <= 8 * pairs
    assert tree.child.dtype == jnp.int16
    wider = jax.eval_shape(
        lambda: search.start(search.gumbel(2**15), jax.random.key(0), root).tree.child
    )
    assert wider.dtype == jnp.int32


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_are_the_same_search(kind):
    _, begun, advance, _ = begin(kind)
    at_once = advance(begun, SIMULATIONS)
    stepwise = begun
    for n in (1, 7, 0, 20, 30):
        stepwise = advance(stepwise, n)
    assert int(stepwise.done) == SIMULATIONS
    for one, other in zip(jax.tree.leaves(at_once), jax.tree.leaves(stepwise), strict=True):
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_the_tree_add_up(kind):
    _, begun, advance, finish = begin(kind)
    out = finish(advance(begun, SIMULATIONS))
    assert np.all(np.asarray(out.visits.sum(-1)) == SIMULATIONS)
    assert np.allclose(out.value.sum(-1), 0, atol=1e-6)
    tree = jax.device_get(out.tree)
    assert np.all(tree.visits[:, 0] == SIMULATIONS + 1)
    assert np.all(np.asarray(out.tree.root_visits)[tree.invalid] == 0)
    for row in range(BATCH):
        for node in np.flatnonzero(tree.visits[row]):
            children = tree.child[row, node]
            children = children[children >= 0]
            assert np.all(tree.parent[row, children] == node)
            below = tree.visits[row, children].sum()
            assert below == (0 if tree.solved[row, node] else tree.visits[row, node] - 1)


def test_early_stop_keeps_the_most_visited_action():
    results = []
    for early in (False, True):
        _, begun, advance, finish = begin(
            "puct", simulations=100, early_stop=early, temperature=0.0, dirichlet_fraction=0.0
        )
        done = advance(begun, 100)
        results.append((int(done.done), finish(done)))
    assert results[1][0] < results[0][0] == 100
    np.testing.assert_array_equal(results[0][1].action, results[1][1].action)


def test_stop_at_a_share():
    _, begun, advance, _ = begin("puct", simulations=100, leader_share=0.3)
    done = advance(begun, 100)
    assert int(done.done) < 100 and np.all(np.asarray(done.tree.root_visits.max(-1)) >= 30)
    before = advance(begun, int(done.done) - 1)
    assert np.any(np.asarray(before.tree.root_visits.max(-1)) < 30)


def _walk(tree, row, old, other, new):
    """Compares two subtrees node by node."""
    for name in ("visits", "value", "raw_value", "q", "reward", "discount", "prior", "to_move"):
        if new == 0 and name in ("q", "reward", "discount"):
            continue
        np.testing.assert_array_equal(
            getattr(tree, name)[row, old], getattr(other, name)[row, new], name
        )
    for leaf, moved in zip(
        jax.tree.leaves(tree.embedding), jax.tree.leaves(other.embedding), strict=True
    ):
        np.testing.assert_array_equal(leaf[row, old], moved[row, new])
    nodes = 1
    for action, child in enumerate(np.asarray(tree.child[row, old])):
        moved = int(other.child[row, new, action])
        assert (child < 0) == (moved < 0)
        if child >= 0:
            assert int(other.parent[row, moved]) == new
            assert int(other.action[row, moved]) == action
            nodes += _walk(tree, row, int(child), other, moved)
    return nodes


def test_subtree_keeps_every_statistic():
    policy, begun, advance, finish = begin("puct")
    tree = jax.device_get(advance(begun, SIMULATIONS).tree)
    action = np.argmax(tree.root_visits, -1).astype(np.int32)
    below = jax.device_get(search.subtree(tree, action))
    sizes = []
    for row in range(BATCH):
        nodes = _walk(tree, row, int(tree.child[row, 0, action[row]]), below, 0)
        assert nodes == np.sum(below.visits[row] > 0)
        sizes.append(nodes)
    assert int(below.used) == max(sizes) > 1


def test_subtree_of_an_unvisited_action_is_empty_and_can_go_on():
    policy, begun, advance, finish = begin("puct")
    tree = advance(begun, 3).tree
    action = jnp.argmin(tree.root_visits, -1).astype(jnp.int32)
    below = search.subtree(tree, action)
    assert np.all(np.asarray(below.visits) == 0)
    root, _ = problems.ours(PROBLEM, np.uint32(1), BATCH)
    again = search.resume(policy, jax.random.key(1), root, None, below)
    again = advance(again, SIMULATIONS)
    whole = search.start(policy, jax.random.key(1), root, None)
    whole = advance(whole, SIMULATIONS)
    np.testing.assert_array_equal(again.tree.root_visits, whole.tree.root_visits)
    np.testing.assert_allclose(again.tree.value[:, 0], whole.tree.value[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_search_goes_on_in_a_subtree(kind):
    policy, begun, advance, finish = begin(kind)
    tree = advance(begun, SIMULATIONS).tree
    action = jnp.argmax(tree.root_visits, -1).astype(jnp.int32)
    below = search.subtree(tree, action, num_nodes=SIMULATIONS + 1)
    rows = jnp.arange(BATCH)
    child = tree.child[rows, 0, action].astype(int)
    h, side = (leaf[rows, child] for leaf in tree.embedding)
    logits, value = PROBLEM.node(h)
    root = search.Root(logits, problems.both(value), side, (h, side))
    again = search.resume(policy, jax.random.key(8), root, None, below)
    brought = np.asarray(again.before.sum(-1))
    rounds = search.remaining(policy, again)
    assert int(rounds) == SIMULATIONS - brought.min()
    done = advance(again, rounds)
    visits = np.asarray(done.tree.root_visits)
    ended = np.asarray(below.solved[:, 0])
    np.testing.assert_array_equal(visits.sum(-1), brought + int(rounds))
    assert np.all((visits >= np.asarray(again.before)) | ended[:, None])
    out = finish(done)
    assert np.all(np.isfinite(out.action_weights))
    assert np.all(np.asarray(visits - again.before)[rows, np.asarray(out.action)] > 0) or (
        kind == "puct"
    )


def test_a_subtree_can_be_cut_to_the_oldest_nodes():
    policy, begun, advance, finish = begin("puct")
    tree = advance(begun, SIMULATIONS).tree
    action = jnp.argmax(tree.root_visits, -1).astype(jnp.int32)
    whole, cut = search.subtree(tree, action), search.subtree(tree, action, num_nodes=3)
    assert cut.num_nodes == 3 and int(cut.used) <= 3
    np.testing.assert_array_equal(cut.visits, whole.visits[:, :3])
    assert int(cut.child.max()) < 3


@pytest.mark.parametrize("policy", [search.gumbel_policy, search.puct_policy])
def test_numbers_out_of_range(policy):
    root, fn = problems.ours(PROBLEM, np.uint32(0), BATCH)
    for field, args, options in (
        ("num_simulations", (0,), {}),
        ("num_simulations", (-3,), {}),
        ("max_depth", (4,), {"max_depth": 0}),
    ):
        with pytest.raises(ValueError, match=f"^{field}: "):
            policy((), jax.random.key(0), root, fn, *args, **options)
    with pytest.raises(ValueError, match="^max_num_considered_actions: "):
        search.gumbel(4, max_num_considered_actions=0)


@pytest.mark.parametrize("policy", [search.gumbel_policy, search.puct_policy])
def test_rows_without_a_legal_action_stay_finite(policy):
    root, fn = problems.ours(PROBLEM, np.uint32(0), BATCH)

    def masked_fn(params, key, action, embedding):
        step, embedding = fn(params, key, action, embedding)
        logits = jnp.full_like(step.prior_logits, search.MASKED_LOGIT)
        return dataclasses.replace(step, prior_logits=logits), embedding

    invalid = jnp.ones((BATCH, 9), bool)
    out = jax.jit(lambda root: policy((), jax.random.key(0), root, masked_fn, 20, invalid))(root)
    for leaf in (out.action_weights, out.value, out.visits, out.q):
        assert np.all(np.isfinite(leaf))
    assert np.all((np.asarray(out.action) >= 0) & (np.asarray(out.action) < 9))
    np.testing.assert_allclose(out.action_weights.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("policy", [search.gumbel_policy, search.puct_policy])
def test_one_trace_donation_and_fresh_keys(policy):
    root, fn = problems.ours(PROBLEM, np.uint32(0), BATCH)

    def chance_fn(params, key, action, embedding):
        step, embedding = fn((), None, action, embedding)
        noise = 0.1 * jax.random.normal(key, step.value.shape[:1])
        return dataclasses.replace(step, value=step.value + problems.both(noise)), embedding

    traces = []

    def run(key, root):
        traces.append(None)
        return policy((), key, root, chance_fn, 10)

    run = jax.jit(run, donate_argnums=1)
    first = None
    with jax.debug_key_reuse(True):
        for seed in (0, 0, 1):
            out = run(jax.random.key(seed), jax.tree.map(jnp.copy, root))
            if first is None:
                first = out
            elif seed == 0:
                np.testing.assert_array_equal(first.value, out.value)
    assert np.any(np.asarray(first.value) != np.asarray(out.value))
    assert len(traces) == 1


def test_paranoid_sees_two_sides():
    """Three teams with the values (x, y, z): the rest wants -x, whoever moves."""
    actions, batch = 5, 3
    base, base_fn = problems.ours(Problem(actions), np.uint32(4), batch)

    def three(value):
        return jnp.stack([value[:, 0], 0.3 * value[:, 0] - 0.1, -value[:, 0]], -1)

    def team(side, h):
        return jnp.where(side == 0, 0, 1 + (h % 2).astype(jnp.int32))

    def fn(params, key, action, embedding):
        step, embedding = base_fn(params, key, action, embedding)
        step = dataclasses.replace(
            step,
            value=three(step.value),
            reward=three(step.reward),
            to_move=team(step.to_move, embedding[0]),
        )
        return step, embedding

    h, side = base.embedding
    side = jnp.zeros_like(side)
    base = dataclasses.replace(base, to_move=side, embedding=(h, side))
    root = dataclasses.replace(base, value=three(base.value))
    key = jax.random.key(3)
    policy = functools.partial(search.gumbel_policy, num_simulations=50)
    want = jax.jit(lambda root: policy((), key, root, base_fn))(base)
    got = jax.jit(lambda root: policy((), key, *search.paranoid(root, fn)))(root)
    np.testing.assert_array_equal(want.visits, got.visits)
    np.testing.assert_allclose(want.value, got.value, atol=1e-6)
