"""Proximal policy optimisation in a league; see `algorithms.ppo.train`."""

from algorithms.ppo.train import Config, CriticConfig, make

__all__ = ["Config", "CriticConfig", "make"]
