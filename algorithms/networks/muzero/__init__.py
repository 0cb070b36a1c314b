"""The MuZero network: see `algorithms.networks.muzero.model`."""

from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.memory import Bank, Entry, add, empty_bank
from algorithms.networks.muzero.model import Model, Prediction, build
from algorithms.networks.muzero.value import expected, first_place, two_hot

__all__ = [
    "Bank",
    "Entry",
    "Model",
    "MuZeroNetworkConfig",
    "Prediction",
    "add",
    "build",
    "empty_bank",
    "expected",
    "first_place",
    "two_hot",
]
