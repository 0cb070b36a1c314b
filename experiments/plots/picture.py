"""A picture: SVG text that a notebook shows and a file keeps."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from types import ModuleType
from typing import Any
from xml.sax.saxutils import escape

from experiments.errors import UsageError

#: Suffixes that `Picture.save` writes.
FORMATS = ("svg", "png")


class PlotError(UsageError):
    """What can not be drawn, in one sentence."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """Attributes:
    svg: the whole picture.
    figure: matplotlib's, for those who want to change it; None where there is none.
    """

    svg: str
    figure: Any = None

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Writes the picture, by the suffix of `path`.

        Raises:
          PlotError: another suffix, or the library that it needs is missing.
          OSError: the file can not be written.
        """
        path = pathlib.Path(path)
        suffix = path.suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise PlotError(f"plot.out: a picture ends in .svg or .png, got {path.name!r}")
        data = self.svg.encode() if suffix == "svg" else self.png()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def png(self, scale: float = 2.0) -> bytes:
        """As PNG, `scale` times as large."""
        if self.figure is not None:
            import io

            out = io.BytesIO()
            self.figure.savefig(out, format="png", dpi=100 * scale)
            return out.getvalue()
        return bytes(needed("resvg_py").svg_to_bytes(svg_string=self.svg, zoom=scale))


def needed(module: str) -> ModuleType:
    """An optional module; PlotError that says how to have it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise PlotError(f"this picture needs {package}: pip install 'jaxgames[plots]'") from None


# ---- SVG ----


def element(tag: str, *inside: str, **attributes: Any) -> str:
    """An SVG element; "_" in names stands for "-", `inside` is markup."""
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_plain(value), {chr(34): "&quot;"})}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{told}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{told}/>"


def text(x: float, y: float, words: str, **attributes: Any) -> str:
    return element("text", escape(words), x=x, y=y, **attributes)


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


STYLE = (
    ".jgp{font-family:'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:13px}"
    ".jgp .bg{fill:#fffefb}.jgp .ink{fill:#22242a}.jgp .dim{fill:#5f5d55}"
    ".jgp .line{stroke:#8a867b;fill:none}.jgp .bar{fill:#1f5fbf}.jgp .track{fill:#e6e2d7}"
    ".jgp .mid{text-anchor:middle}.jgp .end{text-anchor:end}.jgp .b{font-weight:700}"
    "@media (prefers-color-scheme:dark){.jgp .bg{fill:#1c1f25}.jgp .ink{fill:#eceae3}"
    ".jgp .dim{fill:#a7adb8}.jgp .line{stroke:#6b7280}.jgp .bar{fill:#6ea8ff}"
    ".jgp .track{fill:#2b3038}}"
)


def whole(width: float, height: float, *inside: str, label: str) -> str:
    """An SVG picture of its own."""
    return element(
        "svg",
        element("style", STYLE),
        element("rect", width=width, height=height, rx=10, class_="bg"),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        class_="jgp",
        role="img",
        aria_label=label,
    )
