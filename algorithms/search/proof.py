"""Exact values carried up from the ends of games.

A node is solved when the game ended there, when its team to move has an edge to a solved node
that is worth `WIN` to it, or when all its legal edges lead to solved nodes. Its value is then
that of its best edge. For two opposed teams this is minimax; for more it is max^n, where among
edges of equal worth to the mover the lowest action counts. Right only in games without chance,
since an edge holds one draw.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mctx

from algorithms.search.base import MASKED_LOGIT, Array
from algorithms.search.tree import ROOT, UNVISITED, Tree, at_node, of_children

#: The best result of a game; no reward exceeds it.
WIN = 1.0


def best_edge(tree: Tree, node: Array) -> tuple[Array, Array, Array]:
    """What is proven at `node` int32[B].

    Returns:
      (solved bool[B], action int32[B], value float32[B, T]); the last two hold the best
      solved edge and mean nothing where no edge is solved.
    """
    child = at_node(tree.child, node)
    forbidden = (at_node(tree.prior, node) <= MASKED_LOGIT) | (
        tree.invalid & (node == ROOT)[:, None]
    )
    done = of_children(tree.solved, child, False) & ~forbidden
    q = jnp.where(done, of_children(tree.q, child, 0.0), -jnp.inf)
    action = jnp.argmax(q, -1).astype(jnp.int32)
    behind = jnp.take_along_axis(child, action[:, None], axis=1)[:, 0].astype(jnp.int32)
    behind = jnp.where(behind == UNVISITED, ROOT, behind)
    value = at_node(tree.reward, behind) + at_node(tree.discount, behind)[:, None] * at_node(
        tree.value, behind
    )
    solved = (q.max(-1) >= WIN) | (jnp.all(done | forbidden, -1) & jnp.any(done, -1))
    return solved, action, value


def shun_lost(view: mctx.Tree, tree: Tree) -> mctx.Tree:
    """A view (`tree.view`) in which edges proven lost for the mover have no prior left."""
    lost = of_children(tree.solved, view.children_index[:, 0], False)
    lost &= view.children_values[:, 0] <= -WIN
    logits = jnp.where(lost, MASKED_LOGIT, view.children_prior_logits[:, 0])
    return view.replace(children_prior_logits=logits[:, None])


def settle(policy_weights: Array, leaders: Array, tree: Tree) -> tuple[Array, Array]:
    """Weights float32[B, A] and leaders bool[B, A] with a solved root's best action alone."""
    root = jnp.full(policy_weights.shape[0], ROOT, jnp.int32)
    solved, action, _ = best_edge(tree, root)
    sure = jax.nn.one_hot(action, policy_weights.shape[1])
    pick = solved[:, None]
    return jnp.where(pick, sure, policy_weights), jnp.where(pick, sure > 0, leaders)
