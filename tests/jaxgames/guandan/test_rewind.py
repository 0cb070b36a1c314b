"""Decisions taken back, against what truly happened in whole rounds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames.guandan import actions
from jaxgames.guandan.rules import PLAY, PLAYS_KEPT

N, COUNT, EVERY = 24, 14, 7
#: Leaves of a position that a rewound one must have exactly.
SAME = (
    "current_player", "legal_action_mask", "terminated", "truncated", "illegal", "hands",
    "played", "known", "levels", "owner", "level", "fails", "demotions", "rounds", "stage",
    "order", "tribute", "back", "to", "anti", "table", "table_seat",
)  # fmt: skip


@functools.cache
def rounds(profile: str) -> tuple:
    """(game, [(states before, actions)] of N games step by step, [Past of seat 0..3] by step)."""
    game = jaxgames.make("guandan", profile=profile)
    step = jax.jit(jax.vmap(game.step))
    greedy, chance = (jax.jit(jax.vmap(game.bots[name])) for name in ("greedy", "random"))
    back = jax.jit(jax.vmap(lambda s, p: game.rewind(s, p, COUNT)))
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(1), N))
    history, pasts = [], {}
    for ply in range(400):
        keys = jax.random.split(jax.random.key(100 + ply), (3, N))
        if ply % EVERY == EVERY - 1:
            pasts[ply] = jax.device_get(back(states, jnp.full(N, (ply // EVERY) % 4)))
        wild = np.arange(N) % 3 == 0  # the greedy bot ends rounds sooner, with jiefeng
        action = jnp.where(wild, chance(states, keys[0]), greedy(states, keys[1]))
        history.append(jax.device_get((states, action)))
        states = step(states, action, keys[2])
        if bool(jnp.all(states.done)):
            break
    return game, history, pasts


def row(tree, i: int):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def decisions(history, ply: int, i: int) -> list:
    """(state, action) of game `i` before step `ply`, newest first, of its play stage."""
    found = [(row(states, i), int(action[i])) for states, action in history[:ply]]
    return [x for x in reversed(found) if int(x[0].stage) == PLAY and not bool(x[0].done)]


def may_be_open(state, action: int) -> bool:
    """Whether this comes after the last play of a seat that is out, and is a play of its
    partner, or a pass that there was only if the partner's play was a lead."""
    last = int(state.plays_seat[0])
    if last < 0 or state.hands[last].any():
        return False
    away = (int(state.current_player) - last) % 4
    return away == 2 or away == 3 and action == actions.PASS


@pytest.mark.parametrize("profile", ["national", "v1006"])
def test_decisions_are_those_that_were_made(profile):
    game, history, pasts = rounds(profile)
    checked = leads = left_out = 0
    for ply, past in pasts.items():
        player = (ply // EVERY) % 4
        for i in range(N):
            if bool(history[ply][0].done[i]):
                assert not past.valid[i].any()
                continue
            if int(history[ply][0].stage[i]) != PLAY:
                assert not past.valid[i].any()
                continue
            true, plays = [], 0
            for state, action in decisions(history, ply, i):
                plays += action != actions.PASS
                if plays > PLAYS_KEPT or plays == PLAYS_KEPT and int(state.plays_seat[0]) >= 0:
                    break  # nothing is remembered of what lay there
                if int(state.current_player) != player:
                    true.append((state, action))
            for j in range(int(past.valid[i].sum())):
                got, action = row(row(past.states, i), j), int(past.action[i, j])
                while may_be_open(*true[0]) and not agrees(got, action, *true[0]):
                    true.pop(0)
                    left_out += 1
                state, made = true.pop(0)
                assert action == made
                for name in SAME:
                    want = getattr(state, name)
                    assert np.array_equal(getattr(got, name), want), (ply, i, j, name)
                kept = int((got.plays >= 0).sum())
                assert np.array_equal(got.plays[:kept], state.plays[:kept])
                assert np.array_equal(got.plays_cards[:kept], state.plays_cards[:kept])
                assert kept or int(state.table) < 0
                checked += 1
                leads += int(state.table) < 0
            full = int(past.valid[i].sum()) == COUNT
            assert full or all(may_be_open(*x) for x in true), (ply, i, len(true))
            assert past.valid[i][: past.valid[i].sum()].all()
    assert checked > 2000 and leads > 100 and left_out < checked / 50


def agrees(got, action, state, made) -> bool:
    return action == made and all(
        np.array_equal(getattr(got, name), getattr(state, name))
        for name in ("current_player", "hands", "table")
    )


def test_the_seats_see_what_they_saw():
    """The observation, once the true position forgets the plays that are not remembered."""
    game, history, pasts = rounds("national")
    observe = jax.jit(jax.vmap(lambda s: game.observe(s, s.current_player)))
    compared = 0
    for ply in list(pasts)[2::4]:
        past, player = pasts[ply], (ply // EVERY) % 4
        for i in range(0, N, 5):
            if not past.valid[i, 0]:
                continue
            made = [x for x in decisions(history, ply, i) if int(x[0].current_player) != player]
            got, state = row(row(past.states, i), 0), made[0][0]
            if not agrees(got, int(past.action[i, 0]), *made[0]):
                continue
            forgotten = got.plays < 0
            state = state.replace(
                plays=np.where(forgotten, np.int16(-1), state.plays),
                plays_seat=np.where(forgotten, np.int8(-1), state.plays_seat),
                plays_cards=np.where(forgotten[:, None], np.uint16(0), state.plays_cards),
            )
            both = jax.tree.map(lambda a, b: np.stack([a, b]), got, state)
            seen = observe(both)
            for name, leaf in seen.items():
                assert np.array_equal(leaf[0], leaf[1]), name
            compared += 1
    assert compared > 5


def test_which_decisions_is_public():
    """Worlds of one position differ in hands alone: actions and their order are the same."""
    game, history, pasts = rounds("national")
    ply = sorted(pasts)[6]
    states = jax.tree.map(jnp.asarray, history[ply][0])
    player = jnp.full(N, (ply // EVERY) % 4)
    keys = jax.random.split(jax.random.key(3), N)
    worlds = jax.jit(jax.vmap(game.resample))(states, player, keys)
    back = jax.jit(jax.vmap(lambda s, p: game.rewind(s, p, COUNT)))
    first, second = pasts[ply], jax.device_get(back(worlds, player))
    assert np.array_equal(first.valid, second.valid) and first.valid.sum() > N
    assert np.array_equal(first.action, second.action)
    assert np.array_equal(first.states.table, second.states.table)
    hands = np.asarray(first.states.hands) != np.asarray(second.states.hands)
    assert hands[first.valid].any()
    legal = np.take_along_axis(second.states.legal_action_mask, second.action[..., None], -1)
    assert legal[..., 0][second.valid].all(), "what was played can be played in every world"
