"""PUCT, as in MuZero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from algorithms.search import proof
from algorithms.search import tree as trees
from algorithms.search.base import check_numbers, draw_rows, log_probs, mask_logits, split_key
from algorithms.search.rounds import Policy
from algorithms.search.tree import FIRST, ROOT


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
    prove: bool = False,
    **stopping: Any,
) -> Policy:
    """PUCT as in MuZero (Schrittwieser et al. 2020, appendix B), Dirichlet noise at the root."""
    check_numbers(num_simulations, max_depth)

    def prepare(key, root, invalid):
        key, noise_key, search_key = split_key(key, 3)
        batch, actions = root.prior_logits.shape

        def draw(key, shape):
            return jax.random.dirichlet(key, jnp.full(actions, dirichlet_alpha), shape)

        noise = draw_rows(draw, noise_key, batch)
        prior = jax.nn.softmax(root.prior_logits)
        mixed = (1 - dirichlet_fraction) * prior + dirichlet_fraction * noise
        return search_key, key, mask_logits(log_probs(mixed), invalid), noise

    def choose_at(depth, keys, tree, node, invalid):
        view = trees.view(tree, node, invalid)
        view = proof.shun_lost(view, tree) if prove else view

        def one(key, view):
            return mctx.muzero_action_selection(
                key,
                view,
                FIRST,
                depth,
                pb_c_init=pb_c_init,
                pb_c_base=pb_c_base,
                qtransform=qtransform,
            )

        return jax.vmap(one)(keys, view)

    def select_root(keys, search):
        tree = search.tree
        return choose_at(0, keys, tree, jnp.full(keys.shape[0], ROOT), tree.invalid)

    def select(keys, tree, node):
        return choose_at(1, keys, tree, node, jnp.zeros_like(tree.invalid))

    def improve(view):
        visits = view.children_visits[:, 0].astype(jnp.float32)
        total = visits.sum(-1, keepdims=True)
        weights = jnp.where(total > 0, visits / jnp.maximum(total, 1), 1 / visits.shape[-1])
        return weights, log_probs(weights)

    def choose(key, logits, leaders, noise):
        del leaders, noise
        logits = logits - logits.max(-1, keepdims=True)
        logits = logits / jnp.maximum(np.finfo(np.float32).tiny, temperature)
        if key.ndim:
            return jax.vmap(jax.random.categorical)(key, logits).astype(jnp.int32)
        return jax.random.categorical(key, logits).astype(jnp.int32)

    return Policy(
        num_simulations=num_simulations,
        prepare=prepare,
        plant=lambda tree, noise: tree,
        select_root=select_root,
        select=select,
        improve=improve,
        choose=choose,
        draws=True,
        prove=prove,
        max_depth=max_depth or num_simulations,
        **stopping,
    )
