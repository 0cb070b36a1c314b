"""Masked double DQN with values per team; see `algorithms.dqn.train`."""

from algorithms.dqn.train import Config, make

__all__ = ["Config", "make"]
