"""Gumbel MuZero and PUCT over the vector-valued tree.

A `Policy` is a set of pure functions; a search runs it in rounds,

    search = start(policy, key, root, invalid_actions)
    search = advance(policy, params, search, recurrent_fn, 100)
    output = finish(policy, search)

and `gumbel_policy` and `puct_policy` do all of it in one go, with the same result bit for
bit. Action selection and q-transforms are mctx's; random numbers are drawn in mctx's order,
so the same key gives the same noise and, where mctx applies, the same search.

Chance: an edge is expanded once, with one draw from the key that `recurrent_fn` is given
then; what was drawn stays for the rest of that search.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from algorithms.search import proof
from algorithms.search import tree as trees
from algorithms.search.base import Array, Params, PolicyOutput, RecurrentFn, Root
from algorithms.search.tree import Tree

_FIRST = np.int32(0)  # node index within a one-node view
_LOWEST = np.finfo(np.float32).min
_LOW_SCORE = -1e9  # of a legal root action with hardly any prior: above a forbidden one


@dataclasses.dataclass(frozen=True)
class Policy:
    """How to search; every field is static.

    Attributes:
      num_simulations: simulations of one search.
      prepare: `(key, root, invalid) -> (search key, last key, prior logits, noise)`.
      select_root: `(keys[B], view, spent int32[B, A], noise) -> action[B]`; `spent` are the
        visits of this search, without those that a reused tree brought along.
      select: `(keys[B], view) -> action[B]`, below the root.
      improve: `(view) -> (weights[B, A], logits[B, A])`, the improved policy and its logits.
      choose: `(key, logits, leaders bool[B, A], noise) -> action[B]`; `leaders` have the most
        visits of this search.
      max_depth: edges below which nothing is expanded.
      early_stop: stop once the leader of every row can not be caught.
      leader_share: stop once a root action of every row has this share of the simulations.
      prove: carry won and lost nodes up exactly.
    """

    num_simulations: int
    prepare: Callable[..., Any]
    select_root: Callable[..., Array]
    select: Callable[..., Array]
    improve: Callable[..., Any]
    choose: Callable[..., Array]
    max_depth: int
    early_stop: bool = False
    leader_share: float | None = None
    prove: bool = False


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Search:
    """A search under way; a pytree.

    Attributes:
      tree: Tree.
      key: key of the simulations to come.
      last_key: key of the decision.
      noise: what the policy drew at the root, float32[B, A].
      before: int32[B, A], root visits that were there at the start (a reused tree).
      done: int32[], simulations run.
    """

    tree: Tree
    key: Array
    last_key: Array
    noise: Array
    before: Array
    done: Array


def start(
    policy: Policy,
    key: Array,
    root: Root,
    invalid_actions: Array | None = None,
    *,
    share: int = 1,
) -> Search:
    """A search with no simulation run; consumes `key`.

    `share` consecutive rows are worlds of one decision: they get the prior, the legal actions
    and the noise of the first.
    """

    def spread(leaf):
        return leaf if share == 1 else jnp.repeat(leaf, share, axis=0)

    first = root if share == 1 else jax.tree.map(lambda leaf: leaf[::share], root)
    invalid = invalid_actions
    if invalid is not None:
        invalid = jnp.asarray(invalid)[::share].astype(bool)
    key, last_key, logits, noise = policy.prepare(key, first, invalid)
    if invalid is None:
        invalid = jnp.zeros(logits.shape, bool)
    root = dataclasses.replace(root, prior_logits=spread(logits))
    tree = trees.plant(root, policy.num_simulations + 1, spread(invalid))
    before = jnp.zeros(root.prior_logits.shape, jnp.int32)
    return Search(tree, key, last_key, spread(noise), before, jnp.int32(0))


def advance(
    policy: Policy, params: Params, search: Search, recurrent_fn: RecurrentFn, rounds: Array | int
) -> Search:
    """Runs up to `rounds` more simulations, never past the policy's number."""
    end = jnp.minimum(search.done + rounds, policy.num_simulations)

    def going(search):
        return (search.done < end) & ~_decided(policy, search)

    def body(search):
        tree = search.tree
        batch = search.noise.shape[0]
        key, select_key, expand_key = jax.random.split(search.key, 3)
        keys = jax.vmap(jax.random.split)(jax.random.split(select_key, batch))
        spent = tree.root_visits - search.before

        def look(tree, node, invalid):
            view = trees.view(tree, node, invalid)
            return proof.shun_lost(view, tree) if policy.prove else view

        def select(keys, tree, node):
            return policy.select(keys, look(tree, node, jnp.zeros_like(tree.invalid)))

        root_view = look(tree, jnp.full(batch, trees.ROOT), tree.invalid)
        action = policy.select_root(keys[:, 1], root_view, spent, search.noise)

        leaf = trees.descend(tree, action, select, keys[:, 0], policy.max_depth)
        tree, node = trees.expand(tree, leaf, params, expand_key, recurrent_fn)
        tree = trees.backup(tree, node, proof.best_edge if policy.prove else None)
        return dataclasses.replace(search, tree=tree, key=key, done=search.done + 1)

    return jax.lax.while_loop(going, body, search)


def finish(policy: Policy, search: Search, *, share: int = 1) -> PolicyOutput:
    """The decision after the simulations run so far.

    With `share` > 1 the output has a row per decision, averaged over its worlds; `tree` keeps
    all rows.
    """
    tree, noise = search.tree, search.noise
    visits, value, q = tree.root_visits, tree.value[:, trees.ROOT], tree.root_q
    spent = visits - search.before
    leaders = spent == spent.max(-1, keepdims=True)
    weights, logits = policy.improve(_root_view(tree))
    if policy.prove:
        weights, leaders = proof.settle(weights, leaders, tree)
        logits = jnp.where(leaders | ~tree.solved[:, :1], logits, _LOWEST)
    if share > 1:
        worlds = lambda leaf: leaf.reshape(-1, share, *leaf.shape[1:])  # noqa: E731
        trust = worlds(visits) / jnp.maximum(worlds(visits).sum(1, keepdims=True), 1)
        seen = worlds(visits).sum(1) > 0
        q = jnp.where(seen, (worlds(q) * trust).sum(1), worlds(q).mean(1))
        weights, value = worlds(weights).mean(1), worlds(value).mean(1)
        visits, leaders = worlds(visits).mean(1), worlds(leaders).any(1)
        logits, noise = _log(weights), noise[::share]
    return PolicyOutput(
        action=policy.choose(search.last_key, logits, leaders, noise),
        action_weights=weights,
        value=value,
        visits=visits.astype(jnp.float32),
        q=q,
        tree=tree,
    )


def run(
    policy: Policy,
    params: Params,
    key: Array,
    root: Root,
    recurrent_fn: RecurrentFn,
    invalid_actions: Array | None = None,
) -> PolicyOutput:
    """`start`, all simulations, `finish`."""
    search = start(policy, key, root, invalid_actions)
    search = advance(policy, params, search, recurrent_fn, policy.num_simulations)
    return finish(policy, search)


def gumbel(
    num_simulations: int,
    *,
    max_depth: int | None = None,
    max_num_considered_actions: int = 16,
    gumbel_scale: float = 1.0,
    qtransform: Callable = mctx.qtransform_completed_by_mix_value,
    **stopping: Any,
) -> Policy:
    """Full Gumbel MuZero (Danihelka et al., "Policy improvement by planning with Gumbel")."""
    _check(num_simulations, max_depth)
    if max_num_considered_actions < 1:
        raise ValueError("max_num_considered_actions: must be at least 1")

    def prepare(key, root, invalid):
        logits = _mask(root.prior_logits, invalid)
        key, noise_key = jax.random.split(key)
        noise = gumbel_scale * jax.random.gumbel(noise_key, logits.shape, logits.dtype)
        return key, None, logits, noise

    schedule = considered_visits(max_num_considered_actions, num_simulations)

    def completed(view):
        return jax.vmap(lambda view: qtransform(view, _FIRST))(view)

    def select_root(keys, view, spent, noise):
        del keys
        invalid, logits = view.root_invalid_actions, view.children_prior_logits[:, 0]
        # The halving counts the visits of this search, the q-values use all.
        considered = jnp.minimum(max_num_considered_actions, jnp.sum(~invalid, -1))
        visits = jnp.asarray(schedule)[considered, spent.sum(-1)]
        score = noise + (logits - logits.max(-1, keepdims=True)) + completed(view)
        allowed = (spent == visits[:, None]) & ~invalid
        return _argmax(jnp.where(allowed, jnp.maximum(_LOW_SCORE, score), -jnp.inf))

    def select(keys, view):
        del keys
        visits, logits = view.children_visits[:, 0], view.children_prior_logits[:, 0]
        improved = jax.nn.softmax(logits + completed(view))
        return _argmax(improved - visits / (1 + visits.sum(-1, keepdims=True)))

    def improve(view):
        logits = view.children_prior_logits[:, 0]
        logits = logits - logits.max(-1, keepdims=True) + completed(view)
        logits = _mask(logits, view.root_invalid_actions)
        return jax.nn.softmax(logits), logits

    def choose(key, logits, leaders, noise):
        del key
        legal = logits > _LOWEST
        score = jnp.maximum(_LOW_SCORE, noise + logits)
        return _argmax(jnp.where(leaders & legal, score, -jnp.inf))

    return Policy(
        num_simulations=num_simulations,
        prepare=prepare,
        select_root=select_root,
        select=select,
        improve=improve,
        choose=choose,
        max_depth=max_depth or num_simulations,
        **stopping,
    )


def puct(
    num_simulations: int,
    *,
    max_depth: int | None = None,
    dirichlet_fraction: float = 0.25,
    dirichlet_alpha: float = 0.3,
    pb_c_init: float = 1.25,
    pb_c_base: float = 19652.0,
    temperature: float = 1.0,
    qtransform: Callable = mctx.qtransform_by_parent_and_siblings,
    **stopping: Any,
) -> Policy:
    """PUCT as in MuZero (Schrittwieser et al. 2020, appendix B), Dirichlet noise at the root."""
    _check(num_simulations, max_depth)

    def prepare(key, root, invalid):
        key, noise_key, search_key = jax.random.split(key, 3)
        batch, actions = root.prior_logits.shape
        noise = jax.random.dirichlet(noise_key, jnp.full(actions, dirichlet_alpha), (batch,))
        prior = jax.nn.softmax(root.prior_logits)
        mixed = (1 - dirichlet_fraction) * prior + dirichlet_fraction * noise
        return search_key, key, _mask(_log(mixed), invalid), noise

    def at(depth):
        def one(key, view):
            return mctx.muzero_action_selection(
                key,
                view,
                _FIRST,
                depth,
                pb_c_init=pb_c_init,
                pb_c_base=pb_c_base,
                qtransform=qtransform,
            )

        return jax.vmap(one)

    def select_root(keys, view, spent, noise):
        del spent, noise
        return at(0)(keys, view)

    def improve(view):
        visits = view.children_visits[:, 0].astype(jnp.float32)
        total = visits.sum(-1, keepdims=True)
        weights = jnp.where(total > 0, visits / jnp.maximum(total, 1), 1 / visits.shape[-1])
        return weights, _log(weights)

    def choose(key, logits, leaders, noise):
        del leaders, noise
        logits = logits - logits.max(-1, keepdims=True)
        logits = logits / jnp.maximum(np.finfo(np.float32).tiny, temperature)
        return jax.random.categorical(key, logits).astype(jnp.int32)

    return Policy(
        num_simulations=num_simulations,
        prepare=prepare,
        select_root=select_root,
        select=at(1),
        improve=improve,
        choose=choose,
        max_depth=max_depth or num_simulations,
        **stopping,
    )


def considered_visits(max_considered: int, num_simulations: int) -> np.ndarray:
    """int32[max_considered + 1, num_simulations], the plan of sequential halving.

    Row m is for m considered actions: simulation i goes to an action with that many visits.
    The phases share the simulations equally, and each halves the actions down to two; in a
    phase all actions still considered are visited in turn.
    """
    plan = np.zeros((max_considered + 1, num_simulations), np.int32)
    for row, actions in zip(plan, range(max_considered + 1), strict=True):
        if actions <= 1:
            row[:] = np.arange(num_simulations)
            continue
        phases, visits, done = math.ceil(math.log2(actions)), 0, 0
        alive = actions
        while done < num_simulations:
            turns = max(1, num_simulations // (phases * alive))
            sweep = np.repeat(visits + np.arange(turns), alive)[: num_simulations - done]
            row[done : done + len(sweep)] = sweep
            visits, done = visits + turns, done + len(sweep)
            alive = max(2, alive // 2)
    return plan


def gumbel_policy(
    params: Params,
    key: Array,
    root: Root,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Array | None = None,
    **options: Any,
) -> PolicyOutput:
    """One whole Gumbel search; `options` as in `gumbel`.

    Args:
      params: handed to `recurrent_fn`.
      key: consumed.
      root: B positions.
      recurrent_fn: see `base.RecurrentFn`.
      num_simulations: at least 1.
      invalid_actions: bool[B, A], forbidden at the root.

    Raises:
      ValueError: a number out of range, "field: rule".
    """
    policy = gumbel(num_simulations, **options)
    return run(policy, params, key, root, recurrent_fn, invalid_actions)


def puct_policy(
    params: Params,
    key: Array,
    root: Root,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Array | None = None,
    **options: Any,
) -> PolicyOutput:
    """One whole PUCT search; `options` as in `puct`, arguments as in `gumbel_policy`."""
    policy = puct(num_simulations, **options)
    return run(policy, params, key, root, recurrent_fn, invalid_actions)


def _check(num_simulations: int, max_depth: int | None) -> None:
    if num_simulations < 1:
        raise ValueError(f"num_simulations: must be at least 1, got {num_simulations}")
    if max_depth is not None and max_depth < 1:
        raise ValueError(f"max_depth: must be at least 1, got {max_depth}")


def _root_view(tree: Tree) -> mctx.Tree:
    return trees.view(tree, jnp.zeros(tree.child.shape[0], jnp.int32), tree.invalid)


def _mask(logits: Array, invalid: Array | None) -> Array:
    """Logits with their maximum at 0 and forbidden actions at the least finite number."""
    if invalid is None:
        return logits
    shifted = logits - logits.max(-1, keepdims=True)
    return jnp.where(invalid, _LOWEST, shifted)


def _argmax(score: Array) -> Array:
    """First index of the maximum; two plain reductions, which vectorise where argmax does not."""
    size = score.shape[-1]
    best = score == score.max(-1, keepdims=True)
    return jnp.minimum(jnp.where(best, jnp.arange(size), size).min(-1), size - 1)


def _log(probs: Array) -> Array:
    return jnp.log(jnp.maximum(probs, np.finfo(np.float32).tiny))


def _decided(policy: Policy, search: Search) -> Array:
    """bool[], whether no row can gain from more simulations."""
    stop = jnp.zeros(search.noise.shape[:1], bool)
    if policy.prove:
        stop |= search.tree.solved[:, trees.ROOT]
    if policy.early_stop or policy.leader_share is not None:
        spent = search.tree.root_visits - search.before
        first, second = jnp.moveaxis(jax.lax.top_k(spent, 2)[0], -1, 0)
        if policy.early_stop:
            stop |= first - second > policy.num_simulations - search.done
        if policy.leader_share is not None:
            stop |= first >= policy.leader_share * policy.num_simulations
    return jnp.all(stop)
