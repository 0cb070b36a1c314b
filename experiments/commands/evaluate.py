"""`jaxgames evaluate`: two agents on paired deals, with intervals and gates."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax

from algorithms import agents, arena, ratings
from configs import ConfigError, make_game
from experiments import errors
from experiments.device import select
from experiments.progress import Progress
from experiments.shell import as_typed
from jaxgames.core import Game


def main(call) -> int:
    config = call.resolved.config
    select(config.device)
    with Progress(call.flags) as progress:

        def report(done: int, total: int) -> None:
            progress.update(done / total, f"{done} of {total} games", done=done, total=total)

        evaluation, models = run(config, report)
    summary = describe(evaluation, models, config.gate)
    summary["command"] = as_typed(("jaxgames", call.command, *call.configs, *call.overrides))
    if config.eval.out:
        _write(config.eval.out, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    if config.eval.rows:
        lines = (json.dumps(row, ensure_ascii=False) for row in evaluation.rows())
        _write(config.eval.rows, "".join(f"{line}\n" for line in lines))
    if call.flags.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        show(evaluation)
    return verdict(summary)


def run(
    config, progress: Callable[[int, int], None] | None = None
) -> tuple[arena.Evaluation, dict[str, Any]]:
    """Plays the games that `config` asks for; also what is known of the agents' weights.

    Raises:
      ConfigError: an agent that does not exist.
    """
    game = make_game(config)
    a = seat("eval.agent", config.eval.agent or _tested(config, game), game)
    b = seat("eval.opponent", config.eval.opponent or list(game.bots)[-1], game)
    evaluation = arena.evaluate_paired(
        game,
        a,
        b,
        config.eval.pairs,
        config.seed,
        sprt=config.eval.sprt,
        capacity=config.eval.capacity or None,
        resamples=config.eval.bootstrap,
        progress=progress,
    )
    return evaluation, {"agent": dict(a.meta), "opponent": dict(b.meta)}


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


def describe(
    evaluation: arena.Evaluation, models: dict[str, Any], gate: ratings.GateConfig
) -> dict[str, Any]:
    """The report as JSON values, with the gate's outcome and what it ran on."""
    value = ratings.gate_value(evaluation.metrics, gate)
    device = jax.devices()[0]
    return evaluation.to_json() | dict(
        models=models,
        gate=dict(vars(gate), value=value, passed=value >= gate.at_least),
        versions={name: metadata.version(name) for name in ("jaxgames", "jax", "numpy")},
        device=dict(platform=device.platform, kind=device.device_kind, cores=os.cpu_count()),
    )


def verdict(summary: dict[str, Any]) -> int:
    """The exit code, after one sentence on stderr when it is not 0."""
    gate, sprt = summary["gate"], summary["sprt"]
    if summary["illegal"]:
        text, code = f"{summary['illegal']} games ended by an illegal move", errors.FAILED
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


def show(evaluation: arena.Evaluation) -> None:
    """Print the report as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, soft_wrap=True)
    report, (a, b) = evaluation.to_json(), evaluation.names
    rules = ", ".join(f"{k}={v}" for k, v in report["game"]["rules"].items())
    console.print(f"{evaluation.game.id} {evaluation.game.version} ({rules})")
    console.print(f"{a} against {b}: {evaluation.groups} deals, {evaluation.games} games")
    table = Table(box=None, pad_edge=False)
    for title in ("", "rate", "95 %", "games", "even"):
        table.add_column(title, justify="left" if not title else "right")
    overall = evaluation.winrate
    table.add_row(f"{a} (Wilson)", *_cells(vars(overall)), str(report["games"]), "50.0 %")
    table.add_row(f"{a} (bootstrap of deals)", *_cells(report["winrate_groups"]), "", "")
    if len(report["lineups"]) > 1:
        for row in report["lineups"]:
            label = f"{a} in {row['teams']} of {evaluation.lineup.shape[1]} teams"
            table.add_row(label, *_cells(row), str(row["games"]), _percent(row["even"]))
    even = _percent(1 / evaluation.lineup.shape[1])
    for row in report["teams"]:
        label = f"seat{_list(row['seats'])} held by {{}}"
        for key, name in (("a", a), ("b", b)):
            cells = (*_cells(row[key]), str(row[f"{key}_games"]), even)
            table.add_row(label.format(name), *cells)
    console.print(table)
    points = {k: "?" if v is None else f"{v:+.0f}" for k, v in report["elo"].items()}
    console.print(f"Elo {points['mean']} [{points['low']}, {points['high']}]")
    console.print(
        f"shared first places {_percent(report['draws'])}, cut at the cap {report['truncated']}, "
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


def _cells(row: dict[str, Any]) -> tuple[str, str]:
    return _percent(row["mean"]), f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _list(seats: list[int]) -> str:
    return ("s " if len(seats) > 1 else " ") + ", ".join(map(str, seats))


def _write(path: str, text: str) -> None:
    """Write a file whole or not at all."""
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    try:
        fresh.write_text(text, "utf-8")
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
