"""`jaxgames export BUNDLE`: a bundle as files for other programs."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import pathlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

from configs import ConfigError, Resolved
from experiments import errors
from experiments.device import select, use_compile_cache

#: Format -> the file that it writes; what is known of it lies beside, NAME.json.
FILES = {"network": "network.jax", "search": "search.jax", "onnx": "network.onnx",
         "int8": "network_int8.jax"}  # fmt: skip
#: Format -> packages of the extra `export` that it needs.
NEEDS = {"onnx": ("onnx", "onnxruntime"), "int8": ("qwix",)}
#: Largest difference from jax, relative to the largest output, that an ONNX file may show.
ONNX_TOLERANCE = 1e-4


def main(call) -> int:
    if len(call.configs) != 1:
        raise errors.UsageError("export: say which bundle, such as sequence/az or runs/NAME")
    quiet = call.flags.quiet or call.flags.json
    report = run(call.configs[0], call.resolved, (lambda text: None) if quiet else print)
    if call.flags.json:
        print(json.dumps(report, ensure_ascii=False))
    return errors.DONE


def run(
    word: str, resolved: Resolved, say: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Writes what the settings ask for; returns the notes of all files as JSON values.

    Raises:
      UsageError, BundleError: no such bundle, or one that can not be used.
      ConfigError: a format that this bundle or this machine can not be given, files in the way.
      RunError: a file that does not give what the bundle gives, or no place to write it.
      OSError: full disk.
    """
    settings = resolved.config.export
    for name in settings.formats:
        for package in NEEDS.get(name, ()):
            if importlib.util.find_spec(package) is None:
                rule = f"{name} needs the package {package}: pip install 'jaxgames[export]'"
                raise ConfigError("export.formats", rule)
    select(resolved.config.device)
    use_compile_cache()
    from experiments.export import blobs, files, subject

    blobs.require_here(settings.platforms)
    found = subject.read(word)
    out = settings.out or str(pathlib.Path("exports") / found.name)
    names = [FILES[name] for name in settings.formats]
    notes = [files.note_of(pathlib.Path(name)).name for name in names]
    folder = files.claim(out, [*names, *notes], settings.overwrite)
    about = _about(found)
    report: dict[str, Any] = {"out": str(folder), **about, "files": []}
    for name in sorted(settings.formats, key=list(_MAKE).index):
        data, note = _MAKE[name](found, settings, resolved.config.seed)
        full = files.write_with_note(folder / FILES[name], data, {**about, **note})
        report["files"].append(full)
        say(f"{folder / FILES[name]}: {len(data):,} bytes, {note['checked']}")
        if "loss" in note:
            say(_loss(note["loss"]))
    return report


def _about(found) -> dict[str, Any]:
    meta = found.meta
    return {
        "game": {"id": meta["game"], "version": meta["game_version"], "rules": meta["rules"]},
        "bundle": {k: meta[k] for k in ("agent", "step", "run", "sha256") if k in meta},
        "versions": {name: metadata.version(name) for name in ("jaxgames", "jax")},
    }


def _network(found, settings, seed) -> tuple[bytes, dict]:
    from experiments.export import blobs

    return blobs.network(found, settings.platforms)


def _search(found, settings, seed) -> tuple[bytes, dict]:
    from experiments.export import blobs

    return blobs.search(found, settings.platforms, settings.rows, settings.simulations)


def _onnx(found, settings, seed) -> tuple[bytes, dict]:
    from experiments.export import blobs, onnx_graph

    try:
        model = onnx_graph.translate(
            lambda **observation: found.judge(found.params, observation),
            found.observation,
            found.name,
            {"game": found.game.id, "bundle_sha256": found.meta["sha256"]},
        )
    except onnx_graph.Untranslatable as error:
        rule = f"this network can not be given as onnx ({error}); leave onnx out"
        raise ConfigError("export.formats", rule) from None
    data = model.SerializeToString()
    error, outputs = _onnx_error(found, data)
    if not error <= ONNX_TOLERANCE:
        raise errors.RunError(f"export: onnx differs from jax by {error:.1e}, relative")
    return data, {
        "kind": "onnx",
        "opset": onnx_graph.OPSET,
        "call": f"inputs and outputs by name, any number of rows; {found.says}",
        "inputs": blobs.described(found.observation),
        "outputs": blobs.described(outputs),
        "error": error,
        "checked": f"in onnxruntime within {error:.1e} of jax, relative to the largest output",
    }


def _onnx_error(found, data: bytes) -> tuple[float, dict[str, Any]]:
    """(largest relative difference, one row of outputs) of onnxruntime from jax, on five deals."""
    import jax
    import numpy as np
    import onnxruntime

    deal = jax.jit(jax.vmap(found.game.init))(jax.random.split(jax.random.key(1), 5))
    observation, _ = jax.jit(found.look)(found.params, deal)
    wanted = jax.device_get(jax.jit(found.judge)(found.params, observation))
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    given = {name: np.asarray(x) for name, x in observation.items()}
    got = session.run(list(wanted), given)
    differences = [
        float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1.0))
        for a, b in zip(got, wanted.values(), strict=True)
    ]
    return max(differences), {name: x[0] for name, x in wanted.items()}


def _int8(found, settings, seed) -> tuple[bytes, dict]:
    from experiments.export import blobs, int8

    small = int8.quantise(found.params)
    loss = int8.measure(found, small, settings.positions, seed)
    data, note = blobs.network(found, settings.platforms, int8.weights_inside(small))
    return data, {**note, "loss": dataclasses.asdict(loss)}


#: In the order of the work: what can be refused first, what takes longest last.
_MAKE = {"onnx": _onnx, "network": _network, "int8": _int8, "search": _search}


def _loss(loss: dict[str, Any]) -> str:
    return (
        f"  on {loss['positions']} positions of its own games: policy KL {loss['kl']:.1e} nats "
        f"(at most {loss['kl_max']:.1e}), same best move in {100 * loss['top1']:.1f} %, value off "
        f"by {loss['value_error']:.4f} (at most {loss['value_max']:.4f}); weights "
        f"{loss['weights']:,} -> {loss['weights_int8']:,} bytes"
    )
