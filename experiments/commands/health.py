"""`jaxgames health RUN`: how a run is doing, from its folder's files alone."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from experiments import errors, health


def main(call) -> int:
    if call.overrides or len(call.configs) != 1:
        raise errors.UsageError("health: say which run, a folder or a name below runs/")
    rows = _rows(call.configs[0])
    found = health.lights(rows)
    step = rows[-1].get("step", 0) if rows else 0
    if call.flags.json:
        shown = [{**dataclasses.asdict(x), "rule": health.RULES[x.name].says} for x in found]
        print(json.dumps({"step": step, "rows": len(rows), "lights": shown}, ensure_ascii=False))
        return errors.DONE
    print(f"update {step}, {len(rows)} rows")
    for light in found:
        print(f"{light.level:4} {light.name}: {light.text} ({light.look})")
    silent = [name for name in health.RULES if name not in health.levels(found)]
    if silent:
        print(f"no light yet: {', '.join(silent)}")
    return errors.DONE


def _rows(run: str) -> list:
    for path in (pathlib.Path(run), pathlib.Path("runs") / run):
        try:
            return health.read(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
    raise errors.UsageError(f"health: no metrics.jsonl in {run} or runs/{run}")
