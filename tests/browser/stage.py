"""Components of the page alone in a browser: files from the package, scenes from Python.

No server runs and no network is there: every request is answered from the folder, with the
policy that the server sends.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import mimetypes
import os
import pathlib
import shutil
from collections.abc import Iterator

import pytest

import experiments

WEB = pathlib.Path(experiments.__file__).parent / "web"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]
HOST = "http://stage.test"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>stage</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/base.css">
<link rel="stylesheet" href="/play.css"><link rel="stylesheet" href="/boards.css">
<div id="stage"></div><script type="module" src="/stage.js"></script></html>"""
#: `show(file, props)` draws the component of a file; what it reports is in `said`.
SCRIPT = """
import {html, render} from "./vendor/htm/standalone.module.js";
import {translator} from "./i18n.js";
import words from "./words.js";
window.said = [];
window.show = async (file, name, props, language = "en") => {
  const part = (await import(file))[name];
  const tell = (what) => (value) => { window.said.push([what, value]); };
  const t = translator(language, words);
  const all = {t, onPlay: tell("play"), onPick: tell("pick"), ...props};
  render(html`<${part} ...${all} />`, document.getElementById("stage"));
};
window.ready = true;
"""


def chromium() -> str:
    """Where the browser is. Without it, or without playwright, the test skips; where
    JAXGAMES_BROWSER is "required" it fails instead."""
    missing = []
    if importlib.util.find_spec("playwright") is None:
        missing.append("playwright is not installed: pip install 'jaxgames[test]'")
    if shutil.which("chromium") is None:
        missing.append("no chromium: apt-get install chromium")
    if missing and os.environ.get("JAXGAMES_BROWSER") == "required":
        pytest.fail("; ".join(missing))
    if missing:
        pytest.skip("; ".join(missing))
    return shutil.which("chromium")


@contextlib.contextmanager
def stage(width: int = 1280, height: int = 900, dark: bool = False) -> Iterator:
    """A page with `show`; what goes wrong on it fails the test. Skips where there is no browser."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
        )
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.route("**/*", _answer)
        page.goto(f"{HOST}/")
        page.wait_for_function("window.ready === true")
        yield page
        browser.close()
        assert wrong == []


def show(page, file: str, name: str, props: dict, language: str = "en") -> None:
    page.evaluate(
        "([file, name, props, language]) => show(file, name, props, language)",
        [file, name, props, language],
    )


def said(page) -> list:
    """What the component reported since the last time."""
    return page.evaluate("window.said.splice(0)")


def _answer(route) -> None:
    path = route.request.url.removeprefix(HOST)
    texts = {"/": (PAGE, "text/html"), "/stage.js": (SCRIPT, "text/javascript")}
    headers = {"Content-Security-Policy": POLICY}
    if path in texts:
        body, kind = texts[path]
        route.fulfill(body=body, content_type=kind, headers=headers)
        return
    file = WEB / path.lstrip("/")
    if not route.request.url.startswith(HOST) or not file.is_file():
        route.abort()
        return
    kind = "text/javascript" if file.suffix == ".js" else mimetypes.guess_type(file.name)[0]
    route.fulfill(body=file.read_bytes(), content_type=kind, headers=headers)


def as_json(value) -> object:
    """A value as it comes out of a wire."""
    return json.loads(json.dumps(value, allow_nan=False))
