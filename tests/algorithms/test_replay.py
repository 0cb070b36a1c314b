import dataclasses
import functools

import flashbax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.replay import Replay, importance_weights

L, B, S = 6, 3, 2
_add = jax.jit(Replay.add, static_argnums=0)
_sample = jax.jit(Replay.sample, static_argnums=(0, 3))


def stretch(first, steps=S, rows=B, finished=(), outcome=0.0):
    """Items numbered by step and row, and the ends of games as (step, row)."""
    number = first + jnp.arange(steps)[:, None] * rows + jnp.arange(rows)
    ends = np.zeros((steps, rows), bool)
    for step, row in finished:
        ends[step, row] = True
    result = np.where(ends[..., None], np.array([outcome, -outcome], np.float32), 0.0)
    return dict(n=number), jnp.asarray(ends), jnp.asarray(result)


def filled(replay, blocks, **options):
    item = dict(n=jnp.int32(0))
    state = replay.init(item, 2)
    for i in range(blocks):
        state = _add(replay, state, *stretch(i * S * replay.rows, rows=replay.rows, **options))
    return state


def test_nothing_is_ready_before_its_outcome():
    replay = Replay(L, B)
    state = filled(replay, 2)
    assert int(replay.size(state)) == 0
    assert not bool(replay.can_sample(state, 1))
    state = _add(replay, state, *stretch(12, finished=[(0, 1)], outcome=1.0))
    ready = np.asarray(replay.ready(state))
    np.testing.assert_array_equal(ready[:, 1], [True] * 5 + [False])  # the next game has begun
    assert not ready[:, [0, 2]].any()
    assert bool(replay.can_sample(state, 5)) and not bool(replay.can_sample(state, 6))


def test_outcomes_find_every_position_of_their_game():
    replay = Replay(8, 1)
    state = replay.init(dict(n=jnp.int32(0)), 2)
    state = _add(replay, state, *stretch(0, rows=1))
    state = _add(replay, state, *stretch(2, rows=1, finished=[(0, 0)], outcome=1.0))
    state = _add(replay, state, *stretch(4, rows=1, finished=[(1, 0)], outcome=-1.0))
    sample = _sample(replay, state, jax.random.key(0), 256)
    n, mine = np.asarray(sample.items["n"]), np.asarray(sample.outcome[:, 0])
    assert set(n) == set(range(6))
    np.testing.assert_array_equal(mine, np.where(n <= 2, 1.0, -1.0))
    np.testing.assert_array_equal(sample.outcome[:, 1], -mine)
    assert sample.over.all()


def test_two_games_of_a_row_in_one_call():
    replay = Replay(8, 1)
    state = replay.init(dict(n=jnp.int32(0)), 2)
    items, ends, _ = stretch(0, steps=4, rows=1, finished=[(0, 0), (2, 0)])
    outcome = jnp.array([[[0.5, -0.5]], [[0, 0]], [[-1, 1]], [[0, 0]]], jnp.float32)
    state = _add(replay, state, items, ends, outcome)
    sample = _sample(replay, state, jax.random.key(1), 64)
    n = np.asarray(sample.items["n"])
    assert set(n) == {0, 1, 2}
    np.testing.assert_array_equal(sample.outcome[:, 0], np.where(n == 0, 0.5, -1.0))


def test_the_oldest_are_overwritten_as_in_flashbax():
    replay = Replay(L, B)
    oracle = flashbax.make_item_buffer(L * B, 1, L * B, add_sequences=True, add_batches=False)
    theirs = oracle.init(dict(n=jnp.int32(0)))
    draw_theirs = jax.jit(jax.vmap(oracle.sample, (None, 0)))
    state = replay.init(dict(n=jnp.int32(0)), 2)
    for i in range(5):
        items, ends, result = stretch(i * S * B, finished=[(S - 1, r) for r in range(B)])
        state = _add(replay, state, items, ends, result)
        theirs = oracle.add(theirs, dict(n=items["n"].reshape(-1)))
        held = set(np.asarray(state.items["n"])[np.asarray(replay.ready(state))])
        keys = jax.random.split(jax.random.key(i), 20)
        drawn = set(np.unique(draw_theirs(theirs, keys).experience["n"]).tolist())
        assert drawn == held == set(range(max(0, (i + 1) * S * B - L * B), (i + 1) * S * B))


def test_uniform_over_ready_entries():
    replay = Replay(L, B)
    state = filled(replay, 4, finished=[(1, 0), (1, 2)], outcome=1.0)
    count = int(replay.size(state))
    assert count == 12
    sample = _sample(replay, state, jax.random.key(0), 24_000)
    np.testing.assert_allclose(sample.probability, 1 / count, rtol=1e-6)
    _, times = np.unique(np.asarray(sample.items["n"]), return_counts=True)
    assert len(times) == count
    chi2 = ((times - 24_000 / count) ** 2 / (24_000 / count)).sum()
    assert chi2 < 31.3  # 11 degrees of freedom, p = 0.001


def test_ages_are_those_of_the_samples():
    replay = Replay(L, B)
    assert replay.ages(filled(replay, 2), (0.5, 0.95)).tolist() == [0, 0]  # nothing is ready
    state = filled(replay, 4, finished=[(1, 0), (1, 2)], outcome=1.0)
    sample = _sample(replay, state, jax.random.key(0), 24_000)
    drawn = (int(state.cursor) - 1 - np.asarray(sample.column)) % L
    shares = (0.25, 0.5, 0.95)
    wanted = np.quantile(drawn, np.array(shares) - 0.01, method="inverted_cdf")
    np.testing.assert_array_equal(replay.ages(state, shares), wanted)
    assert len(set(drawn)) > 2 and wanted[0] < wanted[-1]


def test_priorities_probabilities_and_weights_as_in_flashbax():
    """Same priorities: same probabilities, and the same importance weights from them."""
    exponent, beta, rows = 0.6, 0.4, 8
    replay = Replay(1, rows, exponent=exponent)
    state = replay.init(dict(n=jnp.int32(0)), 2)
    items, ends, result = stretch(0, steps=1, rows=rows, finished=[(0, r) for r in range(rows)])
    state = _add(replay, state, items, ends, result)
    priority = jnp.array([0.1, 0.5, 1.0, 2.0, 0.01, 4.0, 0.3, 1.5])
    sample = dataclasses.replace(
        _sample(replay, state, jax.random.key(0), rows),
        column=jnp.zeros(rows, jnp.int32),
        row=jnp.arange(rows),
    )
    state = replay.set_priorities(state, sample, priority)
    assert float(state.max_priority) == 4.0

    oracle = flashbax.make_prioritised_item_buffer(
        rows, 1, rows, add_sequences=True, priority_exponent=exponent
    )
    theirs = oracle.init(dict(n=jnp.int32(0)))
    theirs = oracle.add(theirs, dict(n=jnp.arange(rows)))
    theirs = oracle.set_priorities(theirs, jnp.arange(rows), priority)
    keys = jax.random.split(jax.random.key(1), 400)
    them = jax.jit(jax.vmap(oracle.sample, (None, 0)))(theirs, keys)
    expected = np.zeros(rows)
    expected[np.ravel(them.experience["n"])] = np.ravel(them.probabilities)
    np.testing.assert_allclose(expected, priority**exponent / (priority**exponent).sum(), rtol=1e-5)

    ours = _sample(replay, state, jax.random.key(2), 40_000)
    drawn = np.asarray(ours.items["n"])
    np.testing.assert_allclose(ours.probability, expected[drawn], rtol=1e-5)
    share = np.bincount(drawn, minlength=rows) / len(drawn)
    np.testing.assert_allclose(share, expected, atol=4 * np.sqrt(0.25 / len(drawn)))

    weights = importance_weights(ours.probability, jnp.int32(rows), beta)
    by_hand = (rows * expected[drawn]) ** -beta
    np.testing.assert_allclose(weights, by_hand / by_hand.max(), rtol=1e-4)


def test_new_entries_get_the_highest_priority():
    replay = Replay(L, B, horizon=1, exponent=1.0)
    state = filled(replay, 1)
    sample = _sample(replay, state, jax.random.key(0), 1)
    state = replay.set_priorities(state, sample, jnp.array([7.0]))
    state = _add(replay, state, *stretch(100))
    np.testing.assert_array_equal(state.priority[S : 2 * S], 7.0)


def test_windows_follow_a_row_and_never_the_ring_end():
    """With a horizon an entry comes with the steps after it, across the end of the ring."""
    horizon = 2
    replay = Replay(L, B, horizon=horizon)
    state = filled(replay, 4)  # steps 0..7 of which 2..7 are left
    sample = _sample(replay, state, jax.random.key(0), 512)
    n = np.asarray(sample.items["n"])
    assert n.shape == (512, horizon + 1)
    np.testing.assert_array_equal(n[:, 1:] - n[:, :-1], B)
    assert set(n[:, 0] // B) == {2, 3, 4, 5}  # the last two have no window yet
    assert sample.same_game.all() and not sample.over.any()


def test_a_finished_game_needs_no_window():
    replay = Replay(L, B, horizon=3)
    state = filled(replay, 1, finished=[(1, 2)], outcome=1.0)
    sample = _sample(replay, state, jax.random.key(0), 64)
    assert set(np.asarray(sample.row)) == {2}
    np.testing.assert_array_equal(sample.same_game[:, 0], True)
    np.testing.assert_array_equal(sample.same_game[:, 2:], False)
    np.testing.assert_array_equal(sample.outcome, [[1, -1]] * 64)


def test_pure_jittable_and_donated():
    replay = Replay(L, B)
    add = jax.jit(replay.add, donate_argnums=0)
    state = replay.init(dict(n=jnp.int32(0)), 2)
    for i in range(3):
        state = add(state, *stretch(i * S * B, finished=[(1, 0)]))
    assert add._cache_size() == 1
    draw = jax.jit(functools.partial(replay.sample, number=4))
    with jax.debug_key_reuse(True):
        draw(state, jax.random.key(0))


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("length", dict(length=0, rows=1)),
        ("horizon", dict(length=4, rows=1, horizon=4)),
        ("exponent", dict(length=4, rows=1, exponent=-1.0)),
    ],
)
def test_bad_sizes_are_named(field, options):
    with pytest.raises(ValueError, match=field):
        Replay(**options)


def test_more_steps_than_columns_are_refused():
    replay = Replay(1, B)
    with pytest.raises(ValueError, match="steps"):
        replay.add(replay.init(dict(n=jnp.int32(0)), 2), *stretch(0))
