"""Gumbel MuZero for any number of seats; see `algorithms.muzero.train`."""

from algorithms.muzero.agent import describe, from_bundle, load, model, model_of, players, weights
from algorithms.muzero.brain import shapes
from algorithms.muzero.train import Config, make

__all__ = [
    "Config", "describe", "from_bundle", "load", "make", "model", "model_of", "players", "shapes",
    "weights",
]  # fmt: skip
