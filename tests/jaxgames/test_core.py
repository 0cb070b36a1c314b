"""The contract's shared parts: step's guard, uniform choice, the registry."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401
import tests.toys.mnk  # noqa: F401
from jaxgames import core, make
from jaxgames.core import FieldError, PositionError, RulesError, choose_uniform, random_bot

KEY = jax.random.key(0)


def play(game, *actions):
    step, state = core.jit_step(game), game.init(KEY)
    for action in actions:
        state = step(state, np.int32(action), KEY)
    return state


# ---- step ----


def test_a_won_game_pays_by_absolute_seat():
    state = play(make("mnk"), 0, 3, 1, 4, 2)
    assert state.rewards.tolist() == [1, -1] and bool(state.terminated)
    state = play(make("mnk"), 0, 3, 1, 4, 8, 5)
    assert state.rewards.tolist() == [-1, 1] and bool(state.terminated)
    state = play(make("mnk", players=3, rows=4, cols=4), 0, 4, 8, 1, 5, 9, 3, 6)
    assert state.rewards.tolist() == [-0.5, 1, -0.5]


def test_rewards_are_of_the_last_step_only():
    assert play(make("mnk"), 0, 3, 1, 4, 2, 5).rewards.tolist() == [0, 0]


@pytest.mark.parametrize("action", [0, -1, 9, 2**31 - 1, -(2**31)])
def test_an_illegal_action_forfeits_and_leaves_the_board(action):
    game = make("mnk", players=3)
    before = play(game, 0)
    state = core.jit_step(game)(before, np.int32(action), KEY)
    assert bool(state.terminated) and bool(state.illegal) and not bool(state.truncated)
    assert state.rewards.tolist() == [0.5, -1, 0.5]
    assert bool(state.legal_action_mask.all())
    assert state.cells.tolist() == before.cells.tolist()
    assert int(state.current_player) == 1


def test_forfeits_are_paid_to_teams():
    game = make("highcard", "pairs")
    assert game.forfeit_rewards(jnp.int32(0)).tolist() == [-1, 1, -1, 1]
    three = make("highcard", players=6, teams=3)
    assert three.forfeit_rewards(jnp.int32(2)).tolist() == [0.5, 0.5, -1, 0.5, 0.5, -1]


@pytest.mark.parametrize("action", [0, 8, -1, 99])
def test_a_finished_game_stays(action):
    game = make("mnk")
    won = play(game, 0, 3, 1, 4, 2)
    after = core.jit_step(game)(won, np.int32(action), KEY)
    assert not after.illegal and after.rewards.tolist() == [0, 0]
    assert after.cells.tolist() == won.cells.tolist()
    assert after.current_player == won.current_player


def test_step_is_compiled_once_per_game():
    assert core.jit_step(make("mnk")) is core.jit_step(make("mnk", "tictactoe"))
    assert core.jit_step(make("mnk")) is not core.jit_step(make("mnk", rows=4))


def test_games_without_chance_refuse_its_text():
    game = make("mnk")
    state = game.init(KEY)
    assert game.step_with_chance(state, 4, None).cells[1, 1] == 1
    with pytest.raises(ValueError, match="no chance in its moves"):
        game.step_with_chance(state, 4, "7")


def test_explanations_without_a_games_own():
    game = make("mnk")
    state = play(game, 0)
    assert game.explain_illegal(state, 1) is None
    assert game.explain_illegal(state, 0) == "the rules forbid it here"
    assert game.explain_illegal(state, 9) == "action 9 is outside 0..8"
    assert game.explain_illegal(play(game, 0, 3, 1, 4, 2), 8) == "the game is over"


def test_states_draw_themselves():
    assert play(make("mnk"), 4)._repr_html_().startswith("<svg")


# ---- uniform choice ----

MASKS = np.random.default_rng(0).random((40, 349)) < np.linspace(0.003, 1, 40)[:, None]
MASKS[0] = False
MASKS[np.arange(40), np.arange(40) * 8] = True
LAST = np.nextafter(np.float32(1), np.float32(0))


@pytest.fixture(scope="module")
def choices():
    """[40, n]: the choice from each of MASKS for each u."""
    per_mask = jax.vmap(choose_uniform, (None, 0))
    return jax.jit(jax.vmap(per_mask, (0, 0)))


def test_every_action_owns_an_equal_share_of_u(choices):
    """The n-th of 2**24 values of u goes to floor(n * count / 2**24), to the last bit.

    So no share is more than one value larger than another, for every count; ends of the
    shares are where rounding would show.
    """
    counts = MASKS.sum(axis=1)
    assert counts.min() == 1 and counts.max() == 349
    starts = np.stack([-(-np.arange(350) * 2**24 // count) for count in counts])
    inside = np.arange(350) < counts[:, None]
    firsts = np.where(inside, starts, 0)
    for shift, rank in ((0, np.arange(350)), (-1, np.arange(350) - 1)):
        n = np.where(inside & (firsts + shift >= 0), firsts + shift, 0)
        rank = np.where(inside & (firsts + shift >= 0), rank, 0)
        got = np.asarray(choices(MASKS, (n / 2**24).astype(np.float32)))
        want = np.stack([np.flatnonzero(m)[r] for m, r in zip(MASKS, rank, strict=True)])
        assert np.array_equal(got, want)


def test_no_u_below_one_passes_the_last_action(choices):
    u = np.array([0, np.finfo(np.float32).tiny, 2**-24, 0.5, LAST, 1.0], np.float32)
    got = np.asarray(choices(MASKS, np.tile(u, (40, 1))))
    assert MASKS[np.arange(40)[:, None], got].all()
    legal = [np.flatnonzero(mask) for mask in MASKS]
    assert got[:, 0].tolist() == [x[0] for x in legal]
    assert got[:, 4].tolist() == got[:, 5].tolist() == [x[-1] for x in legal]


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 64, 65])
def test_heads_of_any_size(size):
    u = jnp.asarray((np.arange(size) + 0.5) / size, jnp.float32)
    got = jax.jit(jax.vmap(choose_uniform, (None, 0)))(jnp.ones(size, bool), u)
    assert got.dtype == jnp.int32 and got.tolist() == list(range(size))


def test_large_heads_are_exact():
    mask = jnp.ones(10_000, bool).at[0].set(False)
    n = jnp.asarray([0, 1, 2**23, 2**24 - 1])
    got = jax.jit(jax.vmap(choose_uniform, (None, 0)))(mask, (n / 2**24).astype(jnp.float32))
    assert got.tolist() == [1 + int(i) * 9_999 // 2**24 for i in n]


def test_the_random_bot_is_uniform_over_legal_actions():
    """Chi-square over 7 legal of 9 actions, 70,000 draws: below 22.5 but once in 1,000 runs."""
    state = play(make("mnk"), 2, 6)
    draws = jax.jit(jax.vmap(random_bot, (None, 0)))(state, jax.random.split(KEY, 70_000))
    counts = np.bincount(draws, minlength=9)
    assert counts[[2, 6]].tolist() == [0, 0]
    legal = counts[np.asarray(state.legal_action_mask)]
    assert ((legal - 10_000) ** 2 / 10_000).sum() < 22.5


# ---- registry ----


def test_make_merges_options_over_presets():
    game = make("highcard", "pairs", ranks=9)
    assert dataclasses.asdict(game.rules) == dict(players=4, teams=2, ranks=9, copies=3, rounds=2)
    assert game == make("highcard", players=4, copies=3, ranks=9)
    assert hash(game) == hash(make("highcard", "pairs", ranks=9))
    assert {"mnk", "highcard", "sequence"} <= set(core.games())


@pytest.mark.parametrize(
    ("args", "options", "field", "words"),
    [
        (("mkn",), {}, "game", "did you mean mnk"),
        (("highcard", "pears"), {}, "preset", "did you mean pairs"),
        (("mnk",), dict(row=3), "row", "did you mean rows"),
        (("mnk",), dict(players=5), "players", "1 to 4, got 5"),
        (("mnk",), dict(rows="3"), "rows", "int, got '3'"),
        (("mnk",), dict(rows=3.0), "rows", "int, got 3.0"),
        (("mnk",), dict(rows=True), "rows", "int, got True"),
        (("mnk",), dict(rows=None), "rows", "int, got None"),
    ],
)
def test_wrong_options_are_named(args, options, field, words):
    with pytest.raises(RulesError) as caught:
        make(*args, **options)
    assert caught.value.field == field
    assert words in caught.value.message
    assert str(caught.value) == f"{field}: {caught.value.message}"
    assert isinstance(caught.value, FieldError) and issubclass(PositionError, FieldError)


def test_a_name_is_registered_once():
    core.register("mnk", "tests.toys.mnk:MNK")
    with pytest.raises(ValueError, match="already registered"):
        core.register("mnk", "elsewhere:Game")


def test_nearest_names():
    assert core.nearest("tehm", ["them", "other"]) == "; did you mean them?"
    assert core.nearest("xyz", ["b", "a"]) == "; known: a, b"
