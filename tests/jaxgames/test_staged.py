"""Several games of equal sizes in one program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.mnk  # noqa: F401  (registers "mnk")
from jaxgames import core
from jaxgames.staged import Staged, together


@functools.cache
def setup():
    games = tuple(core.make("mnk", k=k) for k in (2, 3))
    return games, together(games)


def test_a_batch_plays_each_row_by_its_own_rules():
    games, both = setup()
    rows = 32
    stage = jnp.arange(rows) % 2
    keys = jax.random.split(jax.random.key(0), rows)
    mixed = jax.vmap(lambda which, key: both.start_as(games, which, key))(stage, keys)
    alone = [jax.vmap(game.init)(keys) for game in games]
    np.testing.assert_array_equal(mixed.stage, stage)
    step = jax.jit(jax.vmap(both.step))
    steps = [jax.jit(jax.vmap(game.step)) for game in games]
    bot = jax.jit(jax.vmap(both.bots["random"]))
    see = jax.jit(jax.vmap(both.observe))
    ends = []
    for ply in range(9):
        draws = jax.random.split(jax.random.key(ply), rows)
        action = bot(mixed, draws)
        mixed = step(mixed, action, draws)
        alone = [one(states, action, draws) for one, states in zip(steps, alone, strict=True)]
        for which in (0, 1):
            mine = np.flatnonzero(stage == which)
            for name in ("current_player", "legal_action_mask", "rewards", "terminated"):
                np.testing.assert_array_equal(
                    getattr(mixed, name)[mine], getattr(alone[which], name)[mine]
                )
            seen = see(mixed, mixed.current_player)["board"]
            want = jax.vmap(games[which].observe)(alone[which], alone[which].current_player)
            np.testing.assert_array_equal(seen[mine], want["board"][mine])
        ends.append(np.asarray(mixed.done))
    length = 9 - np.sum(ends, axis=0)
    assert length[::2].max() < length[1::2].max()  # two in a row come soon


def test_an_illegal_move_forfeits_here_too():
    games, both = setup()
    state = both.start_as(games, jnp.int32(1), jax.random.key(0))
    state = both.step(
        both.step(state, jnp.int32(4), jax.random.key(0)), jnp.int32(4), jax.random.key(0)
    )
    assert bool(state.illegal) and bool(state.done)
    np.testing.assert_array_equal(state.rewards, [1, -1])


def test_texts_are_those_of_the_game_and_say_which_it_is():
    games, both = setup()
    state = both.start_as(games, jnp.int32(1), jax.random.key(0))
    state = both.step(state, jnp.int32(4), jax.random.key(0))
    again = both.from_text(both.to_text(state))
    jax.tree.map(np.testing.assert_array_equal, state, again)
    game, inner = both.game_of(state)
    assert game == games[1]
    assert both.action_to_text(state, 3) == game.action_to_text(inner, 3)
    assert both.action_from_text(state, both.action_to_text(state, 3)) == 3
    assert both.draw(state) == game.draw(inner)
    with pytest.raises(core.PositionError, match="^stage: begins with the game's number, 0 to 1"):
        both.from_text("2 " + game.to_text(inner))


def test_what_differs_in_shape_does_not_go_together():
    games, both = setup()
    assert isinstance(both, Staged) and all(both.holds(game) for game in games)
    assert hash(both) == hash(together(games)) and both == together(games)
    with pytest.raises(ValueError, match="^num_players: is 2 in one and 3 in another"):
        together([games[0], core.make("mnk", players=3)])
    assert together([games[0]]) is games[0]
    small = core.make("eight_in_a_row", rows=5, cols=5, bucket=9)
    large = core.make("eight_in_a_row", rows=9, cols=9, bucket=9)
    assert together([small, large]) is small  # sizes are data there


def test_stages_of_sequence():
    """Hands of other sizes, and one sequence to win instead of two, in one program."""
    options = (dict(sequences_to_win=1, hand_size=5), dict(sequences_to_win=2, hand_size=7))
    games = tuple(core.make("sequence", **given) for given in options)
    both = together(games)
    keys = jax.random.split(jax.random.key(3), 6)
    stage = jnp.arange(6) % 2
    deal = jax.jit(jax.vmap(lambda which, key: both.start_as(games, which, key)))
    states = deal(stage, keys)
    held = np.asarray(states.inner.hands).reshape(6, 2, -1).sum(-1)
    np.testing.assert_array_equal(held[:, 0], [5, 7] * 3)
    assert both.num_actions == games[0].num_actions and "greedy" in both.bots
    # its steps are batched by a rule of their own, which takes no batches of constants
    step = jax.vmap(both.step, in_axes=(0, None, 0))
    after = jax.eval_shape(step, states, jnp.int32(0), keys)
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, states)
