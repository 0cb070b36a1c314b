"""MuZero's games with rule bots: a teacher that plays first, a rival on the other seats."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import muzero
from algorithms.muzero import samples, train
from algorithms.replay import Replay
from algorithms.search.config import SearchConfig
from jaxgames import core
from tests.algorithms import learners
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys.latent import Dense, Switches

CONFIG = muzero.Config(
    games=8,
    steps=12,
    search=SearchConfig(num_simulations=4, max_num_considered_actions=4, q_scale="outcome"),
    replay_length=24,
    learn_after=150,
    batch_size=8,
    micro_batch=8,
    learn_steps=1,
    unroll=2,
    root_share=0.5,
    chunk_updates=1,
    teacher="first",
    teacher_updates=1,
    teacher_steps=12,
    teacher_random=0.3,
    rival="first",
    rival_share=0.5,
)


@pytest.fixture(scope="module")
def toy():
    game, _ = learners.toy(players=3)
    return game, Dense(game, game.viewer(), Switches())


@pytest.fixture(scope="module")
def played(toy):
    """(rows of the replay after the teacher's update, after one more of the agent's own)."""
    learner = muzero.make(*toy, CONFIG)
    taught, _ = learner.run_chunk(learner.init(jax.random.key(0)))
    kept = jax.tree.map(jnp.copy, taught.replay)
    own, _ = learner.run_chunk(taught)
    return kept, own.replay


def first_free(ring, columns):
    mask = np.unpackbits(np.asarray(ring.items["state"].legal_action_mask)[columns], axis=-1)
    return np.argmax(mask, axis=-1)


@pytest.mark.slow
def test_the_teacher_is_copied_also_where_it_was_not_followed(played):
    ring, columns = played[0], slice(0, 12)
    weights = np.asarray(ring.items["weights"])[columns]
    bot = first_free(ring, columns)
    np.testing.assert_array_equal(weights, np.eye(9)[bot])
    strayed = np.mean(np.asarray(ring.items["action"])[columns] != bot)
    assert 0.05 < strayed < 0.4
    assert np.asarray(ring.items["train_policy"])[columns].all()


def test_a_teachers_moves_are_in_view_whatever_a_fresh_head_would_look_at():
    game = core.make("eight_in_a_row", rows=12, cols=12, win_length=4)
    model = Dense(game, game.viewer(5), Switches(focus=True))
    states = jax.tree.map(lambda x: jnp.stack([x] * 3), game.init(jax.random.key(0)))
    middle = jnp.full(3, 6 * 12 + 6)
    bot = lambda key, states: (middle, middle)  # noqa: E731
    taught = jax.jit(functools.partial(train._taught, game, model, bot))
    for seed in range(3):
        params = model.init(jax.random.key(seed))
        _, (note, _) = taught(params, jax.random.key(0), states, jnp.zeros(3, jnp.int32))
        assert np.asarray(note["train_policy"]).all()


def test_where_the_teacher_played_the_outcome_is_the_whole_value_target(toy, played):
    game, model = toy
    replay = Replay(length=24, rows=8, horizon=CONFIG.unroll, wait=True)

    @jax.jit
    def draw(ring):
        sample = replay.sample(ring, jax.random.key(1), 32)
        chances = samples.chances(model, CONFIG, jax.random.key(2), 32)
        return sample, samples.batch(game, model, CONFIG, (sample, None, jnp.ones(32), chances))

    sample, made = draw(played[0])
    outcome = np.asarray(sample.outcome)[:, :3] - np.asarray(sample.items["returns"])[:, 0]
    seat = np.asarray(sample.items["state"].current_player)[:, 0]
    turned = np.stack([np.roll(o, -s) for o, s in zip(outcome, seat, strict=True)])
    np.testing.assert_allclose(made.value[:, 0], turned, atol=1e-6)
    assert np.abs(turned).max() == 1


def test_the_rival_moves_for_all_seats_but_one_and_is_not_copied(played):
    ring, columns = played[1], slice(12, 24)
    seat = np.asarray(ring.items["state"].current_player)[columns]
    row = np.arange(8)
    its = (row >= 4) & (seat != (row - 4) % 3)
    action = np.asarray(ring.items["action"])[columns]
    bot = first_free(ring, columns)
    np.testing.assert_array_equal(action[its], bot[its])
    np.testing.assert_array_equal(np.asarray(ring.items["train_policy"])[columns], ~its)
    assert np.mean(action[~its] == bot[~its]) < 0.7


@pytest.mark.parametrize("field", ["teacher", "rival"])
def test_unknown_bots_are_named(toy, field):
    with pytest.raises(ValueError, match=f"^{field}: unknown name 'frist'; did you mean first"):
        muzero.make(*toy, dataclasses.replace(CONFIG, **{field: "frist"}))


@pytest.mark.parametrize("field, share", [("teacher", "teacher_updates"), ("rival", "rival_share")])
def test_a_share_needs_its_bot(field, share):
    with pytest.raises(ValueError, match=f"^{field}: needed for {share}"):
        dataclasses.replace(CONFIG, **{field: ""})
