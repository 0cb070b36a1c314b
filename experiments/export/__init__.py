"""Networks and searches as files for other programs: StableHLO, ONNX, int8.

experiments.export.run("sequence/az", ["export.out=az", "export.formats=[onnx]"])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def run(bundle: str, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """`jaxgames export` without a shell; returns its report (see `--json`)."""
    from experiments.commands import export as command
    from experiments.resolve import resolve

    return command.run(bundle, resolve("export", "", overrides))
