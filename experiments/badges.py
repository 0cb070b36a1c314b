"""Where the notebooks' badges and install lines point: the repository that pyproject.toml names.

python -m experiments.badges            write `[project.urls] Source` into all notebooks
python -m experiments.badges --check    exit 1 if one of them names another address
"""

from __future__ import annotations

import pathlib
import re
import sys
import tomllib

NOTEBOOKS = pathlib.Path(__file__).resolve().parent / "notebooks"
PYPROJECT = NOTEBOOKS.parents[1] / "pyproject.toml"
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")
_BADGE = re.compile(r"(colab\.research\.google\.com/github/)[\w.-]+/[\w.-]+(/blob/)")
_INSTALL = re.compile(r"(git\+https://github\.com/)[\w.-]+/[\w.-]+")


def source(pyproject: pathlib.Path = PYPROJECT) -> str:
    """OWNER/NAME of the repository; raises ValueError for an address that Colab can not open."""
    address = tomllib.loads(pyproject.read_text("utf-8"))["project"]["urls"]["Source"]
    found = _GITHUB.fullmatch(address)
    if found is None:
        raise ValueError(f"project.urls.Source: https://github.com/OWNER/NAME, not {address!r}")
    return found[1]


def pointed(notebook: str, repository: str) -> str:
    """The text of a notebook with its badge and its install line pointing to OWNER/NAME."""
    notebook = _BADGE.sub(lambda m: f"{m[1]}{repository}{m[2]}", notebook)
    return _INSTALL.sub(lambda m: f"{m[1]}{repository}", notebook)


def main(argv: list[str]) -> int:
    if argv not in ([], ["--check"]):
        print(f"badges: nothing or --check, got {' '.join(argv)!r}", file=sys.stderr)
        return 2
    repository, wrong = source(), []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = path.read_text("utf-8")
        new = pointed(text, repository)
        if new != text:
            wrong.append(path.name)
            if argv != ["--check"]:
                path.write_text(new, "utf-8")
    told = "pointing elsewhere" if argv == ["--check"] else "changed"
    print(f"{repository}; {told}: {', '.join(wrong) or 'none'}")
    return 1 if wrong and argv == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
