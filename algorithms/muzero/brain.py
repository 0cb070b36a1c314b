"""Everything that a MuZero network plays with: its weights and, where it has a memory, the bank.

The bank is no weight (nothing is learned into it by gradient), but what the network says hangs on
it, in the search as in the loss; so it travels with the weights, in training states and bundles.
"""

from __future__ import annotations

from typing import Any

import jax

from algorithms.networks.muzero import Bank, Model
from jaxgames.core import Array

#: Weights, or {"net": weights, "bank": bank} of a network with a memory.
Brain = Any


def init(model: Model, key: Array) -> Brain:
    """Fresh weights and an empty bank; consumes `key`."""
    weights = model.init(key)
    return {"net": weights, "bank": model.empty_bank()} if model.reads_bank else weights


def net(model: Model, brain: Brain) -> Any:
    """The weights."""
    return brain["net"] if model.reads_bank else brain


def bank(model: Model, brain: Brain) -> Bank | None:
    """The bank; None without a memory."""
    return brain["bank"] if model.reads_bank else None


def with_net(model: Model, brain: Brain, weights: Any) -> Brain:
    """The brain with other weights."""
    return {**brain, "net": weights} if model.reads_bank else weights


def shapes(model: Model) -> Brain:
    """Shapes and dtypes of a brain."""
    return jax.eval_shape(lambda key: init(model, key), jax.random.key(0))
