"""The contract's own checks on Guandan, and budgets for its compile cost."""

import pytest

import jaxgames
from jaxgames.conformance import Budget, check_game

pytestmark = pytest.mark.usefixtures("quick_compiler")

#: Rules that cost little more than one compilation; all of them are tried among the slow tests.
QUICK = (
    "start", "length", "turn", "mask", "legal-play", "terminal-mask", "forfeit", "reward-sum",
    "observation", "knowledge", "resample-public", "resample-legal", "picture",
    "picture-knowledge", "action-text", "position-text", "position-errors", "explain", "record",
)  # fmt: skip
ROUND = Budget(4_000, 9_000, 1_000, 60.0)
MATCH = Budget(4_000, 18_000, 1_000, 120.0)
SHORT = dict(unit="match", levels="Q/A", max_rounds=3)
CONFIGURATIONS = [
    (dict(), ROUND),
    (dict(profile="v1006", levels="2/2", skip_forced=True), MATCH),
    (dict(profile="ogd", tribute=False), ROUND),
    (dict(profile="national", **SHORT), MATCH),
    (dict(profile="v1006", **SHORT, skip_forced=True), MATCH),
    (dict(profile="ogd", **SHORT), MATCH),
]


def test_a_round_keeps_the_contract():
    print(check_game(jaxgames.make("guandan"), num_games=16, only=QUICK))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "budget"), CONFIGURATIONS, ids=lambda x: "-".join(map(str, x.values()))
    if isinstance(x, dict) else ""
)  # fmt: skip
def test_guandan_keeps_the_contract(options, budget):
    game = jaxgames.make("guandan", **options)
    print(check_game(game, num_games=16, budget=budget))
