"""Tree search: Gumbel MuZero and PUCT with one value per team."""

from algorithms.search.base import MASKED_LOGIT, PolicyOutput, RecurrentFn, Root, Step
from algorithms.search.policies import (
    Policy,
    Search,
    advance,
    finish,
    gumbel,
    gumbel_policy,
    puct,
    puct_policy,
    run,
    start,
)
from algorithms.search.tree import Tree

__all__ = [
    "MASKED_LOGIT",
    "Policy",
    "PolicyOutput",
    "RecurrentFn",
    "Root",
    "Search",
    "Step",
    "Tree",
    "advance",
    "finish",
    "gumbel",
    "gumbel_policy",
    "puct",
    "puct_policy",
    "run",
    "start",
]
