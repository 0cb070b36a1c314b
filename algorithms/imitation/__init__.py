"""Behaviour cloning, and teachers for other learners; see `algorithms.imitation.train`."""

from algorithms.imitation.teachers import teacher
from algorithms.imitation.train import Config, make

__all__ = ["Config", "make", "teacher"]
