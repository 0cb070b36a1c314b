"""Options that contradict each other are refused in one sentence that names the field."""

import pytest

from jaxgames import core
from jaxgames.eight_in_a_row.rules import PRESETS, Rules

BAD = [
    (dict(rows=0), "rows"),
    (dict(cols=201), "cols"),
    (dict(rows=3.0), "rows"),
    (dict(rows=1, cols=1, win_length=2), "rows"),
    (dict(win_length=1), "win_length"),
    (dict(rows=3, cols=7, win_length=8), "win_length"),
    (dict(players=0), "players"),
    (dict(players=5, payoffs=(1.0, 0.5, 0.0, -0.5, -1.0)), "players"),
    (dict(players=4), "payoffs"),
    (dict(profile="rank"), "profile"),
    (dict(unit="match"), "unit"),
    (dict(max_plies=-1), "max_plies"),
    (dict(max_plies=True), "max_plies"),
    (dict(payoffs=(1.0, -1.0)), "payoffs"),
    (dict(payoffs=(1.0, -1.0, 0.0)), "payoffs"),
    (dict(payoffs=(0.0, 0.0, 0.0)), "payoffs"),
    (dict(payoffs=(2.0, 0.0, -1.0)), "payoffs"),
    (dict(payoffs=(float("nan"), 0.0, -1.0)), "payoffs"),
    (dict(payoffs=("1", "0", "-1")), "payoffs"),
    (dict(payoffs=[1.0, 0.0, -1.0]), "payoffs"),
    (dict(payoffs=(1.0, -1.0, -1.0), profile="wdl"), "payoffs"),
    (dict(points=(5, 2, 0)), "points"),
    (dict(points=(5, 2), unit="session"), "points"),
    (dict(points=(5.0, 2.0, 0.0), unit="session"), "points"),
    (dict(points=(5, 2, -1), unit="session"), "points"),
    (dict(points=(0, 2, 5), unit="session"), "points"),
    (dict(players=4, payoffs=(1.0, 0.0, 0.0, -1.0), unit="session"), "points"),
    (dict(unit="session", profile="wdl"), "unit"),
    (dict(unit="session", players=1), "unit"),
    (dict(unit="session", session_games=0), "session_games"),
    (dict(bucket=14), "bucket"),
    (dict(bucket=201), "bucket"),
]


@pytest.mark.parametrize(("options", "field"), BAD, ids=[str(o) for o, _ in BAD])
def test_a_contradiction_names_its_field(options, field):
    with pytest.raises(core.RulesError) as caught:
        Rules(**options)
    assert caught.value.field == field
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 120


@pytest.mark.parametrize(
    "options",
    [
        dict(rows=1, cols=2, win_length=2),
        dict(rows=200, cols=1, win_length=200, players=1),
        dict(rows=200, cols=200, win_length=8, bucket=200),
        dict(players=4, profile="wdl"),
        dict(players=4, payoffs=(1.0, 0.0, 0.0, -1.0)),
        dict(players=1, payoffs=(0.5,)),
        *PRESETS.values(),
    ],
    ids=str,
)
def test_what_rules_allow(options):
    Rules(**options)


def test_presets_are_games_with_the_caps_of_self_play():
    tic = core.make("eight_in_a_row", "tictactoe")
    assert (tic.num_actions, tic.num_players, tic.outcomes) == (9, 2, (-1.0, 0.0, 1.0))
    caps = {name: o["max_plies"] for name, o in PRESETS.items() if name.startswith("stage")}
    assert caps == {"stage15": 150, "stage30": 180, "stage50": 250, "stage100": 250}
