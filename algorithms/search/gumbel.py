"""Full Gumbel MuZero: sequential halving at the root, the improved policy below it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from algorithms.search import proof, shortlist
from algorithms.search import tree as trees
from algorithms.search.base import (
    LOWEST_LOGIT,
    check_numbers,
    draw_rows,
    first_argmax,
    mask_logits,
    split_key,
)
from algorithms.search.rounds import Policy
from algorithms.search.tree import FIRST, ROOT

_LOW_SCORE = -1e9  # of a legal root action with hardly any prior: above a forbidden one
_SHORT = 64  # children on a shortlist
_MANY_ROWS = 8  # with fewer, reading all actions takes fewer operations


def gumbel(
    num_simulations: int,
    *,
    max_depth: int | None = None,
    max_num_considered_actions: int = 16,
    gumbel_scale: float = 1.0,
    qtransform: Callable = mctx.qtransform_completed_by_mix_value,
    prove: bool = False,
    short: int | None = None,
    **stopping: Any,
) -> Policy:
    """Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022.

    Args:
      num_simulations: at least 1.
      max_depth: edges below which nothing is expanded; None for no limit.
      max_num_considered_actions: actions of the sequential halving.
      gumbel_scale: of the root's noise; 0 makes the search deterministic.
      qtransform: as in mctx.
      prove: see `proof.py`.
      short: children on a shortlist (`shortlist.py`), which makes the search of many actions
        faster and changes nothing else; 0 for none, None to let the sizes decide.
      **stopping: `early_stop`, `leader_share` of `Policy`.

    Raises:
      ValueError: "field: rule".
    """
    check_numbers(num_simulations, max_depth)
    most = max_num_considered_actions
    if most < 1:
        raise ValueError("max_num_considered_actions: must be at least 1")
    schedule = considered_visits(most, num_simulations)
    plain = getattr(qtransform, "func", qtransform) is mctx.qtransform_completed_by_mix_value

    def shortlist_size(batch, actions):
        if prove or not plain or short == 0:
            return 0
        if short is not None:
            return max(short, most)
        worth_it = batch >= _MANY_ROWS and actions >= 2 * max(_SHORT, most)
        return max(_SHORT, most) if worth_it else 0

    def completed(view):
        return jax.vmap(lambda view: qtransform(view, FIRST))(view)

    def look(tree, node, invalid):
        view = trees.view(tree, node, invalid)
        return proof.shun_lost(view, tree) if prove else view

    def prepare(key, root, invalid):
        logits = mask_logits(root.prior_logits, invalid)
        key, noise_key = split_key(key, 2)
        rows, actions = logits.shape

        def draw(key, shape):
            return jax.random.gumbel(key, (*shape, actions), logits.dtype)

        noise = gumbel_scale * draw_rows(draw, noise_key, rows)
        return key, None, logits, noise

    def plant(tree, noise):
        size = shortlist_size(*noise.shape)
        if size == 0:
            return tree
        logits = tree.prior[:, ROOT]
        score = noise + (logits - logits.max(-1, keepdims=True))
        score = jnp.where(tree.invalid, -jnp.inf, jnp.maximum(_LOW_SCORE, score))
        return shortlist.attach(tree, size, _considered(tree.invalid, most), score, most)

    def select_root(keys, search):
        del keys
        return select_root_wide(search) if search.tree.short is None else select_root_short(search)

    def select_root_wide(search):
        tree, spent = search.tree, search.spent
        view = look(tree, jnp.full(spent.shape[0], ROOT), tree.invalid)
        logits = view.children_prior_logits[:, 0]
        # The halving counts the visits of this search, the q-values use all.
        visits = jnp.asarray(schedule)[_considered(tree.invalid, most), spent.sum(-1)]
        score = search.noise + (logits - logits.max(-1, keepdims=True)) + completed(view)
        allowed = (spent == visits[:, None]) & ~tree.invalid
        return first_argmax(jnp.where(allowed, jnp.maximum(_LOW_SCORE, score), -jnp.inf))

    def select_root_short(search):
        tree, short = search.tree, search.tree.short
        view, action = shortlist.view(tree, jnp.zeros_like(short.considered))
        visits = jnp.asarray(schedule)[:, search.done][short.considered]
        spent = view.children_visits[:, 0, :-1]
        base = jnp.take_along_axis(short.root_score, action, axis=1, mode="fill", fill_value=0)
        score = jnp.maximum(_LOW_SCORE, base + completed(view)[:, :-1])
        again, _ = shortlist.best(jnp.where(spent == visits[:, None], score, -jnp.inf), action)
        turn = jnp.minimum(short.count[:, ROOT], short.queue.shape[1] - 1)
        first = jnp.take_along_axis(short.queue, turn[:, None], axis=1)[:, 0]
        return jnp.where(visits == 0, first, jnp.minimum(again, tree.prior.shape[-1] - 1))

    def select(keys, tree, node):
        del keys
        if tree.short is None:
            return select_wide(tree, node)
        fits = shortlist.fits(tree, node)
        return jax.lax.cond(fits, select_short, select_wide, tree, node)

    def select_wide(tree, node):
        view = look(tree, node, jnp.zeros_like(tree.invalid))
        return first_argmax(_deficit(view, completed(view)))

    def select_short(tree, node):
        view, action = shortlist.view(tree, node)
        short = tree.short
        deficit = _deficit(view, completed(view))
        open_edge = trees.at_node(short.next_logit, node) - trees.at_node(short.rest_logit, node)
        fresh = deficit[:, -1] * jnp.exp(open_edge)
        fresh_action = trees.at_node(short.next_action, node)
        here = action < tree.prior.shape[-1]
        known, top = shortlist.best(jnp.where(here, deficit[:, :-1], -jnp.inf), action)
        tie = jnp.minimum(known, fresh_action)
        return jnp.where(fresh > top, fresh_action, jnp.where(top > fresh, known, tie))

    def improve(view):
        logits = view.children_prior_logits[:, 0]
        logits = logits - logits.max(-1, keepdims=True) + completed(view)
        logits = mask_logits(logits, view.root_invalid_actions)
        return jax.nn.softmax(logits), logits

    def choose(key, logits, leaders, noise):
        del key
        legal = logits > LOWEST_LOGIT
        score = jnp.maximum(_LOW_SCORE, noise + logits)
        return first_argmax(jnp.where(leaders & legal, score, -jnp.inf))

    return Policy(
        num_simulations=num_simulations,
        prepare=prepare,
        plant=plant,
        select_root=select_root,
        select=select,
        improve=improve,
        choose=choose,
        draws=False,
        max_depth=max_depth or num_simulations,
        prove=prove,
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


def _considered(invalid, most):
    """int32[B], number of root actions that the halving starts with."""
    return jnp.minimum(most, jnp.sum(~invalid, -1)).astype(jnp.int32)


def _deficit(view, completed):
    """How far the visits of each entry lag behind the improved policy; [B, A]."""
    visits = view.children_visits[:, 0]
    improved = jax.nn.softmax(view.children_prior_logits[:, 0] + completed)
    return improved - visits / (1 + visits.sum(-1, keepdims=True))
