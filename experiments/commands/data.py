"""`jaxgames data make|check`: logs of Guandan matches, made by agents, and are they good?"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import pathlib
from importlib import metadata
from typing import Any

from configs import ConfigError, make_game, overrides
from experiments import errors
from experiments.progress import Progress


def main(call) -> int:
    return make(call) if call.subject == "make" else _check(call)


# ---- make ----


def make(call) -> int:
    """Plays matches between agents and writes their logs, one file each."""
    from experiments.device import select

    config = call.resolved.config
    if config.game.name != "guandan":
        raise ConfigError("game.name", f"only guandan has logs, got {config.game.name!r}")
    if not config.data.out:
        raise ConfigError("data.out", "say which folder takes the logs")
    select(config.device)
    with Progress(call.flags) as progress:
        paths = play(config, progress)
    summary = {"matches": len(paths), "out": config.data.out, "files": [p.name for p in paths]}
    if call.flags.json:
        print(json.dumps(summary, ensure_ascii=True))
    else:
        print(f"{len(paths)} matches in {_plain(config.data.out)}")
    return errors.DONE


def play(config: Any, progress: Progress | None = None) -> list[pathlib.Path]:
    """Plays the matches that `config.data` asks for; the files. The same settings play the same
    matches.

    Raises:
      ConfigError: an agent that does not exist, or a game that is no match.
      RunError: a log of that name is there.
    """
    import jax

    from experiments.commands.wire import player
    from jaxgames.guandan.log import LogBuilder, write
    from jaxgames.guandan.wire.table import Table

    game, data = make_game(config), config.data
    if game.rules.unit != "match":
        raise ConfigError("game.options.unit", "logs are of whole matches; say match")
    if game.rules.skip_forced:
        raise ConfigError("game.options.skip_forced", "logs have forced passes, too; say false")
    specs = data.seats or (list(game.bots)[-1],)
    known = {spec: player("data.seats", spec, game) for spec in dict.fromkeys(specs)}
    seats = [known[specs[seat % len(specs)]] for seat in range(game.num_players)]
    folder = pathlib.Path(data.out)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{config.seed}-{number}.jsonl" for number in range(data.matches)]
    for path in paths:
        if path.exists():
            raise errors.RunError(f"{path} is there already; choose another data.out or seed")
    for number, path in enumerate(paths):
        deals, choices = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), number))
        log = functools.partial(
            LogBuilder,
            seats=[seat.name for seat in seats],
            seed=config.seed,
            versions={"jaxgames": metadata.version("jaxgames"), "guandan": game.version},
            meta={"match": number},
        )
        table = Table(game, deals, log=log)
        while not table.over:
            key = jax.random.fold_in(choices, table.moves)
            table.move(table.choice(seats[table.seat].choose, key))
            if progress is not None:
                share = (number + min(table.rounds / 30, 0.9)) / len(paths)
                progress.update(share, f"match {number + 1} of {len(paths)}", done=number)
        write(path, table.log.match)
    return paths


# ---- check ----


def _check(call) -> int:
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
