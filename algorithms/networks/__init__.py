"""Networks behind two functions; see `algorithms.networks.model`."""

from algorithms.networks.model import (
    Evaluate,
    Model,
    NetworkConfig,
    Outputs,
    build,
    evaluator,
    masked,
    observe_all,
    require_q_head,
)

__all__ = [
    "Evaluate",
    "Model",
    "NetworkConfig",
    "Outputs",
    "build",
    "evaluator",
    "masked",
    "observe_all",
    "require_q_head",
]
