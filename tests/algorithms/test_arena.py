"""Games in a table equal games played one by one; pairs are fair."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import agents, arena, ratings, table
from jaxgames import core
from tests.toys import stakes  # noqa: F401  (registers "stakes")

MNK = core.make("mnk")
THREE = core.make("mnk", players=3)
RANDOM = agents.from_spec("random", MNK)


def _first(params, key, states, player):
    """The lowest legal action: a second, deterministic agent."""
    del params, key, player
    return jnp.argmax(states.legal_action_mask, axis=1).astype(jnp.int32)


def _weighted(params, key, states, player):
    """Picks by the weights `params` float32[A]."""
    del key, player
    return jnp.argmax(jnp.where(states.legal_action_mask, params, -jnp.inf), axis=1)


def _illegal(params, key, states, player):
    del params, key, states
    return jnp.full(player.shape, -1, jnp.int32)


FIRST = agents.Seat(agents.Agent("first", _first))
WEIGHTED = agents.Agent("weighted", _weighted)
ILLEGAL = agents.Seat(agents.Agent("illegal", _illegal))


def _keys(games, seed=0):
    deal, play = jax.random.split(jax.random.key(seed))
    return jax.random.split(deal, games), jax.random.split(play, games)


def _equal(a, b):
    for field in dataclasses.fields(table.Results):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


@pytest.fixture(scope="module")
def mixed():
    """40 games of random against first, in both orders."""
    assignment = np.arange(40)[:, None] % 2 ^ np.array([0, 1])
    return assignment, table.play_games(MNK, (RANDOM, FIRST), assignment, *_keys(40))


def test_results_do_not_depend_on_capacity(mixed):
    assignment, results = mixed
    for capacity in (7, 64):
        again = table.play_games(MNK, (RANDOM, FIRST), assignment, *_keys(40), capacity)
        _equal(results, again)


def test_results_do_not_depend_on_order(mixed):
    assignment, results = mixed
    order = np.random.default_rng(0).permutation(40)
    deal, play = _keys(40)
    again = table.play_games(
        MNK, (RANDOM, FIRST), assignment[order], deal[order], play[order], capacity=16
    )
    _equal(results[order], again)


def test_table_equals_one_game_at_a_time(mixed):
    assignment, results = mixed
    deal_keys, play_keys = _keys(40)
    step = jax.jit(MNK.step)
    for g in range(6):
        deal, chance = jax.random.split(deal_keys[g])
        state, returns, steps = MNK.init(deal), np.zeros(2), 0
        while not bool(state.done):
            agent = (RANDOM, FIRST)[assignment[g, int(state.current_player)]].agent
            key = jax.random.fold_in(play_keys[g], steps)[None]
            batch = jax.tree.map(lambda x: x[None], state)
            action = agent.act(None, key, batch, batch.current_player)[0]
            state = step(state, action, jax.random.fold_in(chance, steps))
            returns, steps = returns + np.asarray(state.rewards), steps + 1
        np.testing.assert_array_equal(results.returns[g], returns)
        assert results.steps[g] == steps


def test_an_agent_never_acts_on_rows_of_another():
    """`first` against an agent that forfeits at once: whoever holds it loses, in one step."""
    assignment = np.array([[0, 1], [1, 0]] * 5)
    results = table.play_games(MNK, (FIRST, ILLEGAL), assignment, *_keys(10), capacity=3)
    assert results.illegal.all()
    np.testing.assert_array_equal(results.steps, [2, 1] * 5)
    np.testing.assert_array_equal(results.returns, [[1, -1], [-1, 1]] * 5)


def _stubborn(params, key, states, player):
    """As `_first`, but forfeits where nothing is left to choose."""
    forced = states.legal_action_mask.sum(axis=1) == 1
    return jnp.where(forced, -1, _first(params, key, states, player))


def test_nobody_is_asked_about_forced_moves(mixed):
    """Twelve cells, four in a row: `first` needs all of them in some games against random."""
    game = core.make("mnk", rows=3, cols=4, k=4)
    stubborn = agents.Seat(agents.Agent("stubborn", _stubborn))
    assignment, _ = mixed
    found = [
        table.play_games(game, (agents.from_spec("random", game), seat), assignment, *_keys(40))
        for seat in (FIRST, stubborn)
    ]
    _equal(*found)
    assert not found[0].illegal.any() and (found[0].steps == 12).any()


def test_new_weights_need_no_new_trace():
    low, high = jnp.arange(9.0), -jnp.arange(9.0)
    before = table._advance._cache_size()
    scores = []
    for weights in (low, high, low):
        seats = (agents.Seat(WEIGHTED, weights), FIRST)
        results = table.play_games(MNK, seats, np.array([[0, 1]] * 3), *_keys(3), capacity=3)
        scores.append(results.returns.tolist())
    assert table._advance._cache_size() == before + 1
    assert scores[0] == scores[2]


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        e = arena.evaluate_paired(MNK, RANDOM, FIRST, 3, seed=0)
    assert e.games == 6


def test_progress_reaches_the_end():
    seen = []
    table.play_games(
        MNK,
        (RANDOM,),
        np.zeros((40, 2), int),
        *_keys(40),
        capacity=40,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == sorted(seen)
    assert seen[-1] == (40, 40)


@pytest.mark.parametrize("assignment", [np.zeros((3, 3)), np.full((3, 2), 2), np.zeros((0, 2))])
def test_bad_assignments_are_refused(assignment):
    with pytest.raises(ValueError, match="^assignment:"):
        table.play_games(MNK, (RANDOM, FIRST), assignment, *_keys(3))


# ---- paired evaluation ----


def test_seatings_give_every_team_equally():
    np.testing.assert_array_equal(arena.seatings(2), [[0, 1], [1, 0]])
    three = arena.seatings(3)
    assert three[:3].tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert three[3:].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    for teams in (2, 3, 4):
        np.testing.assert_array_equal(arena.seatings(teams).mean(axis=0), np.full(teams, 0.5))
    with pytest.raises(ValueError, match="two teams"):
        arena.seatings(1)


def test_first_place_shares_ties():
    returns = [[1, -1, 1, -1], [0, 0, 0, 0], [-0.5, 0.2, -0.5, 0.2]]
    np.testing.assert_allclose(
        arena.first_place(np.array(returns, np.float32), (0, 1, 0, 1)), [[1, 0], [0.5, 0.5], [0, 1]]
    )


@pytest.fixture(scope="module")
def evaluation():
    return arena.evaluate_paired(MNK, FIRST, RANDOM, 200, seed=5)


def test_evaluation_adds_up(evaluation):
    e, report = evaluation, evaluation.to_json()
    json.dumps(report, allow_nan=False)
    assert (e.groups, e.games) == (200, 400)
    assert report["illegal"] == 0
    rows = e.rows()
    assert len(rows) == 400
    assert np.mean([row["score"] for row in rows]) == pytest.approx(e.winrate.mean)
    for row in rows:
        ours = row["seats"].index("first")
        want = (row["returns"][ours] - row["returns"][1 - ours]) / 4 + 0.5
        assert row["score"] == want
    # A against B from both sides is all there is: their shares of every team sum up.
    first, second = report["teams"]
    assert first["a"]["mean"] + second["b"]["mean"] == pytest.approx(1)
    assert (first["a"]["mean"] + second["a"]["mean"]) / 2 == pytest.approx(e.winrate.mean)


def test_swapped_agents_swap_the_score(evaluation):
    """B against A is the mirror image, up to the chance of 400 games."""
    mirror = arena.evaluate_paired(MNK, RANDOM, FIRST, 200, seed=5)
    assert evaluation.winrate.low > 0.5 > mirror.winrate.high
    assert mirror.winrate.low < 1 - evaluation.winrate.mean < mirror.winrate.high


def test_more_pairs_prolong_a_shorter_run(evaluation):
    short = arena.evaluate_paired(MNK, FIRST, RANDOM, 20, seed=5)
    assert short.rows() == evaluation.rows()[:40]


def test_rounds_do_not_change_results(evaluation, monkeypatch):
    monkeypatch.setattr(arena, "MAX_GAMES", 120)  # rounds of 60, 60, 60 and 20 pairs
    again = arena.evaluate_paired(MNK, FIRST, RANDOM, 200, seed=5)
    assert again.rows() == evaluation.rows()


def test_equal_agents_score_one_half():
    e = arena.evaluate_paired(MNK, RANDOM, RANDOM, 500, seed=1)
    assert e.winrate.low < 0.5 < e.winrate.high
    assert e.winrate_groups.low < 0.5 < e.winrate_groups.high


def test_sprt_stops_early_and_says_so():
    config = ratings.SprtConfig(enabled=True, look=20)
    e = arena.evaluate_paired(MNK, FIRST, ILLEGAL, 2000, seed=0, sprt=config)
    assert e.sprt["verdict"] == "accept"
    assert e.groups < 200
    json.dumps(e.to_json(), allow_nan=False)
    e = arena.evaluate_paired(MNK, RANDOM, RANDOM, 40, seed=0, sprt=config)
    assert e.sprt["verdict"] == "undecided"
    assert e.groups == 40


def test_sprt_does_not_look_early():
    """30 pairs with a look every 20: the first look sees 20 groups, not 15."""
    config = ratings.SprtConfig(enabled=True, look=20)
    e = arena.evaluate_paired(MNK, FIRST, ILLEGAL, 30, seed=0, sprt=config)
    assert e.sprt["verdict"] == "accept"
    assert e.groups == 20


def test_gains_are_returns_in_the_games_unit():
    game = core.make("stakes")
    seats = FIRST, agents.from_spec("random", game)
    e = arena.evaluate_paired(game, *seats, 60, seed=5)
    gain = e.to_json()["gain"]
    assert gain["unit"] == "points"
    ours = [row["returns"][row["seats"].index("first")] * 3 for row in e.rows()]
    assert gain["mean"] == pytest.approx(np.mean(ours))
    assert gain["low"] < gain["mean"] < gain["high"]
    assert gain["shares"].keys() == {"-3", "0", "3"}
    assert gain["shares"]["3"] == np.mean(np.isclose(ours, 3))
    assert sum(gain["shares"].values()) == pytest.approx(1)
    plain = arena.evaluate_paired(game.forms["two"], *seats, 3, seed=5)
    assert plain.to_json()["gain"] is None


# ---- all against all ----


def test_a_round_robin_is_all_its_pairs(evaluation, monkeypatch):
    seats = FIRST, RANDOM, agents.Seat(WEIGHTED, -jnp.arange(9.0))
    found = arena.round_robin(MNK, seats, 30, seed=5)
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    assert found[0, 1].rows() == evaluation.rows()[:60]
    alone = arena.evaluate_paired(MNK, *seats[1:], 30, seed=5)
    assert found[1, 2].rows() == alone.rows()
    assert found[0, 2].names == ("first", "weighted")
    monkeypatch.setattr(arena, "MAX_GAMES", 70)  # tables of 60
    for pair, e in arena.round_robin(MNK, seats, 30, seed=5).items():
        assert e.rows() == found[pair].rows()


def test_what_is_no_tournament_is_refused():
    for game, seats, pairs, field in (
        (MNK, (FIRST,), 3, "agents"),
        (MNK, (FIRST, RANDOM), 0, "pairs"),
        (THREE, (FIRST, RANDOM), 3, "game"),
    ):
        with pytest.raises(ValueError, match=f"^{field}: "):
            arena.round_robin(game, seats, pairs, seed=0)


@pytest.mark.parametrize("field", ["pairs", "capacity", "bootstrap"])
def test_eval_config_checks_its_ranges(field):
    with pytest.raises(ValueError, match=f"^{field}:"):
        arena.EvalConfig(**{field: -1})


def test_forms_are_named_once():
    with pytest.raises(ValueError, match="^forms: each once"):
        arena.EvalConfig(forms=("a", "a"))


# ---- three teams ----


@pytest.fixture(scope="module")
def three():
    """`first`, which wins by moving first, against random: 60 groups of six seatings."""
    seat = agents.from_spec("random", THREE)
    return arena.evaluate_paired(THREE, agents.Seat(FIRST.agent), seat, 60, seed=2, opening=1)


def test_three_teams_count_one_against_two_copies(three):
    """The rate is that of A alone, with a fair share of 1/3; a game of three is no duel."""
    e, report = three, three.to_json()
    json.dumps(report, allow_nan=False)
    alone = [row["score"] for row in e.rows() if row["seats"].count("first") == 1]
    assert len(alone) == report["winrate_games"] == 180 and report["games"] == 360
    assert report["winrate"]["mean"] == pytest.approx(np.mean(alone))
    assert report["winrate_groups"]["mean"] == pytest.approx(np.mean(alone))
    assert report["even"] == pytest.approx(1 / 3) and report["elo"] is None
    assert e.places.shape == (60, 6, 3)


def test_three_teams_report_places_and_payoffs(three):
    e, report = three, three.to_json()
    for row, copies in zip(report["lineups"], (1, 2), strict=True):
        games = [r for r in e.rows() if r["seats"].count("first") == copies]
        assert row["teams"] == copies and row["even"] == pytest.approx(copies / 3)
        for key, name in (("a", "first"), ("b", "random")):
            stands = row[key]
            assert sum(stands["places"]) == pytest.approx(1)
            returns = [x for r in games for s, x in zip(r["seats"], r["returns"]) if s == name]  # noqa: B905
            assert stands["payoff"]["mean"] == pytest.approx(np.mean(returns), abs=1e-6)
            assert stands["payoff"]["low"] <= stands["payoff"]["mean"] <= stands["payoff"]["high"]
            by_seat = np.array(stands["seats"])
            np.testing.assert_allclose(by_seat.mean(axis=0), stands["places"])
        # Together the six teams of a lineup's seatings have every place twice.
        held = np.array([copies, 3 - copies])
        both = np.array([row["a"]["places"], row["b"]["places"]])
        np.testing.assert_allclose(held @ both, np.ones(3))
        assert row["mean"] == pytest.approx(copies * row["a"]["places"][0])


def test_equal_agents_of_three_share_alike():
    seat = agents.from_spec("random", THREE)
    e = arena.evaluate_paired(THREE, seat, seat, 60, seed=4)
    assert e.winrate.low < 1 / 3 < e.winrate.high < 0.5
    for row in e.by_lineup():
        assert row["low"] < row["even"] < row["high"]


# ---- openings ----


def test_openings_make_games_different():
    """Two agents without chance play one game without an opening, many with one."""
    seats = FIRST, agents.Seat(WEIGHTED, -jnp.arange(9.0))
    same = arena.evaluate_paired(MNK, *seats, 20, seed=0)
    assert len(np.unique(same.results.returns.reshape(20, -1), axis=0)) == 1
    opened = arena.evaluate_paired(MNK, *seats, 20, seed=0, opening=3)
    assert len(np.unique(opened.results.steps.reshape(20, -1), axis=0)) > 3


def test_no_opening_ends_a_game():
    keys = jnp.repeat(jax.random.split(jax.random.key(0), 32), 2)
    opened, _ = table._deal(MNK, keys, 6)
    cells, steps = np.asarray(opened.states.cells), np.asarray(opened.steps)
    assert not opened.states.done.any() and not opened.returns.any()
    np.testing.assert_array_equal(steps, (cells != 0).sum(axis=(1, 2)))
    assert (steps >= 3).all() and (steps == 6).any() and (steps < 6).any()
    # Equal keys, as in a group, make equal openings.
    np.testing.assert_array_equal(cells[::2], cells[1::2])
    assert len(np.unique(cells, axis=0)) > 20
