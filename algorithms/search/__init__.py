"""Tree search: Gumbel MuZero and PUCT with one value per team."""

from algorithms.search.base import MASKED_LOGIT, PolicyOutput, RecurrentFn, Root, Step
from algorithms.search.config import SearchConfig
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
from algorithms.search.worlds import search_worlds

__all__ = [
    "MASKED_LOGIT",
    "Policy",
    "PolicyOutput",
    "RecurrentFn",
    "Root",
    "Search",
    "SearchConfig",
    "Step",
    "Tree",
    "advance",
    "finish",
    "gumbel",
    "gumbel_policy",
    "puct",
    "puct_policy",
    "run",
    "search_worlds",
    "start",
]
