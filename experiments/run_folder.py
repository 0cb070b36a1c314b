"""The folder of a run (product: 2.3): `runs/<name>/`, where nothing is ever erased.

config.yaml  overrides.txt  env.json     what was asked for, and where it ran
metrics.jsonl  events.jsonl  eval/       what came out; one JSON object per line
ckpt/<step>/  best/                      for resuming; for use
games/  STATUS.json  run.lock
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import functools
import json
import math
import os
import pathlib
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

import configs
from algorithms import bundle
from experiments.errors import RunError

STATES = ("running", "finished", "interrupted", "failed")
_PACKAGES = ("jaxgames", "jax", "jaxlib", "flax", "optax", "mctx", "orbax-checkpoint", "numpy")


class RunFolder:
    """An open run; hold it through `open_run`, which locks it.

    Attributes:
      path: the folder.
      resumed: whether the folder was there before.
      rewound: the last step of the rows that `rewind` kept.
      mirrors: each is called with every row of metrics that was written.
    """

    def __init__(self, path: pathlib.Path, resumed: bool):
        self.path = path
        self.resumed = resumed
        self.rewound = 0
        self.mirrors: list[Callable[[Mapping[str, Any]], None]] = []
        self._seq = 0
        self._status: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.path.name

    def metric(self, kind: str, step: int, env_steps: int, values: Mapping[str, Any]) -> None:
        """Append a row to metrics.jsonl; `kind` is train, selfplay, eval or event."""
        self._seq += 1
        head = {"seq": self._seq, "t": round(time.time(), 3), "step": step, "env_steps": env_steps}
        row = {**head, "kind": kind, **values}
        append(self.path / "metrics.jsonl", [row])
        for mirror in self.mirrors:
            mirror(row)

    def event(self, what: str, **more: Any) -> None:
        """Append a row to events.jsonl."""
        append(self.path / "events.jsonl", [{"t": round(time.time(), 3), "event": what, **more}])

    def games(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows of single games to eval/<name>.jsonl."""
        append(self.path / "eval" / f"{name}.jsonl", rows)

    def status(self, state: str, **more: Any) -> None:
        """Replace STATUS.json; later calls keep the fields of earlier ones."""
        if state not in STATES:
            raise ValueError(f"state: one of {', '.join(STATES)}, got {state!r}")
        self._status |= {"state": state, **more, "pid": os.getpid(), "host": socket.gethostname()}
        self._status["updated"] = _now()
        replace(self.path / "STATUS.json", json.dumps(clean(self._status), indent=1))

    def rewind(self, step: int) -> int:
        """Set aside what was written after the checkpoint of `step`, for it comes again: rows of
        metrics and events, and torn lines, to NAME.discarded.jsonl, games to eval.discarded/ and
        games.discarded/.

        Returns how many rows of metrics; the next row follows the last one kept.
        """
        self.rewound = step
        measured, saved = set(), False

        def is_kept(row):
            nonlocal saved
            fits = row["step"] <= step and not saved
            if fits:
                saved = row["step"] == step and "time/ckpt" in row  # the last row before it
                self._seq = max(self._seq, row["seq"])
                measured.update([str(row["step"])] if row["kind"] == "eval" else [])
            return fits

        gone = _set_rows_aside(self.path / "metrics.jsonl", is_kept)
        # What tells of the sittings themselves stays.
        past = lambda row: row["event"] == "restore" or row.get("step", 0) <= step  # noqa: E731
        _set_rows_aside(self.path / "events.jsonl", past)
        for name in ("eval", "games"):
            for file in sorted((self.path / name).glob("*.jsonl")):
                if file.stem not in measured:
                    _set_file_aside(file, self.path / f"{name}.discarded")
        return gone


def _set_rows_aside(path: pathlib.Path, is_kept: Callable[[dict[str, Any]], bool]) -> int:
    """Move the other rows of NAME.jsonl, and torn lines, to NAME.discarded.jsonl; returns how
    many."""
    if not path.exists():
        return 0
    kept, gone = [], []
    for line in path.read_bytes().decode("utf-8", "replace").splitlines():
        try:
            fits = is_kept(json.loads(line))
        except (json.JSONDecodeError, LookupError, TypeError, AttributeError):
            line, fits = json.dumps({"torn": line}), False
        (kept if fits else gone).append(line + "\n")
    if gone:  # first to their new place: a kill in between doubles rows, loses none
        with path.with_name(f"{path.stem}.discarded.jsonl").open("a") as file:
            file.writelines(gone)
            file.flush()
            os.fsync(file.fileno())
        replace(path, "".join(kept))
    return len(gone)


def _set_file_aside(file: pathlib.Path, folder: pathlib.Path) -> None:
    """Move a file to `folder`, under a name that is free there."""
    folder.mkdir(exist_ok=True)
    target, number = folder / file.name, 1
    while target.exists():
        number += 1
        target = folder / f"{file.stem}-{number}{file.suffix}"
    os.rename(file, target)


@contextlib.contextmanager
def open_run(resolved: configs.Resolved, argv: Iterable[str] = ()) -> Iterator[RunFolder]:
    """Create the run's folder, or open it when run.resume=true, and hold its lock.

    Raises:
      RunError: the name is taken, another trainer holds the run, or nothing can be written.
    """
    run = resolved.config.run
    base = pathlib.Path(run.dir).absolute()
    try:
        if run.resume:
            path = base / run.name
            if not path.is_dir():
                raise RunError(f"run.name: no run to resume at {path}")
        else:
            path = _create(base, run.name, _stem(resolved.preset or resolved.config.game.name))
    except OSError as error:
        raise RunError(f"run.dir: can not make a run in {base} ({error.strerror})") from error
    folder = RunFolder(path, resumed=run.resume)
    with _locked(path):
        try:
            _begin(folder, resolved, argv)
        except OSError as error:
            if not run.resume:  # made a moment ago, by us
                shutil.rmtree(path, ignore_errors=True)
            raise RunError(f"run.dir: can not write to {path} ({error.strerror})") from error
        yield folder


def _stem(preset: str) -> str:
    return preset.replace("/", "-")


def _create(base: pathlib.Path, name: str, stem: str) -> pathlib.Path:
    """A new folder `base/name`; without a name the first free `stem-N`."""
    base.mkdir(parents=True, exist_ok=True)
    if name:
        try:
            (base / name).mkdir()
        except FileExistsError:
            raise RunError(
                f"run.name: {base / name} exists; take another name, or run.resume=true to go on"
            ) from None
        return base / name
    number = 1
    while True:
        try:
            (base / f"{stem}-{number}").mkdir()
            return base / f"{stem}-{number}"
        except FileExistsError:
            number += 1


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    """The kernel's lock on run.lock: it goes when its holder does, however that ends."""
    with (path / "run.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise RunError(f"run.name: {path} is being trained by {holder}") from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def _begin(folder: RunFolder, resolved: configs.Resolved, argv: Iterable[str]) -> None:
    path = folder.path
    bundle.recover(path / "best")
    for below in ("eval", "games"):
        (path / below).mkdir(exist_ok=True)
    env = environment(resolved, argv)
    texts = "".join(f"{text}\n" for text in resolved.overrides)
    if folder.resumed:
        folder.event("resume", env=env)
        with (path / "overrides.txt").open("a") as file:
            file.write(f"# resumed {_now()}\n{texts}")
    else:
        replace(path / "config.yaml", resolved.yaml())
        replace(path / "overrides.txt", texts)
        replace(path / "env.json", json.dumps(env, indent=1))
        folder.event("start")
    folder.status("running")


def environment(resolved: configs.Resolved, argv: Iterable[str] = ()) -> dict[str, Any]:
    """What a run depends on besides its settings."""
    import jax

    return {
        "preset": resolved.preset,
        "seed": resolved.config.seed,
        "argv": list(argv),
        "commit": commit(),
        "versions": versions(),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "devices": [str(device) for device in jax.devices()],
        "cpus": os.cpu_count(),
        "started": _now(),
    }


def versions() -> dict[str, str]:
    """Of the packages that decide what a run computes."""
    return {name: metadata.version(name) for name in _PACKAGES}


@functools.cache
def commit() -> str | None:
    """The commit of the source tree, with "+" when it was changed; None when installed."""
    root = pathlib.Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        git = ["git", "-C", str(root)]
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
        dirty = subprocess.run(
            [*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (head.stdout.strip() + ("+" if dirty.stdout.strip() else "")) or None


def append(path: pathlib.Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append JSON lines in one write, flushed."""
    text = "".join(json.dumps(clean(row), ensure_ascii=False) + "\n" for row in rows)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def replace(path: pathlib.Path, text: str) -> None:
    """Write a file whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def clean(value: Any) -> Any:
    """JSON values: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
