"""`jaxgames benchmark env|search|train|ablation|serve`: figures, their spread, the hardware."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import platform
from collections.abc import Callable
from typing import Any

from configs import Resolved
from experiments import errors, run_folder
from experiments.device import select
from experiments.progress import Progress
from experiments.shell import as_typed


def main(call) -> int:
    with Progress(call.flags) as progress:
        report = run(call.subject, call.resolved, progress.say, call.argv)
    _write(call.resolved.config.benchmark.out, report)
    if call.flags.json:
        print(json.dumps(run_folder.clean(report), ensure_ascii=False))
    elif call.subject == "ablation":
        from experiments.benchmarks import ablation

        ablation.show(report)
    else:
        show(report)
    return errors.DONE


def _write(out: str, report: dict[str, Any]) -> None:
    if out:
        text = json.dumps(run_folder.clean(report), indent=1, ensure_ascii=False) + "\n"
        run_folder.replace(pathlib.Path(out), text)


def run(
    subject: str,
    resolved: Resolved,
    say: Callable[[str], None] = lambda text: None,
    argv: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The report of one benchmark as JSON values; see `experiments.benchmarks`."""
    select(resolved.config.device)

    def whole(report: dict[str, Any]) -> dict[str, Any]:
        return {
            "benchmark": subject,
            "command": as_typed(argv),
            **report,
            "hardware": hardware(),
            "versions": run_folder.versions(),
            "commit": run_folder.commit(),
        }

    if subject == "env":
        return whole(_env(resolved.config, say))
    module = importlib.import_module(f"experiments.benchmarks.{subject}")
    if subject == "ablation":
        out = resolved.config.benchmark.out
        return whole(module.run(resolved, say, lambda part: _write(out, whole(part))))
    return whole(module.run(resolved.config, say))


def _env(config: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """The steps per second of a game and of its peers, as rows."""
    from experiments.benchmarks import env

    say("compiling and measuring")
    settings = config.benchmark
    detail = env.benchmark_env(
        config.game.name,
        dataclasses.asdict(config.game.options),
        batch_sizes=settings.batches,
        steps=settings.steps,
        repeats=settings.repeats,
        peers=env.PEERS if settings.peers else (),
        seed=config.seed,
    )
    rows = []
    for name, rates in ((config.game.name, detail["rates"]), *_peer_rates(detail)):
        for batch, rate in rates.items():
            row = {"what": f"{name}, {batch} games", "value": rate["median"], "unit": "steps/s"}
            rows.append(
                {**row, "repeats": settings.repeats, "low": rate["low"], "high": rate["high"]}
            )
    seen = detail["observe"]
    what = f"observations of {config.game.name}, {seen['batch']} games"
    row = {"what": what, "value": seen["median"], "unit": "observations/s"}
    rows.append({**row, "repeats": settings.repeats, "low": seen["low"], "high": seen["high"]})
    return {"rows": rows, "compile_s": {"init + step": detail["compile_seconds"]}, "detail": detail}


def _peer_rates(detail: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = [(f"pgx {name}", peer) for name, peer in detail["peers"].items() if peer]
    return [(name, peer["rates"]) for name, peer in found]


def hardware() -> dict[str, Any]:
    """What the figures depend on."""
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": cores,
        "devices": [f"{d.platform} {d.device_kind}" for d in jax.devices()],
        "system": platform.system(),
    }


def show(report: dict[str, Any]) -> None:
    """Print the report as a table."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for title, side in (("", "left"), ("median", "right"), ("", "left"), ("spread", "right")):
        table.add_column(title, justify=side)
    for row in report["rows"]:
        spread = ""
        if row.get("repeats", 1) > 1:
            spread = f"{_number(row['low'])} to {_number(row['high'])}"
        table.add_row(row["what"], _number(row["value"]), row["unit"], spread)
    console.print(table)
    for name, seconds in report.get("compile_s", {}).items():
        console.print(f"compile {name}: {seconds:.1f} s")
    machine = report["hardware"]
    console.print(f"{machine['cores']} cores, {', '.join(machine['devices'])}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
