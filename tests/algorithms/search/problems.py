"""The hash tree of the benchmarks, and the comparison of our outputs with mctx's."""

from __future__ import annotations

import numpy as np

from experiments.benchmarks.hash_tree import HashTree as Problem
from experiments.benchmarks.hash_tree import both, ours, theirs

__all__ = ["Problem", "assert_equal_outputs", "both", "ours", "theirs"]


def assert_equal_outputs(mine, reference):
    """Same action and visits; weights to 1e-5; the same value to the root's mover."""
    summary = reference.search_tree.summary()
    np.testing.assert_array_equal(mine.visits, summary.visit_counts)
    np.testing.assert_array_equal(mine.tree.root_visits, summary.visit_counts)
    np.testing.assert_array_equal(mine.action, reference.action)
    np.testing.assert_allclose(mine.action_weights, reference.action_weights, atol=1e-5)
    mover = np.asarray(mine.tree.to_move[:, :1])
    value = np.take_along_axis(np.asarray(mine.value), mover, axis=1)[:, 0]
    np.testing.assert_allclose(value, summary.value, atol=1e-5)
