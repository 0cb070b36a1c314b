"""Logs: the format there and back, the referee against the reference, damage found and named."""

import copy
import dataclasses
import functools
import json
import pathlib

import numpy as np
import pytest

import jaxgames.guandan.log
from jaxgames.core import FieldError
from jaxgames.guandan import cards
from jaxgames.guandan.exact import legal_plays
from jaxgames.guandan.log import (
    KINDS,
    REJECTS,
    REPAIRS,
    Breach,
    Deal,
    LogBuilder,
    MatchEnd,
    Turn,
    Writer,
    check,
    check_all,
    digest,
    positions,
    read,
    write,
)
from jaxgames.guandan.log.positions import play_of
from jaxgames.guandan.log.referee import Referee
from tests.jaxgames.guandan import matches
from tests.jaxgames.guandan.damage import DAMAGES, Good
from tests.reference.guandan_twin import Twin

PROFILES = ("national", "v1006", "ogd")
SEEDS = (3, 8, 13, 16, 22)  #: short matches with a refusal, double tributes, a joker bomb


@functools.cache
def good(seed: int) -> Good:
    return Good(matches.match(seed).match)


def faults_of(path, content: bytes):
    """Reads and checks a file with this content: (clean matches, faults)."""
    path.write_bytes(content)
    rows = list(check_all(read(path)))
    return [clean for _, clean, _ in rows if clean], [fault for _, _, f in rows for fault in f]


# ---- there and back ----


@pytest.mark.parametrize("profile", PROFILES)
def test_good_logs_are_clean(profile, tmp_path):
    for seed in range(1, 5):
        log = matches.match(seed, profile, max_rounds=4)
        path = tmp_path / f"{seed}.jsonl"
        write(path, log.match)
        (match,) = read(path)
        assert match.header == log.header and match.events == log.match.events
        assert check(match) == (dataclasses.replace(log.match, source=str(path)), ())
        again = tmp_path / "again"
        write(again, match)
        assert again.read_bytes() == path.read_bytes()
    assert len(list(read(tmp_path))) == 4


def test_events_are_written_as_they_happen(tmp_path):
    path = tmp_path / "m.jsonl"
    with Writer(path) as writer:
        log = LogBuilder("national", matches.NAMES, sink=writer, meta={"table": 3})
        rng = np.random.default_rng(0)
        log.deal(matches.hands(rng), 2)
        for count in range(20):
            log.move(log.seat, matches.choose(log, rng))
            assert len(path.read_text().splitlines()) == count + 3
        log.stop()
        log.stop()
    (match,) = read(path)
    clean, faults = check(match)
    assert not faults and clean.events[-1] == MatchEnd(None, "stopped")
    assert match.header.meta == {"table": 3} and match.events == tuple(log.events)
    with pytest.raises(FileExistsError):
        Writer(path)
    with pytest.raises(Breach, match="broken off"):
        log.play(log.seat, ["PASS", "PASS", "PASS"])


def test_several_matches_in_one_file(tmp_path):
    path = tmp_path / "all.jsonl"
    for seed in SEEDS[:3]:
        write(tmp_path / "one", good(seed).match)
        with open(path, "ab") as file:
            file.write((tmp_path / "one").read_bytes())
    rows = list(check_all(read(path)))
    assert [clean.events for _, clean, _ in rows] == [good(s).match.events for s in SEEDS[:3]]


def test_the_builder_refuses_what_the_rules_forbid():
    log = LogBuilder("national", matches.NAMES)
    rng = np.random.default_rng(1)
    deal = matches.hands(rng)
    with pytest.raises(Breach, match="deal comes next"):
        log.play(0, ["PASS", "PASS", "PASS"])
    with pytest.raises(Breach, match="a first leader"):
        log.deal(deal)
    log.deal(deal, 1)
    with pytest.raises(Breach, match="leads and can not pass"):
        log.play(1, ["PASS", "PASS", "PASS"])
    with pytest.raises(Breach, match="seat 1 is to move, got 0"):
        log.play(0, ["PASS", "PASS", "PASS"])
    with pytest.raises(FieldError, match="unknown card"):
        log.play(1, ["Single", "1", ["S1"]])
    with pytest.raises(Breach, match="no tribute is due"):
        log.tribute(1, "SA")
    assert [event.word for event in log.events] == ["deal"]
    with pytest.raises(Breach, match="profile"):
        LogBuilder("nation", matches.NAMES)
    with pytest.raises(Breach, match="four names, got 1"):
        LogBuilder("national", ["ann"])


def forced(referee, event) -> bool:
    """A pass of a seat that can do nothing else."""
    if event.word != "play" or event.play[0] != "PASS":
        return False
    return len(legal_plays(referee.hands[event.seat], referee.level, referee.table)) == 1


def test_passes_that_were_not_told_are_added():
    log = matches.match(16)
    short = LogBuilder("national", matches.NAMES, levels=("Q", "K"), owner=1, seed=16)
    for referee, event in positions(log.match):
        if isinstance(event, Deal):
            short.deal(event.hands, event.leader)
        elif event.word in ("tribute", "return", "play"):
            play = play_of(event, referee)
            if not forced(referee, event):
                short.move(event.seat, play, skipped=True)
    assert short.events == log.events


# ---- the referee ----


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("levels, owner", [(("2", "2"), None), (("A", "K"), 0), (("A", "A"), 1)])
def test_the_referee_agrees_with_the_reference(profile, levels, owner):
    """Move by move, over whole matches or six rounds."""
    names = cards.RANKS
    for seed in range(2):
        log = matches.match(seed, profile, levels=levels, owner=owner, max_rounds=6)
        twin = Twin(profile, levels, owner)
        for referee, event in positions(log.match):
            if isinstance(event, Deal):
                assert twin.stage == "deal"
                twin.deal([list(hand) for hand in event.hands], event.leader, event.level)
            elif event.word in ("tribute", "return", "play"):
                assert (referee.stage, referee.seat) == (twin.stage, twin.seat)
                assert [sorted(cards.names(h)) for h in referee.hands] == twin.hands
                assert (referee.table is None) == (twin.table is None)
                play = play_of(event, referee)
                play = (play.type, play.rank, tuple(sorted(play.cards)))
                assert event.word == "play" or play in twin.legal()
                twin.play(play)
            elif event.word == "anti-tribute":
                assert twin.anti
            elif event.word == "round-end":
                assert list(event.order) == twin.order and event.gained == twin.gained
                assert list(event.levels) == twin.levels and event.owner == twin.owner
                assert list(event.fails) == twin.fails and event.demotions == twin.demotions
        if log.events[-1].reason == "rounds":
            assert twin.winner is None and referee.rounds == 6
        else:
            assert log.events[-1].winner == (None if twin.winner == "draw" else twin.winner)
        assert names[referee.level] == twin.level


def test_positions_hold_everything():
    seen = 0
    for referee, event in positions(good(3).match):
        if isinstance(event, Turn):
            seen += 1
            played = 27 * 4 - sum(int(hand.sum()) for hand in referee.hands)
            assert played >= len(referee.out) * 25 and referee.seat == event.seat
    assert seen > 200


# ---- damage ----


@pytest.mark.parametrize("number", range(len(DAMAGES)))
def test_damage_is_found_and_named(number, tmp_path):
    kind, do = DAMAGES[number]
    done = 0
    for instance, seed in enumerate((*SEEDS, 8)):
        rng = np.random.default_rng([instance, seed, number])
        lines = copy.deepcopy(good(seed).lines)
        raw = do(rng, lines, good(seed))
        if raw is False:
            continue
        if not isinstance(raw, bytes):
            raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
        clean, faults = faults_of(tmp_path / "m.jsonl", raw)
        done += 1
        kinds = {fault.kind for fault in faults}
        assert kind in kinds, (seed, faults)
        assert kinds <= set(KINDS)
        assert all(fault.repaired == (fault.kind in REPAIRS) for fault in faults)
        if kind in REPAIRS:
            assert kinds == {kind} and clean[0].events == good(seed).match.events, faults
        else:
            # rejected; junk before a header leaves the match after it whole
            assert all(match.events == good(seed).match.events for match in clean)
            assert not clean or kind in ("unreadable", "oversized")
            fatal = [fault for fault in faults if not fault.repaired]
            assert fatal[0].kind == kind, faults
        assert all("\n" not in f.message and len(f.message) < 400 for f in faults)
    assert done >= 2


def test_every_kind_is_met():
    met = {kind for kind, _ in DAMAGES}
    assert len(met) >= 12
    assert set(KINDS) - met == {"duplicate-match"}
    assert not set(REJECTS) & set(REPAIRS)


def test_the_same_match_twice(tmp_path):
    write(tmp_path / "a.jsonl", good(3).match)
    write(tmp_path / "b.jsonl", good(13).match)
    other = dataclasses.replace(good(3).match.header, seats=("w", "x", "y", "z"))
    write(tmp_path / "c.jsonl", dataclasses.replace(good(3).match, header=other))
    rows = list(check_all(read(tmp_path)))
    assert [clean is not None for _, clean, _ in rows] == [True, True, False]
    (fault,) = rows[2][2]
    assert fault.kind == "duplicate-match" and "a.jsonl" in fault.message
    assert digest(rows[0][1]) != digest(rows[1][1])


def test_random_bytes_never_stop_the_reader(tmp_path):
    """One byte changed, dropped or inserted anywhere: read, and clean only if nothing is lost."""
    write(tmp_path / "m", good(16).match)
    raw = (tmp_path / "m").read_bytes()
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(100):
        at, byte = int(rng.integers(len(raw))), rng.bytes(1)
        spoiled = [
            raw[:at] + byte + raw[at + 1 :],
            raw[:at] + raw[at + 1 :],
            raw[:at] + byte + raw[at:],
        ]
        clean, faults = faults_of(tmp_path / "s.jsonl", spoiled[rng.integers(3)])
        rejected += not clean
        assert clean or faults
    assert rejected > 70


def test_junk_files(tmp_path):
    rng = np.random.default_rng(1)
    junks = [rng.bytes(100_000), b"\n" * 1000, b"null\n" * 50, b"1" * 9999]
    junks += [b'"\\ud800"\n', b"1e999\n", b'{"event":"play"', b"\xff"]
    for junk in junks:
        clean, faults = faults_of(tmp_path / "j.jsonl", junk)
        assert not clean and faults and len(faults) < 200
        for fault in faults:
            fault.message.encode()
    with pytest.raises(OSError):
        list(read(tmp_path / "none"))


def test_a_header_that_contradicts_itself(tmp_path):
    lines = copy.deepcopy(good(3).lines)
    lines[0]["previous"] = [0, 1, 2, 3]
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    clean, faults = faults_of(tmp_path / "m.jsonl", raw)
    assert not clean and [f.kind for f in faults] == ["owner"]
    with pytest.raises(Breach, match="first out"):
        Referee(dataclasses.replace(good(3).match.header, previous=(0, 1, 2, 3)))


def test_meta_that_json_can_not_hold(tmp_path):
    header = dataclasses.replace(good(3).match.header, meta={"x": float("nan")})
    with pytest.raises(Breach, match="meta"):
        write(tmp_path / "m", dataclasses.replace(good(3).match, header=header))
    assert list(tmp_path.iterdir()) == []


def test_the_corpus_is_clean():
    folder = pathlib.Path(jaxgames.guandan.log.__file__).parents[1] / "corpus"
    rows = list(check_all(read(folder)))
    assert sorted(clean.header.profile for _, clean, _ in rows) == ["national", "ogd", "v1006"]
    assert all(not faults for _, _, faults in rows)
    assert all(set(clean.header.seats) == {"strong"} for _, clean, _ in rows)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
