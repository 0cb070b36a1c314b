"""Pictures of positions, trees and runs: well-formed, and what they show is so."""

import re
import xml.etree.ElementTree as xml

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import plots
from experiments.dashboard import panels
from experiments.plots import picture
from jaxgames import make
from tests.experiments.dashboard import folders
from tests.experiments.dashboard.folders import evaluated, train

SVG = "{http://www.w3.org/2000/svg}"


def parsed(shown):
    return xml.fromstring(shown.svg)


def texts(shown):
    return [t.text for t in parsed(shown).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def state():
    return jax.jit(make("sequence").init)(jax.random.key(3))


@pytest.fixture(scope="module")
def legal(state):
    return np.flatnonzero(state.legal_action_mask)


def thought(state, **known):
    """Of a network that never speaks: only what is `known` by action."""
    actions = state.game.num_actions
    fields = {name: np.zeros(actions) for name in ("prior", "visits", "weights")}
    fields["q"] = np.full(actions, np.nan)
    for name, values in known.items():
        for action, value in values.items():
            fields[name][action] = value
    first = next(iter(known["prior"]), 0)
    return plots.Thought("a<b", int(first), value=np.zeros(2), **fields)


def marks(shown):
    """{(x, y): opacity} of the coloured cells."""
    found = [r for r in parsed(shown).iter(f"{SVG}rect") if r.get("fill-opacity")]
    return {(float(r.get("x")), float(r.get("y"))): float(r.get("fill-opacity")) for r in found}


def test_a_board_is_the_games_own_picture(state):
    assert plots.board(state, 0).svg == state.game.draw(state, 0)
    assert plots.board(state)._repr_html_().startswith("<svg")


def test_policy_lies_on_its_cells(state, legal):
    a, b = (int(x) for x in legal[:2])
    shown = plots.policy(state, thought(state, prior={a: 0.75, b: 0.25}))
    game, found = state.game, marks(shown)
    assert len(found) == 2
    rows, cols = game.board_shape
    for action, share in ((a, 0.75), (b, 0.25)):
        cell = action // game.action_slots % (rows * cols)
        x, y, side = game.draw_cell(state, *divmod(cell, cols))
        assert found[x + 1, y + 1] == pytest.approx(0.1 + 0.7 * share / 0.75, abs=1e-3)
    assert "75" in texts(shown) and "25" in texts(shown)
    assert "policy of seat 0 by a<b: at most 75.0 % on a cell" in texts(shown)


def test_what_is_no_cell_is_told(state, legal):
    shown = plots.policy(state, thought(state, prior={int(legal[0]): 0.5}))
    assert "50.0 % on moves that are no cell" in texts(shown)


def test_illegal_moves_are_not_shown(state):
    illegal = int(np.flatnonzero(~np.asarray(state.legal_action_mask))[0])
    known = thought(state, prior={illegal: 1.0})
    assert marks(plots.policy(state, known)) == {}


def test_visits_and_values(state, legal):
    a, b = (int(x) for x in legal[:2])
    known = thought(state, prior={a: 1.0}, visits={a: 30, b: 10}, q={a: 0.5, b: -0.25})
    assert "75" in texts(plots.visits(state, known))
    shown = plots.q(state, known)
    assert "+.50" in texts(shown) and "-.25" in texts(shown)
    assert len(marks(shown)) == 2
    with pytest.raises(plots.PlotError, match="does not search"):
        plots.visits(state, thought(state, prior={a: 1.0}))
    with pytest.raises(plots.PlotError, match="no values"):
        plots.q(state, thought(state, prior={a: 1.0}))


def test_moves_as_bars(state, legal):
    known = {int(action): 1 / len(legal) for action in legal}
    shown = plots.moves(state, thought(state, prior=known), top=3)
    told = texts(shown)
    assert state.game.action_to_text(state, int(legal[0])) + " ◀" in told
    share = 100 * (1 - 3 / len(legal))
    assert f"{len(legal) - 3} others: {share:.1f} %" in told


def test_a_game_without_cells_has_bars():
    game = make("mnk")
    state = game.init(jax.random.key(0))
    shown = plots.policy(state, thought(state, prior={4: 1.0}))
    assert "1,1 ◀" in texts(shown) and marks(shown) == {}


def test_a_bot_is_asked():
    game = make("mnk")
    state = game.init(jax.random.key(0))
    known = plots.think(state, "random")
    assert bool(state.legal_action_mask[known.action]) and known.tree is None
    assert known.weights.sum() == 1 and np.isnan(known.value).all()
    over = state.replace(terminated=jnp.bool_(True))
    with pytest.raises(plots.PlotError, match="the game is over"):
        plots.think(over, "random")


NODE = {"text": "", "seat": 0, "prior": 1.0, "visits": 10, "value": [0.5, -0.5], "others": None}


def test_a_tree():
    leaf = {**NODE, "text": "<a>", "visits": 4, "prior": 0.6, "children": []}
    bad = {**leaf, "text": "b", "value": [-1.0, 1.0], "visits": 2}
    others = {"moves": 7, "visits": 3.5}
    root = {**NODE, "children": [leaf, bad], "others": others}
    shown = plots.tree(root)
    assert {"<a>", "b", "7 others", "seat 0"} <= set(texts(shown))
    discs = [c for c in parsed(shown).iter(f"{SVG}circle") if c.get("class") == "node"]
    radii = [float(c.get("r")) for c in discs]
    assert radii[0] > radii[1] > radii[2]
    assert discs[0].get("fill") != discs[2].get("fill") == "rgb(196, 40, 60)"
    with pytest.raises(plots.PlotError, match="does not search"):
        plots.tree(None)


@pytest.mark.slow
def test_a_real_search_has_a_tree():
    """What `think` tells of a small network's search fits what `tree` draws."""
    from algorithms import agents
    from algorithms.networks.model import NetworkConfig, build
    from algorithms.search.config import SearchConfig

    game = make("mnk")
    model = build(game, NetworkConfig(channels=4, blocks=0, hidden=8))
    config = SearchConfig(num_simulations=8, num_worlds=1)
    seat = agents.Seat(agents.search_agent(game, model, config), model.init(jax.random.key(0)))
    state = game.init(jax.random.key(0))
    known = plots.think(state, seat)
    assert known.visits.sum() > 0 and known.prior.sum() == pytest.approx(1)
    assert known.tree["children"][0]["text"] in texts(plots.tree(known.tree))


# ---- runs ----


@pytest.fixture
def run(tmp_path):
    rows = [train(n, **{"loss/policy": 1.0 / n}) for n in range(1, 21)]
    bins = {f"val/bin{i}/{k}": 0.1 * i + 0.05 for i in range(3) for k in ("accuracy", "confidence")}
    bins |= {f"val/bin{i}/decisions": 5.0 for i in range(3)}
    return folders.folder(
        tmp_path / "a", [*rows, evaluated(21), evaluated(22, 0.7), train(23, **bins)]
    )


def test_curves(run):
    pytest.importorskip("matplotlib")
    shown = plots.losses(run, x="wall")
    (axes,) = shown.figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert set(lines) == {"loss/policy", "loss/value"} and axes.get_yscale() == "log"
    assert lines["loss/policy"].get_ydata()[1] == 0.5
    assert lines["loss/policy"].get_xdata()[2] == pytest.approx(20 / 3600)
    parsed(shown)


def test_win_rates_have_bands(run, tmp_path):
    pytest.importorskip("matplotlib")
    other = folders.folder(tmp_path / "b", [evaluated(1), evaluated(2)])
    shown = plots.winrate(run, other)
    (axes,) = shown.figure.axes
    assert [line.get_label() for line in axes.lines] == [
        "a: eval/winrate/greedy",
        "b: eval/winrate/greedy",
    ]
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0.55) and band[:, 1].max() == pytest.approx(0.75)


def test_reliability_and_payoffs(run):
    pytest.importorskip("matplotlib")
    (axes,) = plots.reliability(run).figure.axes
    assert axes.lines[1].get_label() == "a: val"
    (axes,) = plots.league(run).figure.axes
    assert [t.get_text() for t in axes.texts] == ["70 %"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda run: plots.chart("losse", run), "no chart 'losse'"),
        (lambda run: plots.losses(run, x="t"), "plot.x: one of step"),
        (lambda run: plots.losses(run / "none"), "no run in"),
        (lambda run: plots.chart("kl", run), "recorded nothing for kl; it comes with agent="),
        (lambda run: plots.losses(), "no run recorded nothing"),
    ],
)
def test_what_can_not_be_drawn_says_why(run, call, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(plots.PlotError, match=re.escape(message)):
        call(run)


@pytest.mark.slow
def test_every_chart_of_the_dashboard_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    names = {n.replace("*", "x") for p in panels.PANELS for c in p.charts for n in c.names}
    rows = [folders.row(n, **dict.fromkeys(names, 0.5 * n)) for n in (1, 2)]
    path = folders.folder(tmp_path / "all", rows)
    for chart in (c for p in panels.PANELS for c in p.charts):
        assert len(plots.chart(chart.id, path).figure.axes[0].lines) >= 1


# ---- files ----


def test_files_by_suffix(state, tmp_path, run):
    shown = plots.board(state)
    assert shown.save(tmp_path / "x" / "b.svg").read_text("utf-8") == shown.svg
    with pytest.raises(plots.PlotError, match=r"ends in .svg or .png, got 'b.gif'"):
        shown.save(tmp_path / "b.gif")
    pytest.importorskip("resvg_py")
    assert shown.save(tmp_path / "b.PNG").read_bytes()[:4] == b"\x89PNG"
    pytest.importorskip("matplotlib")
    assert plots.losses(run).save(tmp_path / "l.png").read_bytes()[:4] == b"\x89PNG"


def test_what_is_not_installed_is_told(monkeypatch, state, run):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(picture.importlib, "import_module", missing)
    with pytest.raises(plots.PlotError, match=r"needs resvg-py: pip install 'jaxgames\[plots\]'"):
        plots.board(state).png()
    with pytest.raises(plots.PlotError, match=r"needs matplotlib: pip install"):
        plots.losses(run)


def test_text_is_escaped():
    inside = picture.text(1, 2, '<b>&"', class_="x", font_size=0.1 + 0.2)
    assert xml.fromstring(inside).text == '<b>&"' and 'font-size="0.3"' in inside
    quoted = picture.element("a", title='"><script>')
    assert xml.fromstring(quoted).get("title") == '"><script>'
