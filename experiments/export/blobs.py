"""Functions as serialized StableHLO: what jax.export writes, and reads back anywhere.

    call, note = blobs.load("az/network.jax")
    outputs = call({"board": board, "features": features})      # any number of rows

Weights are inside. Every blob is read back and compared with the function it was made of on the
platform it was made on before it counts as written: bit for bit, and where XLA adds up in another
order, its note says what differs and by how much. A blob is a program: load only
those that you trust.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from algorithms import agents
from configs import ConfigError
from experiments.errors import RunError
from experiments.export import files
from experiments.export.subject import Subject

Function = Callable[..., Any]
#: What a search says, see `agents.Analysis`.
TOLD = ("action", "weights", "value", "visits", "q")
#: What a blob may differ by from the function it was made of, relative to the largest number.
TOLERANCE = 1e-5
_LESS = "a search takes less with smaller export.rows and export.simulations"


def require_here(platforms: Sequence[str]) -> None:
    """Raises ConfigError unless blobs for these platforms can be tried here."""
    here = export.default_export_platform()
    if here not in platforms:
        rule = f"{here} has to be among them: blobs are tried on it before they count"
        raise ConfigError("export.platforms", rule)


def network(subject: Subject, platforms: Sequence[str], params: Any = None) -> tuple[bytes, dict]:
    """`judge(observation)` for any number of rows, with its note.

    Args:
      params: () -> weights, worked out inside the blob; None: those of the subject.
    """
    weights = (lambda: subject.params) if params is None else params

    def judge(observation):
        return subject.judge(weights(), observation)

    (rows,) = export.symbolic_shape("b")
    spec = {
        k: jax.ShapeDtypeStruct((rows, *x.shape), x.dtype) for k, x in subject.observation.items()
    }
    exported = _exported(judge, platforms, spec)
    deal = jax.jit(jax.vmap(subject.game.init))(jax.random.split(jax.random.key(1), 3))
    observation, _ = jax.jit(subject.look)(subject.params, deal)
    data, checked = _checked(exported, judge, (observation,))
    note = _note(exported, spec, f"call(observation), one row or more: {subject.says}")
    return data, note | {"checked": checked}


def search(
    subject: Subject, platforms: Sequence[str], rows: int, simulations: int
) -> tuple[bytes, dict]:
    """`analyse(seed, state)` of the bundle's agent with its search, for so many rows.

    The state is {leaf: array[rows, ...]} of our states, the seed uint32[2] the data of a key.
    """
    options = f":sims={simulations}" if simulations else ""
    seat = agents.from_spec(f"{subject.path}:search{options}", subject.game)
    shapes = subject.states(rows)
    names = leaf_names(shapes)

    def analyse(seed, state):
        states = jax.tree.unflatten(jax.tree.structure(shapes), [state[n] for n in names])
        key = jax.random.wrap_key_data(seed)
        found = seat.agent.analyse(seat.params, key, states, states.current_player)
        return {name: getattr(found, name) for name in TOLD}

    spec = (
        jax.ShapeDtypeStruct((2,), jnp.uint32),
        dict(zip(names, jax.tree.leaves(shapes), strict=True)),
    )
    exported = _exported(analyse, platforms, *spec)
    deal = jax.jit(jax.vmap(subject.game.init))(jax.random.split(jax.random.key(2), rows))
    state = dict(zip(names, jax.tree.leaves(deal), strict=True))
    seed = jax.random.key_data(jax.random.key(3))
    data, checked = _checked(exported, analyse, (seed, state))
    says = "call(seed, state): seed uint32[2] of jax.random.key_data; values by team, Q of the team"
    note = _note(exported, spec, f"{says} to move, NaN where an action was not looked at")
    return data, note | {"agent": seat.agent.name, "checked": checked}


def leaf_names(state: Any) -> list[str]:
    """Names of a state's leaves in order, such as "legal_action_mask"."""
    paths = jax.tree_util.tree_flatten_with_path(state)[0]
    return [jax.tree_util.keystr(path).lstrip(".") for path, _ in paths]


def load(path: str | os.PathLike) -> tuple[Function, dict[str, Any]]:
    """The function in an exported file, and its note; ValueError for a damaged file."""
    data, note = files.read(path)
    return jax.jit(export.deserialize(bytearray(data)).call), note


def _exported(function: Function, platforms: Sequence[str], *spec: Any) -> export.Exported:
    """`jax.export`, whose notes of where in the source an operation is from name files without
    their folders: these are nobody's business, and would make the same blob differ elsewhere."""
    name = "jax_hlo_source_file_canonicalization_regex"
    before = getattr(jax.config, name)
    jax.config.update(name, r".*[/\\]")
    try:
        return export.export(jax.jit(function), platforms=platforms)(*spec)
    finally:
        jax.config.update(name, before)


def _checked(exported: export.Exported, function: Function, arguments: tuple) -> tuple[bytes, str]:
    """The blob, and how close what was read back comes to the function: the same bits, unless XLA
    fuses sums in another order. Raises RunError where integers differ, or floats beyond that."""
    data = bytes(exported.serialize())
    again, straight = (
        _run(f, arguments) for f in (export.deserialize(bytearray(data)).call, function)
    )
    off = {name: _off(again[name], straight[name]) for name in straight}
    for name, much in off.items():
        if not much <= TOLERANCE:
            raise RunError(f"export: {name} of the blob that was read back differs ({much:.1e})")
    worst, where = max(off.values()), jax.default_backend()
    if worst == 0:
        return data, f"read back and equal bit for bit on {where}"
    names = ", ".join(name for name, much in off.items() if much)
    return data, f"read back and equal on {where}, but for {names} (within {worst:.1e})"


def _run(function: Function, arguments: tuple) -> dict[str, np.ndarray]:
    """The outputs on the host; RunError where they need more memory than there is."""
    try:
        ready = jax.jit(function).lower(*arguments).compile()
        sizes = ready.memory_analysis()
        has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if jax.default_backend() == "cpu" and sizes and sizes.temp_size_in_bytes > has:
            wants = f"{sizes.temp_size_in_bytes / 2**30:.0f} GiB of memory, this machine has"
            raise RunError(f"export: to try the blob takes {wants} {has / 2**30:.0f}; {_LESS}")
        return jax.device_get(ready(*arguments))
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        rule = f"export: to try the blob takes more memory than there is; {_LESS}"
        raise RunError(rule) from None


def _off(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative to the largest number; 0 for the same bits only."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.tobytes() == b.tobytes():
        return 0.0
    if not np.issubdtype(a.dtype, np.floating) or not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    largest = max(float(np.nanmax(np.abs(b), initial=0.0)), 1.0)
    return max(float(np.nanmax(np.abs(a - b), initial=0.0)) / largest, 1e-9)


def _note(exported: export.Exported, spec: Any, call: str) -> dict[str, Any]:
    shapes = [
        {"argument": jax.tree_util.keystr(path), "dtype": str(x.dtype), "shape": _dims(x.shape)}
        for path, x in jax.tree_util.tree_flatten_with_path(spec)[0]
    ]
    outs = jax.tree.unflatten(exported.out_tree, exported.out_avals)
    return {
        "kind": "jax.export",
        "call": call,
        "platforms": list(exported.platforms),
        "calling_convention": exported.calling_convention_version,
        "inputs": shapes,
        "outputs": described(outs),
    }


def described(arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names, dtypes and shapes as JSON values; the number of rows is "b"."""
    return [
        {"name": name, "dtype": str(np.dtype(x.dtype)), "shape": _dims(x.shape)}
        for name, x in arrays.items()
    ]


def _dims(shape: Sequence[Any]) -> list[Any]:
    return [d if isinstance(d, int) else str(d) for d in shape]
