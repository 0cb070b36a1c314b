"""Curricula: where games begin, which program plays them, and when a run moves on."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.mnk  # noqa: F401  (registers "mnk")
from algorithms import curriculum, dqn, muzero, networks
from algorithms.curriculum import CurriculumConfig, Stages, Standing, judge
from algorithms.ratings import wilson
from algorithms.search.config import SearchConfig
from jaxgames import core
from jaxgames.staged import Staged
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys.latent import Dense, Switches

NAMES = ("15", "30", "50", "100")
CONFIG = CurriculumConfig(stages=NAMES, promote=0.5, in_a_row=2, min_updates=10)
row = functools.partial(core.make, "eight_in_a_row")


# ---- when a run moves on ----


def climb(config, rates, games=60, every=5, seed=0):
    """(stages after each evaluation, why it moved): evaluations of `games` games, won with the
    chances `rates[stage](number of the evaluation)`."""
    rng = np.random.default_rng(seed)
    at, stages, moves = Standing(config.first), [], []
    for number in range(400):
        rate = rates[at.stage](number - at.entered / every)
        score = wilson(float(rng.binomial(games, rate)), games)
        at, why = judge(config, at, (number + 1) * every, score)
        stages.append(at.stage)
        moves += [(number, at.stage, why)] if why else []
    return stages, moves


def learning(level):
    """Of one who is new at it, and gets to `level`."""
    return lambda number: level - (level - 0.1) * np.exp(-number / 30)


@pytest.mark.parametrize("seed", range(5))
def test_stages_are_climbed_one_after_the_other_and_never_left_again(seed):
    stages, moves = climb(CONFIG, [learning(0.9)] * 4, seed=seed)
    assert stages[-1] == 3 and [why for _, _, why in moves] == ["promoted"] * 3
    assert np.all(np.diff(stages) >= 0)


@pytest.mark.parametrize("level", [0.3, 0.45, 0.5])
def test_noise_promotes_nobody(level):
    """At the threshold itself the lower bound is above it in one evaluation of forty; two in a
    row are rare."""
    promoted = [bool(climb(CONFIG, [lambda _: level] * 4, seed=s)[1]) for s in range(20)]
    assert np.mean(promoted) <= (0.35 if level == 0.5 else 0.0)


def test_noise_demotes_nobody():
    for seed in range(10):
        _, moves = climb(CONFIG, [lambda _: 0.95, lambda _: 0.4, *[lambda _: 0.4] * 2], seed=seed)
        assert [why for _, _, why in moves] == ["promoted"]


def test_who_plays_to_and_fro_waits_twice_as_long_every_time():
    """A planted stage that is good at first and then collapses, over and over."""
    collapsing = lambda number: 0.45 if number < 8 else 0.02  # noqa: E731
    config = dataclasses.replace(CONFIG, min_updates=50)
    _, moves = climb(config, [lambda _: 0.95, collapsing, *[collapsing] * 2])
    whys = [why for _, _, why in moves]
    assert whys[:2] == ["promoted", "demoted"]
    assert len(moves) <= 8  # of 400 evaluations
    tries = [number for number, stage, why in moves if stage == 1 and why == "promoted"]
    assert np.all(np.diff(tries)[1:] >= 1.5 * np.diff(tries)[:-1])


def test_a_fall_is_waited_for_without_a_least_stay_too():
    config = dataclasses.replace(CONFIG, min_updates=0)
    at, good = Standing(1, entered=100, above=config.in_a_row, falls=3), wilson(60, 60)
    assert judge(config, at, 107, good)[1] == ""
    assert judge(config, at, 108, good)[1] == "promoted"


def test_one_bad_evaluation_is_no_fall_and_a_new_stage_owes_nothing():
    at = Standing(1, entered=0, best=0.6)
    bad, fine = wilson(2, 60), wilson(30, 60)
    at, why = judge(CONFIG, at, 100, bad)
    assert (at.stage, at.below, why) == (1, 1, "")
    at, why = judge(CONFIG, at, 105, fine)
    assert (at.below, why) == (0, "")
    at, _ = judge(CONFIG, at, 110, bad)
    at, why = judge(CONFIG, at, 115, bad)
    assert (at.stage, at.falls, at.entered, why) == (0, 1, 115, "demoted")
    # never measured above anything: nothing to fall from
    new = Standing(1, entered=0)
    for number in range(20):
        new, why = judge(CONFIG, new, 100 + number, bad)
    assert new.stage == 1


def test_a_stay_has_a_least_and_a_most():
    good = wilson(60, 60)
    at = Standing(0)
    for updates in (3, 6, 9):
        at, why = judge(CONFIG, at, updates, good)
        assert at.stage == 0 and not why
    at, why = judge(CONFIG, at, 12, good)
    assert (at.stage, at.entered, at.above, why) == (1, 12, 0, "promoted")
    due = dataclasses.replace(CONFIG, max_updates=20)
    assert judge(due, Standing(0), 19, None)[1] == ""
    assert judge(due, Standing(0), 20, None)[1] == "due"
    assert judge(due, Standing(3), 10**6, good) == (Standing(3, above=1, best=good.low), "")


def test_the_mix():
    np.testing.assert_allclose(CONFIG.mix(2), np.array([1, 2, 4, 0]) / 7, rtol=1e-6)
    weighted = dataclasses.replace(CONFIG, weights=(1.0, 1.0, 2.0, 4.0))
    np.testing.assert_allclose(weighted.mix(3), np.array([1, 1, 2, 4]) / 8)
    hard = dataclasses.replace(CONFIG, hard=True)
    np.testing.assert_array_equal(hard.mix(1), [0, 1, 0, 0])
    # The least weight that a setting may have, where it is alone and where it is not.
    least = dataclasses.replace(CONFIG, weights=(1e-300, 1.0, 1.0, 1e5))
    for stage in range(4):
        np.testing.assert_allclose(least.mix(stage).sum(), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("stages", dict(stages=("15",))),
        ("stages", dict(stages=("15", "15"))),
        ("weights", dict(weights=(1.0, 2.0))),
        ("weights", dict(weights=(1.0, 0.0, 1.0, 1.0))),
        ("start", dict(start="16")),
        ("promote", dict(promote=1.0)),
        ("demote", dict(demote=float("nan"))),
        ("max_updates", dict(max_updates=5)),
        ("in_a_row", dict(in_a_row=0)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        dataclasses.replace(CONFIG, **options)


# ---- programs, and where games begin ----


def stage_presets():
    presets = core.game_type("eight_in_a_row").presets
    return tuple(row(**presets[f"stage{name}"]) for name in NAMES)


def test_one_program_per_bucket():
    games = stage_presets()
    found = curriculum.programs(games)
    assert [game.rules.bucket for game in found] == [21, 50, 50, 100]
    assert found[1] is found[2] and len(set(found)) == 3
    assert Stages(found[0], games).held == (0,)
    assert Stages(found[2], games).held == (0, 1, 2)
    assert Stages(found[3], games).held == (0, 1, 2, 3)
    # without the mix a stage needs to hold itself alone
    small = (row(rows=9, cols=9), row(rows=5, cols=5))
    assert curriculum.programs(small, hard=True) == small
    with pytest.raises(ValueError, match="num_actions: is 81 in one and 25 in another"):
        curriculum.programs(small)


@pytest.mark.parametrize(
    "options",
    [dict(profile="classic"), dict(rows=22), dict(players=2), dict(win_length=9)],
    ids=str,
)
def test_a_bucket_does_not_hold_what_it_can_not_play(options):
    game = row(rows=15, cols=15, bucket=21)
    assert game.holds(row(rows=9, cols=9, win_length=4)) and game.holds(game)
    assert not game.holds(row(**{"rows": 15, "cols": 15, **options}))
    assert not row().holds(game) and row().holds(row())


def test_new_games_draw_their_stage_by_the_mix_without_a_new_program():
    games = (
        row(rows=4, cols=4, win_length=3, bucket=6),
        row(rows=5, cols=6, win_length=4, max_plies=9, bucket=6),
        row(rows=6, cols=6, win_length=5, bucket=6),
    )
    stages = Stages(games[0], games)
    deal = jax.jit(lambda mix, key: jax.vmap(stages.dealer(mix))(jax.random.split(key, 3000)))
    for mix in ((1.0, 0.0, 0.0), (0.25, 0.75, 0.0), (0.2, 0.3, 0.5)):
        states = deal(jnp.array(mix, jnp.float32), jax.random.key(1))
        dims = np.asarray(states.dims)
        for game, share in zip(games, mix, strict=True):
            rules = game.rules
            want = [rules.rows, rules.cols, rules.win_length, rules.max_plies]
            assert np.mean((dims == want).all(-1)) == pytest.approx(share, abs=0.03)
        area = dims[:, 0] * dims[:, 1]
        np.testing.assert_array_equal(states.legal_action_mask.sum(-1), area)
    assert deal._cache_size() == 1


# ---- in a learner ----

DQN = dqn.Config(
    games=8,
    steps=4,
    replay_length=24,
    learn_after=16,
    batch_size=8,
    micro_batch=8,
    learn_steps=1,
    horizon=1,
    chunk_updates=2,
)


@dataclasses.dataclass(frozen=True)
class Flat(learners.Stub):
    """Q by the number of the action and what tells stages apart: weights fit every program."""

    game: core.Game
    config: networks.NetworkConfig = networks.NetworkConfig()

    def init(self, key):
        return {"q": jax.random.normal(key, (5, self.game.num_teams))}

    def observe(self, states):
        if isinstance(states.game, Staged):
            return jax.nn.one_hot(states.stage, 4)
        return states.dims.astype(jnp.float32) / 10

    def apply(self, params, sizes):
        place = jnp.arange(self.game.num_actions) / self.game.num_actions
        place = jnp.broadcast_to(place[:, None], (len(sizes), *place.shape, 1))
        told = jnp.broadcast_to(sizes[:, None], (*place.shape[:2], 4))
        q = jnp.tanh(jnp.concatenate([place, told], axis=-1) @ params["q"])
        return networks.Outputs(None, q.mean(1), q)


SIZES = (
    row(rows=3, cols=3, win_length=3, max_plies=4, bucket=3),
    row(rows=4, cols=4, win_length=3, max_plies=6, bucket=5),
    row(rows=5, cols=5, win_length=4, max_plies=8, bucket=5),
)


@functools.cache
def learner(stage):
    game = curriculum.programs(SIZES)[stage]
    return dqn.make(game, Flat(game), DQN, Stages(game, SIZES))


def sides(state):
    """Rows of the boards now played on, and of those in the replay."""
    ring = state.replay
    return np.asarray(state.actor.states.dims)[:, 0], np.asarray(
        ring.items["state"].dims[..., 0]
    )[np.asarray(ring.game) >= 0]  # fmt: skip


@pytest.fixture(scope="module")
def climbed():
    """States after chunks: two at the first stage, then at the second in a larger program, then
    with the third mixed in, same program."""
    config = CurriculumConfig(stages=("a", "b", "c"), weights=(1.0, 3.0, 4.0))
    state = learner(0).init(jax.random.key(0), mix=config.mix(0))
    found = {}
    for _ in range(2):
        state, _ = learner(0).run_chunk(state)
    found["first"] = learners.copy(state)
    state = curriculum.carry(state, learner(1), config.mix(1))
    found["moved"] = learners.copy(state)
    for _ in range(6):
        state, _ = learner(1).run_chunk(state)
    found["second"] = learners.copy(state)
    state = curriculum.with_mix(state, config.mix(2))
    found["mixed"] = learners.copy(state)
    for _ in range(8):
        state, metrics = learner(2).run_chunk(state)
    found["third"] = state
    return found


def test_stages_of_one_program_are_compiled_once(climbed):
    assert learner(1) is learner(2) and learner(0) is not learner(1)
    assert learner(0).compiled() == learner(1).compiled() == (1, 0)


def test_a_larger_program_goes_on_with_all_that_was_learnt(climbed):
    before, after = climbed["first"], climbed["moved"]
    for name in ("params", "target", "opt_state", "updates", "env_steps", "games", "nan_skips"):
        learners.assert_equal(getattr(before, name), getattr(after, name))
    learners.assert_equal(before.hyper["learning_rate"], after.hyper["learning_rate"])
    assert int(before.opt_state.count) > 0
    # the replay is empty, games begin anew, and both are filled again
    playing, kept = sides(after)
    assert len(kept) == 0 and set(playing) <= {3, 4} and 4 in playing
    assert int(after.actor.ply.sum()) == 0
    later = climbed["second"]
    assert len(sides(later)[1]) == 24 * 8
    assert int(later.opt_state.count) > int(before.opt_state.count)


def test_earlier_stages_stay_and_the_newest_is_mixed_in(climbed):
    assert set(sides(climbed["first"])[1]) == {3}
    assert set(sides(climbed["second"])[1]) == {3, 4}
    assert set(sides(climbed["mixed"])[1]) == {3, 4}  # within a program nothing is thrown away
    shares = np.bincount(sides(climbed["third"])[1], minlength=6)[3:]
    assert shares[2] > shares[0] > 0 and shares[1] > 0
    assert int(climbed["third"].games) > int(climbed["mixed"].games)


def test_a_hard_switch_drops_old_stages_and_their_games(climbed):
    hard = CurriculumConfig(stages=("a", "b", "c"), hard=True)
    state = curriculum.carry(learners.copy(climbed["second"]), learner(2), hard.mix(2))
    playing, kept = sides(state)
    assert set(playing) == {5} and len(kept) == 0
    for _ in range(3):
        state, _ = learner(2).run_chunk(state)
    assert set(sides(state)[1]) == {5}
    assert learner(2).compiled() == (1, 0)


def test_it_resumes_exactly_in_the_same_stage(climbed):
    ours = learners.copy(climbed["moved"])
    again = curriculum.carry(
        learners.copy(climbed["first"]), learner(1), np.float32([0.25, 0.75, 0])
    )
    learners.assert_equal(ours, again)
    one, _ = learner(1).run_chunk(ours)
    other, _ = learner(1).run_chunk(again)
    learners.assert_equal(one, other)


@pytest.mark.slow
def test_muzero_plays_two_programs_with_one_network():
    config = muzero.Config(
        games=8, steps=4, search=SearchConfig(num_simulations=2, max_num_considered_actions=2),
        replay_length=24, learn_after=16, batch_size=8, micro_batch=8, learn_steps=1, unroll=2,
        view=4, chunk_updates=2,
    )  # fmt: skip
    made = []
    for game in dict.fromkeys(curriculum.programs(SIZES)):
        model = Dense(game, game.viewer(4), Switches(focus=True))
        made.append(muzero.make(game, model, config, Stages(game, SIZES)))
    mix = CurriculumConfig(stages=("a", "b", "c"))
    state, _ = made[0].run_chunk(made[0].init(jax.random.key(0), mix=mix.mix(0)))
    state = curriculum.carry(state, made[1], mix.mix(1))
    for stage in (1, 2):
        state = curriculum.with_mix(state, mix.mix(stage))
        for _ in range(4):
            state, metrics = made[1].run_chunk(state)
        assert metrics["selfplay/illegal"] == 0 and metrics["optim/nan_skips"] == 0
    assert set(sides(state)[1]) == {3, 4, 5} and metrics["loss/total"] > 0
    assert [one.compiled() for one in made] == [(1, 0), (1, 0)]


@pytest.mark.slow
def test_games_whose_options_are_no_data_share_a_program_too():
    games = tuple(core.make("mnk", k=k) for k in (2, 3))
    found = curriculum.programs(games)
    assert found[0] == found[1] and isinstance(found[0], Staged)
    made = dqn.make(found[0], Flat(found[0]), DQN, Stages(found[0], games))
    state = made.init(jax.random.key(0), mix=np.float32([0.5, 0.5]))
    for _ in range(3):
        state, metrics = made.run_chunk(state)
    stage = np.asarray(state.replay.items["state"].stage)[np.asarray(state.replay.game) >= 0]
    assert set(stage) == {0, 1} and metrics["selfplay/illegal"] == 0
    assert made.compiled() == (1, 0)
