"""The boards of the card games in a browser: what they show, and the moves they send."""

import jax
import pytest

import jaxgames
from jaxgames.guandan import cards
from jaxgames.match import Match
from jaxgames.sequence import board
from tests.browser.stage import as_json, said, show, stage
from tests.jaxgames.guandan import positions
from tests.jaxgames.guandan.test_game import RICH

NAMES = ["You", "<img src=x onerror=alert(1)>", "Three", "Four"]


@pytest.fixture(scope="module")
def wide():
    with stage() as page:
        yield page


def props(match, viewer="mover", **more):
    """What a table tells a board."""
    state, game = match.state, match.game
    legal = match.legal()
    notes = game.action_notes(state, [action for action, _ in legal])
    told = [
        {"action": action, "text": text, "note": note, "group": text.split()[0]}
        for (action, text), note in zip(legal, notes, strict=True)
    ]
    viewer = match.seat if viewer == "mover" else viewer
    scene = game.scene_json(state, viewer)
    given = {"scene": scene, "legal": told, "viewer": viewer, "names": NAMES, "busy": False}
    return as_json(given | {"heat": None, "candidates": [], "hint": None} | more)


def put(page, match, language="en", **more):
    kind = match.game.id
    given = props(match, **more)
    show(page, f"./games/{kind}.js", "default", given, language)
    said(page)
    return given


def sent(page) -> str:
    ((kind, text),) = said(page)
    assert kind == "play"
    return text


# ---- Sequence ----


def played(game, plies, bot="greedy", seed=4):
    act, match = jax.jit(game.bots[bot]), Match(game, seed)
    while not match.done and match.ply < plies:
        match.play(int(act(match.state, jax.random.key(match.ply))))
    return match


@pytest.fixture(scope="module")
def sequence():
    return jaxgames.make("sequence")


@pytest.fixture(scope="module")
def half(sequence):
    """Half a game; the mover holds a dead card."""
    act, match = jax.jit(sequence.bots["greedy"]), played(sequence, 40)
    while not any(text.startswith("S ") for _, text in match.legal()):
        match.play(int(act(match.state, jax.random.key(match.ply))))
    return match


def with_jack(game, name):
    """The first deal whose mover holds that jack and natural cards."""
    for seed in range(100):
        match = Match(game, seed)
        scene = game.scene_json(match.state, match.seat)
        if name in scene["seats"][match.seat]["cards"]:
            return match
    raise AssertionError("no such deal")


def test_pointing_at_a_card_lights_both_its_cells(wide, half):
    put(wide, half)
    hand = half.game.scene_json(half.state, half.seat)["seats"][half.seat]["cards"]
    name = next(c for c in hand if c[0] != "J")
    wide.locator(f'.hand [data-card="{name}"]').first.hover()
    lit = wide.eval_on_selector_all(".cell.bright", "all => all.map((c) => +c.dataset.cell)")
    assert lit == board.CELLS_OF_CARD[board.card_id(name)].tolist()
    wide.mouse.move(2, 890)
    assert wide.locator(".cell.bright").count() == 0


def test_a_card_then_a_cell(wide, sequence):
    match = Match(sequence, 1)
    put(wide, match)
    text = match.legal()[0][1]
    row, col = map(int, text.split()[1:])
    name = board.card_name(int(board.CARD_OF_CELL[10 * row + col]))
    wide.locator(f'.hand [data-card="{name}"]').first.click()
    assert said(wide) == []
    targets = wide.eval_on_selector_all(".cell.target", "all => all.map((c) => +c.dataset.cell)")
    assert targets == board.CELLS_OF_CARD[board.card_id(name)].tolist()
    wide.locator(f'[data-cell="{10 * row + col}"]').click()
    assert sent(wide) == text
    match.play(text)


def test_one_click_where_only_one_natural_card_is_meant(wide, sequence):
    match = Match(sequence, 1)
    put(wide, match)
    assert "J2" not in wide.eval_on_selector_all(
        "[data-card]", "all => all.map((c) => c.dataset.card)"
    )
    row, col = map(int, match.legal()[0][1].split()[1:])
    wide.locator(f'[data-cell="{10 * row + col}"]').click()
    assert sent(wide) == f"N {row} {col}"


def test_a_jack_alone_is_asked_for_twice(wide, sequence):
    match = with_jack(sequence, "J2")
    put(wide, match)
    naturals = {text[2:] for _, text in match.legal() if text[0] == "N"}
    cell = next(
        text[2:] for _, text in match.legal() if text[0] == "W" and text[2:] not in naturals
    )
    place = wide.locator(f'[data-cell="{int(cell.replace(" ", ""))}"]')
    place.click()
    assert said(wide) == []
    assert wide.locator('[data-card="J2"]').first.get_attribute("aria-pressed") == "true"
    place.click()
    assert sent(wide) == f"W {cell}"


def test_two_cards_for_a_cell_are_asked_about(wide, sequence):
    match = with_jack(sequence, "J2")
    put(wide, match)
    cell = next(text[2:] for _, text in match.legal() if text[0] == "N")
    wide.locator(f'[data-cell="{int(cell.replace(" ", ""))}"]').click()
    assert said(wide) == []
    assert "choose the card" in wide.get_by_test_id("prompt").inner_text()
    wide.locator('[data-card="J2"]').first.click()
    assert sent(wide) == f"W {cell}"


def test_jacks_say_what_they_do(wide, sequence):
    for name, word in (("J2", "place"), ("J1", "remove")):
        put(wide, with_jack(sequence, name))
        assert wide.locator(f'li:has([data-card="{name}"])').first.inner_text().split() == [
            "J",
            word,
        ]


def test_a_dead_card_can_be_swapped(wide, half):
    put(wide, half)
    swap = next(text for _, text in half.legal() if text.startswith("S "))
    dead = wide.locator(f'.hand [data-card="{swap[2:]}"]').first
    assert "dead" in dead.inner_text() and "dead" in dead.get_attribute("aria-label")
    wide.locator(f'li:has([data-card="{swap[2:]}"]) [data-testid="swap"]').first.click()
    assert sent(wide) == swap


def test_keys_alone_play_a_move(wide, sequence):
    match = Match(sequence, 1)
    put(wide, match)
    text = match.legal()[-1][1]
    row, col = map(int, text.split()[1:])
    wide.locator('.cells [tabindex="0"]').focus()
    at = int(wide.evaluate("document.activeElement.dataset.cell"))
    for key, steps in (("ArrowDown", row - at // 10), ("ArrowRight", col - at % 10)):
        back = {"ArrowDown": "ArrowUp", "ArrowRight": "ArrowLeft"}[key]
        for _ in range(abs(steps)):
            wide.keyboard.press(key if steps > 0 else back)
    assert int(wide.evaluate("document.activeElement.dataset.cell")) == 10 * row + col
    ring = "getComputedStyle(document.activeElement.querySelector('.ring')).stroke"
    assert wide.evaluate(ring) != "none"
    wide.keyboard.press("Enter")
    assert sent(wide) == text


def test_unseen_copies_are_shown_on_demand(wide, half):
    given = put(wide, half)
    wide.get_by_test_id("unseen").uncheck()
    assert wide.locator(".cells > text").count() == 0
    wide.get_by_test_id("unseen").check()
    shown = wide.eval_on_selector_all(".cells > text", "all => all.map((x) => x.textContent)")
    scene = given["scene"]
    assert shown == [f"×{scene['unseen'].get(name, 0)}" for name in scene["printed"] if name]
    wide.get_by_test_id("unseen").uncheck()


def test_finished_lines_and_locks_are_drawn(wide, sequence):
    match = played(sequence, 1000)
    put(wide, match, viewer=None)
    scene = sequence.scene_json(match.state, None)
    assert len(scene["sequences"]) >= 2
    assert wide.locator(".cells .run").count() == len(scene["sequences"])
    assert wide.locator(".cells .chip.safe .lock").count() == len(scene["locked"])
    assert wide.locator(".cells .chip").count() == sum(chip > 0 for chip in scene["chips"])
    assert wide.locator(".hand").count() == 2  # all hands are open


def test_heat_and_candidates_lie_on_the_cells(wide, sequence):
    match = Match(sequence, 1)
    legal = match.legal()
    values = {str(action): (i + 1) / 100 for i, (action, _) in enumerate(legal)}
    heat = {"kind": "visits", "values": values, "low": 0, "high": len(legal) / 100}
    put(wide, match, heat=heat, candidates=[{"text": legal[-1][1]}], hint=legal[-1][1])
    assert wide.locator(".cells rect.heat").count() == len(legal)
    row, col = map(int, legal[-1][1].split()[1:])
    hot = wide.locator(f'[data-cell="{10 * row + col}"]')
    assert "hinted" in hot.get_attribute("class")
    strongest = max(float(x) for x in wide.eval_on_selector_all(
        ".cells rect.heat", "all => all.map((r) => r.getAttribute('opacity'))"))  # fmt: skip
    assert float(hot.locator("rect.heat").get_attribute("opacity")) == strongest
    assert wide.locator(".candidate").text_content() == "1"
    assert "Visits" in wide.get_by_test_id("heat-legend").inner_text()


def test_a_draft_card_is_picked_too(wide):
    game = jaxgames.make("sequence", preset="comp090054")
    match = played(game, 6, "random", 1)
    put(wide, match)
    text = next(text for _, text in match.legal() if text[0] == "N")
    move, pick = text.split(" +")
    row, col = map(int, move.split()[1:])
    name = board.card_name(int(board.CARD_OF_CELL[10 * row + col]))
    wide.locator(f'.hand [data-card="{name}"]').first.click()
    wide.locator(f'[data-pick="{pick}"]').first.click()
    wide.locator(f'[data-cell="{10 * row + col}"]').click()
    assert sent(wide) == text


def test_others_hands_are_counted_not_shown(wide, half):
    given = put(wide, half)
    other = 1 - half.seat
    assert given["scene"]["seats"][other]["cards"] is None
    assert wide.locator(".hand").count() == 1
    assert f"{given['scene']['seats'][other]['count']} cards" in wide.locator(".teams").inner_text()
    shown = wide.locator(".discards .counted").count()
    assert shown == len(given["scene"]["discards"])


# ---- Guandan ----


@pytest.fixture(scope="module")
def rich():
    """A lead from a hand with two wilds."""
    state = positions.opening({0: RICH})
    return Match(state.game, 1, state)


def moves(page):
    return page.eval_on_selector_all(".entry", "all => all.map((e) => e.dataset.move)")


def all_moves(page):
    while page.get_by_test_id("more").count():
        page.get_by_test_id("more").click()
    return moves(page)


def pick(page, *names):
    """Clicks cards of the hand, copies one after the other."""
    for name in names:
        page.locator(f'.fan [data-card="{name}"][aria-pressed="false"]').first.click()


def test_twenty_plays_come_first(wide, rich):
    given = put(wide, rich)
    assert len(moves(wide)) == 20
    assert len(all_moves(wide)) == len(given["scene"]["plays"]) == len(rich.legal())


def test_picked_cards_filter_the_plays(wide, rich):
    given = put(wide, rich)
    pick(wide, "S5", "D5")
    found = all_moves(wide)
    want = [
        f"{play['text']}: {way}"
        for play in given["scene"]["plays"]
        for way in play["ways"]
        if {"S5", "D5"} <= set(way.split())
    ]
    assert sorted(found) == sorted(want)
    assert found[0] == "pair 5: S5 D5"  # what the cards are as they stand
    button = wide.get_by_test_id("play")
    assert button.inner_text() == "Play: pair 5"
    button.click()
    text = sent(wide)
    again = Match(rich.game, 1, rich.state)
    again.play(text)
    assert again.move_text(0) == "pair 5: S5 D5"


def test_every_reading_of_a_wild_is_an_entry_that_says_it(wide, rich):
    put(wide, rich)
    pick(wide, "S4", "S5", "S6", "S7", "H2")
    button = wide.get_by_test_id("play")
    assert button.is_disabled() and "readings" in button.inner_text()
    found = {move: text for move, text in zip(
        moves(wide), wide.locator(".entry").all_inner_texts(), strict=True)
        if len(move.split(": ")[1].split()) == 5}  # fmt: skip
    assert set(found) == {
        "straight 3-7+*: H2 S4 S5 S6 S7",
        "straight 4-8+*: S4 S5 S6 S7 H2",
        "flush S 3-7+*: H2 S4 S5 S6 S7",
        "flush S 4-8+*: S4 S5 S6 S7 H2",
    }
    assert "→3" in found["straight 3-7+*: H2 S4 S5 S6 S7"]
    assert "→8" in found["straight 4-8+*: S4 S5 S6 S7 H2"]
    assert "→♠\ufe0e8" in found["flush S 4-8+*: S4 S5 S6 S7 H2"]
    wide.locator('[data-move="flush S 4-8+*: S4 S5 S6 S7 H2"]').click()
    again = Match(rich.game, 1, rich.state)
    again.play(sent(wide))
    assert again.move_text(0) == "flush S 4-8+*: S4 S5 S6 S7 H2"


def test_a_search_and_a_type_narrow_the_list(wide, rich):
    put(wide, rich)
    wide.get_by_test_id("play-search").fill("pair 9")
    assert {move.split(":")[0] for move in all_moves(wide)} == {"pair 9+*"}
    wide.get_by_test_id("play-search").fill("")
    wide.locator('[data-type="Bomb"]').click()
    bombs = all_moves(wide)
    assert bombs and all(move.startswith("bomb") for move in bombs)
    wide.locator('[data-type="Bomb"]').click()


def test_a_pass_is_there_but_not_on_a_lead(wide, rich):
    put(wide, rich)
    assert wide.get_by_test_id("pass").count() == 0
    following = Match(rich.game, 1, rich.state)
    following.play("single 3")
    put(wide, following)
    wide.get_by_test_id("pass").click()
    assert sent(wide) == "pass"
    assert "to beat" in wide.get_by_test_id("seat-0").inner_text()
    following.play("pass")
    put(wide, following)
    assert "pass" in wide.get_by_test_id("seat-1").inner_text()


def test_candidates_are_cycled(wide, rich):
    advised = [{"text": "pair 5"}, {"text": "single *"}]
    put(wide, rich, candidates=advised, hint="pair 5")
    assert moves(wide)[0].startswith("pair 5: ") and moves(wide)[1] == "single *: H2"
    assert wide.locator(".fan .hinted").count() == 2
    pressed = "all => all.map((c) => c.dataset.card)"
    for want in ({"S5", "D5", "C5"}, {"H2"}, {"S5", "D5", "C5"}):
        wide.get_by_test_id("next-candidate").click()
        up = wide.eval_on_selector_all('.fan [aria-pressed="true"]', pressed)
        assert set(up) <= want and up
    wide.get_by_test_id("clear").click()


def test_keys_alone_play_cards(wide, rich):
    put(wide, rich)
    wide.locator('.fan [data-card="D3"]').focus()
    wide.keyboard.press("Space")
    assert wide.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    wide.keyboard.press("ArrowRight")
    assert wide.evaluate("document.activeElement.dataset.card") != "D3"
    wide.get_by_test_id("play").focus()
    wide.keyboard.press("Enter")
    assert sent(wide) == "single 3: D3"


@pytest.fixture(scope="module")
def tribute():
    """A match at its first tribute."""
    game = positions.make(unit="match")
    for seed in range(9):
        for _, _, after in positions.steps(game, seed):
            if int(after.rounds) and not bool(after.anti):
                return Match(game, seed, after)
    raise AssertionError("no tribute")


def test_tribute_and_return_are_steps_with_a_reason(wide, tribute):
    match = Match(tribute.game, 1, tribute.state)
    given = put(wide, match)
    first = given["scene"]["tribute"]["finish"][0]
    reason = wide.get_by_test_id("tribute").inner_text()
    assert NAMES[first] in reason and "highest card" in reason
    assert wide.get_by_test_id("level-0").count() == 1
    choice = given["scene"]["plays"][0]["ways"][0]
    pick(wide, choice)
    assert wide.get_by_test_id("play").inner_text().startswith("Pay")
    wide.get_by_test_id("play").click()
    match.play(sent(wide))
    while match.legal()[0][1].startswith("tribute"):
        match.play(match.legal()[0][1])
    given = put(wide, match, language="zh")
    if given["scene"]["stage"] == "return":
        assert "还" in wide.get_by_test_id("tribute").inner_text()
        pick(wide, given["scene"]["plays"][0]["ways"][0])
        wide.get_by_test_id("play").click()
        match.play(sent(wide))


def test_hidden_hands_are_not_in_the_page(wide, rich):
    given = put(wide, rich, viewer=1)
    assert given["scene"]["plays"] is None
    assert wide.locator(".fan .card").count() == 27
    shown = wide.locator(".open-hand .mini").count()
    assert shown == 2  # the jokers that everybody knows of
    put(wide, rich, viewer=None)
    assert wide.locator(".open-hand .mini").count() == 3 * cards.HAND


def test_names_are_only_text(wide, rich, half):
    put(wide, rich)
    assert wide.locator("#stage img").count() == 0
    assert NAMES[1] in wide.get_by_test_id("seat-1").inner_text()
    put(wide, half)
    assert wide.locator("#stage img").count() == 0


# ---- narrow ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_holds_the_boards(wide, half, rich, tribute, scheme):
    size = wide.viewport_size
    wide.set_viewport_size({"width": 360, "height": 700})
    wide.emulate_media(color_scheme=scheme)
    for match in (half, rich, tribute):
        put(wide, match, language="zh")
        assert wide.evaluate("document.documentElement.scrollWidth") <= 360
        low = "all => all.map((b) => b.getBoundingClientRect().height).filter((h) => h < 24)"
        assert wide.eval_on_selector_all("button", low) == []
    wide.emulate_media(color_scheme="light")
    wide.set_viewport_size(size)
