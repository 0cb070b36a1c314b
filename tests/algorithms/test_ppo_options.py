"""PPO's options inside an update: off they change nothing, on they do what they say."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import networks, optim, ppo
from algorithms.ppo import rollout
from algorithms.ppo.critic import CriticConfig
from algorithms.ppo.shaping import ShapingConfig
from algorithms.ppo.situations import SituationsConfig
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys import buttons

PPO = ppo.Config(
    games=64,
    steps=10,
    minibatch=256,
    entropy_start=0.05,
    entropy_end=0.05,
    kl_stop=0.1,
    opponent_share=0.0,
    chunk_updates=2,
    optim=optim.OptimConfig(learning_rate=3e-3, warmup_steps=10, clip_norm=1.0),
)
SHAPED = dataclasses.replace(
    PPO,
    chunk_updates=21,
    shaping=ShapingConfig(terms=("bell",), weights=(0.1,), caps=(0.1,), updates=20),
)
SPECIAL = dataclasses.replace(
    PPO,
    opponent_share=0.5,
    opponent_updates=1,
    snapshots=2,
    snapshot_updates=2,
    evict="weakest",
    bots=("random",),
    bot_share=1.0,
    situations=SituationsConfig(share=0.5, names=("ahead", "never"), kept=8),
)


@functools.cache
def toy():
    game = buttons.make()
    config = networks.NetworkConfig(channels=8, blocks=0, hidden=32, kind="cards", q_head=False)
    return game, networks.build(game, config)


# ---- off ----


def program(config) -> str:
    """An update's computation, every operation and constant."""
    learner = ppo.make(*toy(), config)
    return str(jax.make_jaxpr(learner.update)(jax.eval_shape(learner.init, jax.random.key(0))))


def test_what_is_off_changes_nothing():
    """Whatever the settings of an option that is off: the update is the same program."""
    plain = program(PPO)
    off = dataclasses.replace(
        PPO,
        evict="weakest",
        shaping=ShapingConfig(updates=3),
        situations=SituationsConfig(names=("last",), kept=9, added=1),
    )
    assert program(off) == plain
    assert program(SHAPED) != plain


# ---- shaping ----


def bell(params) -> float:
    """How likely the bell is at a game's first move, where its bonus lasts for a while."""
    game, model = toy()

    @jax.jit
    def policy(params):
        states = jax.tree.map(lambda x: x[None], game.init(jax.random.key(0)))
        return jax.nn.softmax(rollout.think(game, model, params, states)[1])[0]

    return float(policy(params)[buttons.BELL])


def test_farming_gains_nothing():
    """The bell is worth nothing, and in the end it is not preferred, though shaping paid for it
    in the first updates. Would it pay for ever, all would ring."""
    learner = ppo.make(*toy(), SHAPED)
    state = learner.init(jax.random.key(0))
    farmed, shares, earned = learners.copy(state), [], []
    for _ in range(6):
        state, metrics = learner.run_chunk(state)
        farmed, _ = learner.run_chunk(dataclasses.replace(farmed, updates=jnp.int32(0)))
        shares.append(float(metrics["shaping/share"]))
        earned.append(np.asarray(state.earned))
    assert shares[0] == pytest.approx(0.5) and shares[1:] == [0.0] * 5
    assert abs(bell(state.params) - 0.5) < 0.2
    assert bell(farmed.params) > 0.9
    assert 0.3 < metrics["shaping/bell"] < 0.7 and 0 < metrics["shaping/potential"] < 0.1
    # Chunks of 210 moves end in the middle of a round, where each seat has moved once, and then
    # where one has just ended.
    assert earned[0].shape == (64, 2, 1) and set(earned[0].ravel()) == {0.0, 1.0}
    assert not earned[1].any()


# ---- special situations ----


@pytest.fixture(scope="module")
def special():
    """A state after three chunks, the one after four, the metrics of the fourth."""
    learner = ppo.make(*toy(), SPECIAL)
    state = learner.init(jax.random.key(0))
    for _ in range(3):
        state, _ = learner.run_chunk(state)
    after, metrics = learner.run_chunk(learners.copy(state))
    return state, after, metrics


def test_special_situations_come_up_more_often(special):
    """Half of the new games begin from kept positions, in the middle of a game."""
    _, after, metrics = special
    assert 0.1 < metrics["situations/share"] < 0.6
    assert 0 < np.asarray(after.kept.special).sum() < PPO.games
    assert 0 < metrics["selfplay/length_mean"] < buttons.TURNS - 1
    assert metrics["situations/kept/ahead"] == 1.0 and metrics["situations/kept/never"] == 0.0


def test_special_games_do_not_count_in_the_league(special):
    """Half of all games are against others, half of these or more began from kept positions."""
    before, after, metrics = special
    counted, games = float(metrics["league/games"]), float(metrics["selfplay/games"])
    assert 0.02 < counted / games < 0.35
    was, now = (float(state.league.games[-1]) for state in (before, after))
    assert now <= was * SPECIAL.league_fade**2 + counted


def test_resumes_exactly(special):
    before, after, metrics = special
    again, same = ppo.make(*toy(), SPECIAL).run_chunk(learners.copy(before))
    learners.assert_equal(again, after)
    learners.assert_equal(same, metrics)


# ---- what is led ----


def test_kinds_of_leads_are_counted(special):
    """The first moves of rounds, the bad button apart; games that begin in the middle count."""
    metrics = special[2]
    shares = [float(metrics[f"policy/lead/{kind}"]) for kind in ("plain", "bell")]
    assert sum(shares) == pytest.approx(1.0) and min(shares) > 0.1
    assert rollout.leads(learners.toy()[0], None) == {}


# ---- settings ----


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("evict", dict(evict="best")),
        ("situations", dict(situations=SituationsConfig(share=0.001))),
        ("shaping", dict(critic=CriticConfig(enabled=True, candidates=4), shaping=SHAPED.shaping)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        dataclasses.replace(PPO, **options)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("shaping.terms", dict(shaping=ShapingConfig(("tell",), (1.0,), (1.0,)))),
        ("situations.names", dict(situations=SituationsConfig(names=("lats",)))),
    ],
)
def test_what_the_game_does_not_have_is_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        ppo.make(*toy(), dataclasses.replace(PPO, **options))


def test_a_game_without_situations_has_none_to_practise():
    game, _ = learners.toy()
    model = networks.build(game, toy()[1].config)
    with pytest.raises(ValueError, match="^situations.share: 0 for mnk"):
        ppo.make(game, model, dataclasses.replace(PPO, situations=SituationsConfig(share=0.5)))
