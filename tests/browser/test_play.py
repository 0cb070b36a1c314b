"""The play page against a server with a tiny network: everything that a person does there."""

import base64
import functools
import json
import re
import zlib

import pytest

from jaxgames import record
from tests.browser.pages import launched, served, visitor
from tests.experiments.serve import tiny

TOE = dict(game="eight_in_a_row", preset="tictactoe")
SEATS = [("human", "", 0), ("model", "tiny", 32)]


@pytest.fixture(scope="module")
def visit():
    with served(tiny.served()) as address, launched() as chrome:
        yield functools.partial(visitor, chrome, address)


def test_a_whole_game_by_keyboard_with_undo_save_reload_analysis_and_export(visit):
    with visit(accept_downloads=True) as person:
        page = person.page
        person.visit()
        person.new_game(**TOE, seats=SEATS)
        assert person.settled() == "yours"
        assert page.title().startswith("●") and not person.at("candidates").count()

        person.type_move("b2")
        person.moved(0)
        assert person.settled() == "yours" and person.plies == 2
        assert person.page.evaluate("document.activeElement.id") == "move-input"
        assert "You: b2" in person.at("announce").inner_text()

        person.type_move("b2")  # against the rules: said, and nothing changes
        assert "b2 is taken by player 1" in person.at("refused").inner_text()
        person.expects("status of 422")
        assert person.plies == 2
        assert page.input_value("#move-input") == "b2"
        page.keyboard.press("Escape")
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")

        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("u")
        person.until("document.querySelector('[data-testid=status]').dataset.plies === '0'")
        while person.settled() == "yours":
            person.first_move()
        assert person.at("status").inner_text()
        plies = person.plies

        page.reload()
        assert person.settled() == "over" and person.plies == plies

        person.at("analyse").click()
        person.until(
            "document.querySelector('[data-testid=analysis-job]')?.dataset.state === 'done'"
        )
        assert f"{plies} of {plies} positions" in person.at("analysis-job").inner_text()
        person.at("replay-first").click()
        person.at("candidates").wait_for()
        rows = page.locator("[data-testid=candidates] tbody tr")
        assert rows.count() == 5 and "%" in rows.first.inner_text()
        assert "Played:" in person.at("analysis").inner_text()
        for kind, name in (("policy", "Policy"), ("visits", "Visits"), ("q", "Q:")):
            person.at(f"heat-{kind}").check()
            assert name in person.at("heat-legend").inner_text()
        person.at("heat-off").check()
        assert not person.at("heat-legend").count()

        person.at("tree-open").click()
        person.until("document.querySelector('.tree-scroll').scrollLeft > 0")  # its root is seen
        svg = person.downloaded("tree-svg")
        assert svg.startswith(b"<svg") and b"http://www.w3.org/2000/svg" in svg
        assert person.downloaded("tree-png").startswith(b"\x89PNG")

        kept = record.loads(person.downloaded("save").decode())
        record.check(kept)
        assert len(kept.moves) == plies and kept.moves[0].analysis["model"] == "tiny"

        person.at("copy").click()
        page.locator("[data-testid=notice]", has_text="Copied").wait_for()
        assert json.loads(page.evaluate("navigator.clipboard.readText()"))["moves"]


def test_a_whole_game_by_mouse_with_a_record_loaded_and_played_on(visit, tmp_path):
    with visit(accept_downloads=True) as person:
        person.visit()
        person.new_game(**TOE, seats=SEATS, seed=6)
        taken = 0
        while person.settled() == "yours":
            cells = person.view()["scene"]["cells"]
            row, col = next((r, c) for r in range(3) for c in range(3) if cells[r][c] == ".")
            before = person.plies
            person.tap_cell(row, col, 3)
            assert person.plies == before and "again" in person.at("prompt").inner_text()
            person.tap_cell(row, col, 3)
            person.moved(before)
            taken += 1
            if taken == 1 and person.settled() == "yours":
                person.at("undo").click()
                person.until("document.querySelector('[data-testid=status]').dataset.plies === '0'")
        (tmp_path / "game.json").write_bytes(person.downloaded("save"))
        plies = person.plies

        person.at("load").click()
        person.at("load-file").set_input_files(tmp_path / "game.json")
        person.at("load-do").click()
        person.at("load-dialog").wait_for(state="detached")
        assert person.at("replay-slider").input_value() == "0"
        for _ in range(2):
            person.at("replay-forward").click()
        person.until("document.querySelector('[data-testid=replay-slider]').value === '2'")
        person.at("play-on").click()
        person.at("start").click()
        person.at("new-game-dialog").wait_for(state="detached")
        assert person.settled() == "yours" and person.plies == 2 < plies


def thinking(route, looks):
    """What the server says, and that a machine thinks."""
    looks.append(route.request.url)
    told = route.fetch()
    route.fulfill(response=told, json={**told.json(), "thinking": 0})


def test_a_link_opens_a_game_at_a_place_of_it(visit):
    with visit() as person:
        person.visit()
        person.new_game(**TOE, seats=[("human", "", 0)] * 2)
        for move in ("b2", "a1", "c3"):
            person.at("move-input").fill(move)
            person.page.keyboard.press("Enter")
            person.until("document.querySelector('[data-testid=move-input]').value === ''")
        person.at("replay-back").click()
        person.until("document.querySelector('[data-testid=replay-slider]').value === '2'")
        person.at("link").click()
        person.at("notice").wait_for()
        address = person.page.evaluate("navigator.clipboard.readText()")
        assert address.startswith(person.address + "/#record=") and len(address) < 1000
    with visit() as person:
        person.page.goto(address)
        person.until("document.querySelector('[data-testid=replay-slider]')?.value === '2'")
        assert person.plies == 3 and person.state() == "review"
        assert "#table=" in (before := person.page.url)
        person.page.evaluate(
            "location.hash = '#record=AAAA'"
        )  # the game there stays, and its place
        assert "Not valid: link: " in person.at("problem").inner_text()
        person.until(f"location.href === '{before}'")
        assert person.plies == 3 and not person.page.locator("dialog").count()
        # a game that takes its time to come is not lost where the page keeps looking at another
        page, looks, held = person.page, [], []
        page.route(re.compile(r"/v1/tables/[^/?]+\?"), lambda route: thinking(route, looks))
        page.route(re.compile(r"/v1/tables$"), lambda route: held.append(route))
        person.at("replay-forward").click()
        person.until_here(lambda: len(looks) > 1)
        page.evaluate("text => { location.hash = text; }", address.partition("#")[2])
        person.until_here(lambda: held)
        before_it = len(looks)
        person.until_here(lambda: len(looks) > before_it + 1)
        held.pop().continue_()
        person.until(f"location.href.includes('#table=') && location.href !== '{before}'")
        person.until("document.querySelector('[data-testid=replay-slider]').value === '2'")
        page.unroute_all(behavior="ignoreErrors")
    bomb = zlib.compress(b" " * 3_000_000, 9, -15)
    wrong = {
        "%25%00": "cut or changed",
        "A" * 17_000: "longer than 16000",
        "AAAA": "cut or changed",
        "q1YqAA&ply=-1": "ply is a whole number",
        base64.urlsafe_b64encode(bomb).decode().rstrip("="): "more than 1000000 characters",
    }
    with visit() as person:
        person.visit("/#record=q1YqAA&ply=x")
        assert "Not valid: link: ply" in person.at("problem").inner_text()
        for text, why in wrong.items():
            person.page.evaluate("text => { location.hash = `#record=${text}`; }", text)
            person.page.locator("[data-testid=problem]", has_text=why).wait_for()


def test_what_is_wrong_is_said(visit):
    with visit() as person:
        person.visit("/#table=there-is-none&viewer=0")
        assert "no longer" in person.at("problem").inner_text()
        person.expects("status of 404")
        person.at("dialog-cancel").click()
        person.at("load").click()
        person.at("paste").fill('{"format": "jaxgames-record/1"}')
        person.at("load-do").click()
        assert "record.game: missing" in person.at("dialog-problem").inner_text()
        person.expects("status of 422")
        # what is too large or empty is not even sent
        for text, said in ((" " * 1_200_000 + "{", "record: at most"), ("\n", "it is empty")):
            person.at("paste").fill("")
            file = {"name": "x.json", "mimeType": "application/json", "buffer": text.encode()}
            person.at("load-file").set_input_files(file)
            if said.startswith("record"):
                person.at("load-do").click()
            person.page.locator("[data-testid=dialog-problem]", has_text=said).wait_for()
        assert person.at("load-do").is_disabled()
        person.page.keyboard.press("Escape")
        assert not person.at("load-dialog").count()
        person.at("new-game").click()
        person.at("game").select_option("eight_in_a_row")
        person.page.locator("dialog summary").click()
        person.at("option-rows").fill("900")
        person.at("dialog-problem").wait_for()
        assert "options.rows" in person.at("dialog-problem").inner_text()
        assert person.at("start").is_disabled()
        person.expects("status of 422")


def test_two_people_pass_the_table_from_one_to_the_other(visit):
    with visit() as person:
        person.visit()
        person.new_game(**TOE, seats=[("human", "", 0)] * 2)
        for ply, text in enumerate(("a1", "b1", "a2")):
            person.until("document.querySelector('[data-state=yours]')")  # the next one looks
            person.until(f"document.body.innerText.includes('Player · {ply % 2} to move')")
            person.type_move(text)
            person.until(f"document.body.innerText.includes('{text}')")
        assert person.settled() == "yours" and person.plies == 3
        assert "Player · 1 to move" in person.at("status").inner_text()
        person.at("resign").click()
        assert person.settled() == "over"
        assert "Won by Player · 0" in person.at("status").inner_text()


@pytest.mark.parametrize("width", [360, 1280])
def test_narrow_and_wide_in_both_languages_and_colours(visit, width):
    with visit(width, color_scheme="dark") as person:
        page = person.page
        person.visit()
        person.new_game(**TOE, seats=SEATS)
        person.settled()
        person.at("language").select_option("zh")
        assert "轮到你了" in person.at("status").inner_text()
        person.until("document.documentElement.lang === 'zh-Hans'")
        person.at("analyse-here").click()
        person.at("candidates").wait_for()
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.wait_for_timeout(100)
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= width
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        person.at("theme").select_option("light")
        person.until(f"getComputedStyle(document.body).backgroundColor !== '{dark}'")
        page.reload()
        assert "轮到你了" in person.at("status").inner_text()


def test_every_control_has_a_name_and_can_be_reached(visit):
    with visit() as person:
        page = person.page
        person.visit()
        person.new_game(**TOE, seats=SEATS)
        person.settled()
        person.type_move("b2")
        person.moved(0)
        person.settled()
        nameless = page.evaluate(
            """[...document.querySelectorAll('button, input, select, textarea')].filter(e =>
              !(e.textContent.trim() || e.ariaLabel || e.labels?.length || e.title)).length"""
        )
        assert nameless == 0
        seen = set()
        page.evaluate("document.activeElement.blur()")
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.dataset.testid || ''"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none" or page.evaluate("document.activeElement === document.body")
        assert {"new-game", "load", "save", "undo", "hint", "replay-slider", "analyse"} <= seen
