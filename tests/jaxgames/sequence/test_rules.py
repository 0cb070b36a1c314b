"""Options, the printed board, and the closed form of the score."""

import collections

import numpy as np
import pytest

import jaxgames
from jaxgames import core
from jaxgames.sequence import board, lines, play
from jaxgames.sequence.rules import HAND_SIZES, Rules
from tests.jaxgames.sequence.pose import largest_family, lines_of_board

# ---- options ----


@pytest.mark.parametrize("players", HAND_SIZES)
def test_table_of_players(players):
    rules = Rules(players=players)
    assert rules.teams == (2 if players % 2 == 0 else 3)
    assert rules.sequences_to_win == (2 if rules.teams == 2 else 1)
    assert rules.hand_size == HAND_SIZES[players]


def test_what_is_derived_does_not_tell_games_apart():
    plain = jaxgames.make("sequence")
    assert plain == jaxgames.make("sequence", teams=2, hand_size=7, sequences_to_win=2)
    assert hash(plain) == hash(jaxgames.make("sequence", "official"))
    assert plain != jaxgames.make("sequence", "official_five")


@pytest.mark.parametrize("players", [6, 12])
def test_three_teams_where_two_fit_too(players):
    game = jaxgames.make("sequence", players=players, teams=3)
    assert game.num_teams == 3
    assert game.team_of == tuple(seat % 3 for seat in range(players))
    assert game.rules.sequences_to_win == 1


def test_contest_preset():
    game = jaxgames.make("sequence", "comp090054", players=4)
    assert (game.rules.hand_size, game.num_actions, game.action_slots) == (6, 1745, 5)
    assert game.board_actions * 100 * game.action_slots == 1500


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (dict(players=5), "players"),
        (dict(players=14), "players"),
        (dict(players=2.0), "players"),
        (dict(players="2"), "players"),
        (dict(players=8, teams=3), "teams"),
        (dict(players=3, teams=2), "teams"),
        (dict(players=12, teams=4), "teams"),
        (dict(players=12, hand_size=9), "hand_size"),
        (dict(hand_size=0), "hand_size"),
        (dict(sequences_to_win=0), "sequences_to_win"),
        (dict(lock_rule="six"), "lock_rule"),
        (dict(reshuffle=1), "reshuffle"),
        (dict(swaps_per_turn=-1), "swaps_per_turn"),
        (dict(swaps_per_turn=None), "swaps_per_turn"),
        (dict(ply_cap=0), "ply_cap"),
        (dict(ply_cap=True), "ply_cap"),
        (dict(jack_map="purple"), "jack_map"),
        (dict(draft=4), "draft"),
        (dict(draft=5), "reshuffle"),
        (dict(draft=5, reshuffle=False), "lock_rule"),
        (dict(preset="comp090054", players=6), "players"),
        (dict(preset="comp090054", players=3), "teams"),
        (dict(preset="comp090054", swaps_per_turn=2), "swaps_per_turn"),
        (dict(preset="comp090054", hand_size=50), "hand_size"),
        (dict(heart=True, sequences_to_win=3), "heart"),
        (dict(colour="red"), "colour"),
        (dict(preset="oficial"), "preset"),
    ],
    ids=str,
)
def test_contradictions_name_their_field(options, field):
    with pytest.raises(core.RulesError, match=f"^{field}: ") as error:
        jaxgames.make("sequence", **options)
    assert error.value.field == field


# ---- the board ----


def test_every_card_is_printed_twice_and_no_jack():
    counts = collections.Counter(board.CARD_OF_CELL.tolist())
    assert counts.pop(-1) == 4
    assert counts == {card: 2 for card in range(48)}
    assert np.flatnonzero(board.IS_CORNER).tolist() == [0, 9, 90, 99]
    assert (board.CARD_OF_CELL[board.CELLS_OF_CARD] == np.arange(48)[:, None]).all()


def test_some_cells_by_name():
    for cell, name in {1: "2S", 10: "6C", 44: "5H", 45: "4H", 54: "2H", 55: "3H"}.items():
        assert board.card_name(board.CARD_OF_CELL[cell]) == name
        assert board.card_id(name) == board.CARD_OF_CELL[cell]


def test_the_board_has_no_symmetry():
    printed = board.CARD_OF_CELL.reshape(10, 10)
    for flip in (printed, printed.T):
        for turns in range(4):
            turned = np.rot90(flip, turns)
            if (turned == printed).all():
                continue
            renamed = {(a, b) for a, b in zip(printed.ravel(), turned.ravel(), strict=True)}
            assert len(renamed) > 49  # not a relabelling of the 48 cards and the corner


def test_58_lines_192_windows():
    found = lines_of_board()
    assert len(found) == 58
    assert sum(len(line) >= 5 for line in found) == 42
    windows = [max(len(line) - 4, 0) for line in found]
    directions = ((0, 10), (10, 20), (20, 39), (39, 58))
    assert [sum(windows[a:b]) for a, b in directions] == [60, 60, 36, 36]
    corners = {(0, 0), (0, 9), (9, 0), (9, 9)}
    for line in found:
        for i in range(len(line) - 4):
            assert len(corners & set(line[i : i + 5])) <= 1


def test_planes_and_cells_are_inverse():
    cells = np.random.default_rng(0).random((3, 10, 10)) < 0.5
    assert (np.asarray(board.to_cells(np.asarray(board.to_rows(cells)))) == cells).all()
    assert (np.asarray(board.to_cells(board.CORNERS)).ravel() == board.IS_CORNER).all()


# ---- runs and the score ----


def runs_of(pattern):
    return [len(run) for run in "".join("x" if p else "." for p in pattern).split(".") if run]


def test_closed_form_equals_families_of_windows_on_all_patterns():
    for number in range(1024):
        pattern = [number >> i & 1 for i in range(10)]
        starts = [i for i in range(6) if all(pattern[i : i + 5])]
        lengths = np.array(runs_of(pattern), np.uint32)
        assert int(np.sum(play.sequences(lengths))) == largest_family(starts), pattern


def test_run_ends_on_all_patterns():
    words = np.repeat(np.arange(1024, dtype=np.uint32), 10)
    at = np.tile(np.arange(10, dtype=np.uint32), 1024)
    below, above = (np.asarray(x) for x in lines.run_ends(words, at))
    for word, p, down, up in zip(words, at, below, above, strict=True):
        filled = [word >> i & 1 for i in range(10)]
        assert down == next(i for i in range(11) if p - i == 0 or not filled[p - i - 1])
        assert up == next(i for i in range(11) if p + i == 9 or not filled[p + i + 1])
