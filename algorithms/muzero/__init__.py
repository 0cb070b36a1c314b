"""Gumbel MuZero for any number of seats; see `algorithms.muzero.train`."""

from algorithms.muzero.train import Config, make

__all__ = ["Config", "make"]
