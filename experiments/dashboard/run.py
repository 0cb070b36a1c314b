"""One run folder as it is now, and a catalogue of several.

A run may be going on, finished, killed in the middle of a line, or half deleted: what is
missing is left out, what is torn is skipped, and nothing is ever written.
"""

from __future__ import annotations

import collections
import os
import pathlib
import re
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments import health
from experiments.dashboard import lines, panels, tables
from experiments.dashboard.board import Boards
from experiments.dashboard.series import Store
from experiments.dashboard.tables import number as _number

#: A run that has written nothing for so many seconds stalls.
STALLED_S = 60.0
#: A larger file is shown by a sample first, and read by a thread meanwhile.
AT_ONCE = 16 << 20
SAMPLE = 1000
#: Rows of events.jsonl that are kept, and runs that are kept open.
LOG, OPEN = 5000, 12
_SMALL = 1 << 20
#: What makes a folder a run.
MARKS = ("STATUS.json", "metrics.jsonl", "config.yaml")


class Run:
    """Everything a dashboard asks of one run folder; safe to use from several threads."""

    def __init__(self, path: pathlib.Path, id: str):
        self.path, self.id = path, id
        self._lock = threading.RLock()
        self._tail = lines.Tail(path / "metrics.jsonl")
        self._store = Store()
        self._sample: Store | None = None
        self._sampled = ""
        self._reader: threading.Thread | None = None
        self._log_tail = lines.Tail(path / "events.jsonl")
        self._log: collections.deque[dict] = collections.deque(maxlen=LOG)
        self._logged = 0
        self.boards = Boards(path)

    # ---- metrics ----

    def _advance(self, budget_s: float) -> bool:
        """Read on for about so many seconds; returns whether the end was reached."""
        end = time.monotonic() + budget_s
        while True:
            with self._lock:
                rows, again = self._tail.poll(lines.CHUNK)
                if again:
                    self._store = Store()
                    if self._sampled != self._tail.epoch:
                        self._sample = None
                if rows:
                    self._store.add(rows)
                elif self._tail.offset + lines.CHUNK >= lines.size(self._tail.path):
                    self._sample = None
                    return True
            if time.monotonic() > end:
                return False

    def _refresh(self) -> None:
        """Up to date, or a sample while a thread reads."""
        left = lines.size(self._tail.path) - self._tail.offset
        if lines.epoch(self._tail.path) != self._tail.epoch:
            left = lines.size(self._tail.path)
        if self._reader is not None and self._reader.is_alive():
            return
        if left <= AT_ONCE and self._advance(5.0):
            return
        with self._lock:
            now = lines.epoch(self._tail.path)
            if self._sample is None or self._sampled != now:
                self._sample, self._sampled = Store(), now
                self._sample.add(lines.spread(self._tail.path, SAMPLE))
            self._reader = threading.Thread(target=self._read_all, daemon=True, name=self.id)
            self._reader.start()

    def _read_all(self) -> None:
        while not self._advance(0.05):
            time.sleep(0.01)  # requests come first

    def series(self, wait: bool = False) -> dict[str, Any]:
        """All metrics as `Store.table` gives them, with the cursor for what comes later.

        "read" is the share of the file behind it: below 1 the points are a sample, which does
        not happen to those who `wait`.
        """
        self._refresh()
        if wait and self._reader is not None:
            self._reader.join()
        with self._lock:
            store = self._store if self._sample is None else self._sample
            cursor = self._store.seq if self._sample is None else self._sample.seq
            read = 1.0 if self._sample is None else min(self._tail.share, 0.999)
            epoch = self._tail.epoch or lines.epoch(self._tail.path)
            return {"epoch": epoch, "next": cursor, "read": round(read, 3), **store.table()}

    def events(self, after: int, limit: int, epoch: str = "") -> dict[str, Any]:
        """Rows of metrics.jsonl behind `after`, oldest first, and the next cursor.

        "reset" says that the file behind an `epoch` is gone: the rows begin anew.
        """
        path = self._tail.path
        now = lines.epoch(path)
        reset = bool(epoch) and epoch != now
        after = 0 if reset else after
        rows, more = lines.after(path, after, limit)
        following = rows[-1]["seq"] if rows else after
        return {"epoch": now, "reset": reset, "rows": rows, "next": following, "more": more}

    def log(self, after: int = 0) -> dict[str, Any]:
        """Rows of events.jsonl behind number `after`, at most the last `LOG`."""
        with self._lock:
            while True:
                rows, again = self._log_tail.poll()
                if again:
                    self._log.clear()
                    self._logged, after = 0, 0
                if not rows:
                    break
                self._log += rows
                self._logged += len(rows)
            skip = max(after - (self._logged - len(self._log)), 0)
            return {"rows": list(self._log)[skip:], "next": self._logged}

    # ---- what the run is ----

    def header(self) -> dict[str, Any]:
        """Who, where and how far; cheap."""
        status, env = self._json("STATUS.json"), self._json("env.json")
        touched = self._touched()
        last = lines.last(self.path / "metrics.jsonl", 20, _SMALL)
        row = last[-1] if last else {}
        chunk = _latest(last, ("time/chunk",)).get("time/chunk", 0.0)
        state = state_of(status, touched, self.path, 2 * chunk)
        share, minutes = _number(status.get("share")), _number(status.get("minutes"))
        eta = None
        if state in ("running", "stalled") and share and minutes is not None and share < 1:
            eta = round(60 * minutes * (1 - share) / share)
        return {
            "id": self.id,
            "state": state,
            "step": _number(status.get("step", row.get("step"))),
            "env_steps": _number(status.get("env_steps", row.get("env_steps"))),
            "rows": _number(row.get("seq")) or 0,
            "share": share,
            "minutes": minutes,
            "eta_s": eta,
            "updated": touched,
            "preset": _text(env.get("preset")),
            "seed": _number(env.get("seed")),
            "commit": _text(env.get("commit")),
            "started": _text(env.get("started")),
            "stage": _text(status.get("stage")),
            "message": _text(status.get("message")),
        }

    def summary(self) -> dict[str, Any]:
        """The header with lights, measured strength, and what else stands once per run."""
        env, status = self._json("env.json"), self._json("STATUS.json")
        last = lines.last(self.path / "metrics.jsonl", health.WINDOW, health.WINDOW_BYTES)
        found = health.lights(last)
        shown = [{**vars(light), "says": health.RULES[light.name].says} for light in found]
        silent = [name for name in health.RULES if name not in health.levels(found)]
        with self._lock:
            torn = self._tail.torn
        result = status.get("result")
        finals = result.get("evaluations") if isinstance(result, dict) else None
        return {
            **self.header(),
            "lights": shown,
            "silent": silent,
            "best": status.get("best"),
            "finals": finals if isinstance(finals, list) else [],
            "speed": _latest(last, ("env/steps_per_s", "selfplay/games_per_s")),
            "reliability": tables.reliability(last),
            "torn": torn,
            "overrides": self._read_text("overrides.txt").splitlines()[:200],
            "devices": env.get("devices"),
            "versions": env.get("versions"),
            "python": _text(env.get("python")),
            "platform": _text(env.get("platform")),
        }

    def settings(self) -> dict[str, Any]:
        """{key: [default, here]} of the settings that differ from the defaults of the game.

        Keys that this version does not know have the default null; "note" says why there is
        nothing to compare with.
        """
        import configs

        here = flat(_yaml(self._read_text("config.yaml")))
        try:
            base = configs.load("", [f"game={here.get('game.name')}"]).flat()
        except configs.ConfigError as error:
            return {"differ": {key: [None, v] for key, v in here.items()}, "note": str(error)}
        missing = object()
        differ = {k: [base.get(k), v] for k, v in here.items() if base.get(k, missing) != v}
        return {"differ": differ, "note": "" if here else "config.yaml is missing"}

    def evaluation(self) -> dict[str, Any]:
        """Places and returns by agent and seat in the newest file below eval/, and which files
        there are."""
        files = sorted((self.path / "eval").glob("*.jsonl"), key=lambda p: (p.stat().st_mtime, p))
        if not files:
            return {"files": [], "file": None, "meetings": []}
        rows = lines.last(files[-1], 20_000, 8 << 20)
        names = [p.stem for p in files]
        return {"files": names, "file": names[-1], "meetings": tables.meetings(rows)}

    def league(self) -> dict[str, Any]:
        """Payoffs, the lineage of a population and the stages of a curriculum."""
        rows = lines.last(self.path / "metrics.jsonl", health.WINDOW)
        log = self.log()["rows"]
        return {
            "payoff": tables.payoff(rows),
            "lineage": tables.lineage(rows, log),
            "ladder": tables.ladder(log),
        }

    # ---- files ----

    def _touched(self) -> float | None:
        """When the run last wrote, seconds since 1970."""
        times = []
        for name in ("metrics.jsonl", "events.jsonl", "STATUS.json"):
            try:
                times.append((self.path / name).stat().st_mtime)
            except OSError:
                continue
        return max(times, default=None)

    def _read_text(self, name: str) -> str:
        try:
            with (self.path / name).open("rb") as file:
                return file.read(_SMALL).decode("utf-8", "replace")
        except OSError:
            return ""

    def _json(self, name: str) -> dict[str, Any]:
        return lines.parse(self._read_text(name).encode()) or {}


def state_of(
    status: Mapping[str, Any], touched: float | None, path: pathlib.Path, patience: float = 0.0
) -> str:
    """ "running", "stalled", "finished", "interrupted", "failed", "crashed" or "empty".

    One that is silent for `STALLED_S` and for `patience` seconds stalls: chunks may be long.
    A run that says it is running has crashed when its process is gone; where that can not be
    known (another machine wrote it), it stalls.
    """
    state = status.get("state")
    if state in ("finished", "interrupted", "failed"):
        return state
    if state != "running" and touched is None:
        return "empty"
    quiet = touched is None or time.time() - touched > max(STALLED_S, patience)
    alive = is_alive(status, path)
    if alive is False or state != "running" and quiet:
        return "crashed"
    return "stalled" if quiet else "running"


def is_alive(status: Mapping[str, Any], path: pathlib.Path) -> bool | None:
    """Whether the process that holds the run is there; None where that can not be known.

    Asks without taking the run's lock, which a trainer that starts just now would find taken.
    """
    pid = status.get("pid")
    if status.get("host") != socket.gethostname() or not isinstance(pid, int) or pid <= 0:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return None
    try:  # the number may belong to another process by now
        inode = (path / "run.lock").stat().st_ino
        held = pathlib.Path("/proc/locks").read_text("ascii", "replace")
    except OSError:
        return True
    return re.search(rf":{inode} ", held) is not None


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    """Leaf key -> value of nested mappings."""
    if not isinstance(tree, Mapping):
        return {path: tree} if path else {}
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= flat(value, f"{path}.{name}" if path else str(name))
    return found


def _yaml(text: str) -> Any:
    import yaml

    from configs import yaml_text

    try:
        return yaml.safe_load(yaml_text.check(text))
    except (yaml.YAMLError, ValueError):
        return None


def _latest(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> dict[str, float]:
    """The last value of each metric."""
    found = {}
    for row in rows:
        found |= {n: row[n] for n in names if _number(row.get(n)) is not None}
    return found


def _text(value: Any) -> str | None:
    return value[:2000] if isinstance(value, str) else None


# ---- several ----


class Catalogue:
    """Runs by id: those below some folders, found when asked, and some by name.

    Args:
      folders: whose runs are listed.
      runs: run folders that are listed first, whatever lies around them.
    """

    def __init__(self, folders: Iterable[pathlib.Path] = (), runs: Iterable[pathlib.Path] = ()):
        self._folders = [pathlib.Path(f) for f in folders]
        self._chosen = [pathlib.Path(r) for r in runs]
        self._open: collections.OrderedDict[pathlib.Path, Run] = collections.OrderedDict()
        self._lock = threading.Lock()

    def paths(self) -> dict[str, pathlib.Path]:
        """id -> folder, chosen ones first, then the newest first."""
        found: dict[str, pathlib.Path] = {}
        seen = set()
        for path in (*self._chosen, *self._below()):
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            id, number = real.name, 2
            while id in found:
                id, number = f"{real.name}~{number}", number + 1
            found[id] = path
        return found

    def _below(self) -> list[pathlib.Path]:
        dated = []
        for folder in self._folders:
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                path = pathlib.Path(entry.path)
                if is_run(path):
                    dated.append((entry.stat().st_mtime, path))
        return [path for _, path in sorted(dated, reverse=True)]

    def get(self, id: str) -> Run | None:
        """The run of that id; None for an unknown one."""
        path = self.paths().get(id)
        if path is None:
            return None
        with self._lock:
            run = self._open.pop(path, None) or Run(path, id)
            self._open[path] = run
            while len(self._open) > OPEN:
                self._open.popitem(last=False)
            return run

    def list(self) -> list[dict[str, Any]]:
        """Headers of all runs."""
        return [Run(path, id).header() for id, path in self.paths().items()]

    @property
    def chosen(self) -> list[str]:
        """Ids of the runs that were named."""
        return list(self.paths())[: len({r.resolve() for r in self._chosen})]


def is_run(path: pathlib.Path) -> bool:
    try:
        return any((path / mark).is_file() for mark in MARKS)
    except OSError:
        return False


def names_of(table: Mapping[str, Any]) -> dict[str, str | None]:
    """Metric -> meaning, for the metrics of a series table."""
    return {name: panels.meaning(name) for name in table["y"]}
