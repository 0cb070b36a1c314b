"""Tree search: Gumbel MuZero and PUCT with one value per team."""

from algorithms.search import game_model
from algorithms.search.base import MASKED_LOGIT, PolicyOutput, RecurrentFn, Root, Step
from algorithms.search.config import SearchConfig
from algorithms.search.gumbel import considered_visits, gumbel
from algorithms.search.paranoid import paranoid
from algorithms.search.policies import gumbel_policy, puct_policy
from algorithms.search.puct import puct
from algorithms.search.reuse import remaining, resume, subtree
from algorithms.search.rounds import Policy, Search, advance, finish, run, start
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
    "considered_visits",
    "finish",
    "game_model",
    "gumbel",
    "gumbel_policy",
    "paranoid",
    "puct",
    "puct_policy",
    "remaining",
    "resume",
    "run",
    "search_worlds",
    "start",
    "subtree",
]
