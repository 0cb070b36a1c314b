"""Training states on disk: complete, atomic, for resuming and nothing else.

A checkpoint is `FOLDER/<step>/` with four items that restore alone: `params`, `replay` (when
the state has one), `learner` (all other fields) and `meta` (JSON). Orbax writes beside the
final place and renames, so a step that can be listed is whole. Bundles (`bundle.py`) are
for use; these folders are for going on, bit for bit on CPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

_TRASH = "trash"
#: What the files of a checkpoint may take beside the arrays.
_OVERHEAD_BYTES = 256 * 1024


class CheckpointError(ValueError):
    """A checkpoint that can not be restored into the state that was asked for."""


class SaveError(OSError):
    """A checkpoint that could not be written; earlier ones are untouched."""


class Checkpoints:
    """The checkpoints of one run; a context manager.

    Keeps the last `keep` steps and the one with the highest score. One writer at a time:
    opening removes what an interrupted save or removal left behind.
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 2):
        if keep < 1:
            raise ValueError(f"keep: at least 1, got {keep}")
        # Orbax fails late on relative paths.
        self.folder = pathlib.Path(folder).resolve()
        self.keep = keep
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.folder / _TRASH, ignore_errors=True)
        self._clean()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None,  # `_prune` decides, after the new step is safe
            enable_async_checkpointing=False,  # a failed write must show at `save`
            todelete_subdir=_TRASH,  # a removal is a rename first: no half steps
        )
        handlers = {name: ocp.StandardCheckpointHandler() for name in ("params", "learner")}
        handlers |= {"replay": ocp.StandardCheckpointHandler()}
        handlers |= {"meta": ocp.JsonCheckpointHandler()}
        with _quiet():
            self._manager = ocp.CheckpointManager(
                self.folder, options=options, item_handlers=handlers
            )
        self._scores = {step: self._score(step) for step in self.steps()}

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: Any) -> None:
        with _quiet():
            self._manager.close()

    def steps(self) -> tuple[int, ...]:
        """Steps that are on disk, ascending."""
        return tuple(sorted(self._manager.all_steps()))

    def save(self, step: int, state: Any, meta: Mapping[str, Any], score: float | None = None):
        """Write `state` as `step`; returns when it is on disk.

        Args:
          state: a dataclass pytree with a field `params`, and perhaps `replay`.
          meta: JSON values: what rebuilds the abstract state (config, versions, ...).
          score: kept when it is the highest so far.

        Raises:
          SaveError: full disk, no access, or a step not above the last one.
        """
        self._check_room(state)
        items = {n: ocp.args.StandardSave(_solid(part)) for n, part in _parts(state).items()}
        items["meta"] = ocp.args.JsonSave({**meta, "step": step, "score": score})
        try:
            with _quiet():
                written = self._manager.save(step, args=ocp.args.Composite(**items))
        except Exception as error:  # tensorstore raises ValueError for a full disk
            _hush_closed_loops()
            self._clean()
            raise SaveError(
                f"checkpoint {step} could not be written to {self.folder} ({_first_line(error)}); "
                f"{self._kept()}"
            ) from error
        if not written:  # Orbax says so without an error
            raise SaveError(f"checkpoint {step} was not written; {self._kept()}")
        self._scores[step] = score
        self._prune()

    def restore(self, abstract: Any, step: int | None = None) -> tuple[Any, dict[str, Any]]:
        """(state, meta) of `step`, by default the last.

        Args:
          abstract: `jax.eval_shape` of a fresh state; paths, shapes and dtypes must agree.

        Raises:
          CheckpointError: no such step, another shape or dtype, or damaged files. Never
            falls back to an older step; says which there are.
        """
        step = self._existing(step)
        parts = {
            name: self._restore_item(step, name, part) for name, part in _parts(abstract).items()
        }
        return _join(abstract, parts), self.meta(step)

    def restore_params(self, abstract: Any, step: int | None = None) -> Any:
        """The params alone, whatever learner wrote them; raises CheckpointError."""
        return self._restore_item(self._existing(step), "params", abstract)

    def meta(self, step: int | None = None) -> dict[str, Any]:
        """The JSON saved with a step; raises CheckpointError."""
        step = self._existing(step)
        with self._reading(step):
            args = ocp.args.Composite(meta=ocp.args.JsonRestore())
            return dict(self._manager.restore(step, args=args)["meta"])

    def set_aside(self, after: int, folder: str | os.PathLike) -> tuple[int, ...]:
        """Move steps above `after` to `folder`, so that a run can go on from `after`."""
        moved = tuple(s for s in self.steps() if s > after)
        for step in moved:
            target = pathlib.Path(folder) / str(step)
            number = 1
            while target.exists():
                number += 1
                target = pathlib.Path(folder) / f"{step}-{number}"
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.folder / str(step), target)
            del self._scores[step]
        with _quiet():
            self._manager.reload()
        return moved

    # ---- inside ----

    def _restore_item(self, step: int, name: str, abstract: Any) -> Any:
        with self._reading(step):
            metadata = self._manager.item_metadata(step)[name]
            found = _leaves(metadata.tree)
        whole, abstract = abstract, _solid(abstract)
        wanted = _leaves(abstract)
        for path in sorted(wanted.keys() | found.keys()):
            if wanted.get(path) != found.get(path):
                raise CheckpointError(
                    f"checkpoint {step} in {self.folder} does not fit: {name}/{path} is "
                    f"{_say(found.get(path))}, expected {_say(wanted.get(path))}"
                )
        device = jax.sharding.SingleDeviceSharding(jax.devices()[0])

        def target(leaf):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=device)

        with self._reading(step):
            args = {name: ocp.args.StandardRestore(jax.tree.map(target, abstract))}
            restored = self._manager.restore(step, args=ocp.args.Composite(**args))[name]
        for path, got in _leaves(restored).items():  # Orbax casts without a word
            if got != wanted[path]:
                raise CheckpointError(f"checkpoint {step}: {name}/{path} came back as {_say(got)}")
        return _filled(whole, restored)

    @contextlib.contextmanager
    def _reading(self, step: int) -> Iterator[None]:
        try:
            with _quiet():
                yield
        except Exception as error:
            _hush_closed_loops()
            older = [s for s in self.steps() if s < step]
            other = f"an older one is step {older[-1]}" if older else "there is no older one"
            raise CheckpointError(
                f"checkpoint {step} in {self.folder} is damaged ({_first_line(error)}); {other}"
            ) from error

    def _existing(self, step: int | None) -> int:
        steps = self.steps()
        if not steps:
            raise CheckpointError(f"no checkpoint in {self.folder}")
        if step is not None and step not in steps:
            known = ", ".join(map(str, steps))
            raise CheckpointError(f"no checkpoint {step} in {self.folder}; there are {known}")
        return steps[-1] if step is None else step

    def _score(self, step: int) -> float | None:
        try:
            return self.meta(step).get("score")
        except CheckpointError:
            return None

    def _prune(self) -> None:
        steps = self.steps()
        kept = set(steps[-self.keep :])
        scored = [s for s in steps if self._scores.get(s) is not None]
        if scored:
            kept.add(max(scored, key=lambda s: (self._scores[s], s)))
        for step in set(steps) - kept:
            with _quiet():
                self._manager.delete(step)
        shutil.rmtree(self.folder / _TRASH, ignore_errors=True)

    def _check_room(self, state: Any) -> None:
        """Refuse before anything is written rather than in the middle."""
        need = sum(_bytes(leaf) for leaf in jax.tree.leaves(state)) + _OVERHEAD_BYTES
        free = shutil.disk_usage(self.folder).free
        if free < need:
            raise SaveError(
                f"a checkpoint may take {need / 1e6:.1f} MB and {self.folder} has "
                f"{free / 1e6:.1f} MB left; {self._kept()}"
            )

    def _kept(self) -> str:
        steps = self.steps()
        return (
            f"saved before: {', '.join(map(str, steps))}" if steps else "nothing was saved before"
        )

    def _clean(self) -> None:
        for leftover in self.folder.glob("*.orbax-checkpoint-tmp*"):
            shutil.rmtree(leftover, ignore_errors=True)


def _parts(state: Any) -> dict[str, Any]:
    """The items of a state: params, replay (if it has one), learner (the rest by name).

    Fields without any array are left out; `_join` has them from the state to fill.
    """
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    fields = {name: value for name, value in fields.items() if jax.tree.leaves(value)}
    parts = {name: fields.pop(name) for name in ("params", "replay") if name in fields}
    return {**parts, "learner": fields}


def _join(like: Any, parts: Mapping[str, Any]) -> Any:
    rest = dict(parts)
    return dataclasses.replace(like, **rest.pop("learner"), **rest)


def _solid(tree: Any) -> Any:
    """The tree without arrays that hold nothing, which Orbax does not write."""
    return jax.tree.map(lambda leaf: leaf if leaf.size else None, tree)


def _filled(like: Any, solid: Any) -> Any:
    """`solid` with the empty arrays of `like` in their places again."""
    leaves, structure = jax.tree.flatten(like)
    rest = iter(jax.tree.leaves(solid))
    found = [next(rest) if leaf.size else jnp.zeros(leaf.shape, leaf.dtype) for leaf in leaves]
    return jax.tree.unflatten(structure, found)


def _leaves(tree: Any) -> dict[str, tuple[tuple[int, ...], str]]:
    """Path -> (shape, dtype) as they lie on disk: a typed key is its uint32 data."""
    found = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.eval_shape(jax.random.key_data, leaf)
        found[name] = (tuple(leaf.shape), np.dtype(leaf.dtype).name)
    return found


def _bytes(leaf: Any) -> int:
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.eval_shape(jax.random.key_data, leaf)
    return int(np.prod(leaf.shape)) * np.dtype(leaf.dtype).itemsize


def _say(leaf: tuple[tuple[int, ...], str] | None) -> str:
    return "absent" if leaf is None else f"{leaf[1]}{list(leaf[0])}"


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


@functools.cache
def _hush_closed_loops() -> None:
    """After a failure tensorstore's threads go on to call an event loop that Orbax closed.

    Each call prints a traceback; the failure itself has been raised. Everything else still
    reaches the hook that was there.
    """
    before = sys.unraisablehook

    def hook(what):
        if str(what.exc_value) != "Event loop is closed":
            before(what)

    sys.unraisablehook = hook
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Orbax logs at every step; what matters comes as an exception."""
    logger = logging.getLogger("absl")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
