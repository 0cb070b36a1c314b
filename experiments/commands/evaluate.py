"""`jaxgames evaluate`: two agents on paired deals, with intervals and gates."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import jax

from algorithms import agents, arena, ratings
from configs import ConfigError, Resolved, make_game
from experiments import errors
from experiments.device import select, use_compile_cache
from experiments.progress import Progress
from experiments.shell import as_typed
from jaxgames import core
from jaxgames.core import Game


@dataclasses.dataclass(frozen=True)
class Report:
    """What was played.

    Attributes:
      forms: name of the form -> its evaluation.
      models: what is known of the weights of "agent" and "opponent".
    """

    forms: dict[str, arena.Evaluation]
    models: dict[str, Any]


def main(call) -> int:
    config = call.resolved.config
    select(config.device)
    use_compile_cache()
    with Progress(call.flags) as progress:

        def told(done: int, total: int) -> None:
            progress.update(done / total, f"{done} of {total} games", done=done, total=total)

        report = run(call.resolved, told)
    summary = describe(report, config.gate)
    summary["command"] = as_typed(("jaxgames", call.command, *call.configs, *call.overrides))
    if config.eval.out:
        write(config.eval.out, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    if config.eval.rows:
        rows = ({"form": n, **row} for n, e in report.forms.items() for row in e.rows())
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        write(config.eval.rows, "".join(f"{line}\n" for line in lines))
    if call.flags.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        show(report)
    return verdict(summary)


def run(resolved: Resolved, progress: Callable[[int, int], None] | None = None) -> Report:
    """Plays the games that the settings ask for.

    Raises:
      ConfigError: an agent or a form that does not exist.
    """
    config, settings = resolved.config, resolved.config.eval
    games = forms_of(resolved, "eval.forms", settings.forms)
    first = next(iter(games.values()))
    specs = {
        "agent": settings.agent or _tested(config, first),
        "opponent": settings.opponent or list(first.bots)[-1],
    }
    seats = {
        name: [seat(f"eval.{side}", spec, game) for side, spec in specs.items()]
        for name, game in games.items()
    }
    found = {}
    for number, (name, game) in enumerate(games.items()):
        found[name] = arena.evaluate_paired(
            game,
            *seats[name],
            settings.pairs,
            config.seed,
            sprt=settings.sprt,
            opening=settings.opening,
            capacity=settings.capacity or None,
            resamples=settings.bootstrap,
            progress=part_of(progress, number, len(games)),
        )
    metas = (dict(s.meta) for s in next(iter(seats.values())))
    return Report(found, dict(zip(specs, metas, strict=True)))


def part_of(progress: Callable[[int, int], None] | None, number: int, of: int):
    """`progress` of the whole, told by the part `number` of so many equal ones."""

    def told(done: int, total: int) -> None:
        if progress is not None:
            progress(number * total + done, of * total)

    return told


def forms_of(resolved: Resolved, key: str, wanted: Sequence[str]) -> dict[str, Game]:
    """The forms of the game to play: those `wanted`, else all that leave alone what a preset, a
    file or an override set of the game's options. Raises ConfigError, with `key`."""
    game = make_game(resolved.config)
    for name in wanted:
        if name not in game.forms:
            raise ConfigError(key, f"unknown form {name!r}{core.nearest(name, game.forms)}")
    if wanted:
        return {name: game.forms[name] for name in wanted}
    given = {k for k, origin in resolved.origins.items() if origin != "default"}

    def fits(form: Game) -> bool:
        ours, theirs = dataclasses.asdict(game.rules), dataclasses.asdict(form.rules)
        return not any(f"game.options.{k}" in given for k in ours if ours[k] != theirs[k])

    return {name: form for name, form in game.forms.items() if fits(form)}


def _tested(config, game: Game) -> str:
    if config.run.name:
        return str(pathlib.Path(config.run.dir) / config.run.name)
    return agents.default_spec(game)


def seat(key: str, spec: str, game: Game) -> agents.Seat:
    """`agents.from_spec` with the setting's name in its errors."""
    try:
        return agents.from_spec(spec, game)
    except agents.AgentError as error:
        raise ConfigError(key, str(error).removeprefix("agent: ")) from None


def describe(report: Report, gate: ratings.GateConfig) -> dict[str, Any]:
    """The report as JSON values, with the gate's outcome and what it ran on: the figures of the
    first form, at which the gate looks, and those of all below "forms" if there are several."""
    forms = {name: evaluation.to_json() for name, evaluation in report.forms.items()}
    first = next(iter(report.forms))
    value = ratings.gate_value(report.forms[first].metrics, gate)
    return (
        forms[first]
        | ({"forms": forms} if len(forms) > 1 else {})
        | dict(
            models=report.models,
            gate=dict(vars(gate), form=first, value=value, passed=value >= gate.at_least),
            versions={name: metadata.version(name) for name in ("jaxgames", "jax", "numpy")},
            device=device(),
        )
    )


def device() -> dict[str, Any]:
    """What the games run on."""
    found = jax.devices()[0]
    return dict(platform=found.platform, kind=found.device_kind, cores=os.cpu_count())


def verdict(summary: dict[str, Any]) -> int:
    """The exit code, after one sentence on stderr when it is not 0."""
    gate, sprt = summary["gate"], summary["sprt"]
    illegal = sum(form["illegal"] for form in summary.get("forms", {"": summary}).values())
    if illegal:
        text, code = f"{illegal} games ended by an illegal move", errors.FAILED
    elif not gate["passed"]:
        text = f"gate not met: {gate['bound']} {gate['metric']} is {gate['value']:.4f}"
        text, code = f"{text}, wanted at least {gate['at_least']:g}", errors.GATE
    elif sprt and sprt["verdict"] == "reject":
        text = f"the test rejects an advantage of {sprt['elo1']:g} Elo (ratio {sprt['ratio']:.2f})"
        code = errors.GATE
    else:
        return errors.DONE
    print(f"jaxgames: {text}", file=sys.stderr)
    return code


def show(report: Report) -> None:
    """Print the report as tables."""
    from rich.console import Console

    # As wide as a table needs to be: a terminal may wrap it, a file keeps it whole.
    console = Console(highlight=False, markup=False, soft_wrap=True, width=1000)
    for name, evaluation in report.forms.items():
        if len(report.forms) > 1:
            console.print(f"--- {name} ---")
        _show_form(console, evaluation)


def _show_form(console, evaluation: arena.Evaluation) -> None:
    from rich.table import Table

    report, (a, b) = evaluation.to_json(), evaluation.names
    rules = ", ".join(f"{k}={v}" for k, v in report["game"]["rules"].items())
    console.print(f"{evaluation.game.id} {evaluation.game.version} ({rules})")
    console.print(f"{a} against {b}: {evaluation.groups} deals, {evaluation.games} games")
    table = Table(box=None, pad_edge=False)
    for title in ("", "rate", "95 %", "games", "even"):
        table.add_column(title, justify="left" if not title else "right")
    teams = evaluation.lineup.shape[1]
    label, even = a if teams == 2 else f"{a} alone, first places", _percent(report["even"])
    counted = str(report["winrate_games"])
    table.add_row(f"{label} (Wilson)", *_cells(report["winrate"]), counted, even)
    table.add_row(f"{label} (bootstrap of deals)", *_cells(report["winrate_groups"]), "", "")
    if teams > 2:
        for row in report["lineups"]:
            label = f"{a} in {row['teams']} of {teams} teams"
            table.add_row(label, *_cells(row), str(row["games"]), _percent(row["even"]))
    for row in report["teams"] if teams == 2 else ():
        label = f"seat{_list(row['seats'])} held by {{}}"
        for key, name in (("a", a), ("b", b)):
            cells = (*_cells(row[key]), str(row[f"{key}_games"]), even)
            table.add_row(label.format(name), *cells)
    console.print(table)
    if teams > 2:
        console.print(_placements(report, (a, b)))
    if report["elo"]:
        points = {k: "?" if v is None else f"{v:+.0f}" for k, v in report["elo"].items()}
        console.print(f"Elo {points['mean']} [{points['low']}, {points['high']}]")
    if report["gain"]:
        gain, shares = report["gain"], report["gain"]["shares"]
        amounts = ", ".join(f"{float(k):+g} {_percent(v)}" for k, v in shares.items())
        mean, low, high = (f"{gain[k]:+.3f}" for k in ("mean", "low", "high"))
        console.print(f"{gain['unit']} per game {mean} [{low}, {high}] of deals ({amounts})")
    console.print(
        f"shared first places {_percent(report['draws'])}, cut at the cap {report['truncated']} "
        f"({_percent(report['capped']['mean'])}), "
        f"illegal {report['illegal']}, steps per game {report['steps']['mean']:.1f}, "
        f"{report['seconds']:.1f} s with compilation"
    )
    if report["sprt"]:
        test = report["sprt"]
        low, high = test["bounds"]
        console.print(
            f"sequential test of [{test['elo0']:g}, {test['elo1']:g}] Elo: {test['verdict']} "
            f"(ratio {test['ratio']:.2f}, bounds {low:.2f} and {high:.2f}); "
            "an early stop overstates the rate"
        )


def _placements(report: dict[str, Any], names: Sequence[str]):
    """A table of the places and payoffs of both agents' single teams, in all lineups."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    teams = len(report["teams"])
    places = [f"place {place + 1}" for place in range(teams)]
    firsts = [f"first as {team}" for team in range(teams)]
    for title in ("", *places, "payoff", "95 %", *firsts):
        table.add_column(title, justify="right" if title else "left")
    for row in report["lineups"]:
        for key, name in zip("ab", names, strict=True):
            held = row["teams"] if key == "a" else teams - row["teams"]
            stands = row[key]
            mean, low, high = (f"{stands['payoff'][k]:+.3f}" for k in ("mean", "low", "high"))
            table.add_row(
                f"{name}, one of its {held} of {teams}",
                *map(_percent, stands["places"]),
                mean,
                f"{low} to {high}",
                *(_percent(seat[0]) for seat in stands["seats"]),
            )
    return table


def _cells(row: dict[str, Any]) -> tuple[str, str]:
    return _percent(row["mean"]), f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _list(seats: list[int]) -> str:
    return ("s " if len(seats) > 1 else " ") + ", ".join(map(str, seats))


def write(path: str, text: str) -> None:
    """Write a file whole or not at all."""
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    try:
        fresh.write_text(text, "utf-8")
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
