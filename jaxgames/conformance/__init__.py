"""Does a game keep the contract of `jaxgames.core`? For our games and for anybody's.

    from jaxgames.conformance import Budget, check_game

    def test_my_game_keeps_the_contract():
        register("mygame", "my_package.game:MyGame")
        report = check_game(make("mygame"), budget=Budget(init_equations=200, step_equations=900))
        print(report)

The first broken rule raises `ConformanceError`, an AssertionError that names the rule and
what was seen. The report lists every rule with a figure: how much was tried, or measured.
"""

from jaxgames.conformance import engine, games, knowledge, text  # noqa: F401  (fill RULES)
from jaxgames.conformance.report import RULES, Budget, ConformanceError, Line, Report, check_game

__all__ = ["RULES", "Budget", "ConformanceError", "Line", "Report", "check_game"]
