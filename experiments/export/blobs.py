"""Functions as serialized StableHLO: what jax.export writes, and reads back anywhere.

    call, note = blobs.load("az/network.jax")
    outputs = call({"board": board, "features": features})      # any number of rows

Weights are inside. Every blob is read back and compared with the function it was made of, bit for
bit on the platform it was made on, before it counts as written. A blob is a program: load only
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
from experiments.errors import RunError
from experiments.export import files
from experiments.export.subject import Subject

Function = Callable[..., Any]
#: What a search says, see `agents.Analysis`.
TOLD = ("action", "weights", "value", "visits", "q")


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
    exported = export.export(jax.jit(judge), platforms=platforms)(spec)
    deal = jax.jit(jax.vmap(subject.game.init))(jax.random.split(jax.random.key(1), 3))
    observation, _ = jax.jit(subject.look)(subject.params, deal)
    data = _checked(exported, judge, (observation,))
    says = f"call(observation): logits and Q are of the {subject.actions}"
    return data, _note(exported, spec, f"{says}; the team of the seat to move comes first")


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
        return {
            name: getattr(found, name) for name in ("action", "weights", "value", "visits", "q")
        }

    spec = (
        jax.ShapeDtypeStruct((2,), jnp.uint32),
        dict(zip(names, jax.tree.leaves(shapes), strict=True)),
    )
    exported = export.export(jax.jit(analyse), platforms=platforms)(*spec)
    deal = jax.jit(jax.vmap(subject.game.init))(jax.random.split(jax.random.key(2), rows))
    state = dict(zip(names, jax.tree.leaves(deal), strict=True))
    data = _checked(exported, analyse, (jax.random.key_data(jax.random.key(3)), state))
    says = "call(seed, state): seed uint32[2] of jax.random.key_data; values by team, Q of the team"
    note = _note(exported, spec, f"{says} to move, NaN where an action was not looked at")
    return data, note | {"agent": seat.agent.name}


def leaf_names(state: Any) -> list[str]:
    """Names of a state's leaves in order, such as "legal_action_mask"."""
    paths = jax.tree_util.tree_flatten_with_path(state)[0]
    return [jax.tree_util.keystr(path).lstrip(".") for path, _ in paths]


def load(path: str | os.PathLike) -> tuple[Function, dict[str, Any]]:
    """The function in an exported file, and its note; ValueError for a damaged file."""
    data, note = files.read(path)
    return jax.jit(export.deserialize(bytearray(data)).call), note


def _checked(exported: export.Exported, function: Function, arguments: tuple) -> bytes:
    """The blob, after it gave the same bits as the function. Raises RunError."""
    data = bytes(exported.serialize())
    again = jax.jit(export.deserialize(bytearray(data)).call)(*arguments)
    straight = jax.jit(function)(*arguments)
    for name in straight:
        if np.asarray(again[name]).tobytes() != np.asarray(straight[name]).tobytes():
            raise RunError(f"export: {name} of the blob that was read back differs")
    return data


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
        "checked": f"read back and equal bit for bit on {jax.default_backend()}",
    }


def described(arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names, dtypes and shapes as JSON values; the number of rows is "b"."""
    return [
        {"name": name, "dtype": str(np.dtype(x.dtype)), "shape": _dims(x.shape)}
        for name, x in arrays.items()
    ]


def _dims(shape: Sequence[Any]) -> list[Any]:
    return [d if isinstance(d, int) else str(d) for d in shape]
