"""`jaxgames play` through a pipe: a person's lines go in, a transcript comes out."""

import io
import re

import jax
import pytest

import tests.toys.highcard  # noqa: F401  (registers "highcard")
from algorithms import bundle
from algorithms.networks.model import NetworkConfig, build
from experiments.cli import main
from jaxgames import core, record

MNK = core.make("mnk")


@pytest.fixture
def play(monkeypatch, capsys):
    """play(lines, *words) -> (exit code, stdout, stderr)."""

    def run(lines, *words, game="mnk"):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = main(["play", f"game={game}", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    monkeypatch.setattr("experiments.commands.play.secrets.randbelow", lambda n: 17)
    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A bundle of fresh weights."""
    model = build(MNK, NetworkConfig(channels=4, blocks=0, hidden=8))
    folder = tmp_path_factory.mktemp("models") / "tiny"
    meta = bundle.describe(MNK, agent="alphazero", network=model.config, step=0)
    bundle.save(folder, model.init(jax.random.key(0)), meta)
    return folder


def test_two_people_finish_a_game(play):
    moves = ["0,0", "1,0", "0,1", "1,1", "0,2"]
    code, out, err = play([*moves, "quit"], "play.seats=[human]", "seed=1")
    assert (code, err) == (0, "")
    assert "seat 0 (human): +1" in out and "seat 1 (human): -1" in out
    assert "won by seat 0" in out
    assert "seed 1;" in out


def test_numbers_and_notation_are_the_same_moves(play):
    by_text = play(["0,0", "1,0", "0,1"], "play.seats=[human]", "seed=1")[1]
    by_number = play(["1", "3", "1"], "play.seats=[human]", "seed=1")[1]
    boards = [re.findall(r"\{.*\}", out) for out in (by_text, by_number)]
    assert len(boards[0]) == 4
    assert boards[0] == boards[1]


def test_the_default_opponent_is_named_and_moves(play):
    code, out, _ = play(["4"])
    assert code == 0
    assert "you play its strongest bot" in out
    assert "seed 17;" in out
    assert re.search(r"seat 1 \(random\) plays \d,\d", out)
    assert "the game stays unfinished" in out


def test_illegal_input_is_explained_and_asked_again(play):
    _, out, _ = play(["0,0", "0,0", "9,9", "77", "hllo", ""], "play.seats=[human]")
    assert "not played: the rules forbid it here" in out
    assert "not played: '9,9' is off the board" in out
    assert "there is no move 77; they are numbered 1 to 8" in out
    assert "not played: 'hllo' is not ROW,COL" in out
    assert out.count("seat 1> ") == 6


def test_undo_goes_back_to_the_own_last_decision(play):
    lines = ["0,0", "undo", "0,1", "undo", "undo"]
    _, out, _ = play(lines, "play.seats=[human,random]", "seed=3")
    boards = re.findall(r"\{.*\}", out)
    assert boards[0] == boards[2] == boards[4]
    assert boards[1] != boards[3]
    assert "nothing to take back" in out


def test_undone_agents_move_the_same_again(play):
    _, out, _ = play(["0,0", "undo", "0,0"], "play.seats=[human,random]", "seed=3")
    replies = re.findall(r"plays (\S+)", out)
    assert len(replies) == 2
    assert replies[0] == replies[1]


def test_hint_of_a_search_names_its_candidates(play, trained):
    _, out, _ = play(["hint", "5", "hint"], f"play.seats=[human,'{trained}:sims=16']", "seed=1")
    assert f"{trained}:sims=16:worlds=1 would play" in out
    assert re.search(r"move +prior +visits +share +weight +Q", out)
    assert re.search(r"4 others +\d+\.\d% +\d+ +\d+\.\d% +\d+\.\d%\n", out)
    assert "expected outcome: seat 0 " in out
    row = r"^  (?:\d,\d|\d others) +([\d.]+)% +(\d+) +([\d.]+)% +([\d.]+)%"
    rows = [[float(x) for x in found] for found in re.findall(row, out, re.M)]
    assert len(rows) == 2 * 6  # five candidates and the others, twice
    for hint in (rows[:6], rows[6:]):
        prior, visits, share, weight = map(sum, zip(*hint, strict=True))
        assert visits == 16
        assert (prior, share, weight) == pytest.approx((100, 100, 100), abs=0.5)


def test_hint_of_a_bot_is_its_move(play):
    _, out, _ = play(["hint"], "play.seats=[human]")
    assert "random would play" in out


def test_save_load_and_resign(play, tmp_path):
    path = tmp_path / "game.json"
    lines = ["0,0", "1,1", f"save {path}", "0,1", "resign", f"save {path}", "undo", f"load {path}"]
    _, out, _ = play(lines, "play.seats=[human]", "seed=5")
    assert "seat 1 resigns" in out
    assert f"loaded {path} (3 moves)" in out
    (saved,) = record.read(path)
    assert saved.meta == {"resigned": 1}
    assert [move.move for move in saved.moves] == ["0,0", "1,1", "0,1"]
    assert record.replay(saved).ply == 3
    code, out, _ = play(["1,0", "0,2"], "play.seats=[human]", f"play.load='{path}'")
    assert code == 0
    assert "won by seat 0" in out
    assert '"cells": [[1, 1, 1], [2, 2, 0], [0, 0, 0]]' in out


def test_files_of_others_are_not_overwritten(play, tmp_path):
    path = tmp_path / "precious"
    path.write_text("mine")
    _, out, _ = play([f"save {path}", "save", "load", f"load {path}"], "play.seats=[human]")
    assert "not saved" in out and "not loaded: record: not JSON" in out
    assert "save where?" in out and "load what?" in out
    assert path.read_text() == "mine"


def test_a_record_of_another_game_is_refused(play, tmp_path):
    path = tmp_path / "game.json"
    play([f"save {path}"], "play.seats=[human]", game="highcard")
    _, out, _ = play([f"load {path}"], "play.seats=[human]")
    assert "not loaded: game: the record is of another game" in out
    code, _, err = play([], "play.seats=[human]", f"play.load='{path}'")
    assert code == 2
    assert "game: the record is of another game" in err


def test_other_hands_are_never_shown(play):
    for seed in range(5):
        lines = ["hint", "swap", "keep", "board", "hint", "swap", "keep", "board", "quit"]
        _, out, _ = play(lines, "play.seats=[human,random]", f"seed={seed}", game="highcard")
        hands = re.findall(r"hands (\S+) (\S+),", out)
        assert len(hands) >= 4
        assert all(own != "?" and other == "?" for own, other in hands)


def test_a_game_of_sequence(play):
    lines = ["1", "hint", "N 0 0", "undo", "1", "hint"]
    code, out, err = play(lines, "play.seats=[human,greedy]", "seed=7", game="sequence")
    assert (code, err) == (0, "")
    assert "corner" in re.search(r"not played: (.*)", out)[1]
    replies = re.findall(r"seat 1 \(greedy\) plays (.*)", out)
    hints = re.findall(r"greedy would play (.*)", out)
    assert len(replies) == len(hints) == 2
    assert replies[0] == replies[1] and hints[0] == hints[1]
    assert "seat 1" not in re.sub(r"seat 1(:| \(greedy\)) ", "", out)  # no hand of that seat


def test_agents_alone_play_to_the_end(play):
    code, out, _ = play([], "play.seats=[random]", "seed=2")
    assert code == 0
    assert ">" not in out
    assert "won by" in out or "a draw" in out


def test_end_of_input_and_interrupt_are_clean(play, monkeypatch):
    assert play([], "play.seats=[human]")[0] == 0

    class Interrupted(io.StringIO):
        def readline(self):
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Interrupted())
    assert main(["play", "game=mnk", "play.seats=[human]"]) == 130


def test_help_names_every_command(play):
    _, out, _ = play(["?", "moves", "board"], "play.seats=[human]")
    for word in ("moves", "board", "hint", "undo", "save", "load", "resign", "quit", "help"):
        assert re.search(rf"^  {word}\b", out, re.M)
    assert "A move looks like this: 0,0" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["play.seats=[human,randm]"], "play.seats: unknown name 'randm'; did you mean random"),
        (["play.seats=[human,human,human]"], "play.seats: 2 seats, got 3"),
        (["play.load=nowhere.json"], "nowhere.json"),
        (["gate.at_least=0.5"], "does not use 'gate'"),
    ],
)
def test_bad_settings_are_refused(play, words, message):
    code, out, err = play([], *words)
    assert code in (1, 2) and (code == 2 or "nowhere" in message)
    assert message in err
