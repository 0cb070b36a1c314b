"""`jaxgames train`: train an agent into a run folder."""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from algorithms import ratings
from configs import ConfigError, Resolved, load
from experiments import errors, sinks
from experiments.cli import Flags
from experiments.device import select, use_compile_cache
from experiments.progress import Progress
from experiments.run_folder import open_run

_QUIET = Flags(quiet=True)


def main(call) -> int:
    result = run(call.resolved, call.flags, call.argv)
    if call.flags.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        for one in result.get("runs", [result]):
            show(one, call.resolved)
    return errors.DONE


def run(resolved: Resolved, flags: Flags = _QUIET, argv: Sequence[str] = ()) -> dict[str, Any]:
    """Trains as `resolved` says; with `seeds`, once for each.

    Returns:
      The result as JSON values; with `seeds` {"runs": [result, ...]}.

    Raises: see `run_one`.
    """
    if not resolved.config.seeds:
        return run_one(resolved, flags, argv)
    name = resolved.config.run.name
    replaced = ("seeds", "seed", "run.name")
    kept = [text for text in resolved.overrides if text.split("=")[0] not in replaced]
    results = []
    for seed in resolved.config.seeds:
        texts = [*kept, f"seed={seed}", *([f"run.name='{name}-seed{seed}'"] if name else [])]
        results.append(run_one(load(resolved.preset, texts), flags, argv))
    return {"runs": results}


def run_one(resolved: Resolved, flags: Flags, argv: Sequence[str]) -> dict[str, Any]:
    """Trains one run.

    Raises:
      ConfigError: before anything compiles.
      errors.RunError, errors.NumericsError, errors.GateError, errors.Interrupted, OSError.
    """
    train = resolved.config.train
    if not train.minutes and not train.chunks:
        raise ConfigError("train.minutes", "set this or train.chunks, or training never ends")
    sinks.require(resolved.config.log.sinks)
    select(resolved.config.device)
    if train.compile_cache:
        use_compile_cache()
    from experiments.training import Trainer

    with Progress(flags) as progress:
        trainer = Trainer(resolved, progress)
        with open_run(resolved, argv) as folder:
            progress.say(f"run folder: {folder.path}")
            with (
                _watched(folder.path, progress) if train.dashboard else contextlib.nullcontext(),
                sinks.mirrored(folder, resolved, progress.say),
            ):
                result = trainer.run(folder)
    gate = resolved.config.gate
    for row in result["evaluations"][:1]:
        metrics = {name: ratings.Interval(**row[name]) for name in ratings.METRICS}
        value = ratings.gate_value(metrics, gate)
        if value < gate.at_least:
            raise errors.GateError(
                f"gate not met: {gate.bound} {gate.metric} against {row['opponent']} is "
                f"{value:.4f}, wanted at least {gate.at_least:g}"
            )
    return result


def _watched(path: pathlib.Path, progress: Progress):
    """The dashboard of the run, from a process of its own, while the block lasts."""
    from experiments.commands.dashboard import Beside

    return Beside(path, progress.say)


def show(result: dict[str, Any], resolved: Resolved) -> None:
    """The end of a run for a person."""
    print(
        f"{result['updates']} updates, {result['env_steps']} moves of self-play, "
        f"{result['minutes']:.1f} minutes"
    )
    print(
        f"{result['games']} games, {result['games_per_minute']:.1f} a minute beside learning; "
        f"{result['memory_mb']} MiB of memory at most"
    )
    if (found := result.get("population")) is not None:
        numbers = ", ".join(
            f"{k} {v:.3g}" for k, v in found.items() if k not in ("best", "fitness")
        )
        print(f"fittest of {len(found['fitness'])} members: number {found['best']}, {numbers}")
    for row in result["evaluations"]:
        rate = ratings.Interval(**row["winrate"])
        print(
            f"{row['agent']} against {row['opponent']}: wins {rate} (Wilson 95 %) "
            f"of {row['games']} games, {100 * row['even']:.1f} % at equal strength"
        )
    print(f"best weights: {result['bundle']}")
    game = resolved.preset or f"game={resolved.config.game.name}"
    print(f"play them:    jaxgames play {game} \"play.seats=[human,'{result['run']}']\"")
