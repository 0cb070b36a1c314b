"""The tree: storage, descent, expansion and backup, in time linear in the simulations.

Everything is stored per node and read through `child`; only the child's index and the prior
are kept per (node, action). The new node of a simulation is the same column for every row,
so it is written as one slice, and the backup walks all rows up together and writes only the
nodes on their paths. No array of size [B, N, A] is ever the operand of a select.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from algorithms.search.base import Array, Params, RecurrentFn, Root, take_team

UNVISITED = -1
ROOT = 0
FIRST = np.int32(0)  # index of the node in a one-node view


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tree:
    """B trees of at most N nodes; node 0 is the root, a parent precedes its children.

    Attributes:
      child: int16[B, N, A] (int32 from 32768 nodes on), node behind an action, -1 if none.
      prior: float32[B, N, A], prior logits.
      parent: int32[B, N].
      action: int32[B, N], action that led here from the parent.
      to_move: int32[B, N], team to move.
      visits: int32[B, N], simulations that reached the node; 0 for an unused column.
      value: float32[B, N, T], mean of what the simulations through the node returned.
      raw_value: float32[B, N], the network's value to the team to move.
      reward: float32[B, N, T] of the edge from the parent.
      discount: float32[B, N] of the edge from the parent.
      q: float32[B, N], reward + discount * value to the team that chose the edge.
      solved: bool[B, N], nothing below can change the value: the game ended here, or proven.
      embedding: pytree of [B, N, ...].
      invalid: bool[B, A], actions forbidden at the root.
      short: shortlists of children, see `shortlist.py`; None where they are not kept.
      used: int32[], columns taken so far.
    """

    child: Array
    prior: Array
    parent: Array
    action: Array
    to_move: Array
    visits: Array
    value: Array
    raw_value: Array
    reward: Array
    discount: Array
    q: Array
    solved: Array
    embedding: Any
    invalid: Array
    used: Array
    short: Any = None

    @property
    def num_nodes(self) -> int:
        """N, the capacity."""
        return self.child.shape[1]

    @property
    def root_visits(self) -> Array:
        """int32[B, A], simulations that went through each root action."""
        return of_children(self.visits, self.child[:, ROOT], 0)

    @property
    def root_q(self) -> Array:
        """float32[B, A], value of each root action to the mover; the root's if unvisited."""
        unvisited = take_team(self.value[:, ROOT], self.to_move[:, ROOT])
        return of_children(self.q, self.child[:, ROOT], unvisited[:, None])

    def replace(self, **changes: Any) -> Tree:
        return dataclasses.replace(self, **changes)


def of_children(per_node: Array, child: Array, missing: Array | int) -> Array:
    """`per_node` [B, N] read at `child` [B, A], `missing` where there is none."""
    index = jnp.maximum(child, 0).astype(jnp.int32)
    found = jnp.take_along_axis(per_node, index, axis=1, mode="promise_in_bounds")
    return jnp.where(child == UNVISITED, missing, found)


def at_node(per_node: Array, node: Array) -> Array:
    """`per_node` [B, N, ...] read at `node` int32[B], which is never out of bounds."""
    rows = jnp.arange(node.shape[0])
    return per_node.at[rows, node].get(mode="promise_in_bounds")


def index_type(num_nodes: int) -> type:
    """The integer that numbers `num_nodes` nodes."""
    return jnp.int16 if num_nodes < 2**15 else jnp.int32


def plant(root: Root, num_nodes: int, invalid: Array) -> Tree:
    """Trees that hold their roots only."""
    batch, actions = root.prior_logits.shape

    def column(leaf):
        leaf = jnp.asarray(leaf)
        return jnp.zeros((batch, num_nodes, *leaf.shape[1:]), leaf.dtype).at[:, 0].set(leaf)

    to_move = root.to_move.astype(jnp.int32)
    return Tree(
        child=jnp.full((batch, num_nodes, actions), UNVISITED, index_type(num_nodes)),
        prior=column(root.prior_logits),
        parent=jnp.zeros((batch, num_nodes), jnp.int32),
        action=jnp.zeros((batch, num_nodes), jnp.int32),
        to_move=column(to_move),
        visits=column(jnp.ones(batch, jnp.int32)),
        value=column(root.value),
        raw_value=column(take_team(root.value, to_move)),
        reward=jnp.zeros((batch, num_nodes, root.value.shape[1]), jnp.float32),
        discount=jnp.ones((batch, num_nodes), jnp.float32),
        q=jnp.zeros((batch, num_nodes), jnp.float32),
        solved=jnp.zeros((batch, num_nodes), bool),
        embedding=jax.tree.map(column, root.embedding),
        invalid=invalid,
        used=jnp.int32(1),
    )


def view(tree: Tree, node: Array, invalid: Array) -> mctx.Tree:
    """Node `node` int32[B] of each row as a one-node mctx tree, batched over rows.

    mctx's action selections and q-transforms read it under vmap, with node index 0.
    """
    child, prior = at_node(tree.child, node), at_node(tree.prior, node)
    return view_children(tree, node, child, prior, invalid)


def view_children(
    tree: Tree, node: Array, child: Array, logits: Array, invalid: Array | None
) -> mctx.Tree:
    """As `view`, with S given entries instead of all actions.

    `child` int[B, S] are their nodes (-1 for none), `logits` float32[B, S] their priors.
    """
    mover_value = take_team(at_node(tree.value, node), at_node(tree.to_move, node))
    q = of_children(tree.q, child, 0.0)[:, None]
    return mctx.Tree(
        node_visits=at_node(tree.visits, node)[:, None],
        raw_values=at_node(tree.raw_value, node)[:, None],
        node_values=mover_value[:, None],
        parents=None,
        action_from_parent=None,
        children_index=child[:, None],
        children_prior_logits=logits[:, None],
        children_values=q,
        children_visits=of_children(tree.visits, child, 0)[:, None],
        children_rewards=jnp.zeros_like(q),
        children_discounts=jnp.ones_like(q),
        embeddings=None,
        root_invalid_actions=invalid,
        extra_data=None,
    )


def write_column(whole: Array, column: Array, index: Array) -> Array:
    """`whole` [B, N, ...] with `column` [B, ...] at [:, index], written in place."""
    column = column[:, None].astype(whole.dtype)
    return jax.lax.dynamic_update_slice_in_dim(whole, column, index, axis=1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Leaf:
    """Where a descent ended: int32[B] each; `child` is -1 for an edge not yet expanded."""

    parent: Array
    action: Array
    child: Array


def descend(
    tree: Tree,
    root_action: Array,
    select: Callable[[Array | None, Tree, Array], Array],
    keys: Array | None,
    max_depth: int,
) -> Leaf:
    """Follows `select(keys[B], tree, node[B]) -> action[B]` from `root_action` int32[B] down.

    A row ends at an edge without a node, at a solved node or at `max_depth` edges; from then
    on `select` is given its root, whose answer is not used. Consumes `keys`, which may be
    None where `select` draws nothing.
    """
    rows = jnp.arange(root_action.shape[0])

    def arrive(node, action, depth):
        child = tree.child[rows, node, action].astype(jnp.int32)
        ended = at_node(tree.solved, jnp.maximum(child, 0)) | (depth >= max_depth)
        return Leaf(node, action, child), (child != UNVISITED) & ~ended

    def body(carry):
        leaf, going, keys, depth = carry
        level_keys = None
        if keys is not None:
            split = jax.vmap(jax.random.split)(keys)
            keys, level_keys = split[:, 0], split[:, 1]
        node = jnp.where(going, leaf.child, ROOT)
        reached, further = arrive(node, select(level_keys, tree, node), depth + 1)
        leaf = jax.tree.map(lambda new, old: jnp.where(going, new, old), reached, leaf)
        return leaf, going & further, keys, depth + 1

    leaf, going = arrive(jnp.full_like(root_action, ROOT), root_action, 1)
    carry = (leaf, going, keys, jnp.int32(1))
    return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), body, carry)[0]


def expand(
    tree: Tree, leaf: Leaf, params: Params, key: Array, recurrent_fn: RecurrentFn
) -> tuple[Tree, Array]:
    """Evaluates the leaves and writes them as the next column; also each row's node int32[B].

    Rows that ended at an existing node keep it and leave their column unused.
    """
    rows = jnp.arange(leaf.parent.shape[0])
    embedding = jax.tree.map(lambda x: at_node(x, leaf.parent), tree.embedding)
    step, embedding = recurrent_fn(params, key, leaf.action, embedding)
    fresh = leaf.child == UNVISITED
    chooser = at_node(tree.to_move, leaf.parent)
    to_move = step.to_move.astype(jnp.int32)
    q = take_team(step.reward + step.discount[:, None] * step.value, chooser)

    def write(whole, column):
        return write_column(whole, column, tree.used)

    edge = (rows, jnp.where(fresh, leaf.parent, tree.num_nodes), leaf.action)
    tree = tree.replace(
        child=tree.child.at[edge].set(tree.used.astype(tree.child.dtype), mode="drop"),
        prior=write(tree.prior, step.prior_logits),
        parent=write(tree.parent, leaf.parent),
        action=write(tree.action, leaf.action),
        to_move=write(tree.to_move, to_move),
        value=write(tree.value, step.value),
        raw_value=write(tree.raw_value, take_team(step.value, to_move)),
        reward=write(tree.reward, step.reward),
        discount=write(tree.discount, step.discount),
        q=write(tree.q, q),
        solved=write(tree.solved, step.discount == 0),
        embedding=jax.tree.map(write, tree.embedding, embedding),
        used=tree.used + 1,
    )
    return tree, jnp.where(fresh, tree.used - 1, leaf.child)


def backup(tree: Tree, node: Array, prove: Callable | None = None) -> Tree:
    """Adds one visit from `node` int32[B] up to the root, with the node's value on its way.

    `prove(tree, node[B]) -> (solved bool[B], _, value float32[B, T])` tells which nodes are
    settled by their children.
    """
    rows = jnp.arange(node.shape[0])
    outside = tree.num_nodes

    def body(carry):
        visits, value, q, solved, node, worth, node_value = carry
        parent = at_node(tree.parent, node)
        active = node != ROOT
        target = jnp.where(active, parent, outside)
        reward = at_node(tree.reward, node)
        discount = at_node(tree.discount, node)[:, None]
        worth = reward + discount * worth
        edge_q = take_team(reward + discount * node_value, at_node(tree.to_move, parent))
        q = q.at[rows, jnp.where(active, node, outside)].set(edge_q, mode="drop")
        count = at_node(visits, parent)[:, None]
        parent_value = (at_node(value, parent) * count + worth) / (count + 1)
        if prove is not None:
            now = tree.replace(visits=visits, value=value, q=q, solved=solved)
            settled, _, exact = prove(now, parent)
            worth = jnp.where(settled[:, None], exact, worth)
            parent_value = jnp.where(settled[:, None], exact, parent_value)
            solved = solved.at[rows, target].set(settled, mode="drop")
        value = value.at[rows, target].set(parent_value, mode="drop")
        visits = visits.at[rows, target].add(1, mode="drop")
        node = jnp.where(active, parent, node)
        return visits, value, q, solved, node, worth, parent_value

    visits = tree.visits.at[rows, node].add(1)
    value = at_node(tree.value, node)
    carry = (visits, tree.value, tree.q, tree.solved, node, value, value)
    carry = jax.lax.while_loop(lambda carry: jnp.any(carry[4] != ROOT), body, carry)
    return tree.replace(visits=carry[0], value=carry[1], q=carry[2], solved=carry[3])
