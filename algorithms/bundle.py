"""Weights for use: `model.safetensors` (no code) and `model.json`, loaded strictly.

Tensor names are the paths in the parameter tree joined by "/", and leaves are matched by
path, never by order. `save` reads back what it wrote before it replaces an older bundle.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

import jax
import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from jaxgames.core import Game
from jaxgames.view import Viewer, Whole

FORMAT = "jaxgames-bundle/1"
TENSORS, META = "model.safetensors", "model.json"
#: Largest files that `load` opens, in bytes.
MAX_TENSOR_BYTES = 512 * 2**20
MAX_META_BYTES = 2**20
_DTYPES = {
    "BOOL": np.bool_, "I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16,
    "I32": np.int32, "U32": np.uint32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64,
}  # fmt: skip


class BundleError(ValueError):
    """A bundle that can not be used; `field` names the offending part."""

    def __init__(self, field: str, message: str):
        super().__init__(f"{field}: {message}")
        self.field = field


@dataclasses.dataclass(frozen=True)
class Bundle:
    """Attributes:
    params: nested dict of numpy arrays.
    meta: the contents of model.json.
    """

    params: dict
    meta: dict[str, Any]


def describe(game: Game, *, agent: str, network: Any, **more: Any) -> dict[str, Any]:
    """The metadata of a bundle for `game`.

    Args:
      agent: kind of agent the weights belong to ("alphazero", "mcts_dqn").
      network: dataclass of the network's settings.
      more: JSON values: step, run, search, strength (with its interval), ...; `view` is the size
        of what the weights see of the game (`Viewer.size`), all of it where it is not given.
    """
    viewer = viewer_of(more, game)
    return {
        "format": FORMAT,
        "game": game.id,
        "game_version": game.version,
        "rules": _plain(game.rules),
        "rules_sha256": _hash(_plain(game.rules)),
        "num_actions": viewer.num_actions,
        "num_teams": game.num_teams,
        "observation": _observation_spec(viewer),
        "agent": agent,
        "network": _plain(network),
        "licence": "MIT",
        **{key: _plain(value) for key, value in more.items()},
    }


def save(path: str | os.PathLike, params: Mapping, meta: Mapping[str, Any]) -> None:
    """Write a bundle to the folder `path`, whole or not at all; an older one is replaced.

    Raises:
      BundleError: weights that `load` would refuse.
      OSError: full disk, no access; an older bundle at `path` is untouched.
    """
    path = pathlib.Path(os.path.abspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    recover(path)
    flat = {
        # safetensors writes a strided array in memory order without an error
        name: np.asarray(leaf, order="C")
        for name, leaf in flatten(jax.device_get(params)).items()
    }
    fresh = path.with_name(f".{path.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        data = safetensors.numpy.save(flat)
        full = {**meta, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        _write(fresh / TENSORS, data)
        _write(fresh / META, json.dumps(full, indent=1, ensure_ascii=False).encode())
        written = flatten(load(fresh).params)
        for name, leaf in flat.items():
            back = written[name]
            if (leaf.shape, leaf.dtype, leaf.tobytes()) != (back.shape, back.dtype, back.tobytes()):
                raise BundleError(name, f"came back from {fresh} changed")
        _swap(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def load(path: str | os.PathLike, expected: Any = None, game: Game | None = None) -> Bundle:
    """Read a bundle; nothing in it is executed.

    Args:
      expected: tree of arrays or shapes (`jax.eval_shape(model.init, key)`): the exact set
        of paths, shapes and dtypes; its structure is what `params` comes back in.
      game: the game it must have been trained for, see `check_game`.

    Raises:
      BundleError: missing, truncated, oversized, foreign, not finite or unfitting.
    """
    path = pathlib.Path(path)
    meta = read_meta(path)
    data = _read(path / TENSORS, MAX_TENSOR_BYTES)
    if len(data) != meta["bytes"]:
        raise BundleError(TENSORS, f"{len(data)} bytes, {META} says {meta['bytes']}")
    if hashlib.sha256(data).hexdigest() != meta["sha256"]:
        raise BundleError(TENSORS, f"its sha256 is not the one in {META}")
    flat = _tensors(data)
    for name, leaf in flat.items():
        if not np.all(np.isfinite(leaf.astype(np.float32))):
            raise BundleError(name, "holds NaN or infinity")
    if game is not None:
        check_game(meta, game)
    if expected is None:
        return Bundle(_unflatten(flat), meta)
    return Bundle(_fit(flat, expected), meta)


def read_meta(path: str | os.PathLike) -> dict[str, Any]:
    """The checked contents of a bundle's model.json; raises BundleError."""
    path = pathlib.Path(path)
    if not path.is_dir():
        raise BundleError("path", f"no bundle at {path}")
    data = _read(path / META, MAX_META_BYTES)
    try:
        meta = json.loads(data)
        json.dumps(meta, ensure_ascii=False).encode()  # half a character can be told to nobody
    except (ValueError, RecursionError) as error:
        raise BundleError(META, f"not JSON ({str(error)[:200]})") from None
    if not isinstance(meta, dict):
        raise BundleError(META, "must be an object")
    if meta.get("format") != FORMAT:
        raise BundleError("format", f"{meta.get('format')!r}, this version reads {FORMAT!r}")
    for field, kind in (
        ("game", str), ("game_version", str), ("rules", dict), ("rules_sha256", str),
        ("num_actions", int), ("observation", dict), ("agent", str), ("network", dict),
        ("bytes", int), ("sha256", str),
    ):  # fmt: skip
        if not isinstance(meta.get(field), kind):
            got = repr(meta[field])[:80] if field in meta else "nothing"
            raise BundleError(field, f"needs a {kind.__name__}, got {got}")
    return meta


def check_game(meta: Mapping[str, Any], game: Game) -> None:
    """Raise BundleError unless the bundle was made for this game as its view shows it, under the
    same values of the view's `bound_rules`; options that this version does not know bind as well.

    What counts is what the network sees and chooses among: through a view of fixed size a game
    may have more actions than the one learnt in.
    """
    viewer = viewer_of(meta, game)
    theirs, ours = meta["rules"], _plain(game.rules)
    bound = {*viewer.bound_rules, *(theirs.keys() - ours.keys())}
    odd = [k for k in theirs | ours if k in bound and theirs.get(k) != ours.get(k)]
    for field, want in (("game", game.id), ("game_version", game.version)):
        if meta[field] != want:
            raise BundleError(field, f"the bundle has {meta[field]!r}, the game {want!r}")
    if odd:
        raise BundleError("rules", f"trained with other rules ({', '.join(odd)})")
    if meta["rules_sha256"] != _hash(theirs):
        raise BundleError("rules_sha256", f"is not that of the rules in {META}")
    if meta["num_actions"] != viewer.num_actions:
        raise BundleError(
            "num_actions",
            f"the bundle chooses among {meta['num_actions']} actions, in this game it would have "
            f"{viewer.num_actions}",
        )
    if meta["observation"] != (shown := _observation_spec(viewer)):
        raise BundleError(
            "observation",
            f"the bundle sees {_sizes(meta['observation'])}, this game shows {_sizes(shown)}",
        )


def viewer_of(meta: Mapping[str, Any], game: Game) -> Viewer:
    """How the weights of a bundle see `game`; raises BundleError for a view it does not have."""
    size = meta.get("view", 0)
    if type(size) is not int or size < 0:
        raise BundleError("view", f"a size, or 0, got {size!r}")
    if "view" not in meta:
        return Whole(game)
    try:
        return game.viewer(size)
    except ValueError as error:
        raise BundleError("view", str(error).partition(": ")[2] or str(error)) from None


def flatten(params: Mapping) -> dict[str, np.ndarray]:
    """Path joined by "/" -> leaf of a nested dict; raises BundleError for a bad name."""
    flat = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        parts = [str(getattr(entry, "key", entry)) for entry in path]
        if any("/" in part or not part for part in parts):
            raise BundleError("params", f"{parts} holds an empty name or one with '/'")
        name = "/".join(parts)
        if name in flat:
            raise BundleError("params", f"two leaves are called {name}")
        flat[name] = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    return flat


def recover(path: str | os.PathLike) -> None:
    """Put back the older bundle when a kill came between the two renames of `save`."""
    path = pathlib.Path(path)
    old = path.with_name(f".{path.name}.old")
    if old.is_dir():
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, path)


def _swap(fresh: pathlib.Path, path: pathlib.Path) -> None:
    old = path.with_name(f".{path.name}.old")
    if path.exists():
        os.rename(path, old)
    os.rename(fresh, path)
    shutil.rmtree(old, ignore_errors=True)


def _tensors(data: bytes) -> dict[str, np.ndarray]:
    try:
        views = dict(safetensors.deserialize(data))
    except safetensors.SafetensorError as error:
        raise BundleError(TENSORS, f"not a safetensors file ({error})") from None
    flat = {}
    for name, view in views.items():
        if view["dtype"] not in _DTYPES:
            raise BundleError(name, f"dtype {view['dtype']} is not one we read")
        dtype = np.dtype(_DTYPES[view["dtype"]])
        flat[name] = np.frombuffer(view["data"], dtype).reshape(view["shape"])
    return flat


def _fit(flat: Mapping[str, np.ndarray], expected: Any) -> Any:
    wanted = flatten(expected)
    for name in sorted(wanted.keys() | flat.keys()):
        if name not in flat:
            raise BundleError(name, "missing")
        if name not in wanted:
            raise BundleError(name, "not a weight of this network")
        got, want = flat[name], wanted[name]
        if got.shape != tuple(want.shape):
            raise BundleError(name, f"shape {list(got.shape)}, expected {list(want.shape)}")
        if got.dtype != np.dtype(want.dtype):
            raise BundleError(name, f"dtype {got.dtype}, expected {np.dtype(want.dtype)}")
    leaves = [flat[name] for name in wanted]  # `flatten` keeps the order of tree.flatten
    return jax.tree.unflatten(jax.tree.structure(expected), leaves)


def _unflatten(flat: Mapping[str, np.ndarray]) -> dict:
    tree: dict = {}
    for name, leaf in flat.items():
        *parents, last = name.split("/")
        node = tree
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise BundleError(name, "lies below another weight")
        if last in node:
            raise BundleError(name, "is above another weight")
        node[last] = leaf
    return _number_lists(tree)


def _number_lists(tree: Any) -> Any:
    """Keys of a level that are all 0, 1, 2, ... are the integers they were."""
    if not isinstance(tree, dict):
        return tree
    tree = {key: _number_lists(value) for key, value in tree.items()}
    if tree.keys() == {str(i) for i in range(len(tree))}:
        return {i: tree[str(i)] for i in range(len(tree))}
    return tree


@functools.lru_cache(maxsize=256)  # it is traced
def _observation_spec(viewer: Viewer) -> dict[str, Any]:
    def observed(key):
        state = viewer.game.init(key)
        return viewer.observe(state, np.int32(0), viewer.focus(state))

    spec = jax.eval_shape(observed, jax.random.key(0))
    return {
        name: [np.dtype(leaf.dtype).name, list(leaf.shape)] for name, leaf in flatten(spec).items()
    }


def _sizes(spec: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, (_, shape) in spec.items())


def _hash(rules: Mapping[str, Any]) -> str:
    text = json.dumps(rules, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """JSON values from dataclasses, tuples and enums."""
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value)
    return json.loads(json.dumps(value, default=lambda v: getattr(v, "name", str(v))))


def _read(path: pathlib.Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise BundleError(path.name, f"can not be read ({error.strerror or error})") from None
    if len(data) > limit:
        raise BundleError(path.name, f"over {limit} bytes")
    return data


def _write(path: pathlib.Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
