"""Special situations: kept from play, dealt anew, told apart from ordinary games."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import selfplay
from algorithms.ppo import situations
from jaxgames.core import random_bot
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys import buttons

GAMES = 8
CONFIG = situations.SituationsConfig(share=0.5, kept=5, added=2)


@functools.cache
def stretch():
    """States [24, 8] of random play, games of 12 moves side by side."""
    game = buttons.make()

    def choose(key, states):
        return jax.vmap(random_bot)(states, jax.random.split(key, GAMES)), ()

    @jax.jit
    def run(key):
        begin_key, play_key = jax.random.split(key)
        actor = selfplay.start(game, begin_key, GAMES, 0)
        return selfplay.play(game, choose, play_key, actor, 24, 0)[:2]

    return run(jax.random.key(3))


@functools.cache
def compiled(config):
    game = buttons.make()
    start = functools.partial(situations.start, game, config)
    keep = jax.jit(functools.partial(situations.keep, game, config))
    draw = jax.jit(functools.partial(situations.draw, game, config))
    return start, keep, draw


def fresh():
    return selfplay.start(buttons.make(), jax.random.key(9), GAMES, 0)


def filled(times=4):
    start, keep, _ = compiled(CONFIG)
    actor, played = stretch()
    kept = start(actor.states)
    for i in range(times):
        kept = keep(kept, jax.random.key(i), played.state)
    return kept


def test_rings_keep_what_came_up():
    """Some of each situation per update, the oldest overwritten, nothing where nothing came up."""
    names = situations.chosen(buttons.make(), CONFIG)
    assert names == ("last", "never", "ahead")
    one = filled(1)
    np.testing.assert_array_equal(one.added, [2, 0, 2])
    kept = filled(4)
    np.testing.assert_array_equal(kept.added, [8, 0, 8])
    cells = np.asarray(kept.states.cells)[:, :, 0]
    assert (cells[0, :, 2] >= buttons.TURNS - 2).all()
    assert (cells[2, :, 0] > cells[2, :, 1]).all()
    earlier = np.asarray(filled(3).states.cells)[0, :, 0]
    np.testing.assert_array_equal(cells[0, [0, 3, 4]], earlier[[0, 3, 4]])  # places 6, 7 mod 5 new


def test_positions_are_drawn_from_all_that_hold():
    """Over many keys of one stretch, more than one position of a situation is kept."""
    start, keep, _ = compiled(CONFIG)
    actor, played = stretch()
    empty = start(actor.states)
    seen = {
        tuple(np.asarray(keep(empty, jax.random.key(i), played.state).states.cells[2, 0, 0]))
        for i in range(12)
    }
    assert len(seen) > 4


def test_a_share_begins_from_them():
    kept, (_, _, draw) = filled(), compiled(CONFIG)
    rings = np.asarray(kept.states.cells)[[0, 2], :, 0].reshape(-1, 3)
    rows, seats, used = set(), set(), set()
    for i in range(12):
        actor, special = draw(kept, jax.random.key(i), fresh())
        cells, special = np.asarray(actor.states.cells)[:, 0], np.asarray(special)
        assert special.sum() == 4
        np.testing.assert_array_equal(cells[~special], 0)
        for row in cells[special]:  # a kept one, with the mark of its new deal
            marks = [(p, j) for p in (0, 1) for j in range(10)
                     if (row - 2 * np.eye(3, dtype=int)[p] == rings[j]).all()]  # fmt: skip
            assert marks, row
            seats |= {p for p, _ in marks}
            used |= {j // 5 for _, j in marks}
        assert not np.asarray(actor.returns).any() and not np.asarray(actor.ply).any()
        rows |= set(np.flatnonzero(special))
    assert rows == set(range(GAMES)) and seats == {0, 1} and used == {0, 1}


def test_empty_rings_change_nothing():
    start, _, draw = compiled(CONFIG)
    actor, special = draw(start(fresh().states), jax.random.key(0), fresh())
    assert not np.asarray(special).any()
    jax.tree.map(np.testing.assert_array_equal, actor, fresh())


def test_special_games_are_followed():
    """Row 0 is special and ends, row 1 begins a special one, row 2 goes on, row 3 ends twice."""
    kept = filled(1)
    kept = situations.Kept(kept.states, kept.added, jnp.array([True, False, True, False]))
    done = jnp.array([[0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    after, special = situations.follow(kept, done, jnp.array([False, True, True, True]))
    np.testing.assert_array_equal(special, [[1, 0, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1]])
    np.testing.assert_array_equal(after.special, [False, True, True, True])


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("share", dict(share=1.5)),
        ("names", dict(names=("a", "a"))),
        ("kept", dict(kept=0)),
        ("added", dict(kept=3, added=4)),
    ],
)
def test_bad_settings_are_named(field, options):
    with pytest.raises(ValueError, match=f"^{field}: "):
        situations.SituationsConfig(**options)


def test_unknown_situations_are_named():
    config = situations.SituationsConfig(names=("lst",))
    with pytest.raises(ValueError, match="^situations.names: .*did you mean last"):
        situations.chosen(buttons.make(), config)
