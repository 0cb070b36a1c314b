"""AlphaZero-style learning; see `algorithms.alphazero.train`."""

from algorithms.alphazero.train import Config, make

__all__ = ["Config", "make"]
