"""What callers of bad will, or of bad luck, may send: each is answered, and harms nobody else."""

import asyncio
import dataclasses
import json
import threading

import jax
import numpy as np
import pytest

from algorithms import bundle
from algorithms.agents import Analysis
from experiments.dashboard import lines
from experiments.dashboard.run import Run
from experiments.serve import analysis, api, questions, runs
from experiments.serve import app as apps
from experiments.serve.problems import Problem
from experiments.serve.service import Question, Thought
from jaxgames import core, match, record
from jaxgames.match import IllegalAction, Match
from tests.experiments.dashboard import folders
from tests.experiments.serve import tiny
from tests.experiments.serve.tiny import AT, call, post, problem

HALF = "\\ud800"  # as JSON writes it


@pytest.fixture(scope="module")
def app():
    return tiny.served()


def thought(prior, action=0):
    prior = np.asarray(prior, np.float32)
    return Analysis(action, prior, np.zeros(2), prior, prior, prior)


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-9, 100.0])
def test_any_temperature_draws_a_move(app, temperature):
    choice = questions.choose(thought([0.2, 0.0, 0.5, 0.3]), temperature, 0, searched=False)
    assert choice in (0, 2, 3) and (temperature > 1 or choice == 2)
    asked = AT | {"moves": [], "temperature": temperature, "budget": {"mode": "policy"}}
    assert post(app, "/v1/move", asked).status_code == 200


def test_nothing_to_draw_by_is_the_agents_choice():
    for weights in ([0.0, 0.0], [np.nan, 1.0]):
        assert questions.choose(thought(weights, 1), 1.0, 0, searched=True) == 1


def test_a_window_is_told_of_who_looks_through_one():
    """Not of who gives moves no chance at all: a sharp softmax is 0 in many places."""
    state, sharp = Match(tiny.GAME, 0).state, thought(np.eye(9)[4], 4)
    looked = Thought(4, sharp, 0, 1, 0.0, 0.0, "policy")
    assert analysis.of_thought(tiny.GAME, state, looked, {})["seen"] is None
    part = dataclasses.replace(sharp, seen=np.arange(9) < 2)
    looked = dataclasses.replace(looked, analysis=part)
    assert analysis.of_thought(tiny.GAME, state, looked, {})["seen"] == ["a1", "b1"]


def test_an_error_of_one_question_is_not_told_to_others(app):
    service = app.state.service
    model, state = service.models.find(tiny.GAME, "tiny"), Match(tiny.GAME, 0).state

    def broken(_):
        raise ZeroDivisionError

    asked = [Question(model, state, seed=n, progress=broken if n == 1 else None) for n in range(4)]

    async def main():
        return await asyncio.gather(*map(service.think, asked), return_exceptions=True)

    found = asyncio.run(main())
    assert found[1].code == "internal" and "ZeroDivisionError" in found[1].detail
    assert [t.simulations for n, t in enumerate(found) if n != 1] == [32] * 3


def test_who_has_gone_keeps_no_place_and_nothing_is_compiled_for_him(monkeypatch):
    service = apps.build(tiny.settings(lazy=True, queue=2)).state.service
    made, begun, first = [], threading.Event(), threading.Event()

    def make(key, rows):
        made.append(key.game.rules.rows)
        begun.set()
        first.wait(60)

    monkeypatch.setattr(service.programs, "make", make)
    monkeypatch.setattr("experiments.serve.warm.host", lambda game: None)

    def ask(rows):
        game = core.make("eight_in_a_row", rows=rows, cols=9, players=2)
        state = jax.tree.map(np.asarray, game.init(jax.random.key(0)))
        return service.think(Question(service.models.find(game, "random"), state))

    async def main():
        for rows in (7, 8, 9, 10):
            task = asyncio.ensure_future(ask(rows))
            await asyncio.sleep(0.05)
            service._form()  # the device's thread finds no program
            assert begun.wait(60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
            assert service.depth() == 0
        first.set()

    asyncio.run(main())
    service._compiler.shutdown(wait=True)
    service.stop()
    assert made == [7] and not service._compiling


# ---- numbers and texts ----


@pytest.mark.parametrize("number", ["1" * 400, "1" * 5000, "-" + "9" * 30, str(2**64)])
def test_numbers_that_nothing_holds_are_refused(app, number):
    body = f'{{"game": "eight_in_a_row", "ruleset": {{"payoffs": [{number}, 0]}}, "moves": []}}'
    kind = {"content-type": "application/json"}
    problem(call(app, "POST", "/v1/legal", content=body, headers=kind), 400, "bad_json")
    with pytest.raises(record.RecordError):
        record.parse_json(f"[{number}]", "here")
    assert record.parse_json("[-9223372036854775808, 1e300]", "here") == [-(2**63), 1e300]


def game_told(**changes):
    played = Match(tiny.GAME, 0)
    played.play("b2")
    return json.loads(record.dumps(record.from_match(played))) | changes


@pytest.mark.parametrize("place", ["name", "meta", "key", "field"])
def test_half_a_character_is_refused_wherever_it_is_written(app, place):
    told = game_told()
    if place == "name":
        told["seats"][0]["name"] = "HALF"
    else:
        told |= {"meta": {"meta": {"a": ["HALF"]}, "key": {"HALF": 1}}.get(place, {})}
        told |= {"HALF": 1} if place == "field" else {}
    text = json.dumps(told).replace("HALF", HALF)
    problem(post(app, "/v1/tables", {"record": text}), 422, "invalid", "record")
    answer = call(app, "POST", "/v1/validate", {"record": text})
    assert answer.status_code == 422 and "half" in answer.json()["detail"]
    twice = f'{{"{HALF}": 1, "{HALF}": 2}}'
    kind = {"content-type": "application/json"}
    problem(call(app, "POST", "/v1/legal", content=twice, headers=kind), 400, "bad_json")


def test_what_is_written_is_read_again():
    played = Match(tiny.GAME, 0)
    for value in (10**30, "\ud800"):
        with pytest.raises(record.RecordError, match="meta: holds what JSON can not"):
            record.dumps(record.from_match(played, meta={"a": value}))


@pytest.mark.parametrize(
    "text", ['{"step": ' + "1" * 5000 + "}", f'{{"run": "{HALF}"}}', "\ufffe", "[" * 100_000]
)
def test_descriptions_of_bundles_that_are_no_json(tmp_path, text):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(bundle.BundleError, match="model.json: not JSON"):
        bundle.read_meta(tmp_path)


# ---- who sees what ----


def open_hands(app, path):
    """A game against a bot, given up; whether undoing is refused after looking at `path`."""
    seats = [{"kind": "human"}, {"kind": "bot", "name": "random"}]
    view = post(app, "/v1/tables", {"game": "sequence", "seats": seats}).json()
    base = f"/v1/tables/{view['id']}"
    given = post(app, f"{base}/resign", {"viewer": "0", "seat": 0}).json()
    assert given["open"] and given["seed"] is None
    path(base)
    answers = [
        post(app, f"{base}/undo", {"viewer": "0", "seat": 0}),
        post(app, f"{base}/goto", {"viewer": "0", "ply": 0}),
    ]
    for answer in answers:
        problem(answer, 409, "conflict")


def test_a_hand_that_was_shown_can_not_be_played_against(app):
    def other(base):
        view = call(app, "GET", f"{base}?viewer=1").json()
        assert view["scene"]["seats"][1]["cards"]

    def branch(base):
        bots = [{"kind": "bot", "name": "random"}] * 2
        view = post(app, f"{base}/branch", {"ply": 0, "seats": bots}).json()
        assert view["viewer"] == "all" and view["scene"]["seats"][1]["cards"]

    def saved(base):
        start = call(app, "GET", f"{base}/record").json()["start"]
        assert "hand 1: " in start

    open_hands(app, other)
    open_hands(app, branch)
    open_hands(app, saved)


# ---- too much ----


def test_a_match_holds_so_many_positions(monkeypatch):
    monkeypatch.setattr(match, "MATCH_BYTES", 3 * (match._PLY_BYTES + 1000))
    played = Match(tiny.GAME, 0)
    for move in ("a1", "b1", "c1"):
        played.play(move)
    assert played.most_plies == 3
    with pytest.raises(IllegalAction, match="holds at most 3 plies"):
        played.play("a2")
    assert core.make("eight_in_a_row", rows=100, cols=100).max_steps < 10_001
    monkeypatch.undo()
    assert Match(core.make("eight_in_a_row", rows=100, cols=100), 0).most_plies > 10_000


def test_tables_hold_so_much_together(app, monkeypatch):
    from experiments.serve import tables

    monkeypatch.setattr(tables, "MATCHES", 0)
    problem(post(app, "/v1/tables", {"game": "eight_in_a_row"}), 429, "queue_full")


def test_the_policy_of_many_turns_is_too_much(app, monkeypatch):
    monkeypatch.setattr(api, "POLICIES", 18)
    body = AT | {"moves": ["a1", "b1", "c1"], "include": ["policy"], "budget": {"mode": "policy"}}
    problem(post(app, "/v1/analyze", body | {"turns": [0, 1, 2]}), 413, "too_large", "turns")
    assert post(app, "/v1/analyze", body | {"turns": [0, 1]}).status_code == 200


# ---- streams ----


def test_a_client_that_hangs_up_at_once_takes_no_stream(tmp_path):
    run = Run(folders.folder(tmp_path / "first", [folders.train(1)], "finished"), "first")
    slots = runs.Slots(1)

    async def main():
        runs._news(run, 0, "", slots)  # begun by nobody
        slots.check()
        with slots.held(), pytest.raises(Problem, match="too many open streams"):
            slots.check()
        slots.check()

    asyncio.run(main())


def test_rows_that_are_no_json_for_a_browser():
    assert lines.parse(b'{"seq": 1, "a": "%s"}' % HALF.encode()) is None
    assert lines.parse(b'{"seq": 1, "a": "\\ud83d\\ude00"}')["a"] == "\U0001f600"
    told = runs._json({"a": [float("nan"), float("-inf"), 1.5]})
    assert json.loads(told, parse_constant=pytest.fail) == {"a": [None, None, 1.5]}


def test_pages_of_others_ask_nothing(app):
    cross = {"sec-fetch-site": "cross-site"}
    for path in ("/v1/models", "/v1/runs/x/stream", "/metrics", "/openapi.json"):
        problem(call(app, "GET", path, headers=cross), 403, "forbidden", "origin")
    for path in ("/", "/app.js", "/health/live"):
        assert call(app, "GET", path, headers=cross).status_code == 200
    assert call(app, "GET", "/v1/models", headers={"sec-fetch-site": "same-origin"}).is_success


def test_knowledge_with_numbers_of_another_kind():
    game = core.make("guandan")
    for owner in (1.0, 0.0, True, "0", [], {}):
        with pytest.raises(core.PositionError):
            game.from_knowledge({"seat": 0, "hand": ["??"], "owner": owner, "level": None})


def test_budgets_that_are_none(app):
    for budget in ({"simulations": True}, {"time_ms": 0}, {"time_ms": "1"}, {"simulations": 1.0}):
        problem(post(app, "/v1/move", AT | {"moves": [], "budget": budget}), 422, "invalid")
    asked = AT | {"moves": [], "budget": {"time_ms": 20_001}}  # of the 20 s until the deadline
    problem(post(app, "/v1/move", asked), 422, "invalid", "budget.time_ms")
