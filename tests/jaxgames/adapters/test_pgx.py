"""The wrapper that looks like pgx: pgx's own test, and what it does not look at."""

import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
import tests.toys.highcard  # noqa: F401  (registers "highcard")
from jaxgames.adapters import pgx as adapter
from jaxgames.core import jit_step

GAMES = {
    "sequence": {"players": 2, "ply_cap": 20},
    "guandan": {},
    "highcard": {},
    "eight_in_a_row": {"rows": 5, "cols": 5, "win_length": 4},
}


@pytest.mark.parametrize(
    "name",
    [
        "eight_in_a_row",
        pytest.param("highcard", marks=pytest.mark.slow),
        pytest.param("sequence", marks=pytest.mark.slow),
        pytest.param("guandan", marks=pytest.mark.slow),
    ],
)
def test_their_own_test(name, monkeypatch):
    pytest.importorskip("pgx", reason="pgx is not installed (extra: peers)")
    from pgx._src import api_test

    # Names of environments are a closed list there, and its random player takes batches alone
    # (axis 1) although half of the test has none.
    monkeypatch.setattr(api_test, "EnvId", typing.Literal[tuple(GAMES)])
    log = lambda mask: jnp.log(mask.astype(jnp.float32))  # noqa: E731
    act = jax.jit(lambda key, mask: jax.random.categorical(key, log(mask), axis=-1))
    monkeypatch.setattr(api_test, "act_randomly", act)
    env = adapter.make(name, **GAMES[name])
    api_test.api_test(env, num=1)


def test_steps_are_those_of_the_game():
    env, game = adapter.make("highcard"), jaxgames.make("highcard")
    deal, chance = jax.random.key(3), jax.random.key(4)
    ours, theirs = jax.jit(game.init)(deal), jax.jit(env.init)(deal)
    action = jnp.argmax(ours.legal_action_mask).astype(jnp.int32)
    ours = jit_step(game)(ours, action, chance)
    theirs = jax.jit(env.step)(theirs, action, chance)
    assert all(map(np.array_equal, jax.tree.leaves(ours), jax.tree.leaves(theirs._x)))
    observe, look = jax.jit(game.observe), jax.jit(env.observe)
    seen = observe(ours, ours.current_player)
    planes = seen["board"].shape[-1]
    np.testing.assert_array_equal(theirs.observation[..., :planes], seen["board"])
    assert (theirs.observation[..., planes:] == seen["features"]).all()
    np.testing.assert_array_equal(look(theirs), theirs.observation)
    assert not np.array_equal(look(theirs, 1 - theirs.current_player), theirs.observation)
    assert theirs.observation.shape == env.observation_shape
    assert theirs._step_count == 1 and theirs.env_id == "highcard"
    capped = adapter.make("eight_in_a_row", **GAMES["eight_in_a_row"], max_plies=1)
    end = jax.jit(lambda key: capped.step(capped.init(key), jnp.int32(0)))(deal)
    assert end.terminated and end.truncated  # who looks at `terminated` alone sees the end
    assert (env.id, env.version, env.num_players) == ("highcard", game.version, 2)
    assert env.num_actions == game.num_actions


def test_both_kinds_of_keys():
    env = adapter.make("highcard")
    init = jax.jit(env.init)
    old, new = init(jax.random.key_data(jax.random.key(5))), init(jax.random.key(5))
    assert all(map(np.array_equal, jax.tree.leaves(old), jax.tree.leaves(new)))
    with pytest.raises(ValueError, match="key"):
        env.step(old, jnp.int32(0))
    stones = adapter.make("eight_in_a_row", **GAMES["eight_in_a_row"])
    one = jax.jit(lambda key: stones.step(stones.init(key), jnp.int32(3)))  # no chance, no key
    state = one(jax.random.key(0))
    assert state._step_count == 1 and not state.legal_action_mask[3]


def test_illegal_and_finished():
    env = adapter.make("eight_in_a_row", **GAMES["eight_in_a_row"])
    step = jax.jit(env.step)
    state = step(jax.jit(env.init)(jax.random.key(0)), 3)
    lost = step(state, 3)
    assert lost.terminated and lost.legal_action_mask.all()
    assert lost.rewards[state.current_player] == lost.rewards.min() == -1
    after = step(lost, 4)
    assert after.terminated and not after.rewards.any() and after._step_count == 2


def test_pictures(tmp_path):
    env = adapter.make("eight_in_a_row", **GAMES["eight_in_a_row"])
    batch = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 3))
    batch.save_svg(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<svg")
    assert batch._repr_html_() == jax.jit(env.init)(jax.random.key(0)).to_svg()
    with pytest.raises(ValueError, match="filename"):
        batch.save_svg(tmp_path / "one.png")
