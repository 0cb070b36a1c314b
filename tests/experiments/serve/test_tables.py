"""Tables of the play page: what people can do there, what they see, and what they never see."""

import asyncio
import json
import time

import jax
import pytest

import jaxgames
from experiments.serve import analysis
from experiments.serve import tables as tables_module
from experiments.serve.problems import Problem
from experiments.serve.table import Sitter, Table
from jaxgames import record
from jaxgames.match import Match
from tests.experiments.serve import tiny

PERSON = {"kind": "human"}
MODEL = {"kind": "model", "name": "tiny", "simulations": 32}
BOT = {"kind": "bot", "name": "random"}
TOE = {"game": "eight_in_a_row", "preset": "tictactoe"}


class Guest:
    """Calls of one person, on one event loop."""

    def __init__(self, http):
        self.http = http

    async def get(self, path, status=200, **query):
        answer = await self.http.get(f"/v1/tables{path}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path, status=200, **body):
        answer = await self.http.post(f"/v1/tables{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def open(self, *seats, game=TOE, **more):
        return await self.post("", 201, **game, seats=list(seats), **more)

    async def move(self, view, text, status=200, viewer=None):
        viewer = str(view["viewer"]) if viewer is None else viewer
        told = {"seat": view["to_move"], "viewer": viewer, "move": text, "ply": view["ply"]}
        return await self.post(f"/{view['id']}/move", status, **told)

    async def settled(self, view, viewer=None):
        """The view when nobody thinks any more."""
        viewer = str(view["viewer"]) if viewer is None else viewer
        until = time.monotonic() + 60
        while True:
            found = await self.get(f"/{view['id']}", viewer=viewer)
            busy = found["job"] and found["job"]["state"] == "running"
            if found["thinking"] is None and not busy:
                return found
            assert time.monotonic() < until
            await asyncio.sleep(0.02)

    async def analysed(self, view, **body):
        viewer = str(view["viewer"])
        await self.post(f"/{view['id']}/analyse", 202, viewer=viewer, **body)
        return await self.settled(view)


@pytest.fixture(autouse=True)
def cleared():
    """Nobody leaves a table to the next test, of which there are more than a server has tables."""
    yield
    found = tables_module.of(tiny.served().state.service)
    for id in list(found._sittings):
        found.close(id)


def visit(work):
    """Runs `await work(guest)` against the tiny server."""

    async def main():
        async with tiny.client(tiny.served()) as http:
            return await work(Guest(http))

    return asyncio.run(main())


# ---- playing ----


def test_a_person_plays_a_model_to_the_end():
    async def work(guest):
        view = await guest.open(PERSON, MODEL, seed=1)
        assert (view["names"], view["to_move"], view["plies"]) == (["human", "tiny:sims=32"], 0, 0)
        assert [m["text"] for m in view["legal"]][:4] == ["a1", "b1", "c1", "a2"]
        while not view["done"]:
            await guest.move(view, view["legal"][0]["text"])
            view = await guest.settled(view)
        assert view["result"]["terminated"] and view["legal"] == []
        assert sum(view["result"]["rewards"]) == 0
        assert [m["seat"] for m in view["history"]] == [i % 2 for i in range(view["plies"])]
        assert view["history"][-1]["news"]  # how it ended
        await guest.move(view | {"to_move": 0}, "a1", 409)

    visit(work)


def test_refusals_name_the_rule_and_change_nothing():
    async def work(guest):
        view = await guest.open(PERSON, PERSON)
        view = await guest.move(view, " B2 ")  # spaces and case do not matter
        view = await guest.get(f"/{view['id']}", viewer="1")
        told = await guest.move(view, "b2", 422)
        assert told["code"] == "illegal" and "taken by player 1" in told["detail"]
        told = await guest.move(view, "zz", 422)
        assert told["field"] == "move" and "'zz' is not a cell" in told["detail"]
        assert (await guest.move(view | {"ply": 0}, "a1", 409))["field"] == "ply"
        assert (await guest.move(view | {"to_move": 0}, "a1", 422))["field"] == "seat"
        assert (await guest.get(f"/{view['id']}", viewer="1"))["plies"] == 1
        told = await guest.post(f"/{view['id']}/move", 422, seat=1, move="a1", ply=1, where="x")
        assert told["code"] == "unknown_field"
        await guest.get("/nobody-knows-this", 404)

    visit(work)


@pytest.mark.slow
def test_a_text_that_may_mean_several_moves_is_asked_about():
    async def work(guest):
        guandan = {"game": "guandan", "options": {"tribute": False, "levels": "2/2"}}
        view = await guest.open(PERSON, PERSON, PERSON, PERSON, game=guandan, seed=8)
        seat = view["to_move"]
        view = await guest.get(f"/{view['id']}", viewer=str(seat))
        singles = [m["text"] for m in view["legal"] if m["group"] == "single"]
        found = await guest.move(view, "pass", 422)  # who leads must play
        assert found["code"] == "illegal"
        hand = view["scene"]["seats"][seat]["cards"]
        played = await guest.move(view, hand[0])  # cards alone are read
        assert played["plies"] == 1 or len(played["readings"]) > 1
        assert singles

    visit(work)


def test_undo_goes_back_to_the_own_decision_and_agents_answer_the_same():
    async def work(guest):
        view = await guest.open(PERSON, MODEL, seed=3)
        assert not view["can"]["undo"]
        await guest.post(f"/{view['id']}/undo", 409, viewer="0", seat=0)
        texts = []
        for _ in range(2):
            await guest.move(view, "b2")
            found = await guest.settled(view)
            texts.append(found["history"][1]["text"])
            view = await guest.post(f"/{view['id']}/undo", viewer="0", seat=0)
            assert (view["plies"], view["to_move"], view["history"]) == (0, 0, [])
        assert texts[0] == texts[1]
        await guest.post(f"/{view['id']}/undo", 422, viewer="0", seat=1)  # no person there

    visit(work)


def test_undo_while_a_machine_thinks():
    async def work(guest):
        view = await guest.open(PERSON, MODEL, seed=3)
        for _ in range(3):
            found = await guest.move(view, "a1")
            assert found["thinking"] == 1
            view = await guest.post(f"/{view['id']}/undo", viewer="0", seat=0)
        view = await guest.settled(view)
        assert (view["plies"], view["to_move"]) == (0, 0)

    visit(work)


def test_goto_takes_moves_back_and_machines_go_on_from_there():
    async def work(guest):
        view = await guest.open(PERSON, BOT, seed=3)
        for _ in range(2):
            await guest.move(view, view["legal"][0]["text"])
            view = await guest.settled(view)
        first = view["history"][0]
        view = await guest.post(f"/{view['id']}/goto", viewer="0", ply=1)
        view = await guest.settled(view)
        assert (view["plies"], view["history"][0]) == (2, first)
        assert (await guest.post(f"/{view['id']}/goto", 422, viewer="0", ply=9))["field"] == "ply"

    visit(work)


def test_giving_up_ends_the_game_until_it_is_taken_back():
    async def work(guest):
        view = await guest.open(PERSON, BOT)
        view = await guest.post(f"/{view['id']}/resign", viewer="0", seat=0)
        assert view["done"] and view["result"]["winners"] == [1]
        await guest.move(view, "a1", 409)
        view = await guest.post(f"/{view['id']}/undo", viewer="0", seat=0)
        assert not view["done"] and view["result"] is None
        await guest.move(view, "a1")

    visit(work)


def test_machines_alone_play_to_the_end_and_wait_when_told():
    async def work(guest):
        view = await guest.open(BOT, MODEL, seed=2)
        assert view["viewer"] == "all"
        view = await guest.settled(view)
        assert view["done"] and view["result"]["winners"]
        view = await guest.open(BOT, MODEL, seed=2)
        view = await guest.post(f"/{view['id']}/run", viewer="all", on=False)
        plies = (await guest.settled(view))["plies"]
        await asyncio.sleep(0.1)
        view = await guest.settled(view)
        assert view["plies"] == plies and not view["done"]
        view = await guest.post(f"/{view['id']}/run", viewer="all", on=True)
        assert (await guest.settled(view))["done"]

    visit(work)


def test_a_machine_that_fails_says_why_and_nothing_is_played_for_it(monkeypatch):
    service = tiny.served().state.service
    real = service.think

    async def broken(question):
        raise Problem("internal", "the search failed: ValueError")

    async def work(guest):
        view = await guest.open(PERSON, MODEL)
        monkeypatch.setattr(service, "think", broken)
        await guest.move(view, "a1")
        view = await guest.settled(view)
        assert view["error"] == {
            "seat": 1,
            "code": "internal",
            "detail": "the search failed: ValueError",
        }
        assert view["plies"] == 1
        monkeypatch.setattr(service, "think", real)
        view = await guest.post(f"/{view['id']}/run", viewer="0", on=True)
        view = await guest.settled(view)
        assert (view["error"], view["plies"]) == (None, 2)

    visit(work)


def test_a_busy_server_is_waited_for(monkeypatch):
    service = tiny.served().state.service
    real, asked = service.think, []

    async def busy(question):
        asked.append(question)
        if len(asked) == 1:
            raise Problem("queue_full", "9 questions wait", retry_after=1)
        return await real(question)

    async def work(guest):
        view = await guest.open(PERSON, MODEL)
        monkeypatch.setattr(service, "think", busy)
        await guest.move(view, "a1")
        view = await guest.settled(view)
        assert (view["error"], view["plies"], len(asked)) == (None, 2, 2)

    visit(work)


# ---- who sees what ----

SEQUENCE = {"game": "sequence"}


@pytest.mark.parametrize("name", ["sequence", pytest.param("guandan", marks=pytest.mark.slow)])
def test_a_view_tells_nothing_that_the_seat_may_not_know(name):
    """Deals that seat 0 can not tell apart look the same to it, played on or not."""
    game = jaxgames.make(name)
    match = Match(game, 11)
    other = jax.jit(game.resample)(match.state, 0, jax.random.key(5))
    assert game.to_text(other) != game.to_text(match.state)
    sitters = [Sitter()] + [Sitter("bot")] * (game.num_players - 1)
    views = [
        json.dumps(Table("x", found, sitters).view(0)) for found in (match, Match(game, 11, other))
    ]
    assert views[0] == views[1]


def test_hidden_hands_are_refused_until_the_game_is_over():
    async def work(guest):
        view = await guest.open(PERSON, BOT, game=SEQUENCE)
        path = f"/{view['id']}"
        assert view["hides"] and view["seed"] is None
        for viewer in ("1", "all"):
            told = await guest.get(path, 422, viewer=viewer)
            assert (told["code"], told["field"]) == ("hidden", "viewer")
            await guest.get(f"{path}/text", 422, viewer=viewer)
            await guest.post(f"{path}/analyse", 422, viewer=viewer)
        for viewer in ("2", "-1", "x", "9" * 30):
            assert (await guest.get(path, 422, viewer=viewer))["field"] == "viewer"
        assert view["scene"]["seats"][1]["cards"] is None
        await guest.move(view, view["legal"][0]["text"])
        view = await guest.settled(view)
        view = await guest.post(f"{path}/resign", viewer="0", seat=0)
        assert view["open"] and view["scene"]["seats"][1]["cards"] is None
        view = await guest.post(f"{path}/undo", viewer="0", seat=0)  # nothing was shown yet
        await guest.post(f"{path}/resign", viewer="0", seat=0)
        view = await guest.get(path, viewer="all")
        assert len(view["scene"]["seats"][1]["cards"]) == 7
        await guest.post(f"{path}/undo", 409, viewer="0", seat=0)
        await guest.post(f"{path}/goto", 409, viewer="0", ply=0)

    visit(work)


def test_a_deal_that_can_be_laid_again_is_an_open_one():
    async def work(guest):
        view = await guest.open(PERSON, BOT, game=SEQUENCE, seed=4)
        assert (view["open"], view["opened"], view["can"]["back"]) == (True, 0, 0)
        assert view["scene"]["seats"][1]["cards"] is None  # unless it is looked at
        kept = await guest.get(f"/{view['id']}/record")
        assert (kept["seed"], kept["meta"]["opened"]) == (4, 0)
        view = await guest.open(BOT, BOT, game=SEQUENCE, seed=4)
        assert view["opened"] is None
        view = await guest.open(PERSON, BOT, seed=4)  # nothing is hidden there
        assert view["opened"] is None

    visit(work)


def test_another_seats_position_is_neither_analysed_nor_told():
    async def work(guest):
        view = await guest.open(PERSON, BOT, game=SEQUENCE)
        await guest.move(view, view["legal"][0]["text"])
        view = await guest.settled(view)
        told = await guest.post(f"/{view['id']}/analyse", 422, viewer="0", ply=1)
        assert told["code"] == "hidden"
        past = await guest.get(f"/{view['id']}", viewer="0", ply=1)
        assert past["to_move"] == 1 and past["legal"] == []

    visit(work)


def test_review_puts_a_game_aside_for_good():
    async def work(guest):
        view = await guest.open(PERSON, BOT, game=SEQUENCE)
        path = f"/{view['id']}"
        await guest.post(f"{path}/review", viewer="0")
        view = await guest.get(path, viewer="all")
        assert view["review"] and view["done"] and view["result"] is None
        assert view["scene"]["seats"][1]["cards"] and view["legal"]
        await guest.move(view, view["legal"][0]["text"], 409, viewer="0")
        await guest.post(f"{path}/undo", 409, viewer="0", seat=0)
        new = await guest.post(f"{path}/branch", 201, ply=0, seats=[PERSON, BOT])
        assert new["id"] != view["id"] and not new["done"] and new["can"]["move"]

    visit(work)


def test_no_branch_of_a_game_that_is_being_played():
    async def work(guest):
        view = await guest.open(PERSON, BOT, game=SEQUENCE)
        await guest.post(f"/{view['id']}/branch", 409, ply=0, seats=[PERSON, PERSON])

    visit(work)


def test_a_record_saved_while_hands_are_hidden_makes_the_game_an_open_one():
    async def work(guest):
        view = await guest.open(PERSON, PERSON, game=SEQUENCE)
        path = f"/{view['id']}"
        await guest.move(view, view["legal"][0]["text"])
        told = await guest.get(f"{path}/record", 422)
        assert told["code"] == "hidden" and "open them first" in told["detail"]
        await guest.post(f"{path}/open", 422, viewer="9")
        await guest.post(f"{path}/resign", 422, viewer="x", seat=0)
        assert (await guest.get(path, viewer="0"))["opened"] is None
        view = await guest.post(f"{path}/open", viewer="0")
        assert (view["opened"], view["can"]["back"], view["can"]["undo"]) == (1, 1, False)
        assert view["scene"]["seats"][1]["cards"] is None  # who does not look sees nothing
        assert (await guest.get(path, viewer="all"))["scene"]["seats"][1]["cards"]
        kept = await guest.get(f"{path}/record")
        assert kept["meta"]["opened"] == 1
        view = await guest.get(path, viewer="1")
        view = await guest.move(view, view["legal"][0]["text"])  # it goes on, and back to there
        await guest.post(f"{path}/goto", 409, viewer="0", ply=0)
        await guest.post(f"{path}/undo", 409, viewer="0", seat=0)
        view = await guest.post(f"{path}/undo", viewer="1", seat=1)
        assert (view["plies"], view["opened"]) == (1, 1)
        for opened, ply, since in [(1, None, 1), (0, 1, 0), ("x", 1, 1), (-1, 0, 0), (9, 1, 1)]:
            text = json.dumps(kept | {"meta": {"opened": opened}})
            on = await guest.post("", 201, record=text, seats=[PERSON, BOT], ply=ply)
            assert (on["opened"], on["open"]) == (since, True), opened
        position = (await guest.get(f"{path}/text", viewer="all"))["text"]
        on = await guest.open(PERSON, PERSON, game=SEQUENCE, position=position)
        assert on["opened"] == 0

    visit(work)


# ---- analysis ----


def test_analysis_is_off_until_asked_for():
    async def work(guest):
        view = await guest.open(PERSON, MODEL, seed=1)
        await guest.move(view, "b2")
        view = await guest.settled(view)
        assert (view["analysis"], view["values"], view["job"]) == (None, [], None)
        view = await guest.analysed(view, ply=2)
        found = view["analysis"]
        assert found["model"] == "tiny" and found["simulations"] == 32
        assert len(found["value"]) == 2 and found["count"] == 7
        assert sum(row["visits"] for row in found["candidates"]) == pytest.approx(32, abs=1)
        best = found["candidates"][0]
        assert best["text"] == found["move"] == best["line"][0]
        assert best["q"][0] == pytest.approx(-best["q"][1], abs=1e-3)
        assert found["tree"]["children"]
        assert [row["ply"] for row in view["values"]] == [2]

    visit(work)


def test_the_whole_game_is_analysed_and_the_played_moves_are_judged():
    async def work(guest):
        view = await guest.open(PERSON, BOT, seed=1)
        for _ in range(2):
            await guest.move(view, view["legal"][0]["text"])
            view = await guest.settled(view)
        view = await guest.analysed(view)
        assert view["job"] == {"state": "done", "done": 5, "total": 5, "error": None, "code": None}
        assert [row["ply"] for row in view["values"]] == [0, 1, 2, 3, 4]
        past = await guest.get(f"/{view['id']}", viewer="0", ply=0)
        assert past["analysis"]["played"]["text"] == view["history"][0]["text"]
        for row in view["values"]:
            assert row["loss"] is None or row["loss"] >= 0
        view = await guest.post(f"/{view['id']}/undo", viewer="0", seat=0)
        assert [row["ply"] for row in view["values"]] == [0, 1, 2]

    visit(work)


def test_an_analysis_is_cancelled_and_keeps_what_it_found(monkeypatch):
    service = tiny.served().state.service
    real, asked = service.think, []

    async def slow(question):
        asked.append(question)
        if len(asked) == 3:
            await asyncio.sleep(60)
        return await real(question)

    async def work(guest):
        view = await guest.open(PERSON, PERSON)
        for text in ("a1", "b1", "c1"):
            view = await guest.move(view, text)
        monkeypatch.setattr(service, "think", slow)
        path = f"/{view['id']}"
        await guest.post(f"{path}/analyse", 202, viewer="0")
        until = time.monotonic() + 30
        while len(asked) < 3:
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        await guest.post(f"{path}/analyse", 409, viewer="0")
        view = await guest.get(path, viewer="0")
        assert view["job"]["state"] == "running" and view["job"]["done"] == 2
        # the server goes on answering meanwhile
        view = await guest.move(view, "a2")
        found = await guest.post(f"{path}/cancel", viewer="0")
        assert found["job"]["state"] == "cancelled"
        assert [row["ply"] for row in (await guest.get(path, viewer="0"))["values"]] == [0, 1]
        assert len(asked) == 3

    visit(work)


def test_an_analysis_by_nobody_or_of_nothing_is_refused():
    async def work(guest):
        view = await guest.open(PERSON, BOT)
        path = f"/{view['id']}/analyse"
        told = await guest.post(path, 404, viewer="0", model="tinny")
        assert (told["code"], told["field"]) == ("unknown_model", "model.name")
        assert "tiny" in told["detail"]
        assert (await guest.post(path, 422, viewer="0", ply=7))["field"] == "ply"
        assert (await guest.post(path, 422, viewer="0", simulations=0))["field"] == "simulations"
        view = await guest.post(f"/{view['id']}/resign", viewer="0", seat=0)

    visit(work)


# ---- records ----


async def played(guest, seats=(PERSON, MODEL)):
    view = await guest.open(*seats, seed=1)
    await guest.move(view, "b2")
    view = await guest.settled(view)
    return await guest.analysed(view)


def test_a_saved_game_comes_back_with_its_analysis():
    async def work(guest):
        view = await played(guest)
        text = (await guest.http.get(f"/v1/tables/{view['id']}/record")).text
        kept = record.loads(text)
        record.check(kept)
        assert kept.moves[0].analysis["model"] == "tiny" and "tree" not in kept.moves[0].analysis
        again = await guest.post("", 201, record=text)
        assert again["review"] and again["ply"] == 0 and again["plies"] == 2
        assert again["names"] == ["human", "tiny:sims=32"]
        assert [r["ply"] for r in again["values"]] == [r["ply"] for r in view["values"]]
        assert again["analysis"]["moves"] == kept.moves[0].analysis["moves"]
        on = await guest.post("", 201, record=text, seats=[PERSON, MODEL], ply=1)
        assert on["plies"] == 1 and not on["review"] and on["thinking"] == 1
        assert (await guest.settled(on))["history"] == view["history"]

    visit(work)


def test_a_long_game_that_was_analysed_throughout_can_be_loaded_again():
    game = jaxgames.make("eight_in_a_row", players=2, rows=20, cols=20, win_length=20)
    match = Match(game, 0)
    for action in range(300):
        match.play(action)
    table, texts = Table("x", match, [Sitter()] * 2, review=True), [f"t{n}" for n in range(400)]
    candidate = {"action": 399, "text": "t20", "prior": 0.0833, "visits": 12.0, "share": 0.0123,
                 "q": [0.1234, -0.1234], "line": ["t20"] * 8}  # fmt: skip
    found = {"model": "tiny", "move": "t20", "value": [0.5, -0.5], "simulations": 64, "count": 400,
             "elapsed_ms": 12, "candidates": [candidate] * 12, "seen": texts, "tree": None,
             "moves": [[text, 0.0833, 12.0, -0.1234] for text in texts[:128]]}  # fmt: skip
    table.analysis = dict.fromkeys(range(301), found)
    text = record.dumps(table.record())

    async def work(guest):
        again = await guest.post("", 201, record=text)
        assert len(again["values"]) == 301 and len(again["analysis"]["moves"]) >= 8

    visit(work)
    few = analysis.kept(table.analysis, 300_000)[300]
    assert len(few["moves"]) == len(few["candidates"]) == 2
    assert analysis.kept(table.analysis, 1000) == {}


def test_a_list_of_moves_is_a_record_too():
    async def work(guest):
        text = '# game: "eight_in_a_row"\n# preset: "tictactoe"\na1\nb2\nc3\n'
        view = await guest.post("", 201, record=text)
        assert [m["text"] for m in view["history"]] == ["a1", "b2", "c3"]

    visit(work)


def test_records_that_are_none_are_refused_by_field():
    async def work(guest):
        view = await played(guest)
        good = (await guest.http.get(f"/v1/tables/{view['id']}/record")).json()

        async def field(**changes):
            told = await guest.post("", 422, record=json.dumps(good | changes))
            assert told["detail"] and "\n" not in told["detail"]
            return told["field"]

        assert await field(game="chess") == "record.game"
        assert await field(moves=good["moves"][:1] * 2) == "record.moves[1].seat"
        assert await field(ruleset=good["ruleset"] | {"rows": 999}) == "record.ruleset.rows"
        assert await field(format="jaxgames-record/99") == "record.format"
        for text in ("{", "", "[1]", '{"a": NaN}', "a1\nb2"):
            assert (await guest.post("", 422, record=text))["field"].startswith("record")

    visit(work)


@pytest.mark.parametrize(
    "change",
    [
        {"value": [1e999, 0]},
        {"value": ["<img src=x onerror=alert(1)>", 0]},
        {"moves": [["a1", 1, 2]]},
        {"moves": "a1"},
        {"candidates": [{"text": "a1"}]},
        {"candidates": 7},
        {"model": None},
        {"count": "9"},
    ],
)
def test_what_a_record_says_of_analysis_is_shown_only_in_our_form(change):
    async def work(guest):
        view = await played(guest, (PERSON, BOT))
        good = (await guest.http.get(f"/v1/tables/{view['id']}/record")).json()
        good["moves"][0]["analysis"] |= json.loads(json.dumps(change).replace("Infinity", "1e308"))
        if change.get("value") == [1e999, 0]:
            good["moves"][0]["analysis"]["value"] = [True, 0]
        again = await guest.post("", 201, record=json.dumps(good))
        assert again["analysis"] is None
        assert 0 not in [row["ply"] for row in again["values"]]

    visit(work)


# ---- what can be opened ----


def test_the_dialog_knows_games_options_and_who_can_sit():
    async def work(guest):
        games = {game["name"]: game for game in (await guest.get(""))["games"]}
        eight = games["eight_in_a_row"]
        options = {option["name"]: option for option in eight["options"]}
        assert options["rows"]["range"] == [1, 200] and options["rows"]["default"] == 15
        assert options["profile"]["choices"] == ["fair", "classic", "wdl"]
        assert options["win_length"]["help"].startswith("own stones in a row")
        found = await guest.post("/check", **TOE)
        assert found["players"] == 2
        assert {"name": "tiny", "kind": "model", "bare": False} in found["who"]
        larger = await guest.post("/check", game="eight_in_a_row", options={"rows": 9, "cols": 9})
        assert larger["players"] == 3 and "tiny" not in [one["name"] for one in larger["who"]]

    visit(work)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"game": "chess"}, 404, "game"),
        ({"game": "eight_in_a_row", "preset": "x"}, 422, "preset"),
        ({"game": "eight_in_a_row", "options": {"rowz": 3}}, 422, "options.rowz"),
        ({"game": "eight_in_a_row", "options": {"rows": "3"}}, 422, "options.rows"),
        ({"game": "eight_in_a_row", "options": {"rows": 10**9}}, 422, "options.rows"),
        ({"game": "eight_in_a_row", "options": {"payoffs": [[1]]}}, 422, "options.payoffs"),
        (TOE | {"seed": -1}, 422, "seed"),
        (TOE | {"seed": 1.5}, 422, "seed"),
        (TOE | {"seats": [PERSON]}, 422, "seats"),
        (TOE | {"seats": [PERSON, {"kind": "robot"}]}, 422, "seats[1].kind"),
        (TOE | {"seats": [PERSON, {"kind": "bot", "name": "tiny"}]}, 422, "seats[1].kind"),
        (TOE | {"seats": [PERSON, {"kind": "model", "name": "../x"}]}, 404, "seats[1].name"),
        (TOE | {"seats": [PERSON, MODEL | {"simulations": 10**6}]}, 422, "seats[1].simulations"),
        (TOE | {"seats": [PERSON, MODEL | {"temperature": -1}]}, 422, "seats[1].temperature"),
        (TOE | {"seats": [PERSON, BOT | {"temperature": 1}]}, 422, "seats[1].temperature"),
        (TOE | {"position": "nothing"}, 422, "position"),
        (TOE | {"file": "/etc/passwd"}, 422, "file"),
    ],
)
def test_what_can_not_be_opened_is_refused_by_field(body, status, field):
    async def work(guest):
        told = await guest.post("", status, **body)
        assert told["field"].startswith(field), told
        assert told["detail"] and "\n" not in told["detail"]

    visit(work)


def test_a_position_as_text_begins_a_game():
    async def work(guest):
        view = await guest.open(PERSON, BOT)
        view = await guest.move(view, "b2")
        text = (await guest.get(f"/{view['id']}/text", viewer="0", ply=1))["text"]
        again = await guest.open(PERSON, PERSON, position=text)
        assert again["to_move"] == 1 and again["scene"]["cells"] == ["...", ".1.", "..."]

    visit(work)


# ---- how many, and how long ----


def test_tables_are_limited_and_expire(monkeypatch):
    async def work(guest):
        first = await guest.open(PERSON, BOT)
        kept = await guest.open(PERSON, BOT)
        answer = await guest.http.delete(f"/v1/tables/{first['id']}")
        assert answer.status_code == 204
        await guest.get(f"/{first['id']}", 404)
        monkeypatch.setattr(tables_module, "LIMIT", 1)
        monkeypatch.setattr(tables_module, "SPARE_S", 3600.0)
        answer = await guest.http.post("/v1/tables", json=TOE)
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0
        monkeypatch.setattr(tables_module, "SPARE_S", 0.0)  # a full house lets go of the oldest
        await guest.open(PERSON, BOT)
        await guest.get(f"/{kept['id']}", 404)
        monkeypatch.setattr(tables_module, "LIMIT", 64)
        view = await guest.open(PERSON, BOT)
        monkeypatch.setattr(tables_module, "IDLE_S", -1.0)
        await guest.get(f"/{view['id']}", 404)

    visit(work)


def test_ids_can_not_be_guessed():
    async def work(guest):
        ids = [(await guest.open(PERSON, PERSON, seed=1))["id"] for _ in range(3)]
        assert len(set(ids)) == 3 and min(map(len, ids)) >= 20

    visit(work)
