"""`jaxgames data check`: are logs of matches good to learn from?"""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
from typing import Any

from configs import overrides
from experiments import errors
from experiments.progress import Progress


def main(call) -> int:
    if not call.configs:
        raise errors.UsageError("data check: say which file or folder of logs")
    options = _options(call.overrides)
    with Progress(call.flags) as progress:
        report = check(call.configs[0], options.get("data.out", ""), progress)
    if call.flags.json:
        print(json.dumps(report.to_json(), ensure_ascii=True))
    else:
        show(report)
    return errors.FAILED if report.faults else errors.DONE


def _options(texts: tuple[str, ...]) -> dict[str, str]:
    """`data.out=FOLDER`, the one setting; no game is needed to read logs."""
    given = {}
    for override in overrides.parse(texts):
        if override.key != "data.out":
            raise errors.UsageError(f"data check: reads data.out only, not {override.key}")
        given[override.key] = overrides.coerce(override.value, str, override.key, override.quoted)
    return given


@dataclasses.dataclass
class Report:
    """What a check found.

    Attributes:
      path, out: where the logs are, and where the clean ones went ("" nowhere).
      matches, clean, repaired: numbers of matches; `repaired` are among the `clean`.
      faults: kind -> [number, repaired, source, line and message of the first].
    """

    path: str
    out: str
    matches: int = 0
    clean: int = 0
    repaired: int = 0
    faults: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    def add(self, source: str, fault) -> None:
        first = {"source": _plain(source), "line": fault.line, "message": fault.message}
        row = self.faults.setdefault(
            fault.kind, {"count": 0, "repaired": fault.repaired, "first": first}
        )
        row["count"] += 1

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"rejected": self.matches - self.clean}


def check(path: str, out: str = "", progress: Progress | None = None) -> Report:
    """Checks the logs in a file or folder; writes the clean matches to the folder `out`.

    Raises:
      UsageError: nothing to check there, or an `out` that would mix with what is there.
    """
    from jaxgames.guandan import log

    try:
        sources = log.files(path)
    except OSError as error:
        raise errors.UsageError(f"data check: {error}") from None
    if not sources:
        raise errors.UsageError(f"data check: no .jsonl file in {path}")
    target = _target(out, pathlib.Path(path)) if out else None
    report = Report(_plain(path), out)
    numbers: collections.Counter[str] = collections.Counter()
    order = {str(source): number for number, source in enumerate(sources)}
    for match, clean, faults in log.check_all(log.read(path)):
        report.matches += 1
        for fault in faults:
            report.add(match.source, fault)
        if clean is not None:
            report.clean += 1
            report.repaired += bool(faults)
            if target is not None:
                stem = pathlib.Path(match.source).stem
                numbers[stem] += 1
                suffix = f"-{numbers[stem]}" if numbers[stem] > 1 else ""
                log.write(target / f"{stem}{suffix}.jsonl", clean)
        if progress is not None:
            done = order.get(match.source, 0)
            text = f"{report.matches} matches, {done} of {len(sources)} files"
            progress.update(done / len(sources), text, done=done, total=len(sources))
    report.faults = dict(sorted(report.faults.items(), key=lambda row: -row[1]["count"]))
    return report


def _target(out: str, path: pathlib.Path) -> pathlib.Path:
    """The folder for clean matches, made if need be: empty, and apart from the logs."""
    target = pathlib.Path(out)
    home = (path if path.is_dir() else path.parent).resolve()
    if target.resolve() == home or path.is_dir() and home in target.resolve().parents:
        raise errors.UsageError(f"data.out: {out} lies in the logs that are checked")
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise errors.UsageError(f"data.out: {out} is not empty")
    return target


def show(report: Report) -> None:
    """Print the table of faults by kind."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if report.faults:
        table = Table(box=None, pad_edge=False)
        for title in ("fault", "times", "match", "first"):
            table.add_column(title, justify="right" if title == "times" else "left")
        for kind, row in report.faults.items():
            first = row["first"]
            where = f"{first['source']}:{first['line']}" if first["line"] else first["source"]
            outcome = "repaired" if row["repaired"] else "rejected"
            table.add_row(kind, str(row["count"]), outcome, f"{where}: {first['message']}")
        console.print(table)
    rejected = report.matches - report.clean
    console.print(
        f"{report.matches} matches: {report.clean} clean ({report.repaired} of them repaired), "
        f"{rejected} rejected"
    )
    if report.out:
        console.print(f"clean matches written to {_plain(report.out)}")
    elif report.faults:
        console.print("nothing written; data.out=FOLDER takes the clean matches")


def _plain(name: str) -> str:
    """A file name fit to print."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
