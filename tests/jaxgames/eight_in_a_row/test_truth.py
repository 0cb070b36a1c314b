"""What brute force says of small boards: every row of the rules' section 8, and known results."""

import functools
from fractions import Fraction

import pytest

from tests.reference.eight_in_a_row_solver import Maker, Solver

SECOND = Fraction(-1, 5)
solved = functools.cache(Solver)


def rankings(outcomes):
    """ "213" and so on: players by place, from payoff vectors without ties."""
    places = [sorted(range(3), key=lambda seat: -vector[seat]) for vector in outcomes]
    return {"".join(str(seat + 1) for seat in order) for order in places}


@pytest.mark.parametrize(
    ("board", "security", "winner", "positions"),
    [
        ((3, 3, 3), (0, 0, 0), None, 3152),
        ((3, 3, 2), (1, -1, -1), 0, None),
        ((2, 4, 3), (0, 0, -1), None, None),
        ((2, 5, 3), (0, -1, -1), None, 22_827),
        pytest.param((3, 4, 3), (-1, -1, -1), None, 268_316, marks=pytest.mark.slow),
    ],
)
def test_three_players_wdl(board, security, winner, positions):
    solver = solved(*board)
    assert solver.security == security
    assert solver.outcomes == {solver.result(solver.empty, winner)}
    if positions is not None:
        assert solver.positions == positions


@pytest.mark.parametrize(
    ("board", "security", "orders"),
    [
        ((3, 3, 3), (SECOND, -1, -1), {"123", "132", "213", "312"}),
        ((2, 5, 3), (SECOND, SECOND, -1), {"123", "213"}),
    ],
)
def test_three_players_classic(board, security, orders):
    solver = solved(*board, profile="classic")
    assert solver.security == security
    assert rankings(solver.outcomes) == orders


@pytest.mark.parametrize("profile", ["fair", "classic"])
@pytest.mark.parametrize("board", [(3, 3, 3), (2, 4, 3)])
def test_the_sum_is_constant(board, profile):
    solver = solved(*board, profile=profile)
    assert solver.positions > 1000
    for security, outcomes in solver.known.values():
        assert sum(security) <= SECOND
        assert {sum(vector) for vector in outcomes} == {SECOND}


@pytest.mark.parametrize(
    ("board", "value"),
    [((3, 3, 3), 0), ((3, 4, 3), 1), ((3, 3, 2), 1), ((2, 5, 3), 0)],
)
def test_two_players(board, value):
    """Tic-tac-toe is a draw, one more column wins it; the second player never wins."""
    solver = solved(*board, players=2)
    assert solver.security == (value, -value)
    assert solver.outcomes == {(value, -value)}


def test_one_player():
    assert solved(3, 3, 3, players=1).outcomes == {(1,)}


@pytest.mark.parametrize("board", [(4, 4, 4), (4, 5, 4), (5, 5, 5)])
def test_four_in_a_row_is_stopped_on_four_rows(board):
    """Two players: nobody wins where even a maker can be stopped."""
    assert not Maker(*board).wins()


@pytest.mark.parametrize("board", [(3, 3, 3), (2, 5, 3)])
def test_who_can_be_stopped_does_not_win(board):
    """After every two stones: the search for the maker never contradicts the whole truth."""
    maker, solver = Maker(*board), solved(*board, players=2)
    stoppable = 0
    for first in range(solver.cells):
        for second in range(solver.cells):
            if first != second and not maker.wins(1 << first, 1 << second):
                stoppable += 1
                assert solver.tables((1 << first, 1 << second))[0][0] <= 0
    assert stoppable > 0
