"""Mirrors of a run's metrics in other programs (`log.sinks`); the run folder has everything.

A sink's package is imported when a run asks for it, and not before. A sink that fails is let go
with a sentence: training goes on.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from configs import ConfigError, Resolved
from experiments.run_folder import RunFolder

#: Sink -> the package that it needs, which is also an extra of ours under the sink's name.
PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}

#: Takes the numbers of a row of metrics and the update that they are of.
Log = Callable[[Mapping[str, float], int], None]


def require(names: tuple[str, ...]) -> None:
    """Raises ConfigError for a sink whose package is missing; imports nothing."""
    for name in names:
        if importlib.util.find_spec(PACKAGES[name]) is None:
            rule = f"{name} needs the package {PACKAGES[name]}: pip install 'jaxgames[{name}]'"
            raise ConfigError("log.sinks", rule)


@contextlib.contextmanager
def mirrored(folder: RunFolder, resolved: Resolved, say: Callable[[str], None]) -> Iterator[None]:
    """While the block lasts, rows of metrics of `folder` also go to the sinks of the settings."""
    settings = resolved.config.log
    with contextlib.ExitStack() as stack:
        for name in settings.sinks:
            log, close = _OPEN[name](folder.path, settings.project, resolved.flat())
            mirror = _Mirror(name, log, say)
            stack.callback(mirror.quietly, close)
            folder.mirrors.append(mirror)
        try:
            yield
        finally:
            folder.mirrors.clear()


class _Mirror:
    """One open sink; called with rows of metrics."""

    def __init__(self, name: str, log: Log, say: Callable[[str], None]):
        self.name, self.log, self.say, self.works = name, log, say, True

    def __call__(self, row: Mapping[str, Any]) -> None:
        values = numbers(row)
        if values:
            self.quietly(lambda: self.log(values, row["step"]))

    def quietly(self, action: Callable[[], None]) -> None:
        """Whatever goes wrong in another program's library ends this sink, not the run."""
        if not self.works:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001
            self.works = False
            self.say(f"log.sinks: {self.name} failed and gets no more ({error})")


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """The finite figures of a row, under their names, and its moves of self-play."""
    kept = {k: v for k, v in row.items() if "/" in k} | {"env_steps": row["env_steps"]}
    return {
        k: float(v) for k, v in kept.items() if isinstance(v, (int, float)) and math.isfinite(v)
    }


def _tensorboard(path: pathlib.Path, project: str, settings: Mapping[str, Any]):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(path / "tensorboard"), flush_secs=10)

    def log(values, step):
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def _wandb(path: pathlib.Path, project: str, settings: Mapping[str, Any]):
    import wandb

    run = wandb.init(
        project=project, name=path.name, dir=str(path), config=dict(settings), resume="allow",
        id=path.name, settings=wandb.Settings(silent=True),
    )  # fmt: skip
    run.define_metric("*", step_metric="update")
    return lambda values, step: run.log({**values, "update": step}), run.finish


_OPEN = {"tensorboard": _tensorboard, "wandb": _wandb}
