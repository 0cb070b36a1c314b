"""Files that appear whole or not at all, and take nobody's place unasked."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from configs import ConfigError
from experiments.errors import RunError

FORMAT = "jaxgames-export/1"


def claim(out: str, names: Iterable[str], overwrite: bool) -> pathlib.Path:
    """The folder `out`, made if it is missing, in which files can be made, and none of `names` is
    there unless they may be replaced. Raises ConfigError, RunError."""
    folder = pathlib.Path(out)
    try:
        if folder.exists() and not folder.is_dir():
            raise ConfigError("export.out", f"{folder} is a file, a folder is needed")
        there = [folder / name for name in names if (folder / name).exists()]
        for path in there:
            if path.is_dir():
                raise ConfigError("export.out", f"{path} is a folder, where a file is to be")
        if there and not overwrite:
            rule = f"holds {', '.join(path.name for path in there)}; take another folder, or"
            raise ConfigError("export.out", f"{folder} {rule} export.overwrite=true")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except ConfigError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        why = getattr(error, "strerror", None) or error
        raise RunError(f"export.out: can not write to {out!r} ({why})") from None
    return folder


def note_of(path: pathlib.Path) -> pathlib.Path:
    """Where what is known of a file lies: the whole name and .json."""
    return path.with_name(f"{path.name}.json")


def write(contents: Mapping[pathlib.Path, bytes]) -> None:
    """Write files, all whole or none: they take their places once all are on the disk."""
    fresh = {path: path.with_name(f".{path.name}.new") for path in contents}
    try:
        for path, data in contents.items():
            with fresh[path].open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            os.replace(fresh[path], path)
    finally:
        for path in fresh.values():
            path.unlink(missing_ok=True)


def write_with_note(path: pathlib.Path, data: bytes, note: Mapping[str, Any]) -> dict[str, Any]:
    """Write `data` to `path`, and what is known of it to `note_of(path)`; returns the note."""
    full = {
        "format": FORMAT,
        "file": path.name,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        **note,
    }
    text = json.dumps(full, indent=1, ensure_ascii=False) + "\n"
    write({path: data, note_of(path): text.encode()})
    return full


def read(path: str | os.PathLike) -> tuple[bytes, dict[str, Any]]:
    """The bytes of an exported file and its note, checked against each other; ValueError."""
    path = pathlib.Path(path)
    note = json.loads(note_of(path).read_text("utf-8"))
    data = path.read_bytes()
    if note.get("format") != FORMAT:
        raise ValueError(f"format: {note.get('format')!r}, this version reads {FORMAT!r}")
    if hashlib.sha256(data).hexdigest() != note.get("sha256"):
        raise ValueError(f"sha256: {path.name} is not the file that its JSON describes")
    return data, note
