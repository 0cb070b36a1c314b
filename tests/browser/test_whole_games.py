"""One whole game of each kind by keyboard and one by mouse, against the default agents: under the
rules that these were trained for, to the end, with few simulations.
"""

import functools

import pytest

from configs.schema import ServeConfig
from experiments.serve import app as apps
from jaxgames import record
from tests.browser.pages import launched, served, visitor
from tests.experiments.serve import tiny

pytestmark = pytest.mark.slow

GAMES = {
    "eight_in_a_row": dict(seats=[("human", "", 0)] + 2 * [("model", "muzero", 16)]),
    "sequence": dict(seats=[("human", "", 0), ("model", "az", 16)]),
    "guandan": dict(
        options={"tribute": "false"}, seats=[("human", "", 0)] + 3 * [("model", "ppo", 0)]
    ),
}


@pytest.fixture(scope="module")
def visit():
    settings = ServeConfig(games=("eight_in_a_row/tictactoe",), models=("random",), deadline_s=300)
    with served(tiny.warm(apps.build(settings))) as address, launched() as chrome:
        yield functools.partial(visitor, chrome, address)


def tap_eight(person):
    cells = person.view()["scene"]["cells"]
    around = [(r, c) for r in range(4, 11) for c in range(4, 11) if cells[r][c] == "."]
    row, col = around[0]
    person.tap_cell(row, col, 15)
    person.tap_cell(row, col, 15)


def tap_sequence(person):
    if person.at("pass").count():
        return person.at("pass").click()
    view, page = person.view(), person.page
    move = next(m["text"] for m in view["legal"] if m["text"][0] in "NWR")
    kind, row, col = move.split()[:3]
    cell = 10 * int(row) + int(col)
    name = {"W": "J2", "R": "J1"}.get(kind) or view["scene"]["printed"][cell]
    page.locator(f'.hand [data-card="{name}"]').first.click()
    page.locator(f'[data-cell="{cell}"]').click()


def tap_guandan(person):
    view, page = person.view(), person.page
    plays = view["scene"]["plays"]
    play = next((p for p in plays if p["type"] != "PASS"), None)
    if play is None:
        return person.at("pass").click()
    for card in play["ways"][0].split():
        page.locator(f'.guandan-hand [data-card="{card}"][aria-pressed="false"]').first.click()
    if person.at("play").is_enabled():
        return person.at("play").click()
    page.locator(".plays .entry").first.click()


TAPS = {"eight_in_a_row": tap_eight, "sequence": tap_sequence, "guandan": tap_guandan}


@pytest.mark.parametrize("name", GAMES)
def test_by_keyboard(visit, name):
    with visit(accept_downloads=True) as person:
        page = person.page
        person.visit()
        person.new_game(name, **GAMES[name])
        undone = False
        while person.settled(600) == "yours":
            person.first_move()
            if not undone and person.settled(600) == "yours":
                before = person.plies
                page.evaluate("document.activeElement.blur()")
                page.keyboard.press("u")
                page.wait_for_selector(f"[data-testid=status]:not([data-plies='{before}'])")
                undone = True
        assert undone
        plies, ending = person.plies, person.at("status").inner_text()
        page.reload()
        assert person.settled() == "over" and person.at("status").inner_text() == ending
        person.at("analyse").focus()
        page.keyboard.press("Enter")
        done = "[data-testid=analysis-job][data-state=done]"
        page.wait_for_selector(done, timeout=900_000)
        person.at("graph").locator("svg").first.wait_for()
        if name != "guandan":  # whose default agent does not search
            page.locator("[data-testid=moves] button").first.click()
            person.at("tree-open").click()
            assert person.downloaded("tree-png").startswith(b"\x89PNG")
        kept = record.loads(person.downloaded("save").decode())
        record.check(kept)
        assert len(kept.moves) == plies
        assert any(move.analysis for move in kept.moves)


@pytest.mark.parametrize("name", GAMES)
def test_by_mouse(visit, name):
    with visit(accept_downloads=True) as person:
        said = []
        person.page.on("dialog", lambda dialog: said.append(dialog.message))
        person.visit()
        person.new_game(name, **GAMES[name], seed="" if name == "sequence" else 9)
        undone = False
        while person.settled(600) == "yours":
            before = person.plies
            TAPS[name](person)
            person.moved(before, 600)
            if before and not undone and person.settled(600) == "yours":
                person.at("undo").click()  # and the same decision again
                person.until(f"document.querySelector('[data-plies]').dataset.plies === '{before}'")
                undone = True
            if not before and name == "sequence" and person.settled(600) == "yours":
                kept = record.loads(person.downloaded("save").decode())
                assert kept.meta["opened"] == person.plies and "open game" in said.pop()
                assert f"move {person.plies} on" in person.at("opened").inner_text()
        if name != "eight_in_a_row":
            person.at("viewer").select_option("all")
            person.page.wait_for_timeout(300)
        assert undone and person.state() == "over"
        record.check(record.loads(person.downloaded("save").decode()))
