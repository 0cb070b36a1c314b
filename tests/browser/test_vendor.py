"""What is shipped to browsers: vendored files as published, and nothing from elsewhere."""

import hashlib
import json
import pathlib
import re

import pytest

import experiments

WEB = pathlib.Path(experiments.__file__).parent / "web"
VENDOR = WEB / "vendor"
#: Of all vendored scripts together, uncompressed.
MOST_BYTES = 150_000
#: The one address in our pages is no address but the name of a format.
NAMES = {"www.w3.org/2000/svg", "www.w3.org/1999/xhtml", "www.w3.org/1999/xlink"}


def listed() -> list[dict]:
    return json.loads((VENDOR / "vendor.json").read_text("utf-8"))["files"]


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def foreign(text: str) -> list[str]:
    """Addresses of other hosts that a browser could load; those in comments are no such."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(r"(?:https?:|wss?:|(?<=[\"'(=]))//([A-Za-z0-9][\w.\-]*\.\w[\w./\-]*)", text)
    return [address for address in found if address not in NAMES]


def test_vendored_files_are_those_listed():
    expected = {"vendor.json"}
    for entry in listed():
        for file, sha256 in {entry["file"]: entry["sha256"], **entry["licence_files"]}.items():
            assert digest(VENDOR / file) == sha256, file
            expected.add(file)
        for field in ("name", "version", "licence", "source"):
            assert entry[field], (entry["file"], field)
    assert {p.relative_to(VENDOR).as_posix() for p in VENDOR.rglob("*") if p.is_file()} == expected


def test_a_changed_file_is_noticed(tmp_path):
    source = VENDOR / listed()[0]["file"]
    copy = tmp_path / "copy.js"
    copy.write_bytes(source.read_bytes() + b" ")
    assert digest(copy) != listed()[0]["sha256"]


def test_vendored_scripts_stay_small():
    assert sum(p.stat().st_size for p in VENDOR.rglob("*.js")) <= MOST_BYTES


def pages() -> list[pathlib.Path]:
    return sorted(p for p in WEB.rglob("*") if p.suffix in (".html", ".js", ".css"))


def test_pages_name_no_other_host():
    assert len(pages()) > 1
    for path in pages():
        assert foreign(path.read_text("utf-8")) == [], path


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.com/x.js">',
        '<link href="//fonts.example.com/css">',
        "@import url(//fonts.example.com/css)",
        "new WebSocket('wss://live.example.com')",
    ],
)
def test_the_lint_sees_other_hosts(text):
    assert foreign(text)
