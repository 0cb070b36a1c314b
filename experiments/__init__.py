"""What a person runs: the command line and the same in Python.

    experiments.train("sequence", ["run.name=first", "seed=3"])

raises typed errors (`configs.ConfigError` and those of `experiments.errors`) where the
command line exits with a code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def train(config: str = "", overrides: Iterable[str] = ()) -> dict[str, Any]:
    """`jaxgames train` without a shell; returns its result (see `jaxgames train --json`)."""
    from experiments.commands import train as command
    from experiments.resolve import resolve

    return command.run(resolve("train", config, overrides))


def evaluate(config: str = "", overrides: Iterable[str] = ()) -> dict[str, Any]:
    """`jaxgames evaluate` without a shell; returns its report (see `--json`)."""
    from experiments.commands import evaluate as command
    from experiments.resolve import resolve

    resolved = resolve("evaluate", config, overrides)
    return command.describe(command.run(resolved), resolved.config.gate)


def tournament(config: str = "", overrides: Iterable[str] = ()) -> dict[str, Any]:
    """`jaxgames tournament` without a shell; returns its report (see `--json`)."""
    from experiments.commands import tournament as command
    from experiments.resolve import resolve

    return command.run(resolve("tournament", config, overrides))


def benchmark(what: str, config: str = "", overrides: Iterable[str] = ()) -> dict[str, Any]:
    """`jaxgames benchmark WHAT` without a shell, WHAT env, search or train; its report."""
    from experiments.commands import benchmark as command
    from experiments.resolve import resolve

    return command.run(what, resolve("benchmark", config, overrides))
