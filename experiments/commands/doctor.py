"""`jaxgames doctor`: is this machine ready?"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import tempfile
import time
from importlib import metadata

from experiments import errors

_PACKAGES = ("jaxgames", "jax", "jaxlib", "flax", "optax", "mctx", "orbax-checkpoint", "numpy")


def main(call) -> int:
    from configs.overrides import coerce, parse
    from configs.schema import Config, annotation

    given = {}
    for override in parse(call.overrides):  # no game is needed to look at a machine
        want = annotation(Config, override.key)
        given[override.key] = coerce(override.value, want, override.key, override.quoted)
    unused = set(given) - {"run.dir", "device"}
    if unused:
        raise errors.UsageError(f"doctor: reads run.dir and device only, not {sorted(unused)[0]}")
    report = run(given.get("run.dir", "runs"), given.get("device", "auto"))
    if call.flags.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        for name, check in report["checks"].items():
            print(f"{'ok  ' if check['ok'] else 'FAIL'} {name}: {check['detail']}")
    return errors.DONE if report["ok"] else errors.FAILED


def run(run_dir: str = "runs", device: str = "auto") -> dict:
    """{"ok": bool, "checks": {name: {"ok", "detail"}}}."""
    checks = {
        "python": lambda: f"{platform.python_version()} on {platform.platform()}",
        "packages": _versions,
        "imports": _imports,
        "devices": lambda: _devices(device),
        "compile": _compile,
        "write access": lambda: _write(run_dir),
    }
    report = {}
    for name, check in checks.items():
        try:
            report[name] = {"ok": True, "detail": check()}
        except Exception as error:  # the doctor reports whatever is wrong
            report[name] = {"ok": False, "detail": f"{type(error).__name__}: {error}"}
    return {"ok": all(c["ok"] for c in report.values()), "checks": report}


def _versions() -> str:
    return ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)


def _imports() -> str:
    """The four packages lie side by side; a stranger's `algorithms` or `configs` would not."""
    import algorithms
    import configs
    import experiments
    import jaxgames

    homes = {
        m.__name__: pathlib.Path(m.__file__).parent.parent
        for m in (jaxgames, algorithms, configs, experiments)
    }
    if len(set(homes.values())) > 1:
        raise RuntimeError(f"packages of another distribution are in the way: {homes}")
    return str(homes["jaxgames"])


def _devices(device: str) -> str:
    from experiments.device import select

    select(device)
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{', '.join(str(d) for d in jax.devices())}; {cores} CPU cores"


def _compile() -> str:
    import jax
    import jax.numpy as jnp

    start = time.perf_counter()
    value = jax.jit(lambda x: jnp.sum(x @ x))(jnp.eye(8))
    if float(value) != 8.0:
        raise RuntimeError(f"the sum of an 8x8 identity came out as {float(value)}")
    return f"{time.perf_counter() - start:.2f} s"


def _write(run_dir: str) -> str:
    folder = pathlib.Path(run_dir).resolve()
    while not folder.exists():
        folder = folder.parent
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".jaxgames-"):
        return str(pathlib.Path(run_dir).resolve())
