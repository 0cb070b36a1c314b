"""The contract's own checks on Eight-in-a-Row, and budgets for its compile cost."""

import pytest

import jaxgames
from jaxgames.conformance import Budget, check_game

pytestmark = pytest.mark.usefixtures("quick_compiler")

SESSION_IN_A_BUCKET = dict(
    rows=3, cols=3, win_length=3, players=2, unit="session", session_games=3, bucket=4
)
MORE = [
    dict(),
    SESSION_IN_A_BUCKET,
    dict(rows=1, cols=7, win_length=2, players=1),
    dict(rows=2, cols=5, win_length=3, profile="classic", max_plies=8),
    dict(rows=3, cols=4, win_length=3, profile="wdl"),
    dict(rows=6, cols=6, win_length=4, players=2, profile="wdl", bucket=9),
    dict(rows=6, cols=5, win_length=4, players=4, payoffs=(1.0, 0.5, -0.5, -1.0)),
    dict(rows=5, cols=5, win_length=4, unit="session", profile="classic", max_plies=11),
]
SMALL = dict(rows=5, cols=4, win_length=3)
#: What a session and sizes as data could break, without what bots and learners compile.
RULES_OF_PLAY = (
    "types", "one-trace", "scan", "length", "mask", "legal-play", "terminal-mask", "absorbing",
    "forfeit", "reward-sum", "action-text", "position-text", "position-errors", "explain", "record",
)  # fmt: skip


@pytest.mark.parametrize(
    "options", [SMALL, *(pytest.param(o, marks=pytest.mark.slow) for o in MORE)], ids=str
)
def test_eight_in_a_row_keeps_the_contract(options):
    game = jaxgames.make("eight_in_a_row", **options)
    print(check_game(game, num_games=32, budget=Budget(200, 900, 1_500, 10.0)))


@pytest.mark.slow
def test_a_session_in_a_bucket_keeps_the_rules_of_play():
    game = jaxgames.make("eight_in_a_row", **SESSION_IN_A_BUCKET)
    print(check_game(game, num_games=32, only=RULES_OF_PLAY))
