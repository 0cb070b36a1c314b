"""The dashboard in a browser: a run that goes on, several laid over each other, a saved report."""

import contextlib
import socket
import threading
import time

import pytest

from configs.schema import ServeConfig
from experiments import run_folder
from experiments.dashboard import report
from experiments.dashboard.app import PAGE, build
from experiments.dashboard.run import Catalogue, Run
from tests.browser.stage import chromium
from tests.experiments.dashboard import folders
from tests.experiments.dashboard.folders import evaluated, train

EVIL = '<img src=x onerror="window.hacked=1">'


def rows(number, scale=1.0):
    found = []
    for n in range(1, number + 1):
        values = {"loss/policy": scale * 3.0 / n, "loss/odd": 0.0 if n < 5 else -1.0 / n}
        values |= {"selfplay/outcome/seat0": 0.1, "sys/strange": float(n), "optim/clip_share": 0.0}
        found.append(train(n, **values))
    return [*found, evaluated(number + 1), evaluated(number + 2, 0.7)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    path = folders.folder(base / "first", rows(30), "running", host="elsewhere", share=0.5)
    folders.game(path)
    returns = [{"game": "mnk", "seats": ["network", "random"], "returns": [1, -1]}] * 4
    run_folder.append(path / "eval" / "120.jsonl", returns)
    change = {"member": 1, "parent": 0, "learning_rate": [0.1, 0.2]}
    run_folder.append(path / "events.jsonl", [
        {"t": 1.0, "event": "light", "text": EVIL},
        {"t": 2.0, "event": "generation", "step": 9, "changes": [change]},
        {"t": 3.0, "event": "stage", "was": "rows=3", "stage": "rows=4", "why": "passed"},
    ])  # fmt: skip
    folders.folder(base / "second", rows(20, 2.0), "failed", message=EVIL)
    return base


@contextlib.contextmanager
def served(base, name="first"):
    """The address of a dashboard of the runs below a folder."""
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        app = build(Catalogue([base], [base / name]), ServeConfig())
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{PAGE}"
        server.should_exit = True
        thread.join(10)


@contextlib.contextmanager
def browser(width=1280, **more):
    """A page on which nothing may go wrong, and which reaches this machine alone."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        chrome = p.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        context = chrome.new_context(viewport={"width": width, "height": 900}, **more)
        page = context.new_page()
        wrong, foreign = [], []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.append(m.text) if m.type != "log" else None)
        page.on("request", lambda r: foreign.append(r.url) if not _near(r.url) else None)
        yield page
        chrome.close()
        assert wrong == [] and foreign == []


def _near(url):
    return url.startswith(("http://127.0.0.1:", "data:", "blob:", "file:"))


def at(page, name):
    return page.locator(f'[data-testid="{name}"]')


def until(page, condition, seconds=20):
    """Waits for an expression; the policy of the page forbids playwright's own way."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def test_a_run_that_goes_on(runs):
    with served(runs) as address, browser() as page:
        page.goto(address)
        page.wait_for_selector(".uplot")
        assert "30" in at(page, "head-first").inner_text() and "running" in page.content()
        order = page.eval_on_selector_all("section.panel", "all => all.map(p => p.dataset.testid)")
        assert order[:3] == ["panel-strength", "panel-losses", "panel-policy"]
        assert "70 % [65 %, 75 %]" in at(page, "chart-winrate").inner_text()
        assert "train.eval.rated=3" in at(page, "chart-rating").inner_text()  # how to have it
        assert at(page, "feed").inner_text() in ("live", "polling")

        run_folder.append(runs / "first" / "metrics.jsonl", [train(40, **{"loss/policy": 123.0})])
        until(page, "document.body.innerText.includes('loss/policy 123')")

        for name in ("panel-seats", "panel-population", "panel-curriculum", "panel-log"):
            at(page, name).scroll_into_view_if_needed()
        until(page, "document.body.innerText.includes('0.1 → 0.2')")
        assert "rows=4" in at(page, "panel-curriculum").inner_text()
        assert "100 %" in at(page, "panel-seats").inner_text()
        assert EVIL in at(page, "panel-log").inner_text()
        assert page.evaluate("window.hacked") is None

        at(page, "board").scroll_into_view_if_needed()
        until(page, "document.querySelector('img.position')?.naturalWidth > 0")
        text = at(page, "board-text")
        assert text.inner_text().startswith("5/5")
        at(page, "board-first").click()
        assert text.inner_text().startswith("0/5")
        at(page, "board-next").press("Enter")
        assert "network: 0,0" in text.inner_text()
        at(page, "board-ply").focus()
        page.keyboard.press("End")
        assert text.inner_text().startswith("5/5")
        at(page, "board-play").click()
        page.wait_for_timeout(900)
        assert text.inner_text()[0] in "123"
        at(page, "board-play").click()


@pytest.mark.slow
def test_runs_overlaid_and_saved(runs, tmp_path):
    with served(runs) as address, browser() as page:
        page.goto(address)
        page.wait_for_selector(".uplot")
        at(page, "runs").locator("summary").click()
        at(page, "run-second").check()
        page.wait_for_selector('[data-testid="head-second"]')
        assert EVIL in at(page, "head-second").inner_text()
        until(page, "document.body.innerText.includes('second: loss/policy')")
        with page.expect_download() as saved:
            at(page, "csv-losses").click()
        saved.value.save_as(tmp_path / "x.csv")
        head, *lines = (tmp_path / "x.csv").read_text().splitlines()
        assert head.startswith("step,first: loss/odd") and "second: loss/policy" in head
        assert len(lines) >= 30
        with page.expect_download() as saved:
            at(page, "png-losses").click()
        saved.value.save_as(tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
        with page.expect_download() as saved:
            at(page, "report").click()
        saved.value.save_as(tmp_path / "x.html")
        assert "answers" in (tmp_path / "x.html").read_text("utf-8")
        for axis in ("env_steps", "wall"):
            at(page, "x").select_option(axis)
        at(page, "x-log").check()
        at(page, "log-losses").uncheck()
        assert page.evaluate("location.hash") == "#runs=first,second"


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_narrow_and_in_chinese(runs, scheme):
    with served(runs) as address, browser(360, locale="zh-CN", color_scheme=scheme) as page:
        page.goto(address)
        page.wait_for_selector(".uplot")
        for _ in range(12):
            page.mouse.wheel(0, 900)
            page.wait_for_timeout(40)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert "棋力" in page.content() and page.evaluate("document.documentElement.lang") == "zh"
        at(page, "language").select_option("en")
        assert "Strength" in page.content()
        ink = page.evaluate("getComputedStyle(document.body).backgroundColor")
        at(page, "theme").select_option("light" if scheme == "dark" else "dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ink


@pytest.mark.slow
def test_polling_alone_suffices(runs):
    """As behind a proxy that carries neither events nor sockets."""
    with served(runs) as address, browser() as page:
        page.add_init_script("delete window.EventSource; delete window.WebSocket;")
        page.goto(address)
        until(page, "document.getElementById('feed')?.textContent === 'polling'")
        run_folder.append(runs / "first" / "metrics.jsonl", [train(50, **{"loss/policy": 456.0})])
        until(page, "document.body.innerText.includes('loss/policy 456')")


def test_a_report_opens_from_disk(runs, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(report.render([Run(runs / "first", "first"), Run(runs / "second", "second")]))
    with browser(offline=True) as page:
        page.goto(file.as_uri())
        page.wait_for_selector(".uplot")
        assert "second: loss/policy" in at(page, "chart-losses").inner_text()
        assert at(page, "feed").inner_text() == "saved report"
        at(page, "board").scroll_into_view_if_needed()
        until(page, "document.querySelector('img.position')?.naturalWidth > 0")
        at(page, "board-first").click()
        assert at(page, "board-text").inner_text().startswith("0/5")


@pytest.mark.slow
def test_a_training_watched(tmp_path):
    """The thing itself: the run of a trainer."""
    import experiments
    from tests.toys.cli import TINY

    texts = [f"run.dir={tmp_path}", "run.name=tiny", "train.eval.games=1"]
    experiments.train("", [*TINY, *texts])
    with served(tmp_path, "tiny") as address, browser() as page:
        page.goto(address)
        page.wait_for_selector(".uplot")
        assert "finished" in at(page, "head-tiny").inner_text()
        at(page, "board").scroll_into_view_if_needed()
        until(page, "document.querySelector('img.position')?.naturalWidth > 0")
