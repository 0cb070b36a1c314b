"""Mirrors of a run's metrics in other programs (`log.sinks`); the run folder has everything.

A sink's package is imported when a run asks for it, and not before. A sink that fails is let go
with a sentence: training goes on.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import math
import pathlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from configs import ConfigError, Resolved
from experiments.run_folder import RunFolder, replace

#: Sink -> the package that it needs, which is also an extra of ours under the sink's name.
PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}

#: Takes the numbers of a row of metrics and the update that they are of.
Log = Callable[[Mapping[str, float], int], None]
#: Takes whether the run ended well.
Close = Callable[[bool], None]


def require(names: tuple[str, ...]) -> None:
    """Raises ConfigError for a sink whose package is missing; imports nothing."""
    for name in names:
        if importlib.util.find_spec(PACKAGES[name]) is None:
            rule = f"{name} needs the package {PACKAGES[name]}: pip install 'jaxgames[{name}]'"
            raise ConfigError("log.sinks", rule)


@contextlib.contextmanager
def mirrored(folder: RunFolder, resolved: Resolved, say: Callable[[str], None]) -> Iterator[None]:
    """While the block lasts, rows of metrics of `folder` also go to the sinks of the settings."""
    with contextlib.ExitStack() as stack:
        for name in resolved.config.log.sinks:
            mirror = _Mirror(name, say)
            mirror.open(folder, resolved)
            stack.push(mirror.ended)
            folder.mirrors.append(mirror)
        stack.callback(folder.mirrors.clear)
        yield


class _Mirror:
    """One sink; called with rows of metrics."""

    def __init__(self, name: str, say: Callable[[str], None]):
        self.name, self.say, self.works = name, say, True

    def open(self, folder: RunFolder, resolved: Resolved) -> None:
        def opened():
            self.log, self.close = _OPEN[self.name](folder, resolved)

        self.quietly(opened)

    def ended(self, kind: type[BaseException] | None, *_: Any) -> None:
        """The end of the block; `kind` is of what it was left by."""
        self.quietly(lambda: self.close(kind is None))

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
            why = " ".join(str(error).split()) or type(error).__name__
            self.say(f"log.sinks: {self.name} failed and gets no more ({why})")


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """The finite figures of a row, under their names, and its moves of self-play."""
    kept = {k: v for k, v in row.items() if "/" in k} | {"env_steps": row["env_steps"]}
    return {
        k: float(v) for k, v in kept.items() if isinstance(v, (int, float)) and math.isfinite(v)
    }


def _tensorboard(folder: RunFolder, resolved: Resolved) -> tuple[Log, Close]:
    import tensorboardX

    writers: list[Any] = []

    def log(values, step):
        if not writers:  # not before it is known which steps a resumed run goes over again
            again = folder.rewound + 1 if folder.resumed else None
            path = str(folder.path / "tensorboard")
            writers.append(tensorboardX.SummaryWriter(path, purge_step=again, flush_secs=10))
        for name, value in values.items():
            writers[0].add_scalar(name, value, step)

    def close(well):
        del well
        for writer in writers:
            writer.close()

    return log, close


def _wandb(folder: RunFolder, resolved: Resolved) -> tuple[Log, Close]:
    import wandb

    run = wandb.init(
        project=resolved.config.log.project,
        name=folder.name,
        dir=str(folder.path),
        config=dict(resolved.flat()),
        id=_wandb_id(folder),
        resume="allow",
        settings=wandb.Settings(silent=True, console="off"),
    )
    run.define_metric("*", step_metric="update")
    # Its own steps may never go back, and count on from those that an earlier process sent.
    steps = itertools.count(_rows_ever(folder.path))

    def log(values, step):
        run.log({**values, "update": step}, step=next(steps))

    return log, lambda well: run.finish(exit_code=0 if well else 1)


def _wandb_id(folder: RunFolder) -> str:
    """Kept with the run, for names are not unique in a project."""
    path = folder.path / "wandb_id.txt"
    if not path.exists():
        replace(path, f"{secrets.token_hex(8)}\n")
    return path.read_text().strip()


def _rows_ever(path: pathlib.Path) -> int:
    """Rows of metrics that the run has written, with those that were taken back."""
    files = (path / "metrics.jsonl", path / "metrics.discarded.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files if file.exists())


_OPEN = {"tensorboard": _tensorboard, "wandb": _wandb}
