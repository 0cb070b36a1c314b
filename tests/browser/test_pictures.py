"""The value graph and the search tree in a browser."""

import pathlib
import xml.etree.ElementTree

import pytest

from tests.browser.stage import said, show, stage

NAMES = ["A", "B", "C"]


def node(text, seat, visits, prior, value, children=(), others=None):
    return {
        "text": text,
        "seat": seat,
        "visits": visits,
        "prior": prior,
        "value": value,
        "children": list(children),
        "others": others,
    }


#: Three seats; a reply two moves down, folded at first.
DEEP = node("d4", 2, 2, 0.4, [0.0, 0.0, 0.0])
REPLY = node("c3", 1, 8, 0.5, [-0.1, 0.4, -0.3], [DEEP], {"moves": 7, "visits": 1.5})
FIRST = node("a1", 0, 24, 0.6, [0.8, -0.4, -0.4], [REPLY], {"moves": 40, "visits": 14})
SECOND = node("b2", 0, 6, 0.1, [-0.6, 0.3, 0.3])
TREE = node("", 0, 32, 1, [0.5, -0.2, -0.3], [FIRST, SECOND], {"moves": 141, "visits": 1})
POINTS = [
    {"ply": ply, "value": [ply / 10, -ply / 10, 0.0], "simulations": 3 if ply == 4 else 64}
    for ply in range(0, 9, 2)
]


@pytest.fixture(scope="module")
def page():
    with stage(1000, 700) as page:
        yield page


@pytest.fixture
def tree(page):
    show(page, "./tree.js", "Tree", {"tree": None, "names": NAMES})
    show(page, "./tree.js", "Tree", {"tree": TREE, "names": NAMES})
    said(page)
    return page


def radius(page, path):
    return float(page.locator(f'[data-path="{path}"] circle').get_attribute("r"))


def place(page, path):
    circle = page.locator(f'[data-path="{path}"] circle')
    return [float(circle.get_attribute(name)) for name in ("cx", "cy")]


def fill(page, path):
    """(red, green, blue) of a node."""
    text = page.locator(f'[data-path="{path}"] circle').get_attribute("fill")
    return [int(x) for x in text.removeprefix("rgb(").removesuffix(")").split()]


def test_size_is_visits_colour_is_value_width_is_prior(tree):
    assert radius(tree, "") > radius(tree, "0") > radius(tree, "1") > 0
    good, bad = fill(tree, "0"), fill(tree, "1")
    assert good[1] > good[0] and bad[0] > bad[1]
    widths = "all => all.map((p) => +p.getAttribute('stroke-width'))"
    found = tree.eval_on_selector_all(".tree-scroll path[stroke-dasharray=none]", widths)
    assert max(found) == pytest.approx(1 + 9 * 0.6) and min(found) == pytest.approx(1 + 9 * 0.1)
    assert "+0.80" in tree.locator('[data-path="0"]').text_content()  # not by colour alone


def test_siblings_stand_by_visits_and_others_are_counted(tree):
    assert place(tree, "0")[0] < place(tree, "1")[0]
    assert place(tree, "0")[1] == place(tree, "1")[1] > place(tree, "")[1]
    texts = tree.locator(".tree-scroll title").all_text_contents()
    assert "others: 141 moves, 1 visits" in texts and "others: 40 moves, 14 visits" in texts


def test_a_click_or_a_key_folds(tree):
    assert tree.locator("[data-path='0.0']").count() == 1
    assert tree.locator("[data-path='0.0.0']").count() == 0
    tree.locator("[data-path='0.0']").focus()
    tree.keyboard.press("Enter")
    assert tree.locator("[data-path='0.0.0']").count() == 1
    tree.locator("[data-path='0'] circle").click()
    assert tree.locator("[data-path='0.0']").count() == 0


def test_the_tree_is_saved_as_svg_and_png(tree, tmp_path):
    saved = {}
    for kind in ("svg", "png"):
        with tree.expect_download() as download:
            tree.get_by_test_id(f"tree-{kind}").click()
        assert download.value.suggested_filename == f"tree.{kind}"
        path = tmp_path / f"tree.{kind}"
        download.value.save_as(path)
        saved[kind] = pathlib.Path(path).read_bytes()
    root = xml.etree.ElementTree.fromstring(saved["svg"])
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("color")
    words = "".join(root.itertext())
    assert "a1" in words and "others: 141 moves, 1 visits" in words
    assert b"var(" not in saved["svg"]
    assert saved["png"][:8] == b"\x89PNG\r\n\x1a\n"
    width = int.from_bytes(saved["png"][16:20], "big")
    assert width == 2 * float(root.get("width"))


def test_no_search_is_said(page):
    show(page, "./tree.js", "Tree", {"tree": None, "names": NAMES})
    assert "No search" in page.get_by_test_id("tree").inner_text()


@pytest.fixture
def graph(page):
    show(page, "./graph.js", "Graph", {"points": [], "names": NAMES, "at": 0})
    show(page, "./graph.js", "Graph", {"points": POINTS, "names": NAMES, "at": 2})
    said(page)
    return page


def marks(page):
    return page.locator("[role=slider] .series > :not(path:first-child)").count()


def test_a_line_per_seat_with_its_own_dash_and_mark(graph):
    lines = graph.locator("[role=slider] .series")
    assert lines.count() == 3
    dashes = "all => all.map((s) => s.querySelector('path').getAttribute('stroke-dasharray'))"
    assert len(set(graph.eval_on_selector_all("[role=slider] .series", dashes))) == 3
    assert all(name in graph.locator(".graph-legend").inner_text() for name in NAMES)


def test_points_of_few_visits_are_hidden_until_asked_for(graph):
    assert marks(graph) == 3 * 4
    assert "1 points" in graph.locator(".graph-legend").inner_text()
    graph.get_by_test_id("graph-least").fill("3")
    assert marks(graph) == 3 * 5
    graph.get_by_test_id("graph-least").fill("16")
    assert marks(graph) == 3 * 4


def test_a_click_goes_to_the_nearest_move(graph):
    box = graph.locator("[role=slider]").bounding_box()
    graph.mouse.click(box["x"] + box["width"] - 15, box["y"] + 60)
    assert said(graph) == [["pick", 8]]
    graph.mouse.click(box["x"] + 34 + (box["width"] - 46) * 0.3, box["y"] + 60)
    assert said(graph) == [["pick", 2]]


def test_keys_go_from_point_to_point(graph):
    graph.locator("[role=slider]").focus()
    for key in ("ArrowRight", "ArrowLeft", "End", "Home"):
        graph.keyboard.press(key)
    assert said(graph) == [["pick", ply] for ply in (6, 0, 8, 0)]


def test_partners_are_one_line(page):
    points = [{"ply": p, "value": [p / 9, -p / 9] * 2, "simulations": 8} for p in range(4)]
    show(page, "./graph.js", "Graph", {"points": points, "names": [*"WXYZ"], "at": 0})
    assert page.locator("[role=slider] .series").count() == 2
    assert "W, Y" in page.locator(".graph-legend").inner_text()
