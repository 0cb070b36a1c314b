"""`jaxgames plot RUN...`: pictures of runs, and of a position with what an agent thinks of it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from experiments import errors, plots
from experiments.commands.dashboard import find
from experiments.dashboard.run import Run
from experiments.device import use_compile_cache
from experiments.plots import charts
from experiments.plots.picture import FORMATS
from jaxgames import record as records
from jaxgames.core import nearest

#: Of positions: name -> what it shows.
POSITIONS = {
    "board": "the position",
    "moves": "the likeliest moves as bars",
    "policy": "the network's distribution on the board",
    "visits": "where the search looked, on the board",
    "q": "what the moves are worth, on the board",
    "tree": "the search tree",
}
#: Of runs, besides the dashboard's charts.
TABLES = {
    "reliability": "what was said against what happened",
    "payoffs": "who wins how often against whom",
}


def kinds() -> dict[str, str]:
    """All that can be drawn: name -> what it shows."""
    curves = {id: chart.title for id, chart in charts.CHARTS.items()}
    return {**curves, **TABLES, **POSITIONS}


def main(call) -> int:
    config, known = call.resolved.config, kinds()
    for kind in config.plot.kinds:
        if kind not in known:
            raise errors.UsageError(f"plot.kinds: unknown {kind!r}{nearest(kind, known)}")
    if not call.configs and not config.plot.record:
        if config.plot.kinds:
            raise errors.UsageError("plot: say which run, or set plot.record")
        _list(known, call.flags.json)
        return errors.DONE
    base = pathlib.Path(config.run.dir)
    runs = [charts.open_run(find(word, base)) for word in call.configs]
    written = draw(runs, config)
    if call.flags.json:
        print(json.dumps({"files": [str(path) for path in written]}))
    elif not call.flags.quiet:
        print("\n".join(map(str, written)))
    return errors.DONE


def draw(runs: list[Run], config: Any) -> list[pathlib.Path]:
    """Writes the pictures that the settings ask for; returns the files.

    Raises PlotError for a kind that was asked for and can not be drawn.
    """
    chosen = config.plot.kinds
    wanted = chosen or (tuple(POSITIONS)[:2] if config.plot.record else _of_runs())
    place = _Place(config.plot, runs, len(wanted))
    position = _Position(runs, config)
    files = []
    for kind in wanted:
        try:
            picture = position.draw(kind) if kind in POSITIONS else _of_run(kind, runs, config)
        except plots.PlotError:
            if chosen or config.plot.record:
                raise
            continue  # not recorded
        path = place.of(kind)
        try:
            files.append(picture.save(path))
        except OSError as error:
            raise errors.RunError(f"plot.out: can not write {path} ({error.strerror})") from error
    if not files:
        raise plots.PlotError("plot: these runs recorded nothing that could be drawn")
    return files


def _list(known: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(known))
        return
    print("Kinds, for plot.kinds=[...]:")
    for name, what in known.items():
        print(f"  {name:16} {what}")


def _of_runs() -> tuple[str, ...]:
    return (*charts.CHARTS, *TABLES)


def _of_run(kind: str, runs: list[Run], config: Any) -> plots.Picture:
    if not runs:
        raise plots.PlotError(f"plot: {kind} is of a run; say which")
    if kind == "reliability":
        return plots.reliability(*runs)
    if kind == "payoffs":
        if len(runs) > 1:
            raise plots.PlotError(f"plot: {kind} is of one run, got {len(runs)}")
        return plots.league(runs[0])
    return plots.chart(kind, *runs, x=config.plot.x)


class _Place:
    """Where files go."""

    def __init__(self, config: Any, runs: list[Run], number: int):
        self.out, self.format = pathlib.Path(config.out), config.format
        suffix = self.out.suffix.lower().removeprefix(".")
        self.single = bool(config.out) and suffix in FORMATS
        if self.single and number != 1:
            rule = f"{config.out} is one file for {number} pictures; name a folder"
            raise plots.PlotError(f"plot.out: {rule}")
        if not config.out:
            self.out = runs[0].path / "plots" if len(runs) == 1 else pathlib.Path("plots")

    def of(self, kind: str) -> pathlib.Path:
        return self.out if self.single else self.out / f"{kind}.{self.format}"


class _Position:
    """The position that the settings name, and what the agent thinks, once it is asked for."""

    def __init__(self, runs: list[Run], config: Any):
        self.runs, self.config = runs, config.plot
        self.seed = config.seed
        self._state = self._thought = None

    def draw(self, kind: str) -> plots.Picture:
        state, viewer = self.state, self.config.viewer
        if viewer is not None and viewer >= state.game.num_players:
            seats = state.game.num_players
            raise plots.PlotError(f"plot.viewer: a seat from 0 to {seats - 1}, got {viewer}")
        if kind == "board":
            return plots.board(state, viewer)
        if kind == "tree":
            return plots.tree(self.thought.tree)
        if kind == "moves":
            return plots.moves(state, self.thought)
        return getattr(plots, kind)(state, self.thought, viewer)

    @property
    def state(self) -> Any:
        if self._state is None:
            record = self._record()
            match = records.replay(record, any_version=True)
            ply = self.config.ply + (match.ply if self.config.ply < 0 else 0)
            if not 0 <= ply <= match.ply:
                rule = f"the game has {match.ply} moves, got {self.config.ply}"
                raise plots.PlotError(f"plot.ply: {rule}")
            self._state = match.states[ply]
        return self._state

    @property
    def thought(self) -> plots.Thought:
        if self._thought is None:
            agent = self.config.agent
            if not agent and self.runs and (self.runs[0].path / "best").is_dir():
                agent = str(self.runs[0].path)
            use_compile_cache()
            self._thought = plots.think(self.state, agent, self.seed)
        return self._thought

    def _record(self) -> records.Record:
        if self.config.record:
            return first_record(self.config.record, "plot.record")
        games = self.runs[0].boards.list() if self.runs else []
        if not games:
            raise plots.PlotError("plot.record: name a record; the run has no recorded game")
        stem, _, number = games[0]["id"].rpartition(".")
        path = self.runs[0].path / "games" / f"{stem}.jsonl"
        return first_record(path, "plot.record", int(number))


def first_record(path: str | pathlib.Path, key: str, number: int = 0) -> records.Record:
    """Record `number` of a file; UsageError with the key that named it."""
    try:
        found = None
        for place, found in enumerate(records.read(path)):
            if place == number:
                return found
    except OSError as error:
        raise errors.UsageError(f"{key}: can not read {path} ({error.strerror})") from None
    raise errors.UsageError(f"{key}: {path} has no game {number}")
