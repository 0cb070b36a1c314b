"""Gumbel MuZero and PUCT over the vector-valued tree.

`gumbel` and `puct` describe a search for `rounds.py`; `gumbel_policy` and `puct_policy` run
one from start to end. Action selection and q-transforms are mctx's; random numbers are drawn
in mctx's order, so the same key gives the same noise and, where mctx applies, the same search.

Chance: an edge is expanded once, with one draw from the key that `recurrent_fn` is given
then; what was drawn stays for the rest of that search.
"""

from __future__ import annotations

from typing import Any

from algorithms.search.base import Array, Params, PolicyOutput, RecurrentFn, Root
from algorithms.search.gumbel import gumbel
from algorithms.search.puct import puct
from algorithms.search.rounds import run


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
