"""Keeping what was searched below the move that was played.

    below = subtree(output.tree, action, num_nodes=policy.num_simulations + 1)
    search = resume(policy, key, root, invalid_actions, below)
    search = advance(policy, params, search, recurrent_fn, remaining(policy, search))

An edge holds one draw of chance: reuse a tree only where the move led to the very position
that the tree holds (games without chance and hidden cards, or the same world).
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from algorithms.search import rounds
from algorithms.search import tree as trees
from algorithms.search.base import Array, Root
from algorithms.search.rounds import Policy, Search
from algorithms.search.tree import ROOT, UNVISITED, Tree


def subtree(tree: Tree, action: Array, num_nodes: int | None = None) -> Tree:
    """The tree below `action` int32[B] of each root, re-rooted and moved to the front.

    Args:
      tree: as it came out of a search.
      action: int32[B].
      num_nodes: capacity of the result (default: as before). Where a row has more nodes, the
        oldest stay; edges to the others become unvisited while the counts above them stay.

    Returns:
      Tree; a row whose action had no visit is empty, with 0 visits at its root.
    """
    batch, capacity, _ = tree.child.shape
    num_nodes = capacity if num_nodes is None else num_nodes
    rows = jnp.arange(batch)
    new_root = tree.child[rows, ROOT, action].astype(jnp.int32)

    # A node belongs to the subtree if an ancestor is the new root: pointer doubling.
    inside = jnp.arange(capacity) == new_root[:, None]
    ancestor = tree.parent
    for _ in range(max(1, math.ceil(math.log2(capacity)))):
        inside = inside | jnp.take_along_axis(inside, ancestor, axis=1)
        ancestor = jnp.take_along_axis(ancestor, ancestor, axis=1)
    inside = inside & (tree.visits > 0)

    place = jnp.cumsum(inside, axis=1) - 1
    count = jnp.minimum(place[:, -1] + 1, num_nodes)
    # Parents precede children, so the new root comes first and the order stays.
    source = jnp.argsort(~inside, axis=1, stable=True)[:, :num_nodes]
    source = jnp.pad(source, ((0, 0), (0, max(0, num_nodes - capacity))))
    taken = jnp.arange(num_nodes) < count[:, None]
    place = jnp.where(inside & (place < num_nodes), place, UNVISITED)

    def move(leaf):
        return jax.vmap(lambda leaf, source: leaf[source])(leaf, source)

    def renumber(index):
        found = jax.vmap(lambda place, index: place[index])(place, jnp.maximum(index, 0))
        return jnp.where(index < 0, UNVISITED, found)

    child = jnp.where(taken[:, :, None], renumber(move(tree.child).astype(jnp.int32)), UNVISITED)
    index = trees.index_type(num_nodes)
    kept = {
        field.name: jax.tree.map(move, getattr(tree, field.name))
        for field in dataclasses.fields(tree)
        if field.name not in ("child", "invalid", "used", "short")
    }
    kept["parent"] = jnp.maximum(renumber(kept["parent"]), ROOT)
    kept["visits"] = jnp.where(taken, kept["visits"], 0)
    return tree.replace(
        **kept,
        child=child.astype(index),
        invalid=jnp.zeros_like(tree.invalid),
        used=jnp.maximum(count.max(), 1).astype(jnp.int32),
        short=None,
    )


def resume(
    policy: Policy, key: Array, root: Root, invalid_actions: Array | None, below: Tree
) -> Search:
    """Like `rounds.start`, going on in `below` (from `subtree`); consumes `key`.

    `root` holds the positions now at the roots: its prior is what the policy makes noisy and
    what an empty row starts from. The capacity grows by the policy's number of simulations.
    """
    fresh = rounds.start(policy, key, root, invalid_actions)
    empty = below.visits[:, ROOT] == 0
    room = ((0, 0), (0, policy.num_simulations))

    def grow(leaf, fill=0):
        return jnp.pad(leaf, room + ((0, 0),) * (leaf.ndim - 2), constant_values=fill)

    index = trees.index_type(below.num_nodes + policy.num_simulations)
    per_node = below.replace(child=None, invalid=None, used=None)
    tree = jax.tree.map(grow, per_node).replace(
        child=grow(below.child.astype(index), UNVISITED),
        invalid=fresh.tree.invalid,
        used=below.used,
    )

    def first(leaf, new):
        return leaf.at[:, ROOT].set(new[:, ROOT])

    def first_if_empty(leaf, new):
        pick = empty.reshape((-1,) + (1,) * (leaf.ndim - 2))
        return leaf.at[:, ROOT].set(jnp.where(pick, new[:, ROOT], leaf[:, ROOT]))

    tree = tree.replace(
        prior=first(tree.prior, fresh.tree.prior),
        embedding=jax.tree.map(first, tree.embedding, fresh.tree.embedding),
        **{
            name: first_if_empty(getattr(tree, name), getattr(fresh.tree, name))
            for name in ("to_move", "visits", "value", "raw_value", "solved")
        },
    )
    return dataclasses.replace(fresh, tree=tree, before=tree.root_visits)


def remaining(policy: Policy, search: Search) -> Array:
    """int32[], simulations left when visits that the tree brought along count, at least 1.

    The row with the least visits decides.
    """
    brought = search.before.sum(-1).min()
    return jnp.maximum(policy.num_simulations - brought - search.done, 1)
