"""Records: exact round trips, replay without random numbers, one clear error per fault."""

import copy
import dataclasses
import json
import math
import os
import pathlib
import resource

import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401
import tests.toys.mnk  # noqa: F401
from jaxgames import Match, make
from jaxgames.core import jit_step
from jaxgames.move_list import from_move_list, to_move_list
from jaxgames.record import (
    MAX_MOVES,
    RecordError,
    Seat,
    check,
    dumps,
    from_match,
    loads,
    read,
    replay,
    write,
)
from tests.jaxgames.test_match import equal

GOLDEN = pathlib.Path(__file__).parent / "golden"


def played(game, seed=3, plies=None):
    """A match of random legal moves."""
    match, rng = Match(game, seed), np.random.default_rng(seed)
    while not match.done and (plies is None or match.ply < plies):
        match.play(match.legal()[rng.integers(len(match.legal()))][0])
    return match


@pytest.fixture(scope="module")
def swapping():
    """A four-handed match with chance in several plies, an unusual name and an analysis."""
    match = Match(make("highcard", "pairs"), 11)
    while not match.done:
        match.play(0 if match.ply == 4 else match.legal()[-1][0])
    assert sum(match.chance(ply) is not None for ply in range(match.ply)) > 2
    return match


@pytest.fixture(scope="module")
def record(swapping):
    seats = ["Zoë", Seat("net", model="run-7/best"), "c", 'quote "d"\n']
    analysis = {1: {"value": [0.25, -0.25], "lines": [["keep", "swap"]]}}
    return from_match(swapping, seats, analysis=analysis, meta={"event": "test", "n": 1})


def test_json_round_trip_is_exact(record):
    text = dumps(record)
    assert "\n" not in text
    again = loads(text)
    assert dataclasses.asdict(again) == dataclasses.asdict(record)
    assert dumps(again) == text


def test_replay_gives_every_state_without_random_numbers(record, swapping, monkeypatch):
    """The seed only labels the record: with another one the same cards come."""
    other = replay(dataclasses.replace(record, seed=12))
    assert all(equal(a, b) for a, b in zip(other.states, swapping.states, strict=True))
    monkeypatch.setattr("jax.random.bits", None)
    monkeypatch.setattr("jax.random.randint", None)
    assert equal(replay(record).state, swapping.state)


def test_replay_goes_on_as_the_match_would():
    match = played(make("highcard", ranks=30), plies=2)
    other = replay(from_match(match))
    for m in (match, other):
        m.play(m.legal()[-1][0])
    assert equal(match.state, other.state)


def test_the_record_names_ruleset_and_preset(record):
    body = json.loads(dumps(record))
    assert body["format"] == "jaxgames-record/1"
    assert body["preset"] == "pairs"
    assert body["ruleset"] == dict(players=4, teams=2, ranks=6, copies=3, rounds=2)
    assert "chance" not in body["moves"][[m.chance for m in record.moves].index(None)]
    assert from_match(Match(make("highcard", ranks=7))).preset is None


@pytest.mark.parametrize("plies", [0, 3])
def test_unfinished_games_are_records_too(plies):
    match = played(make("mnk"), plies=plies)
    record = loads(dumps(from_match(match)))
    assert not record.result.done and len(record.moves) == plies
    assert equal(replay(record).state, match.state)


def test_a_match_from_a_position_is_recorded_from_there():
    first = played(make("mnk"), plies=4)
    match = Match(first.game, state=first.state)
    match.play(match.legal()[0][0])
    assert equal(replay(from_match(match)).state, match.state)


# ---- golden files: versions once written stay readable ----


def test_golden_records_of_version_1_are_read_and_replayed():
    records = list(read(GOLDEN / "record-1.jsonl"))
    assert [r.game for r in records] == ["mnk", "highcard", "highcard"]
    for record in records:
        check(record)
    assert records[0].result.rewards == (1.0, -1.0)
    assert [m.chance for m in records[1].moves] == ["1", "1", None, "4"]
    assert records[2].seats[0] == Seat("ann", model="net/1")
    text = (GOLDEN / "record-1.jsonl").read_text().splitlines()
    assert [dumps(r) for r in records] == text


# ---- malformed input ----


def broken(record, **edit):
    """The record's JSON with one edit: path=value; `...` removes."""
    body = json.loads(dumps(record))
    for path, value in edit.items():
        *parents, last = [int(p) if p.isdecimal() else p for p in path.split("__")]
        node = body
        for parent in parents:
            node = node[parent]
        if value is ...:
            del node[last]
        else:
            node[last] = value
    return json.dumps(body)


FORM = [
    ("format", dict(format="jaxgames-record/9"), "known: jaxgames-record/1"),
    ("format", dict(format="pgn"), "unknown 'pgn'"),
    ("format", dict(format=...), "missing"),
    ("format", dict(format=1), "text, got a whole number"),
    ("game", dict(game=...), "missing"),
    ("game", dict(game=None), "text, got null"),
    ("sead", dict(sead=1), "did you mean seed"),
    ("seed", dict(seed="7"), "a whole number, got text"),
    ("seed", dict(seed=True), "a whole number, got true or false"),
    ("seed", dict(seed=1.5), "a whole number, got a number"),
    ("ruleset", dict(ruleset=[]), "an object, got a list"),
    ("seats", dict(seats="ab"), "a list, got text"),
    ("seats[1]", dict(seats__1="bob"), "an object, got text"),
    ("seats[1].name", dict(seats__1={}), "missing"),
    ("seats[1].modle", dict(seats__1={"name": "b", "modle": "x"}), "did you mean model"),
    ("moves", dict(moves={}), "a list, got an object"),
    ("moves[2]", dict(moves__2="keep"), "an object, got text"),
    ("moves[2].move", dict(moves__2__move=1), "text, got a whole number"),
    ("moves[2].seat", dict(moves__2__seat=...), "missing"),
    ("moves[2].cahnce", dict(moves__2__cahnce="1"), "did you mean chance"),
    ("moves[2].analysis", dict(moves__2__analysis=[1]), "an object, got a list"),
    ("result.rewards", dict(result__rewards=0), "a list, got a whole number"),
    ("result.rewards[0]", dict(result__rewards__0="1"), "a number, got text"),
    ("record", dict(result__rewards__0=10**400), "too large a number"),
    ("result.terminated", dict(result__terminated=1), "true or false, got a whole number"),
    ("result.winner", dict(result__winner=0), "unknown field"),
    ("meta", dict(meta=[]), "an object, got a list"),
]


@pytest.mark.parametrize(("field", "edit", "words"), FORM)
def test_wrong_forms_are_refused_by_field(record, field, edit, words):
    with pytest.raises(RecordError) as caught:
        loads(broken(record, **edit))
    assert caught.value.field == field
    assert words in str(caught.value) and "\n" not in str(caught.value)
    if field.startswith("moves["):
        assert caught.value.ply == 2


CONTENT = [
    ("game", dict(game="highcards"), None, "did you mean highcard"),
    ("game_version", dict(game_version="0"), None, "version '0', this is '1'"),
    ("ruleset.players", dict(ruleset__players=9), None, "2 to 6, got 9"),
    ("ruleset.teams", dict(ruleset__teams=3), None, "4 seats in 3 teams"),
    ("ruleset.players", dict(ruleset__players="4"), None, "int, got '4'"),
    ("ruleset.jokers", dict(ruleset__jokers=1), None, "no such option"),
    ("preset", dict(preset="pears"), None, "did you mean pairs"),
    ("preset", dict(preset="duel"), None, "not that of 'duel'"),
    ("seed", dict(seed=-1), None, "got -1"),
    ("start", dict(start="hands=1"), None, "thrown: missing"),
    ("start", dict(start=""), None, "hands: missing"),
    ("seats", dict(seats=[{"name": "a"}]), None, "4 seats, got 1"),
    ("moves[1].seat", dict(moves__1__seat=3), 1, "seat 1 moves here, got 3"),
    ("moves[1].move", dict(moves__1__move="fold"), 1, "neither keep nor swap"),
    ("moves[0].chance", dict(moves__0__chance="9"), 0, "not in the deck"),
    ("moves[0].chance", dict(moves__0__chance=...), 0, "drawn by a swap"),
    ("result.rewards", dict(result__rewards__0=0.5), None, "the moves give"),
    ("result.rewards", dict(result__rewards=[1]), None, "4 seats, got 1"),
    ("result.terminated", dict(result__terminated=False), None, "the moves give true"),
    ("result.truncated", dict(result__truncated=True), None, "the moves give false"),
]


@pytest.mark.parametrize(("field", "edit", "ply", "words"), CONTENT)
def test_wrong_contents_are_refused_by_field_and_ply(record, field, edit, ply, words):
    assert record.moves[0].chance is not None
    wrong = loads(broken(record, **edit))
    with pytest.raises(RecordError) as caught:
        check(wrong)
    assert (caught.value.field, caught.value.ply) == (field, ply)
    assert words in str(caught.value)


def test_illegal_moves_name_the_rule():
    game = make("highcard")
    match = next(m for m in (Match(game, s) for s in range(99)) if int(m.state.hands[0]) == 5)
    match.play("keep")
    wrong = loads(broken(from_match(match), moves__0__move="swap", moves__0__chance="1"))
    with pytest.raises(RecordError, match="seat 0: .*the top rank may not be thrown") as caught:
        check(wrong)
    assert (caught.value.field, caught.value.ply) == ("moves[0].move", 0)


def test_moves_after_the_end_are_refused(record):
    extra = {"seat": 0, "move": "keep"}
    body = json.loads(dumps(record))
    body["moves"].append(extra)
    with pytest.raises(RecordError, match="the game is over after 8 plies") as caught:
        check(loads(json.dumps(body)))
    assert (caught.value.field, caught.value.ply) == ("moves[8]", 8)


def test_a_missing_last_move_shows_in_the_result(record):
    body = json.loads(dumps(record))
    body["moves"].pop()
    with pytest.raises(RecordError) as caught:
        check(loads(json.dumps(body)))
    assert caught.value.field == "result.terminated"


def test_other_versions_of_the_game_replay_when_asked_to(record):
    older = dataclasses.replace(record, game_version="0")
    assert replay(older, any_version=True).ply == len(record.moves)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "an object, got a list"),
        ("null", "an object, got null"),
        ("{} {}", "not JSON"),
        ('{"format": NaN}', "NaN is no JSON number"),
        ('{"format": 1e999}', "too large a number"),
        ('{"a": 1, "a": 2}', "given twice"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 40 + "1" + "}" * 40, "nested deeper"),
        ("1" * 5000, "too large a number"),
    ],
)
def test_texts_that_are_no_record(text, words):
    with pytest.raises(RecordError) as caught:
        loads(text)
    assert words in str(caught.value)


def test_limits(record):
    text = dumps(record)
    with pytest.raises(RecordError, match="larger than 100 bytes"):
        loads(text, max_bytes=100)
    deep = {}
    for _ in range(40):
        deep = {"d": deep}
    with pytest.raises(RecordError, match="nested deeper than 32"):
        loads(broken(record, meta=deep))
    with pytest.raises(RecordError, match="nested deeper than 32"):
        dumps(dataclasses.replace(record, meta=deep))
    body = json.loads(text)
    body["moves"] = [{}] * (MAX_MOVES + 1)
    with pytest.raises(RecordError, match=f"more than {MAX_MOVES}"):
        loads(json.dumps(body))


@pytest.mark.parametrize("value", [math.nan, np.float32(1), {1, 2}, object()])
def test_what_json_can_not_hold_is_refused_when_written(record, value):
    with pytest.raises(RecordError) as caught:
        dumps(dataclasses.replace(record, meta={"x": value}))
    assert caught.value.field == "meta"
    move = dataclasses.replace(record.moves[2], analysis={"x": value})
    moves = (*record.moves[:2], move, *record.moves[3:])
    with pytest.raises(RecordError) as caught:
        dumps(dataclasses.replace(record, moves=moves))
    assert caught.value.field == "moves[2].analysis"


def test_damaged_records_raise_record_errors_only(record):
    """300 random damages: whatever they hit, one error of ours or none at all."""
    rng, text, refused = np.random.default_rng(0), dumps(record), 0
    for _ in range(300):
        i, j = sorted(rng.integers(len(text), size=2))
        j = min(j, i + int(rng.integers(1, 9)))
        junk = "".join(rng.choice(list('0129-."[]{},:ae\\ \u2603'), rng.integers(4)))
        try:
            check(loads(text[:i] + junk + text[j:]))
        except RecordError as error:
            assert error.field and "\n" not in str(error)
            refused += 1
    assert refused > 200


# ---- files ----


def test_files_of_one_and_of_many(record, tmp_path):
    other = from_match(played(make("mnk")))
    write(tmp_path / "one.json", record)
    write(tmp_path / "many.jsonl", [record, other])
    assert list(read(tmp_path / "one.json")) == [record]
    assert list(read(tmp_path / "many.jsonl")) == [record, other]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["many.jsonl", "one.json"]
    with pytest.raises(RecordError, match="use .jsonl"):
        write(tmp_path / "two.json", [record, other])


def test_pretty_printed_files_are_read(record, tmp_path):
    path = tmp_path / "pretty.json"
    path.write_text(json.dumps(json.loads(dumps(record)), indent=2))
    assert list(read(path)) == [record]


def test_a_bad_line_is_named(record, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(dumps(record) + "\n\n" + broken(record, moves__2__seat=...) + "\n")
    found = read(path)
    assert next(found) == record
    with pytest.raises(RecordError) as caught:
        next(found)
    assert (caught.value.field, caught.value.ply) == ("line 3: moves[2].seat", 2)


def test_large_and_binary_files_are_refused(record, tmp_path):
    for name in ("a.json", "a.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(RecordError, match="not UTF-8"):
            list(read(path))
        path.write_text(dumps(record))
        with pytest.raises(RecordError, match="larger than 200 bytes"):
            list(read(path, max_bytes=200))


def test_a_full_disk_loses_nothing(record, tmp_path):
    path = tmp_path / "games.jsonl"
    write(path, [record])
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError):
            write(path, [record] * 50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["games.jsonl"]


# ---- lists of moves ----


def test_move_lists_hold_all_but_the_analysis(record):
    plain = dataclasses.replace(
        record, moves=tuple(dataclasses.replace(m, analysis=None) for m in record.moves)
    )
    text = to_move_list(record)
    assert from_move_list(text) == plain
    assert from_move_list(text.replace("\n", "\r\n")) == plain
    assert len(text.splitlines()) == 10 + len(record.moves)


def test_a_person_can_type_a_game():
    record = from_move_list('# game: "mnk"\n0,0\n1,0\n0,1\n\n1,1\n0,2\n')
    assert record.result.rewards == (1.0, -1.0)
    check(record)
    pairs = from_move_list('# game: "highcard"\n# preset: "pairs"\n# seed: 4\nkeep\nkeep\n')
    assert pairs.ruleset["players"] == 4 and pairs.seed == 4
    assert equal(replay(pairs).states[0], Match(make("highcard", "pairs"), 4).state)


@pytest.mark.parametrize(
    ("text", "field", "ply"),
    [
        ("0,0\n", "game", None),
        ('# game: "chess"\n', "game", None),
        ("# game: mnk\n", "game", None),
        ('# game: "mnk"\n# game: "mnk"\n', "game", None),
        ('# game: "mnk"\n# ruleset: {"rows": "x"}\n', "ruleset.rows", None),
        ('# game: "mnk"\n# colour: 1\n', "line 2", None),
        ('# game: "mnk"\n0,0\n0,0\n', "moves[1].move", 1),
        ('# game: "mnk"\n0\t1\t0,0\n', "moves[0].seat", 0),
        ('# game: "mnk"\n1\t0\t0,0\n', "moves[0]", 0),
        ('# game: "mnk"\n0,0\n# result: {"rewards": [0, 0]}\n', "result.terminated", None),
        ('# game: "mnk"\n# start: "x"\n0,0\n', "start", None),
    ],
)
def test_faults_of_move_lists_are_named(text, field, ply):
    with pytest.raises(RecordError) as caught:
        from_move_list(text)
    assert (caught.value.field, caught.value.ply) == (field, ply)


def test_reading_does_not_change_its_input(record):
    body = json.loads(dumps(record))
    kept = copy.deepcopy(body)
    loads(json.dumps(body))
    assert body == kept


def test_replay_steps_as_the_engine_does(record, swapping):
    """Another key draws another card: the chance text decides, not luck."""
    import jax

    ply = next(p for p in range(swapping.ply) if swapping.chance(p) is not None)
    before, action = swapping.states[ply], np.int32(swapping.actions[ply])
    step = jit_step(swapping.game)
    drawn = {
        swapping.game.chance_to_text(before, action, step(before, action, jax.random.key(s)))
        for s in range(20)
    }
    assert len(drawn) > 1
    assert equal(replay(record).states[ply + 1], swapping.states[ply + 1])
