"""`jaxgames play guandan` through a pipe: tribute, exact cards, readings, matches."""

import io
import re

import pytest

from experiments.cli import main
from jaxgames import record
from jaxgames.guandan import text
from jaxgames.match import Match
from tests.jaxgames.guandan.positions import make, opening
from tests.jaxgames.guandan.test_game import RICH

SEATS = "play.seats=[human,greedy]"


@pytest.fixture
def play(monkeypatch, capsys):
    """play(lines, *words) -> transcript."""

    def run(lines, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = main(["play", "guandan", *words])
        captured = capsys.readouterr()
        assert (code, captured.err) == (0, "")
        return captured.out

    return run


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A record at a first lead with two wilds."""
    start = opening({0: RICH})
    path = tmp_path_factory.mktemp("rich") / "rich.json"
    record.write(path, record.from_match(Match(start.game, 1, start)))
    return path


def test_tribute_is_asked_and_told(play):
    for seed in range(100):
        start = Match(make(), seed).state
        order = start.order.tolist()
        if int(start.stage) == 0 and order[0] == 0 and order[1] % 2 == 1:
            break
    out = play(["A", "pass", "1", "undo", "2"], SEATS, f"seed={seed}")
    payer = order[3]
    assert f"seat {payer} (greedy) plays a card to pay, face down\n  seat {payer} pays " in out
    assert "Seat 0 returns a card" in out
    offered = re.findall(r"(\d)\) return \w+ \[(\w\w)\]", out)
    first, second = (card for number, card in offered[:2])
    assert "not played: A is not what may be given now: return" in out
    assert "not played: a return is due: name one card" in out
    assert f"  seat 0 returns {first} to seat {payer}\n  seat " in out
    assert f"  seat 0 returns {second} to seat {payer}\n  seat " in out


def test_cards_are_named_and_readings_are_asked_for(play, rich, tmp_path):
    saved = tmp_path / "game.json"
    lines = [
        "moves pair",
        "moves pears",
        "S5 S6",
        "S4 S5 S6 S7 H2",
        "no",
        "S4 S5 S6 S7 H2",
        "2",
        "undo",
        "pair 5: S5 S5",
        "pair 5: S5 D5",
        f"save {saved}",
    ]
    out = play(lines, SEATS, f"play.load='{rich}'")
    assert re.search(r"\d+\) pair 9\+\* \[S9 H2 as 9\]", out)
    assert "no legal move begins with 'pears'" in out
    assert "not played: S5 S6 is no play that the hand can make" in out
    assert re.search(r"1\) straight 3-7\+\*: .*\n.*2\) straight 4-8\+\*", out)
    assert "which of these? no\nnothing played" in out
    assert "not played: the hand holds 1 of S5" in out
    (kept,) = record.read(saved)
    assert kept.moves[0].move == "pair 5: S5 D5"
    assert record.replay(kept).ply == len(kept.moves) > 1


def test_no_other_hand_is_shown(play, rich):
    out = play(["single 3", "board", "pass", "board"], SEATS, f"play.load='{rich}'")
    assert out.count("your hand:") >= 3
    assert "hand of seat" not in out


def test_a_q_is_a_queen_beside_other_cards(play, rich):
    out = play(["Q Q", "quit"], SEATS, f"play.load='{rich}'")
    assert "not played" not in out
    assert re.search(r"seat 1 \(greedy\) plays", out)


def test_a_match_goes_on_to_its_end(play):
    options = dict(unit="match", levels="Q/A", max_rounds=3, profile="v1006")
    words = [f"game.options.{name}={value}" for name, value in options.items()]
    out = play([], *words, "play.seats=[random]", "seed=3")
    assert "the round is over: seat" in out
    assert re.search(r"new cards, level [2-9TJQKA], round of team [01]", out)
    assert re.search(r"team [01] rises from level", out)
    assert "the game was cut at its longest length" in out or "win the match" in out
    assert "won by seats" in out or "a draw" in out


def test_the_position_of_a_transcript_is_a_text(rich):
    (start,) = record.read(rich)
    assert text.to_text(text.from_text(make(), start.start)) == start.start
