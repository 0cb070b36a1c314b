"""The board of Eight-in-a-Row at its largest: seen in parts, zoomed, moved, and drawn no oftener
than it must be."""

import itertools

import pytest

import jaxgames
from jaxgames.match import Match
from tests.browser.stage import as_json, said, stage

SIDE, FROM, TALL, BROAD = 100, 20, 50, 60
#: Counts what is drawn, by layer: grid, heat, stones, map.
COUNT = """
(() => {
window.drawn = {};
for (const name of ["fill", "stroke", "fillRect", "drawImage"]) {
  const real = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...args) {
    const all = [...document.querySelectorAll(".eight-board canvas, .eight-map canvas")];
    const layer = ["grid", "heat", "stones", "map"][all.indexOf(this.canvas) + 4 - all.length];
    if (layer) window.drawn[layer] = (window.drawn[layer] || 0) + 1;
    return real.apply(this, args);
  };
}
})()
"""
SHOW = (
    "(more) => show('./games/eight_in_a_row.js', 'default', {...structuredClone(crowd), ...more})"
)


def stone(row, col):
    """A third of the stones each, and no run of three."""
    row, col = row - FROM, col - FROM
    return str((col // 2 + row) % 3 + 1) if 0 <= row < TALL and 0 <= col < BROAD else "."


@pytest.fixture(scope="module")
def crowd():
    """100 x 100 with 3,000 stones, and all that a page is told of it."""
    rules = {"rows": SIDE, "cols": SIDE, "win_length": 8}
    game = jaxgames.make("eight_in_a_row", **rules)
    lines = ["".join(stone(row, col) for col in range(SIDE)) for row in range(SIDE)]
    assert sum(line.count("1") for line in lines) == TALL * BROAD // 3
    last = [next(f"{chr(97 + c)}{FROM + 1}" for c in range(FROM, 26) if stone(FROM, c) == s)
            for s in "123"]  # fmt: skip
    tail = f"ply: {TALL * BROAD}\nseat: 0\nlast: {' '.join(last)}\nstatus: playing\nrewards: 0 0 0"
    head = "eight_in_a_row rows=100 cols=100 win_length=8 players=3"
    match = Match(game, 1, game.from_text("\n".join([head, *lines, tail])))
    legal = [{"action": action, "text": text} for action, text in match.legal()]
    scene = game.scene_json(match.state, 0)
    given = {"scene": scene, "legal": legal, "viewer": 0, "names": ["You", "b", "c"]}
    return as_json(given | {"busy": False, "heat": None, "candidates": None, "hint": None})


@pytest.fixture(scope="module")
def page(crowd):
    with stage() as page:
        page.evaluate(COUNT)
        page.evaluate("(crowd) => { window.crowd = crowd; }", crowd)
        yield page


@pytest.fixture
def board(page):
    fresh = "Object.assign(document.createElement('div'), {id: 'stage'})"
    page.evaluate(f"document.getElementById('stage').replaceWith({fresh})")
    page.mouse.move(1, 1)
    page.evaluate("window.drawn = {}")
    put(page)
    return page


def put(page, **more):
    """Shows the crowd, told anew, with other things besides."""
    page.evaluate(SHOW, more)
    page.wait_for_timeout(60)
    said(page)


def middle(page):
    """Where the middle of the part in view is on the page."""
    box = page.locator(".eight-board").bounding_box()
    return box["x"] + box["width"] / 2 + 11, box["y"] + box["height"] / 2 + 11


def pointed(page):
    """The cell that the line below the board names."""
    return page.get_by_test_id("prompt").inner_text().split(":")[0]


def place(text):
    letters = text.rstrip("0123456789")
    col = 0
    for letter in letters:
        col = 26 * col + ord(letter) - 96
    return int(text[len(letters) :]) - 1, col - 1


def drawn(page):
    """Calls on the canvases since the last time, by layer."""
    page.wait_for_timeout(60)
    return page.evaluate("(() => { const d = window.drawn; window.drawn = {}; return d; })()")


def labels(page):
    return page.locator(".eight-board .label").all_text_contents()


def test_a_part_is_seen_first_and_the_map_has_it_all(board):
    assert board.get_by_test_id("minimap").is_visible()
    assert 40 < len(labels(board)) / 2 * 5 < 130 and "25" in labels(board)
    assert set(drawn(board)) == {"grid", "stones", "map"}
    box = board.get_by_test_id("minimap").bounding_box()
    board.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 0.9 * box["height"])
    board.mouse.move(*middle(board))
    assert all(x > 70 for x in place(pointed(board)))
    board.get_by_test_id("whole").click()
    assert "5" in labels(board) and "100" in labels(board)
    assert board.get_by_test_id("whole").is_disabled()


def test_the_wheel_zooms_at_the_pointer_and_a_drag_takes_the_board_along(board):
    x, y = middle(board)
    board.mouse.move(x - 90, y - 60)
    before = pointed(board)
    for _ in range(5):
        board.mouse.wheel(0, -100)
    board.wait_for_timeout(60)
    board.mouse.move(x - 91, y - 60)
    assert pointed(board) == before
    board.mouse.down()
    board.mouse.move(x, y, steps=4)
    board.mouse.up()
    board.mouse.move(x + 1, y)
    assert pointed(board) == before
    board.mouse.move(x - 91, y - 60)
    assert pointed(board) != before and said(board) == []


def test_fingers_zoom_and_move(board):
    touch = board.context.new_cdp_session(board)
    x, y = middle(board)

    def fingers(kind, *spots):
        points = [{"x": a, "y": b, "id": i} for i, (a, b) in enumerate(spots)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    count = len(labels(board))
    fingers("touchStart", (x - 40, y), (x + 40, y))
    fingers("touchMove", (x - 90, y), (x + 90, y))
    fingers("touchMove", (x - 160, y), (x + 160, y))
    fingers("touchEnd")
    board.wait_for_timeout(60)
    board.mouse.move(x, y)
    near = pointed(board)
    shown = [text for text in labels(board) if text.isdigit()]
    assert int(shown[-1]) - int(shown[0]) < 20 and len(labels(board)) != count
    fingers("touchStart", (x, y))
    fingers("touchMove", (x, y + 60))
    fingers("touchMove", (x, y + 120))
    fingers("touchEnd")
    board.wait_for_timeout(60)
    board.mouse.move(x + 1, y)
    assert place(pointed(board))[0] < place(near)[0] and said(board) == []


def test_keys_alone_go_everywhere_and_put_a_stone(board):
    board.locator(".eight-board").focus()
    board.keyboard.press("Home")
    assert "100" in labels(board)
    for _ in range(4):
        board.keyboard.press("+")
    board.keyboard.press("ArrowDown")  # where the last stone is
    for _ in range(16):
        board.keyboard.press("Shift+ArrowDown")
    for _ in range(3):
        board.keyboard.press("ArrowRight")
    board.wait_for_timeout(60)
    cell = pointed(board)
    assert place(cell)[0] == SIDE - 1
    assert board.locator(".eight-board .cursor").count() == 1  # the view came along
    board.keyboard.press("Enter")
    assert cell in board.get_by_test_id("prompt").inner_text() and said(board) == []
    board.keyboard.press("Enter")
    assert said(board) == [["play", cell]]


def test_a_layer_is_drawn_when_what_it_shows_changes(board, crowd):
    drawn(board)
    x, y = middle(board)
    for step in range(30):
        board.mouse.move(x + step, y + step)
    assert drawn(board) == {}  # pointing draws nothing anew
    board.locator(".eight-board").focus()
    board.keyboard.press("ArrowRight")
    assert drawn(board) == {}
    board.mouse.wheel(0, -100)
    assert set(drawn(board)) == {"grid", "stones"}  # of what was counted on a map, nothing moved
    values = {str(row["action"]): 0.1 for row in crowd["legal"][:50]}
    heat = {"kind": "policy", "values": values, "low": 0, "high": 1}
    put(board, heat=heat)
    assert set(drawn(board)) == {"heat", "map"}
    stones = dict(crowd["scene"])
    stones["cells"] = ["1" + row[1:] for row in stones["cells"]]
    put(board, scene=stones)
    assert "stones" in drawn(board)


def test_candidates_and_what_the_model_looks_at_are_marked(board, crowd):
    texts = [row["text"] for row in crowd["legal"]]
    seen = [text for text in texts if place(text)[0] < 21 and place(text)[1] < 21]
    put(board, candidates=[{"text": text} for text in seen[:7]], seen=seen)
    board.get_by_test_id("whole").click()
    board.wait_for_timeout(60)
    marks = board.locator(".eight-board .candidate text").all_text_contents()
    assert marks == ["1", "2", "3", "4", "5"]
    board.set_viewport_size({"width": 360, "height": 800})
    board.wait_for_timeout(60)
    boxes = board.evaluate("""[...document.querySelectorAll(".eight-board .candidate text")].map(
        (text) => text.getBoundingClientRect()).map(({left, right, top, bottom}) =>
        [(left + right) / 2, (top + bottom) / 2, (right - left) / 2 + 1])""")
    for (x, y, wide), (right, low, broad) in itertools.combinations(boxes, 2):
        assert abs(x - right) > min(wide, broad) * 2 or abs(y - low) > 9  # one beside the other
    board.set_viewport_size({"width": 1280, "height": 900})
    board.wait_for_timeout(60)
    assert board.locator(".eight-map circle").count() == 5
    alpha = """([row, col]) => {
        const canvas = document.querySelectorAll(".eight-board canvas")[1];
        const size = (canvas.width / devicePixelRatio - 22) / 100;
        const at = (i) => Math.round((22 + (i + 0.5) * size) * devicePixelRatio);
        return canvas.getContext("2d").getImageData(at(col), at(row), 1, 1).data[3];
    }"""
    assert board.evaluate(alpha, [5, 5]) == 0 < board.evaluate(alpha, [90, 90])
    assert board.evaluate(alpha, [FROM + 9, FROM + 9]) == 0  # a stone is no choice
    box = board.get_by_test_id("window")
    assert str(len(seen)) in board.locator("label", has=box).inner_text()
    box.uncheck()
    board.wait_for_timeout(60)
    assert board.evaluate(alpha, [90, 90]) == 0
