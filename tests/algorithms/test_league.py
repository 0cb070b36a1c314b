"""The league: who leaves it, who is met, who moves, which games count; the same for any teams."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import league as leagues
from algorithms import selfplay
from algorithms.league import LeagueConfig
from jaxgames import core
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)

TWO = LeagueConfig(
    share=1.0, groups=2, opponent_updates=4, snapshots=3, bots=("first",), bot_share=0.5
)


def fresh(config=TWO, rows=4, game=None):
    game = game or learners.toy()[0]
    return leagues.start(game, config, {"w": jnp.zeros(2)}, rows * config.groups)


def league_of(born, games, wins):
    """Three places and one bot."""
    return dataclasses.replace(
        fresh(rows=2),
        born=jnp.array(born, jnp.int32),
        taken=jnp.int32(sum(b >= 0 for b in born)),
        games=jnp.array([*games, 99.0]),
        wins=jnp.array([*wins, 99.0]),
    )


# ---- who is in it ----


def test_members_are_told_apart_by_their_birth():
    league = league_of([30, -1, -1], [0] * 3, [0] * 3)
    league = leagues.snapshot(league, {"w": jnp.full(2, 7.0)}, jnp.int32(50))
    (old, zeros), (new, sevens) = leagues.members(league)
    assert (old, new) == (30, 50)
    np.testing.assert_array_equal(zeros["w"], [0, 0])
    np.testing.assert_array_equal(sevens["w"], [7, 7])


@pytest.mark.parametrize(
    ("born", "games", "wins", "oldest", "weakest"),
    [
        ([30, 10, 20], [40, 40, 40], [30, 20, 10], 1, 0),  # the one that is beaten most
        ([30, 10, 20], [40, 40, 5], [10, 20, 5], 1, 1),  # five games do not tell
        ([30, 10, 20], [5, 5, 5], [5, 0, 0], 1, 1),  # nothing is known: the oldest
        ([30, 10, 20], [40, 40, 40], [20, 10, 20], 1, 2),  # equals: the older
        ([-1, 10, -1], [0, 40, 0], [0, 40, 0], 0, 0),  # empty places first
        ([30, 10, -1], [40, 40, 40], [40, 20, 0], 2, 2),
    ],
)
def test_who_goes(born, games, wins, oldest, weakest):
    league = league_of(born, games, wins)
    for evict, place in (("oldest", oldest), ("weakest", weakest)):
        assert int(leagues.place_to_fill(league, evict)) == place, evict
        after = leagues.snapshot(league, {"w": jnp.ones(2)}, jnp.int32(50), evict)
        np.testing.assert_array_equal(np.flatnonzero(after.params["w"][:, 0]), [place])
        assert int(after.born[place]) == 50 and float(after.games[place]) == 0
        kept = [p for p in range(3) if p != place]
        np.testing.assert_array_equal(after.born[np.array(kept)], np.array(born)[kept])


def test_the_oldest_snapshot_goes_first():
    league = fresh()
    for now in range(5):
        league = leagues.snapshot(league, {"w": jnp.full(2, float(now))}, jnp.int32(now))
    np.testing.assert_array_equal(league.born, [3, 4, 2])
    np.testing.assert_array_equal(league.params["w"][:, 0], [3, 4, 2])
    assert int(league.taken) == 5


def test_a_new_snapshot_has_no_record():
    opponent = jnp.array([[0], [1]])
    counts = dict(wins=jnp.full(4, 3.0), games=jnp.full(4, 4.0), opponent=opponent)
    league = leagues.snapshot(
        dataclasses.replace(fresh(), **counts), {"w": jnp.ones(2)}, jnp.int32(1)
    )
    np.testing.assert_array_equal(league.games, [0, 4, 4, 4])
    np.testing.assert_array_equal(league.fair, [[False] * 4, [True] * 4])


def test_standings_name_members():
    league = league_of([30, -1, 10], [8, 0, 2], [8, 0, 1])
    assert leagues.standings(league, ["first"]) == {
        "league/rate/30": pytest.approx(0.9), "league/n/30": 8.0,
        "league/rate/10": pytest.approx(0.5), "league/n/10": 2.0,
        "league/rate/first": pytest.approx(100 / 101), "league/n/first": 99.0,
    }  # fmt: skip


# ---- who is met ----


def test_weights_prefer_who_is_hard_to_beat():
    config = dataclasses.replace(TWO, bots=("first", "random"), bot_share=0.25)
    league = dataclasses.replace(
        fresh(config),
        born=jnp.array([5, 9, -1]),
        taken=jnp.int32(2),
        games=jnp.array([8.0, 8.0, 0.0, 8.0, 98.0]),
        wins=jnp.array([7.0, 1.0, 0.0, 4.0, 97.0]),
    )
    got = np.asarray(leagues.weights(league, config))
    np.testing.assert_allclose(got[:3], [0.75 * 0.2, 0.75 * 0.8, 0.0], rtol=1e-5)
    np.testing.assert_allclose(got[3:], 0.25 * np.array([0.5, 0.02]) / 0.52, rtol=1e-5)
    alike = dataclasses.replace(config, power=0.0, bot_share=0.0)
    np.testing.assert_allclose(leagues.weights(league, alike), [0.5, 0.5, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(leagues.weights(fresh(config), config), [0, 0, 0, 0.5, 0.5])
    # However small the numbers become: who is hardest is met, and no empty place.
    steep = dataclasses.replace(config, power=1e3)
    np.testing.assert_allclose(leagues.weights(league, steep), [0, 0.75, 0, 0.25, 0], atol=1e-6)
    # Who is beaten as often as not is met most; never and always are the same.
    even = dataclasses.replace(config, pfsp="variance")
    got = np.asarray(leagues.weights(league, even))
    np.testing.assert_allclose(got[:3], [0.375, 0.375, 0.0], rtol=1e-5)
    np.testing.assert_allclose(got[3] / got[4], 0.25 / (0.02 * 0.98), rtol=1e-4)


def test_groups_change_opponents_in_turn():
    league = dataclasses.replace(fresh(), born=jnp.array([0, 0, 0]), taken=jnp.int32(3))
    draw = jax.jit(leagues.draw, static_argnums=3)
    seen = [set(), set()]
    changed = []
    for turn in range(40):
        new = draw(league, jax.random.key(turn), jnp.int32(turn), TWO)
        moved = np.asarray(new.opponent != league.opponent)[:, 0]
        np.testing.assert_array_equal(new.fair, np.asarray(league.fair) & ~moved[:, None])
        changed += [(turn % 4, g) for g in np.flatnonzero(moved) if turn]
        for g in (0, 1):
            seen[g].add(int(new.opponent[g, 0]))
        league = dataclasses.replace(new, fair=jnp.ones((2, 4), bool))
    assert set(changed) == {(0, 0), (2, 1)}
    assert seen == [{0, 1, 2, 3}] * 2


def test_the_others_are_drawn_independently():
    game = core.make("mnk", players=3)
    config = LeagueConfig(share=1.0, groups=400, snapshots=2, opponent_updates=1)
    league = dataclasses.replace(fresh(config, 1, game), born=jnp.zeros(2, jnp.int32))
    drawn = np.asarray(leagues.draw(league, jax.random.key(0), jnp.int32(0), config).opponent)
    assert drawn.shape == (400, 2)
    pairs = np.bincount(drawn @ [2, 1], minlength=4)
    assert pairs.min() > 70 and pairs.max() < 130  # each of the four pairs about 100 times


# ---- which games count ----


def test_only_whole_games_count():
    """Two groups of two rows; the first row of group 0 began against somebody else."""
    league = dataclasses.replace(
        fresh(rows=2),
        opponent=jnp.array([[1], [3]]),
        fair=jnp.array([[False, True], [True, True]]),
        games=jnp.array([2.0, 2.0, 2.0, 2.0]),
    )
    done = jnp.array([[[1, 1], [0, 0]], [[0, 0], [0, 0]], [[1, 0], [0, 1]]], bool)
    score = jnp.array([[[1, 1], [0, 0]], [[0, 0], [0, 0]], [[0.5, 0], [0, 1]]])[..., None]
    got = leagues.record(league, done, score, 0.5)
    np.testing.assert_array_equal(got.games, [1, 1 + 2, 1, 1 + 1])
    np.testing.assert_array_equal(got.wins, [0, 1.5, 0, 1])
    assert got.fair.all()
    same = dataclasses.replace(league, opponent=jnp.array([[1], [1]]))
    same = leagues.record(same, done, score, 0.5)
    np.testing.assert_array_equal(same.games, [1, 1 + 3, 1, 1])


def test_special_games_do_not_count():
    league = league_of([0, 0, 0], [0, 0, 0], [0, 0, 0])
    league = dataclasses.replace(league, opponent=jnp.array([[0], [2]], jnp.int32))
    done = jnp.array([[[1, 1], [0, 1]], [[1, 0], [1, 0]]], bool)
    special = jnp.array([[[1, 0], [0, 0]], [[0, 0], [1, 1]]], bool)
    got = leagues.record(league, done, jnp.ones((2, 2, 2, 1)), 1.0, special)
    np.testing.assert_array_equal(got.games, [2, 0, 1, 99])
    np.testing.assert_array_equal(got.wins, [2, 0, 1, 99])


def test_three_teams_are_two_comparisons():
    """The teams after the learner's, in turn; a tie is half, also against two copies."""
    outcome = jnp.array([1.0, -0.2, -1.0])
    for team, want in ((0, [1, 1]), (1, [1, 0]), (2, [0, 0])):
        np.testing.assert_array_equal(leagues.above(outcome, jnp.int32(team)), want)
    np.testing.assert_array_equal(
        leagues.above(jnp.array([0.4, 0.4, -1.0]), jnp.int32(1)), [1, 0.5]
    )
    game = core.make("mnk", players=3)
    league = dataclasses.replace(fresh(TWO, 1, game), opponent=jnp.array([[0, 3], [2, 2]]))
    score = jnp.array([[[[1.0, 0.5]], [[0.0, 1.0]]]])
    got = leagues.record(league, jnp.ones((1, 2, 1), bool), score, 1.0)
    np.testing.assert_array_equal(got.games, [1, 0, 2, 1])
    np.testing.assert_array_equal(got.wins, [1, 0, 1, 0.5])


# ---- a planted weak snapshot ----

THREE = LeagueConfig(share=0.75, groups=6, opponent_updates=1, snapshots=2, fade=0.9)
GAMES = 96


def greedy(game, key, states):
    """Wins at once where that is possible, else moves at random."""

    def one(state, key):
        after = jax.vmap(game.step, (None, 0, None))(state, jnp.arange(game.num_actions), key)
        wins = after.rewards[:, state.current_player] > 0
        return jnp.where(wins.any(), jnp.argmax(wins), core.random_bot(state, key))

    keys = jax.random.split(key, states.current_player.shape[0])
    with jax.debug_key_reuse(False):  # the rules leave nothing to chance
        return jax.vmap(one)(states, keys).astype(jnp.int32)


def test_a_planted_weak_snapshot_is_met_less():
    """The learner is greedy, and so is one of its two snapshots; the other moves at random. Where
    members are met they move, each for its team; the weak one is beaten, and loses weight."""
    game = core.make("mnk", players=3, rows=4, k=2)
    key, actor_key = jax.random.split(jax.random.key(0))
    league = leagues.start(game, THREE, jnp.float32(0.0), GAMES)
    for now, strong in ((0, 1.0), (1, 0.0)):
        league = leagues.snapshot(league, jnp.float32(strong), jnp.int32(now))
    actor = selfplay.start(game, actor_key, GAMES, 0)

    def either(strong, key, states, seen):
        random_key, key = jax.random.split(key)
        weak = leagues.bot(game, "random")((), random_key, states, seen)
        return jnp.where(strong > 0, greedy(game, key, states), weak)

    @jax.jit
    def update(league, actor, key, turn):
        draw_key, play_key = jax.random.split(key)
        league = leagues.draw(league, draw_key, turn, THREE)

        def choose(key, states):
            key, own_key = jax.random.split(key)
            action = greedy(game, own_key, states)
            return leagues.meet(game, league, either, [], key, states, action)

        actor, played, _ = selfplay.play(game, choose, play_key, actor, 16, 0)
        outcome = played.returns + played.reward
        league, _ = leagues.results(game, THREE, league, played.done, outcome)
        return league, actor, played

    np.testing.assert_allclose(leagues.weights(league, THREE), [0.5, 0.5])
    for turn, one in enumerate(jax.random.split(key, 30)):
        league, actor, played = update(league, actor, one, jnp.int32(turn))
    own, seat = np.asarray(played.note), np.asarray(played.state.current_player)
    alone = GAMES - THREE.against(GAMES)
    assert alone == 24 and own[:, :alone].all()
    team = np.asarray(leagues.sides(game, 6, 12)).ravel()
    np.testing.assert_array_equal(own[:, alone:], seat[:, alone:] == team)
    assert float(league.games.min()) > 100
    strong, weak = np.asarray(leagues.win_rates(league))
    assert abs(strong - 0.5) < 0.06 and weak > strong + 0.08
    after = np.asarray(leagues.weights(league, THREE))
    assert after[1] < 0.47 and after.sum() == pytest.approx(1.0)
    hard = leagues.weights(league, dataclasses.replace(THREE, power=3.0))
    assert hard[1] < after[1] - 0.05


# ---- settings ----


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("share", dict(share=1.5)),
        ("groups", dict(groups=0)),
        ("pfsp", dict(pfsp="soft")),
        ("evict", dict(evict="first")),
        ("power", dict(power=float("nan"))),
        ("bots", dict(bots=("a", "a"))),
        ("snapshots", dict(share=0.5, snapshots=0)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        LeagueConfig(**options)


def test_a_share_without_games_is_refused():
    with pytest.raises(
        ValueError, match=r"^league.share: at least 0.5 for 4 groups, or 0, got 0.3"
    ):
        LeagueConfig(share=0.3, groups=4).check(8)
    LeagueConfig(share=0.5, groups=4).check(8)
