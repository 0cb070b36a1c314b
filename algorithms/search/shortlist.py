"""Selection among the children a node has, instead of among all actions.

For every node the search can have chosen but not yet expanded, Gumbel's selection rules only
need to know the best prior and the sum of the priors: their q-values and visits are all the
same. So a node is read as its children, in order of expansion, and one more entry for the
rest. That is a node of a few dozen actions to the q-transform, whatever the action head is.

Kept per node: the first K children and four numbers. Nodes with more than K children are read
action by action (`tree.view`).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from algorithms.search import tree as trees
from algorithms.search.base import LOWEST_LOGIT, Array
from algorithms.search.tree import ROOT, UNVISITED, Leaf, Tree, at_node, of_children


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Shortlist:
    """Attributes:
    slots: int16[B, N, K] (int32 in large trees), children in order of expansion.
    count: int32[B, N], number of children, K or more included.
    edge_logit: float32[B, N], prior logit of the edge into the node.
    next_action: int32[B, N], unexpanded action of greatest prior.
    next_logit: float32[B, N], its logit.
    rest_logit: float32[B, N], logarithm of the summed exponentials of unexpanded logits.
    queue: int32[B, m], root actions in the order of their first visits.
    considered: int32[B], how many of them the search considers.
    root_score: float32[B, A], what the root's choice adds to the q-values.
    last: where the latest node was added, not yet taken note of.
    """

    slots: Array
    count: Array
    edge_logit: Array
    next_action: Array
    next_logit: Array
    rest_logit: Array
    queue: Array
    considered: Array
    root_score: Array
    last: Leaf


def attach(tree: Tree, size: int, considered: Array, score: Array, longest: int) -> Tree:
    """A tree of roots with shortlists of `size` entries.

    `score` float32[B, A] orders the first visits of root actions, -inf where forbidden;
    `considered` int32[B] of them are visited, at most `longest`.
    """
    batch, nodes, actions = tree.child.shape
    next_action, next_logit, rest_logit = _rest(tree.prior[:, ROOT])

    def column(value):
        return jnp.zeros((batch, nodes), value.dtype).at[:, ROOT].set(value)

    zeros = jnp.zeros(batch, jnp.int32)
    return tree.replace(
        short=Shortlist(
            slots=jnp.full((batch, nodes, size), UNVISITED, tree.child.dtype),
            count=jnp.zeros((batch, nodes), jnp.int32),
            edge_logit=jnp.zeros((batch, nodes), jnp.float32),
            next_action=column(next_action),
            next_logit=column(next_logit),
            rest_logit=column(rest_logit),
            queue=jax.lax.top_k(score, min(longest, actions))[1],
            considered=considered,
            root_score=score,
            last=Leaf(zeros, zeros, zeros),
        )
    )


def expanded(tree: Tree, leaf: Leaf) -> Tree:
    """Remembers that `tree.expand` has just added the last column at `leaf`."""
    return tree.replace(short=dataclasses.replace(tree.short, last=leaf))


def catch_up(tree: Tree) -> Tree:
    """Takes note of the latest expansion; to be called before the next descent.

    Not right after the expansion: the compiler would redo the write of the priors in every
    reader and keep a copy of the whole array for that. Before a descent all reads precede the
    next write.
    """
    short, leaf = tree.short, tree.short.last
    rows = jnp.arange(leaf.parent.shape[0])
    column = tree.used - 1
    parent = jnp.where(leaf.child == UNVISITED, leaf.parent, tree.num_nodes)
    prior = at_node(tree.prior, leaf.parent)
    unvisited = jnp.where(at_node(tree.child, leaf.parent) == UNVISITED, prior, -jnp.inf)
    below = jax.lax.dynamic_index_in_dim(tree.prior, column, axis=1, keepdims=False)

    def note(whole, at_parent, at_column):
        whole = whole.at[rows, parent].set(at_parent, mode="drop")
        return trees.write_column(whole, at_column, column)

    rest = zip(_rest(unvisited), _rest(below), strict=True)
    next_action, next_logit, rest_logit = (
        note(getattr(short, name), *values)
        for name, values in zip(("next_action", "next_logit", "rest_logit"), rest, strict=True)
    )
    count = at_node(short.count, leaf.parent)
    short = dataclasses.replace(
        short,
        slots=short.slots.at[rows, parent, count].set(
            column.astype(short.slots.dtype), mode="drop"
        ),
        count=short.count.at[rows, parent].set(count + 1, mode="drop"),
        edge_logit=trees.write_column(short.edge_logit, prior[rows, leaf.action], column),
        next_action=next_action,
        next_logit=next_logit,
        rest_logit=rest_logit,
    )
    return tree.replace(short=short)


def fits(tree: Tree, node: Array) -> Array:
    """bool[], whether the nodes int32[B] have all their children on their shortlists."""
    short = tree.short
    return jnp.all(at_node(short.count, node) <= short.slots.shape[-1])


def view(tree: Tree, node: Array) -> tuple[mctx.Tree, Array]:
    """As `tree.view`, with K + 1 entries: K children and, last, the rest.

    Also the actions int32[B, K] that lead to the children; A where there is none.
    """
    short = tree.short
    size = short.slots.shape[-1]
    here = jnp.arange(size) < at_node(short.count, node)[:, None]
    child = jnp.where(here, at_node(short.slots, node), UNVISITED)
    logits = of_children(short.edge_logit, child, LOWEST_LOGIT)
    rest = at_node(short.rest_logit, node)
    view = trees.view_children(
        tree,
        node,
        jnp.pad(child, ((0, 0), (0, 1)), constant_values=UNVISITED),
        jnp.concatenate([logits, rest[:, None]], axis=1),
        invalid=None,
    )
    return view, of_children(tree.action, child, tree.prior.shape[-1])


def best(score: Array, action: Array) -> tuple[Array, Array]:
    """The lowest action int32[B] of greatest score [B, K], and that score [B]."""
    top = score.max(-1)
    return jnp.where(score == top[:, None], action, np.iinfo(np.int32).max).min(-1), top


def _rest(logits: Array) -> tuple[Array, Array, Array]:
    """(action, logit, summed logit) of unexpanded `logits` [B, A], -inf where expanded."""
    top = jnp.maximum(logits.max(-1), LOWEST_LOGIT)
    actions = logits.shape[-1]
    action = jnp.where(logits == top[:, None], jnp.arange(actions), actions - 1).min(-1)
    total = jnp.exp(logits - top[:, None]).sum(-1)
    return action, top, jnp.where(total > 0, top + jnp.log(jnp.maximum(total, 1e-30)), LOWEST_LOGIT)
