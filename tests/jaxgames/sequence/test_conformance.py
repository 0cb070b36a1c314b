"""The contract's own checks on Sequence, and budgets for its compile cost."""

import pytest

import jaxgames
from jaxgames.conformance import Budget, check_game

pytestmark = pytest.mark.usefixtures("quick_compiler")

TRIED = [("official", 2, None)]
MORE = [
    ("comp090054", 2, None),
    ("official", 3, None),
    ("official", 4, None),
    ("official", 6, 3),
    ("official", 12, 3),
]
MORE += [("official_five", 2, None), ("comp090054", 4, None)]


@pytest.mark.parametrize(
    ("preset", "players", "teams"), TRIED + [pytest.param(*c, marks=pytest.mark.slow) for c in MORE]
)
def test_sequence_keeps_the_contract(preset, players, teams):
    game = jaxgames.make("sequence", preset, players=players, teams=teams)
    print(check_game(game, num_games=32, budget=Budget(1_500, 2_500, 2_500, 60.0)))
