"""The play page in a browser, with the server behind it: what a person does, and what goes wrong.

Nothing but that server can be reached; errors on the console, reports of the content policy and
requests to other hosts fail the test.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator

from tests.browser.stage import ARGUMENTS, chromium


@contextlib.contextmanager
def served(app, lifespan="off") -> Iterator[str]:
    """The address of an application on this machine; `lifespan` "on" starts its service, too."""
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(
            app, log_level="error", lifespan=lifespan, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@contextlib.contextmanager
def launched() -> Iterator:
    """A browser, for as many people as come."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        chrome = p.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chrome
        chrome.close()


@contextlib.contextmanager
def visitor(chrome, address: str, width: int = 1280, **more) -> Iterator[Person]:
    """A person at a page of a browser, with nothing kept from earlier ones."""
    context = chrome.new_context(viewport={"width": width, "height": 900}, locale="en-US", **more)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    context.add_init_script(
        "addEventListener('securitypolicyviolation', e => console.error('CSP', e.blockedURI))"
    )
    context.set_default_timeout(120_000)  # of a busy machine
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda m: wrong.append(m.text) if m.type in _WRONG else None)
    page.on("dialog", lambda dialog: dialog.accept())

    def fence(route):
        if route.request.url.startswith((address, "blob:", "data:")):
            return route.continue_()
        wrong.append(f"asked for {route.request.url}")
        return route.abort()

    page.route("**/*", fence)
    yield Person(page, address, wrong)
    context.close()
    assert wrong == []


_WRONG = ("error", "warning")


class Person:
    """Whoever sits before the page."""

    def __init__(self, page, address: str, wrong: list[str]):
        self.page, self.address, self.wrong = page, address, wrong

    def at(self, name: str):
        return self.page.locator(f'[data-testid="{name}"]')

    def visit(self, path: str = "/") -> None:
        self.page.goto(self.address + path)

    def expects(self, *phrases: str) -> None:
        """Forgives errors on the console that a refused request leaves there."""
        self.page.wait_for_timeout(50)
        for phrase in phrases:
            assert any(phrase in text for text in self.wrong), (phrase, self.wrong)
            self.wrong[:] = [text for text in self.wrong if phrase not in text]

    def until(self, condition: str, seconds: float = 60) -> None:
        """Waits for an expression; the page's policy forbids playwright's own way."""
        self.until_here(lambda: self.page.evaluate(condition), seconds, condition)

    def until_here(self, condition, seconds: float = 60, said: str = "") -> None:
        """Waits for what a call on this side of the browser gives."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (said, self.state(), self.text())
            self.page.wait_for_timeout(20)

    def text(self) -> str:
        return self.page.inner_text("body")[:2000]

    def state(self) -> str | None:
        status = self.page.query_selector('[data-testid="status"]')
        return status and status.get_attribute("data-state")

    def settled(self, seconds: float = 120) -> str:
        """ "yours" or "over", when it is one of these."""
        end = time.monotonic() + seconds
        while (state := self.state()) not in ("yours", "over"):
            assert time.monotonic() < end and state != "failed", (state, self.text())
            self.page.wait_for_timeout(20)
        return state

    @property
    def plies(self) -> int:
        return int(self.at("status").get_attribute("data-plies"))

    # ---- doing things ----

    def new_game(
        self, game: str, preset: str = "", seats=(), options=(), seed: int | str = 5
    ) -> None:
        """By the dialog; `seats` are (kind, name, simulations); `seed` "" is none."""
        self.page.wait_for_selector("#app header")
        if not self.at("new-game-dialog").count():
            self.at("new-game").click()
        self.at("game").select_option(game)
        if preset:
            self.at("preset").select_option(preset)
        if options:
            self.page.locator("dialog summary").click()
            for name, value in dict(options).items():
                box = self.at(f"option-{name}")
                act = box.select_option if box.evaluate("e => e.tagName") == "SELECT" else box.fill
                act(str(value))
        self.at("seed").fill(str(seed))
        self.page.wait_for_timeout(200)
        self.until("!document.querySelector('[data-testid=start]').disabled")
        for seat, (kind, name, simulations) in enumerate(seats):
            self.at(f"seat-{seat}-kind").select_option(kind)
            if name:
                self.at(f"seat-{seat}-name").select_option(name)
            if simulations:
                self.at(f"seat-{seat}-simulations").fill(str(simulations))
        self.at("start").click()
        self.at("new-game-dialog").wait_for(state="detached", timeout=120_000)
        self.page.wait_for_selector('[data-testid="board"]')

    def type_move(self, text: str) -> None:
        self.page.keyboard.press("m") if not self._typing() else None
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def first_move(self) -> None:
        """The first legal move, by keyboard alone."""
        before = self.plies
        if not self._typing():
            self.page.keyboard.press("m")
        self.page.keyboard.press("ArrowDown")
        self.page.wait_for_selector("#move-list li")
        self.page.keyboard.press("Enter")
        self.moved(before)

    def _typing(self) -> bool:
        return self.page.evaluate("document.activeElement.id === 'move-input'")

    def moved(self, before: int, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while self.plies <= before:
            assert time.monotonic() < end, (self.state(), self.text())
            self.page.wait_for_timeout(20)

    def tap_cell(self, row: int, col: int, cols: int) -> None:
        """A cell of Eight-in-a-Row whose board is whole."""
        box = self.page.locator(".eight-board").bounding_box()
        size = (box["width"] - 2 - 22) / cols
        x, y = box["x"] + 1 + 22 + (col + 0.5) * size, box["y"] + 1 + 22 + (row + 0.5) * size
        self.page.mouse.click(x, y)

    def view(self) -> dict:
        """What the server tells this page of its table."""
        table, viewer = self.page.evaluate(
            "(() => { const s = new URLSearchParams(location.hash.slice(1));"
            " return [s.get('table'), s.get('viewer')]; })()"
        )
        with urllib.request.urlopen(f"{self.address}/v1/tables/{table}?viewer={viewer}") as got:
            return json.load(got)

    def downloaded(self, name: str) -> bytes:
        """What a button saves."""
        with self.page.expect_download() as waiting:
            self.at(name).click()
        with open(waiting.value.path(), "rb") as file:
            return file.read()
