"""MuZero on three seats against others: members of the league, kings of the hill."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import king as kings
from algorithms import league as leagues
from algorithms import muzero, optim
from algorithms.king import KingConfig
from algorithms.league import LeagueConfig
from algorithms.muzero import model_search, play, samples
from algorithms.search.config import SearchConfig
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys.latent import Dense, Switches

CONFIG = muzero.Config(
    games=16,
    steps=9,
    search=SearchConfig(num_simulations=4, max_num_considered_actions=4, q_scale="outcome"),
    replay_length=81,
    learn_after=60,
    batch_size=16,
    micro_batch=16,
    learn_steps=1,
    unroll=2,
    chunk_updates=2,
    optim=optim.OptimConfig(learning_rate=3e-3, warmup_steps=4),
)
MET = dataclasses.replace(
    CONFIG,
    league=LeagueConfig(
        share=0.75,
        groups=2,
        opponent_updates=2,
        snapshots=2,
        snapshot_updates=2,
        bots=("first",),
        bot_share=0.5,
        temperature=0.0,
    ),
)
KING = dataclasses.replace(CONFIG, king=KingConfig(enabled=True, period=2, temperature=0.0))


@functools.cache
def toy():
    game, _ = learners.toy(players=3)
    return game, Dense(game, game.viewer(), Switches())


@functools.cache
def trained(config, chunks):
    """States after each chunk, the first the fresh one, and the metrics of the last."""
    learner = muzero.make(*toy(), config)
    states = [learner.init(jax.random.key(0))]
    metrics = {}
    for _ in range(chunks):
        state, metrics = learner.run_chunk(learners.copy(states[-1]))
        states.append(state)
    return states, metrics


def bare(params, states):
    """What the network alone would play."""
    game, model = toy()
    view, seen = play.look(model, params, states)
    root, _ = model_search.root(game, model, params, states, view, seen)
    return np.asarray(jnp.argmax(root.prior_logits, axis=-1))


def last(state, steps):
    """(states [steps, B], action, train_policy) of the newest columns of the replay."""
    ring = state.replay
    columns = (int(ring.cursor) - steps + np.arange(steps)) % ring.game.shape[0]
    items = jax.tree.map(lambda x: x[columns], ring.items)
    states = samples.unpack(toy()[0], items["state"])
    return states, np.asarray(items["action"]), np.asarray(items["train_policy"])


# ---- the league ----


def test_members_move_for_their_teams_and_are_not_copied():
    states, metrics = trained(MET, 3)
    state = states[3]
    positions, action, copied = last(state, 9)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions)
    says = {2: np.argmax(np.asarray(flat.legal_action_mask), -1).reshape(9, 16)}
    for place in (0, 1):
        weights = jax.tree.map(lambda x, i=place: x[i], state.league.params)
        says[place] = bare(weights, flat).reshape(9, 16)
    seat = np.asarray(positions.current_player)
    team = np.asarray(leagues.sides(toy()[0], 2, 6))
    opponent = np.asarray(state.league.opponent)
    met = set()
    for row in range(16):
        group, n = divmod(row - 4, 6)
        for step in range(9):
            after = (seat[step, row] - team[group, n]) % 3 if row >= 4 else 0
            assert copied[step, row] == (after == 0)
            if after:
                member = opponent[group, after - 1]
                met.add(member)
                assert action[step, row] == says[member][step, row]
    assert len(met) > 1
    for name in ("league/win", "league/win/first", "league/win/snapshots", "league/games"):
        assert np.isfinite(metrics[name]), name


def test_the_league_resumes_exactly_and_is_told():
    states, metrics = trained(MET, 3)
    learner = muzero.make(*toy(), MET)
    again, same = learner.run_chunk(learners.copy(states[2]))
    learners.assert_equal(again, states[3])
    learners.assert_equal(same, metrics)
    assert sorted(np.asarray(again.league.born)) == [2, 4]
    (old, params), (new, _) = learner.members(again)
    assert (old, new) == (2, 4)
    learners.assert_equal(params, states[1].params)  # as they were after two updates
    told = learner.standings(again)
    assert set(told) == {f"league/{x}/{m}" for x in ("rate", "n") for m in ("2", "4", "first")}
    assert all(0 < told[f"league/rate/{m}"] < 1 for m in ("2", "4", "first"))


def test_without_others_nothing_is_kept():
    state = jax.eval_shape(muzero.make(*toy(), CONFIG).init, jax.random.key(0))
    assert state.league == () and state.hill == ()
    assert muzero.make(*toy(), CONFIG).standings is None


# ---- king of the hill ----


def test_each_team_is_king_in_turn():
    """Two updates each: the learner becomes the king of its team, and goes on as the next, with
    a fresh optimiser; all begin alike."""
    states, metrics = trained(KING, 4)
    assert [int(s.hill.active) for s in states] == [-1, 0, 1, 2, 0]
    assert [int(s.hill.since) for s in states[1:]] == [2, 2, 2, 2]
    assert [int(s.opt_state.count) for s in states[1:]] == [2, 2, 2, 2]
    king = lambda state, team: jax.tree.map(lambda x: x[team], state.hill.kings)  # noqa: E731
    for team in range(3):
        learners.assert_equal(king(states[1], team), states[0].params)
    learners.assert_equal(king(states[2], 0), states[1].params)
    learners.assert_equal(king(states[3], 1), states[2].params)
    learners.assert_equal(king(states[4], 2), states[3].params)
    learners.assert_equal(king(states[4], 0), states[1].params)  # where it goes on
    assert metrics["king/active"] == 0 and 0 <= metrics["king/win"] <= 1


def test_kings_move_for_the_others():
    states, _ = trained(KING, 4)
    positions, action, copied = last(states[4], 9)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions)
    seat = np.asarray(positions.current_player)
    np.testing.assert_array_equal(copied, seat == 0)
    for team in (1, 2):
        params = jax.tree.map(lambda x, i=team: x[i], states[4].hill.kings)
        says = bare(params, flat).reshape(9, 16)
        np.testing.assert_array_equal(action[seat == team], says[seat == team])


def test_the_hill_resumes_exactly():
    states, metrics = trained(KING, 4)
    again, same = muzero.make(*toy(), KING).run_chunk(learners.copy(states[3]))
    learners.assert_equal(again, states[4])
    learners.assert_equal(same, metrics)


def test_only_the_active_team_is_learned_from():
    """Whatever the others' policies were, the weights become the same."""
    states, _ = trained(KING, 4)
    ring = states[3].replay
    active = dataclasses.replace(states[3].hill, active=jnp.int32(0))  # of the next chunk
    mine = kings.moves(toy()[0], active, ring.items["state"])
    kept = ring.items["weights"]
    turned = {"others": jnp.where(mine[..., None], kept, kept[..., ::-1]), "all": kept[..., ::-1]}
    after = {}
    for name, weights in turned.items():
        changed = dataclasses.replace(ring, items=ring.items | dict(weights=weights))
        state = dataclasses.replace(states[3], replay=changed)
        after[name], _ = muzero.make(*toy(), KING).run_chunk(learners.copy(state))
    assert not bool(jnp.all(turned["others"] == kept))
    learners.assert_equal(after["others"].params, states[4].params)
    with pytest.raises(AssertionError):
        learners.assert_equal(after["all"].params, states[4].params)


# ---- settings ----


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("king", dict(king=KingConfig(enabled=True), league=MET.league)),
        ("king", dict(king=KingConfig(enabled=True), rival="first", rival_share=0.5)),
        ("rival_share", dict(league=MET.league, rival="first", rival_share=0.5)),
        ("league.share", dict(league=LeagueConfig(share=0.1))),
    ],
)
def test_what_can_not_be_together_is_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        dataclasses.replace(CONFIG, **options)


def test_a_bot_that_the_game_does_not_have_is_named():
    config = dataclasses.replace(CONFIG, league=dataclasses.replace(MET.league, bots=("frist",)))
    with pytest.raises(ValueError, match="^league.bots: unknown name 'frist'; did you mean first"):
        muzero.make(*toy(), config)


@pytest.mark.parametrize("options", [dict(period=0), dict(temperature=-1.0)])
def test_bad_settings_of_kings_are_named(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))}: "):
        KingConfig(**options)
