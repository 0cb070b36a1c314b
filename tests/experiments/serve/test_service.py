"""Questions in batches on one device thread."""

import asyncio
import concurrent.futures
import dataclasses
import functools
import threading
import time

import numpy as np
import pytest

from experiments.serve import metrics, questions
from experiments.serve.problems import Problem
from experiments.serve.programs import Key
from experiments.serve.service import Budget, Question, Service
from jaxgames import core
from jaxgames.match import Match
from tests.experiments.serve import tiny


@pytest.fixture(scope="module")
def service():
    return tiny.served().state.service


@functools.cache
def positions():
    """Eight positions of tic-tac-toe."""
    rng, found = np.random.default_rng(0), []
    for seed in range(8):
        match = Match(tiny.GAME, seed)
        for _ in range(seed % 4):
            match.play(int(rng.choice([a for a, _ in match.legal()])))
        found.append(match.state)
    return found


def ask(service, number=0, name="tiny", budget=None, **more):
    model = service.models.find(tiny.GAME, name)
    return Question(model, positions()[number], budget or Budget(), **more)


def think(service, *asked):
    """The thoughts, in one event loop; problems are returned."""

    async def main():
        return await asyncio.gather(*map(service.think, asked), return_exceptions=True)

    return asyncio.run(main())


@pytest.mark.parametrize("batches", [(4,), pytest.param((1, 2, 8), marks=pytest.mark.slow)])
def test_batches_answer_as_single_questions_do(batches):
    """Alone in the batch, and in a program of its own."""
    service = tiny.served(batches).state.service
    before = metrics.compiles()
    asked = [ask(service, n, seed=n) for n in range(8)]
    together = think(service, *asked)
    assert max(t.batch for t in together) >= 4
    for question, one in zip(asked, together, strict=True):
        (alone,) = think(service, question)
        assert alone.batch == 1 and alone.action == one.action
        for name in ("weights", "value", "prior", "visits", "q"):
            pair = (getattr(alone.analysis, name), getattr(one.analysis, name))
            np.testing.assert_allclose(*pair, atol=1e-5, err_msg=name)
        assert bool(question.state.legal_action_mask[one.action])
        assert one.simulations == 32 and one.stopped_by == "simulations"
        assert one.analysis.visits.sum() == pytest.approx(32)
    assert metrics.compiles() == before


def test_seeds_repeat_and_bots_draw_from_theirs(service):
    asked = [ask(service, 0, "random", seed=n % 6) for n in range(12)]
    actions = [t.action for t in think(service, *asked)]
    assert actions[:6] == actions[6:] and len(set(actions)) > 1


def test_what_a_budget_means(service):
    policy, bot = think(
        service, ask(service, budget=Budget(policy=True)), ask(service, name="random")
    )
    assert (policy.simulations, policy.stopped_by) == (0, "policy")
    assert policy.action == int(np.argmax(policy.analysis.prior))
    assert bot.stopped_by == "bot" and bot.analysis is None
    few, none, many = (Budget(simulations=n) for n in (3, 32, 33))
    assert think(service, ask(service, budget=few))[0].simulations == 32
    assert think(service, ask(service, budget=none))[0].simulations == 32
    (error,) = think(service, ask(service, budget=many))
    assert (error.code, error.field) == ("invalid", "budget.simulations")


def test_time_stops_a_search_between_rounds(service):
    key = Key(service.models.find(tiny.GAME, "tiny"), tiny.GAME, "search", 32)
    pace, service.programs._pace[key] = service.programs._pace[key], 40.0
    try:  # the thread takes 4 simulations a round then, and 1 ms is over after the first
        (thought,) = think(service, ask(service, budget=Budget(time_ms=1.0)))
    finally:
        service.programs._pace[key] = pace
    assert thought.stopped_by == "time" and 1 <= thought.simulations < 32
    assert thought.analysis.visits.sum() == pytest.approx(thought.simulations)


def test_time_becomes_a_number_of_simulations(service, monkeypatch):
    model = service.models.find(tiny.GAME, "tiny")
    changes = dict(simulations=(8, 32, 128), max_simulations=128, lazy=True)
    monkeypatch.setattr(service, "settings", dataclasses.replace(service.settings, **changes))
    monkeypatch.setattr(service.programs, "_pace", {Key(model, tiny.GAME, "search", 32): 2.0})
    found = [service._in_time(model, tiny.GAME, ms) for ms in (5, 17, 100, 300)]
    assert found == [32, 8, 32, 128]
    monkeypatch.setattr(service, "settings", dataclasses.replace(service.settings, lazy=False))
    assert [service._in_time(model, tiny.GAME, ms) for ms in (17, 300)] == [32, 32]
    monkeypatch.setattr(service.programs, "_pace", {})
    assert service._in_time(model, tiny.GAME, 5) == 32


def test_a_watched_search_tells_how_it_stands(service):
    heard = []
    question = ask(service, 1, seed=1, progress=heard.append, lines=True, tree=20)
    (thought,), (plain,) = think(service, question), think(service, ask(service, 1, seed=1))
    assert [t.simulations for t in heard][0] <= 16 and heard[-1].simulations < 32
    assert thought.action == plain.action
    np.testing.assert_allclose(thought.analysis.visits, plain.analysis.visits)
    line = thought.lines[thought.action]
    assert line[0]["text"] == tiny.GAME.action_to_text(None, thought.action)
    assert thought.tree["children"][0]["visits"] > 0 and thought.tree["seat"] == 1


def test_a_temperature_loosens_the_choice(service):
    asked = [ask(service, 0, seed=n, temperature=5.0) for n in range(30)]
    thoughts = think(service, *asked[:10]) + think(service, *asked[10:20], *asked[20:])
    actions = {t.action for t in thoughts}
    assert len(actions) > 1
    assert all(t.analysis.visits[t.action] > 0 for t in thoughts)
    again = think(service, *asked[:10])
    assert [t.action for t in again] == [t.action for t in thoughts[:10]]


def test_what_is_not_compiled_is_refused(service):
    other = core.make("eight_in_a_row", "gomoku")
    model = service.models.find(other, "threat")
    (error,) = think(service, Question(model, Match(other, 0).state))
    assert error.code == "not_served"
    with pytest.raises(Problem, match="not among"):
        service.check_rules(other)


# ---- those who leave ----


@pytest.fixture
def stopped(service):
    """The service with its device held until the test lets go."""
    held, holding = threading.Event(), threading.Event()
    round_ = service._turn

    def wait():
        holding.set()
        held.wait(20)
        round_()

    service._turn = wait
    assert holding.wait(20)
    yield held
    held.set()
    service._turn = round_
    settle(service)


async def queued(service, number):
    until = time.monotonic() + 20
    while service.depth() < number:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


def settle(service):
    until = time.monotonic() + 20
    while service.depth() or service._jobs:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_cancelled_are_dropped_and_others_answered(service, stopped):
    async def main():
        tasks = [asyncio.ensure_future(service.think(ask(service, n))) for n in range(6)]
        await queued(service, 6)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks[::2])
        stopped.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(main())
    assert all(isinstance(t, asyncio.CancelledError) for t in found[::2])
    assert [t.batch for t in found[1::2]] == [3, 3, 3]
    settle(service)


def test_a_result_for_one_who_left_ends_nothing(service, monkeypatch):
    """Cancelled between the batch and its result (a result set on a dead future raises)."""

    def late(item, thought, settle=questions.Item.settle):
        item.future.cancel()
        settle(item, thought)

    with monkeypatch.context() as patch:
        patch.setattr(questions.Item, "settle", late)
        (gone,) = think(service, ask(service))
    assert isinstance(gone, asyncio.CancelledError)
    (thought,) = think(service, ask(service))
    assert thought.simulations == 32 and service.ready


def test_deadlines(service, stopped):
    late, fine = ask(service, deadline_s=0.1), ask(service, 1)

    async def main():
        task = asyncio.ensure_future(service.think(fine))
        with pytest.raises(Problem) as error:
            await service.think(late)
        stopped.set()
        return error.value, await task

    problem, thought = asyncio.run(main())
    assert problem.code == "deadline" and problem.retry_after == 1
    assert thought.batch == 1  # the expired one is in no batch
    settle(service)


def test_a_full_queue_says_when_to_come_again(service, stopped):
    limit = service.settings.queue

    async def main():
        tasks = [asyncio.ensure_future(service.think(ask(service, n % 8))) for n in range(limit)]
        await queued(service, limit)
        with pytest.raises(Problem) as error:
            await service.think(ask(service))
        stopped.set()
        return error.value, await asyncio.gather(*tasks)

    problem, thoughts = asyncio.run(main())
    assert (problem.code, problem.status, problem.retry_after) == ("queue_full", 429, 1)
    assert len(thoughts) == limit
    settle(service)


def test_an_error_in_a_batch_is_told_and_ends_nothing(service, monkeypatch):
    from experiments.serve import rounds

    def broken(job):
        raise RuntimeError("a bad batch")

    with monkeypatch.context() as patch:
        patch.setattr(rounds.Job, "_begin", broken)
        (error,) = think(service, ask(service))
    assert (error.code, error.status) == ("internal", 500)
    with monkeypatch.context() as patch:
        patch.setattr(service, "_form", lambda: 1 / 0)
        time.sleep(0.05)
    (thought,) = think(service, ask(service))
    assert thought.simulations == 32 and service.ready


def test_no_wake_up_is_lost(service):
    """Questions from many threads, each put while the device may be falling asleep."""

    def one(number):
        time.sleep(number % 7 / 500)
        return think(service, ask(service, number % 8))[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(40)))
    assert all(t.simulations == 32 and t.queue_ms < 5000 for t in found)


def test_a_stuck_device_is_not_ready(service, monkeypatch):
    assert service.ready
    monkeypatch.setattr(service, "_heard", time.monotonic() - 1000)
    with monkeypatch.context() as patch:
        patch.setattr(service, "_turn", lambda: time.sleep(0.5))
        time.sleep(0.02)
        service._heard = time.monotonic() - 1000
        assert "not heard" in service.why_not()
    until = time.monotonic() + 20
    while not service.ready:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_files_that_change_after_the_start_are_not_served(tmp_path):
    from configs import ConfigError
    from experiments.serve.models import Models

    tiny.save(tmp_path, "one")
    models = Models(str(tmp_path))
    model = models.find(tiny.GAME, "one")
    tiny.save(tmp_path, "one", seed=1)
    with pytest.raises(Exception, match="changed since the start"):
        model.seat(tiny.GAME, "sims=4")
    with pytest.raises(ConfigError, match=r"serve\.models: unknown name 'two'"):
        Service(tiny.settings(models=("two",)), models)


def test_compiled_on_demand():
    app = tiny.apps.build(tiny.settings(lazy=True, models=("random",)))
    service = tiny.warm(app).state.service
    try:
        before = service.programs.keys()
        (thought,) = think(service, ask(service, budget=Budget(policy=True)))
        (key,) = service.programs.keys() - before
        assert (key.mode, thought.stopped_by) == ("policy", "policy")
        broken = dataclasses.replace(service.models.find(tiny.GAME, "tiny"), spec="/nowhere")
        question = Question(broken, positions()[0], Budget(policy=True))
        (error,) = think(service, question)
        assert error.code == "not_served"
        (bot,) = think(service, ask(service, name="random"))
        assert bot.stopped_by == "bot"
    finally:
        service.stop()
    (error,) = think(service, ask(service, name="random"))
    assert error.code == "not_ready"
