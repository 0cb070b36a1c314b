"""A search as a value: begun, advanced by any number of simulations, finished.

    search = start(policy, key, root, invalid_actions)
    search = advance(policy, params, search, recurrent_fn, 100)
    output = finish(policy, search)

Advancing in several rounds gives the same search as in one, bit for bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from algorithms.search import proof, shortlist
from algorithms.search import tree as trees
from algorithms.search.base import (
    LOWEST_LOGIT,
    Array,
    Params,
    PolicyOutput,
    RecurrentFn,
    Root,
    log_probs,
    row_keys,
    split_key,
)
from algorithms.search.tree import Tree


@dataclasses.dataclass(frozen=True)
class Policy:
    """How to search; every field is static.

    Attributes:
      num_simulations: simulations of one search.
      prepare: `(key, root, invalid) -> (search key, last key, prior logits, noise)`.
      plant: `(tree, noise) -> tree`, what the policy adds to a tree of roots.
      select_root: `(keys[B], search) -> action[B]`, at the root.
      select: `(keys[B], tree, node[B]) -> action[B]`, below the root.
      improve: `(view) -> (weights[B, A], logits[B, A])`, the improved policy and its logits.
      choose: `(key, logits, leaders bool[B, A], noise) -> action[B]`; `leaders` have the most
        visits of this search.
      draws: whether the selections use their keys, which are None otherwise.
      max_depth: edges below which nothing is expanded.
      early_stop: stop once the leader of every row can not be caught.
      leader_share: stop once a root action of every row has this share of the simulations.
      prove: carry won and lost nodes up exactly.
    """

    num_simulations: int
    prepare: Callable[..., Any]
    plant: Callable[..., Tree]
    select_root: Callable[..., Array]
    select: Callable[..., Array]
    improve: Callable[..., Any]
    choose: Callable[..., Array]
    draws: bool
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
      key: key of the simulations to come, key[] or one for each decision.
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

    @property
    def spent(self) -> Array:
        """int32[B, A], visits of root actions by this search."""
        return self.tree.root_visits - self.before


def start(
    policy: Policy,
    key: Array,
    root: Root,
    invalid_actions: Array | None = None,
    *,
    share: int = 1,
) -> Search:
    """A search with no simulation run; consumes `key`, key[] for the whole batch or one for each
    decision, which is then searched as if it were alone.

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
    noise = spread(noise)
    tree = trees.plant(root, policy.num_simulations + 1, spread(invalid))
    before = jnp.zeros(root.prior_logits.shape, jnp.int32)
    return Search(policy.plant(tree, noise), key, last_key, noise, before, jnp.int32(0))


def advance(
    policy: Policy, params: Params, search: Search, recurrent_fn: RecurrentFn, rounds: Array | int
) -> Search:
    """Runs up to `rounds` more simulations, never past the policy's number."""
    end = jnp.minimum(search.done + rounds, policy.num_simulations)

    def going(search):
        return (search.done < end) & ~_decided(policy, search)

    def body(search):
        key, select_key, expand_key = split_key(search.key, 3)
        root_keys = level_keys = None
        if policy.draws:
            keys = row_keys(select_key, search.noise.shape[0])
            keys = jax.vmap(jax.random.split)(keys)
            level_keys, root_keys = keys[:, 0], keys[:, 1]
        tree = search.tree
        if tree.short is not None:
            tree = shortlist.catch_up(tree)
        action = policy.select_root(root_keys, dataclasses.replace(search, tree=tree))
        leaf = trees.descend(tree, action, policy.select, level_keys, policy.max_depth)
        tree, node = trees.expand(tree, leaf, params, expand_key, recurrent_fn)
        if tree.short is not None:
            tree = shortlist.expanded(tree, leaf)
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
    spent = search.spent
    leaders = spent == spent.max(-1, keepdims=True)
    weights, logits = policy.improve(root_view(tree))
    if policy.prove:
        weights, leaders = proof.settle(weights, leaders, tree)
        logits = jnp.where(leaders | ~tree.solved[:, :1], logits, LOWEST_LOGIT)
    if share > 1:
        worlds = lambda leaf: leaf.reshape(-1, share, *leaf.shape[1:])  # noqa: E731
        trust = worlds(visits) / jnp.maximum(worlds(visits).sum(1, keepdims=True), 1)
        seen = worlds(visits).sum(1) > 0
        q = jnp.where(seen, (worlds(q) * trust).sum(1), worlds(q).mean(1))
        weights, value = worlds(weights).mean(1), worlds(value).mean(1)
        visits, leaders = worlds(visits).mean(1), worlds(leaders).any(1)
        logits, noise = log_probs(weights), noise[::share]
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


def root_view(tree: Tree) -> Any:
    """`tree.view` of the roots."""
    return trees.view(tree, jnp.zeros(tree.child.shape[0], jnp.int32), tree.invalid)


def _decided(policy: Policy, search: Search) -> Array:
    """bool[], whether no row can gain from more simulations."""
    stop = jnp.zeros(search.noise.shape[:1], bool)
    if policy.prove:
        stop |= search.tree.solved[:, trees.ROOT]
    if policy.early_stop or policy.leader_share is not None:
        first, second = jnp.moveaxis(jax.lax.top_k(search.spent, 2)[0], -1, 0)
        if policy.early_stop:
            stop |= first - second > policy.num_simulations - search.done
        if policy.leader_share is not None:
            stop |= first >= policy.leader_share * policy.num_simulations
    return jnp.all(stop)
