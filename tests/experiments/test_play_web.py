"""`jaxgames play ... play.web=true`: the table that is laid, and what is refused before it is."""

import urllib.parse

import pytest

from experiments import errors
from experiments.cli import main
from experiments.commands import play_web
from experiments.serve import tables
from jaxgames import core, record
from jaxgames.match import Match

WEB = ["play.web=true", "serve.compile_cache=false"]
GAME = ["game=eight_in_a_row", "seed=4", *WEB]
WHOLE = "the default rules"
TOE = "game.preset=tictactoe"


@pytest.fixture
def play(monkeypatch, capsys):
    """play(*words) -> (exit code, the table, stdout, stderr); nothing is listened to."""
    found = {}

    def listen(app, host, port, path, say):
        say(f"http://{host}:{port}{path}")
        there = tables.of(app.state.service)
        wanted = dict(urllib.parse.parse_qsl(path.partition("#")[2]))
        found["table"] = there.find(wanted["table"]).table
        found["viewer"] = wanted["viewer"]

    monkeypatch.setattr(play_web, "listen", listen)
    monkeypatch.setattr(play_web.webbrowser, "open", lambda url: found.setdefault("url", url))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    def run(*words, given=GAME):
        preset = [] if WHOLE in words else [TOE]
        code = main(["play", *given, *preset, *(word for word in words if word != WHOLE)])
        captured = capsys.readouterr()
        return code, found, captured.out, captured.err

    return run


def test_a_person_and_the_default_agent_sit_there(play):
    code, found, out, err = play()
    assert (code, err) == (errors.DONE, "")
    table = found["table"]
    assert [s.label for s in table.sitters] == ["human", "threat"]
    assert (table.match.seed, found["viewer"]) == (4, "0")
    assert out.startswith("http://127.0.0.1:8000/#table=") and "seed 4" in out
    assert "url" not in found


def test_a_deal_whose_seed_was_chosen_is_an_open_one(play):
    for words, opened in (["seed=4"], 0), ([], None):
        _, found, out, _ = play(WHOLE, *words, given=["game=sequence", *WEB])
        assert found["table"].opened == opened
        assert ("seed 4" in out, "seed" in out) == (opened == 0,) * 2 and "Ctrl-C" in out


def test_the_page_opens_where_there_is_a_screen(play, monkeypatch):
    monkeypatch.setattr(play_web, "_has_screen", lambda: True)
    assert play()[1]["url"].startswith("http://127.0.0.1:8000/#table=")


def test_the_last_seat_fills_the_rest(play):
    table = play(WHOLE, "play.seats=[threat,human]")[1]["table"]
    assert [s.label for s in table.sitters] == ["threat", "human", "human"]
    assert table.people == [1, 2]


def test_specs_of_the_terminal_say_how_strong(play):
    seats = "play.seats=[\"muzero:sims=16\",'muzero:net:temp=0.5',muzero]"
    table = play(WHOLE, seats)[1]["table"]
    assert [(s.kind, s.simulations, s.temperature) for s in table.sitters] == [
        ("model", 16, 0.0),
        ("network", None, 0.5),
        ("model", None, 0.0),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["play.seats=[human,threatt]"], "play.seats: unknown name 'threatt'"),
        (["play.seats=[human,human,human]"], "play.seats: 2 seats, got 3"),
        ([WHOLE, "play.seats=['muzero:policy=puct']"], "play.seats: policy: pages"),
        (["play.load=nowhere.json"], "nowhere.json"),
    ],
)
def test_what_can_not_be_laid_is_refused(play, words, said):
    code, found, _, err = play(*words)
    assert code in (errors.FAILED, errors.USAGE) and "table" not in found
    assert said in err and err.count("\n") == 1


def test_a_record_goes_on_where_it_ended(play, tmp_path):
    match = Match(core.make("eight_in_a_row", "tictactoe"), 4)
    for text in ("a1", "b1", "a2"):
        match.play(text)
    record.write(tmp_path / "game.json", record.from_match(match))
    table = play(f"play.load={tmp_path / 'game.json'}")[1]["table"]
    assert table.match.ply == 3 and not table.review
    match.play("b2")
    match.play("a3")
    record.write(tmp_path / "done.json", record.from_match(match))
    found = play(f"play.load={tmp_path / 'done.json'}")[1]
    assert found["table"].review and found["viewer"] == "all"
