"""`jaxgames play eight_in_a_row` through a pipe: people and bots, views, records, sessions."""

import io
import json
import re

import pytest

from experiments.cli import main
from jaxgames import record
from jaxgames.record import RecordError

SMALL = [f"game.options.{option}" for option in ("rows=4", "cols=5", "win_length=3")]
PEOPLE = "play.seats=[human]"
#: Player 1 makes a row of three.
WIN = ["a1", "c3", "e4", "b1", "4,4", "D1", "c1"]


@pytest.fixture
def play(monkeypatch, capsys):
    """play(lines, *words) -> transcript."""

    def run(lines, *words, code=0):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        assert main(["play", "eight_in_a_row", *words]) == code
        captured = capsys.readouterr()
        assert bool(captured.err) == bool(code)
        return captured.err if code else captured.out

    return run


def test_three_people_finish_a_game(play):
    out = play([*WIN, "view all", "quit"], *SMALL, PEOPLE)
    assert "4x5, 3 in a row, 3 players, fair: player 1 to move" in out
    assert "  player 1 has 3 in a row\n" in out.lower() and "  a1 to c1\n" in out
    assert "  1 1*1*1*3 ." in out
    assert "seat 0 (human): +1\nseat 1 (human): -0.2\nseat 2 (human): -1\nwon by seat 0" in out


def test_moves_that_are_none_are_explained(play):
    lines = ["a1", "A1", "f1", "a9", "row 1", "77", "view north", "v up"]
    out = play(lines, *SMALL, PEOPLE)
    assert "not played: a1 is taken by player 1" in out
    assert "not played: f1 is off the board: a1 to e4" in out
    assert "not played: a9 is off the board: a1 to e4" in out
    assert "not played: 'row 1' is not a cell such as h8, nor row,column" in out
    assert "there is no move 77; they are numbered 1 to 19" in out
    assert "'north' is not a cell such as h8, nor row,column; say view h8" in out
    assert "A move looks like this: a1" in play(["?"], *SMALL, PEOPLE)


@pytest.mark.parametrize("seat", [0, 1, 2])
def test_a_person_at_any_seat_among_bots(play, seat):
    seats = ["random"] * 3
    seats[seat] = "human"
    lines = ["1", "undo", "1", "hint", "quit"]
    out = play(lines, *SMALL, f"play.seats=[{','.join(seats)}]", "seed=5")
    assert f"seat {seat}: you" in out and f"seat {seat}, you:" in out
    others = [s for s in range(3) if s != seat]
    for other in others:
        found = re.findall(rf"seat {other} \(random\) plays ([a-e][1-4])", out)
        before_person = other < seat
        assert len(found) == (3 if before_person else 2)
        assert found[-1] == found[-2]
    assert re.search(r"random would play [a-e][1-4]", out)


def test_records_are_saved_loaded_and_checked(play, tmp_path):
    path = tmp_path / "game.json"
    out = play([*WIN[:5], f"save {path}", *WIN[5:], f"save {path}"], *SMALL, PEOPLE, "seed=3")
    assert f"saved {path} (5 moves)" in out and f"saved {path} (7 moves)" in out
    (saved,) = record.read(path)
    assert [move.move for move in saved.moves] == ["a1", "c3", "e4", "b1", "d4", "d1", "c1"]
    assert saved.ruleset["win_length"] == 3 and saved.result.rewards[0] == 1
    match = record.replay(saved)
    assert match.done and record.dumps(record.from_match(match)) != ""
    out = play(["undo", "c2", "b3"], *SMALL, PEOPLE, f"play.load='{path}'")
    assert "  2 . . 1<. ." in out and "  1 1 1 . 3 ." in out
    wrong = json.loads(path.read_text())
    wrong["moves"][3]["move"] = "c3"
    with pytest.raises(RecordError, match="ply 3, seat 0: .* c3 is taken by player 2") as caught:
        record.check(record.loads(json.dumps(wrong)))
    assert caught.value.field == "moves[3].move"
    assert "the record is of another game or other rules" in play(
        [], PEOPLE, f"play.load='{path}'", code=2
    )


def test_sessions_go_on_to_the_next_game(play):
    lines = [*WIN, "board"]
    out = play(lines, *SMALL, PEOPLE, "game.options.unit=session", "game.options.session_games=2")
    assert "game 1 of at most 2 is over:\n  seat 0: 5 points, 1 first\n" in out
    assert out.count("game 2 of at most 2\n") == 2 and out.rstrip().endswith("unfinished")


def test_a_large_board_is_shown_in_part(play):
    sides = ["game.options.rows=30", "game.options.cols=60"]
    lines = ["bh30", "view a1", "view down", "view right", "view last", "view all", "moves up"]
    out = play(lines, *sides, PEOPLE)
    spans = re.findall(r"^(\S+ to \S+) of 30x60 cells", out, re.MULTILINE)
    assert spans == [
        "s6 to ap26", "ak10 to bh30", "a1 to x21", "a10 to x30", "m10 to aj30", "ak10 to bh30",
    ]  # fmt: skip
    assert "1800 legal moves; `moves` lists them" in out
    assert "no legal move begins with 'up'" in out
    assert re.search(r"^ 30 \.+1$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("game.options.rows=0", "game.options.rows: a whole number 1 to 200; got 0"),
        ("game.options.win_length=20", "game.options.win_length: 20 in a row do not fit"),
        ("game.options.profile=fare", "game.options.profile: one of fair, classic, wdl"),
        ("game.options.payoffs=[1,0]", "game.options.payoffs: one per place, so 3; got 2"),
        ("game.options.bucket=3", "game.options.bucket: 3 does not hold a board of 15 x 15"),
        ("play.seats=[human,human,human,human]", "play.seats: 3 seats, got 4"),
        ("game.preset=stage1", "did you mean stage15"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(play, words, message):
    err = play([], words, code=2)
    assert message in err and len(err.strip().splitlines()) == 1


def test_the_packaged_player_is_the_opponent_where_it_fits_else_the_strongest_bot(play):
    assert "seat 1: muzero:sims=64\nseat 2: muzero:sims=64\n" in play(["quit"], *SMALL)
    assert "seat 1: threat\n" in play(["quit"], *SMALL, "game.options.players=2")
