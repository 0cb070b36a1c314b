"""`jaxgames dashboard RUN...`: runs in a browser, from their folders alone.

Without a RUN all runs below run.dir are offered. With dashboard.report nothing is served and
one HTML file is written.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable

from experiments import errors, run_folder


def main(call) -> int:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # a training beside it keeps its device
    config = call.resolved.config
    base = pathlib.Path(config.run.dir)
    chosen = [find(word, base) for word in call.configs]
    from experiments.dashboard.run import Catalogue

    catalogue = Catalogue([base], chosen)
    if config.dashboard.report:
        return _report(call, catalogue, config.dashboard.report)
    if not catalogue.paths():
        raise errors.UsageError(f"dashboard: no run below {base}; say which, or set run.dir")
    from experiments.commands import serve
    from experiments.dashboard.app import PAGE, build

    say: Callable = (lambda text: None) if call.flags.quiet else _say
    if os.environ.get(BESIDE):
        os.nice(10)
        threading.Thread(target=_end_with_parent, daemon=True).start()
    address = dict(host=config.dashboard.host, port=config.dashboard.port)
    settings = dataclasses.replace(config.serve, **address)
    app = build(catalogue, settings)
    keys = app.state.keys
    if keys.fresh:
        say(f"token for reading, told once: {keys.read}")
    code = f"#code={keys.code}" if keys.needed else ""
    serve.listen(app, *address.values(), PAGE + code, say)
    return errors.DONE


def find(word: str, base: pathlib.Path) -> pathlib.Path:
    """The run folder that a word names, itself or below `base`; UsageError."""
    from experiments.dashboard.run import MARKS, is_run

    for path in (pathlib.Path(word), base / word):
        if is_run(path):
            return path
    raise errors.UsageError(
        f"dashboard: no run in {word} or {base / word} (a run holds {' or '.join(MARKS)})"
    )


def _report(call, catalogue, file: str) -> int:
    from experiments.dashboard import report

    ids = (catalogue.chosen or list(catalogue.paths()))[: report.MOST_RUNS]
    if not ids:
        raise errors.UsageError("dashboard: say which run the report is about")
    path = pathlib.Path(file)
    text = report.render([catalogue.get(id) for id in ids])
    try:
        run_folder.replace(path, text)
    except OSError as error:
        message = f"dashboard.report: can not write {path} ({error.strerror})"
        raise errors.RunError(message) from error
    if call.flags.json:
        print(json.dumps({"report": str(path), "runs": ids, "bytes": len(text.encode())}))
    elif not call.flags.quiet:
        print(f"{path}: {', '.join(ids)}, {len(text.encode()) / 2**20:.1f} MiB")
    return errors.DONE


def _say(text: str) -> None:
    print(text, flush=True)


# ---- beside a training ----

#: Set for a dashboard that ends when its standard input does.
BESIDE = "JAXGAMES_DASHBOARD_BESIDE"


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(errors.DONE)


class Beside:
    """A dashboard of a run in a process of its own, as long as the block lasts.

    Nothing waits for it: its address is said when it comes. It ends with this process, however
    that ends, for its standard input closes.
    """

    def __init__(self, run: pathlib.Path, say: Callable[[str], None]):
        words = ["dashboard", str(run), f"run.dir={json.dumps(str(run.parent))}"]
        words += ["dashboard.port=0"]
        self._command = [sys.executable, "-m", "experiments.cli", *words]
        self._say = say

    def __enter__(self) -> Beside:
        environment = {**os.environ, BESIDE: "1", "JAX_PLATFORMS": "cpu"}
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the training
        )
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._say(f"dashboard: {line.strip()}")
