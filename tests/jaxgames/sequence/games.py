"""Batches of whole games of the engine, by policies that visit rare situations."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

import jaxgames

BATCH = 500
CHUNK = 48  # steps per compiled call; repeated until every game is over


def make(preset, players, teams, **options):
    return jaxgames.make("sequence", preset, players=players, teams=teams, **options)


# ---- policies: a weight per game, team and action ----


def uniform(game, rng, count):
    """Uniformly random legal actions."""
    return np.ones((count, game.num_teams, game.num_actions), np.float32)


def mischief(game, rng, count):
    """Loves jacks, removals and swaps, each game and team to a degree of its own."""
    block = np.arange(game.num_actions) // game.action_slots // 100
    taste = np.exp(rng.uniform(-3, 5, (count, game.num_teams, 4)))
    return taste[..., block].astype(np.float32)


def liners(game, rng, count):
    """Loves some lines of the board, so that long runs and crosses are common."""
    row, col = np.divmod(np.arange(100), 10)
    line = np.stack([row, 10 + col, 29 + row - col, 40 + row + col])  # of 60, four per cell
    love = np.exp(3.0 * (rng.uniform(size=(count, game.num_teams, 60)) < 0.06))
    cells = love[..., line].prod(axis=-2)  # [count, T, 100]
    rest = np.ones((*cells.shape[:2], 49))
    weights = np.concatenate([cells, cells, 1 / cells, rest], axis=-1)
    return np.repeat(weights, game.action_slots, axis=-1).astype(np.float32)


def mixed(game, rng, count):
    """A share of each of the policies above."""
    third = count // 3
    shares = [uniform(game, rng, count - 2 * third)]
    shares += [policy(game, rng, third) for policy in (mischief, liners)]
    return np.concatenate(shares)


# ---- playing with the engine ----


@functools.cache
def player(game):
    """Compiled (deal, play): batches of games under vmap and scan."""

    def act(state, weights, foul, key):
        u, which = jax.random.split(key)
        team = state.current_player % game.num_teams
        upto = jnp.cumsum(jnp.where(state.legal_action_mask, weights[team], 0.0))
        u = jax.random.uniform(u) * upto[-1]
        action = jnp.minimum(jnp.sum(upto <= u), game.num_actions - 1)
        wild = jax.random.randint(which, (), -2, game.num_actions + 2)
        return jnp.where(foul == state.plies, wild, action).astype(jnp.int32)

    def record(state):
        return {
            "legal_action_mask": jnp.packbits(state.legal_action_mask, bitorder="little"),
            "leaves": state.replace(legal_action_mask=jnp.zeros(0, bool)),
        }

    def advance(states, key, weights, fouls):
        keys = jax.random.split(key, (2, BATCH))
        actions = jax.vmap(act)(states, weights, fouls, keys[0])
        states = jax.vmap(game.step)(states, actions, keys[1])
        return states, (actions, jax.vmap(record)(states))

    @jax.jit
    def deal(key):
        states = jax.vmap(game.init)(jax.random.split(key, BATCH))
        return states, jax.vmap(record)(states)

    @jax.jit
    def play(states, key, weights, fouls):
        body = functools.partial(advance, weights=weights, fouls=fouls)
        states, steps = jax.lax.scan(body, states, jax.random.split(key, CHUNK))
        return states, steps, jnp.all(states.done)

    return deal, play


def rollout(game, seed, policy=mixed):
    """Actions [S, B] and records [S + 1, B, ...] of BATCH games played to the end."""
    rng = np.random.default_rng(seed)
    deal, play = player(game)
    key = jax.random.key(seed)
    weights = jnp.asarray(policy(game, rng, BATCH))
    # One game in ten ends by an action that is most likely illegal.
    fouls = jnp.asarray(np.where(rng.random(BATCH) < 0.1, rng.integers(0, 60, BATCH), -1))
    states, first = deal(jax.random.fold_in(key, 0))
    actions, records = [], [jax.tree.map(lambda x: np.asarray(x)[None], first)]
    for chunk in itertools.count(1):
        states, (acts, recs), done = play(states, jax.random.fold_in(key, chunk), weights, fouls)
        actions.append(np.asarray(acts))
        records.append(jax.tree.map(np.asarray, recs))
        if done:
            break
        assert chunk * CHUNK <= game.max_steps
    return np.concatenate(actions), jax.tree.map(lambda *xs: np.concatenate(xs), *records)


def positions(game, seed, count):
    """`count` states from anywhere in BATCH games, the last positions of some among them."""
    _, records = rollout(game, seed)
    states, mask = records["leaves"], records["legal_action_mask"]
    mask = np.unpackbits(mask, axis=-1, count=game.num_actions, bitorder="little").astype(bool)
    states = states.replace(legal_action_mask=mask)
    rng = np.random.default_rng(seed)
    ends = np.asarray(states.done).argmax(0)
    for i in range(count):
        g = rng.integers(BATCH)
        step = ends[g] + rng.integers(2) if i % 5 == 0 else rng.integers(ends[g] + 1)
        yield jax.tree.map(lambda x, at=(step, g): jnp.asarray(x[at]), states)
