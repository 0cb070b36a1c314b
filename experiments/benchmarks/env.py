"""Steps per second of a game under random legal play, next to pgx in the same run.

The loop is that of self-play: finished games are replaced from a pool of fresh states, the
chosen action comes from the mask the game wrote (one random number per decision), the game
steps. Every game, ours or a peer's, runs in the same loop with the same sampler.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxgames

PEERS = ("hex", "connect_four")


def benchmark_env(
    name: str = "sequence",
    options: dict | None = None,
    batch_sizes: tuple[int, ...] = (256, 1024, 4096),
    steps: int = 200,
    repeats: int = 5,
    peers: tuple[str, ...] = PEERS,
    seed: int = 0,
) -> dict:
    """Measures a registered game and its peers; everything in the result is JSON-ready.

    Args:
      name, options: as for `jaxgames.make`.
      batch_sizes: games played side by side.
      steps: decisions per game and timed call.
      repeats: timed calls; medians are reported with the lowest and highest rate.
      peers: pgx environments; left out (null) where pgx is not installed.

    Returns:
      {"game", "options", "compile_seconds" of init + step for one batch, "rates": {batch size:
      {"median", "low", "high", "batch_axis", "games_ended"} steps per second}, "observe": rates
      of observations at the first batch size, "peers": {name: {"rates", "ratio": {batch size:
      ours / theirs}}}}. Each rate is the better of batch first and batch last.
    """
    game = jaxgames.make(name, **(options or {}))
    key = jax.random.key(seed)
    seconds = _compile_seconds(game.init, game.step, key, batch_sizes[0])
    ours = {str(b): _measure(game.init, game.step, key, b, steps, repeats) for b in batch_sizes}
    return {
        "game": name,
        "version": game.version,
        "options": options or {},
        "steps": steps,
        "repeats": repeats,
        "compile_seconds": seconds,
        "rates": ours,
        "observe": _observe_rate(game, key, batch_sizes[0], repeats),
        "peers": {peer: _peer(peer, ours, key, batch_sizes, steps, repeats) for peer in peers},
    }


def choose(masks: jax.Array, u: jax.Array) -> jax.Array:
    """int32[B]: the legal action number floor(u * count) of each column of `masks` bool[A, B].

    Exact for float32 `u` in [0, 1). It counts per word of 32 actions, then within the word,
    and always over whole rows of games.
    """
    words = -(-len(masks) // 32)
    padded = jnp.pad(masks, ((0, words * 32 - len(masks)), (0, 0))).reshape(words, 32, -1)
    place = np.arange(32, dtype=np.uint32)[:, None]
    word = jnp.sum(jnp.where(padded, jnp.uint32(1) << place, 0), axis=1, dtype=jnp.uint32)
    through = _running_sum(jax.lax.population_count(word).astype(jnp.uint16))
    total = through[-1]
    k = jnp.minimum((u * total).astype(jnp.uint16), total - 1)
    passed = through <= k
    index = jnp.sum(passed, axis=0, dtype=jnp.uint16)
    k = (k - jnp.max(jnp.where(passed, through, 0), axis=0)).astype(jnp.uint32)
    here = np.arange(words, dtype=np.uint16)[:, None] == index
    rest = jnp.sum(jnp.where(here, word, 0), axis=0, dtype=jnp.uint32)
    offset = jnp.zeros_like(k)
    for width in (16, 8, 4, 2, 1):
        low = rest & np.uint32((1 << width) - 1)
        count = jax.lax.population_count(low)
        skip = k >= count
        k = jnp.where(skip, k - count, k)
        rest = jnp.where(skip, rest >> width, low)
        offset = jnp.where(skip, offset + width, offset)
    return index.astype(jnp.int32) * 32 + offset.astype(jnp.int32)


def _running_sum(counts: jax.Array) -> jax.Array:
    """Running sums over the short first axis, in log2 steps over whole rows."""
    shift = 1
    while shift < len(counts):
        counts = counts + jnp.pad(counts[:-shift], ((shift, 0), (0, 0)))
        shift *= 2
    return counts


def _loop(init, step, finished, batch: int, steps: int, axis: int):
    """(start, run): a pool of `batch` fresh states; `steps` decisions of random play.

    `axis` is where the batch lies in the leaves of the states, 0 or -1.
    """

    def start(key):
        states = jax.vmap(init)(jax.random.split(key, batch))
        return jax.tree.map(lambda x: jnp.moveaxis(x, 0, axis), states)

    def decide(pool, states, key):
        over = finished(states)
        states = jax.tree.map(
            lambda new, old: jnp.where(over if axis else _column(over, old), new, old), pool, states
        )
        choice, chance = jax.random.split(key)
        masks = states.legal_action_mask
        actions = choose(masks if axis else masks.T, jax.random.uniform(choice, (batch,)))
        move = jax.vmap(step, in_axes=(axis, 0, 0), out_axes=axis)
        return move(states, actions, jax.random.split(chance, batch)), jnp.sum(over)

    def run(pool, states, key):
        keys = jax.random.split(key, steps)
        states, over = jax.lax.scan(lambda s, k: decide(pool, s, k), states, keys)
        return states, jnp.sum(over)

    return jax.jit(start), jax.jit(run)


def _column(flags: jax.Array, like: jax.Array) -> jax.Array:
    return flags.reshape(flags.shape + (1,) * (like.ndim - 1))


def _finished(state) -> jax.Array:
    return state.terminated | state.truncated


def _measure(init, step, key, batch: int, steps: int, repeats: int) -> dict[str, Any]:
    """Steps per second for the batch in front and the batch last; the better one is reported."""
    best: dict[str, Any] = {"median": 0.0}
    for axis in (-1, 0):
        start, run = _loop(init, step, _finished, batch, steps, axis)
        pool = start(key)
        states, _ = jax.block_until_ready(run(pool, pool, key))
        rates, games = [], 0
        for i in range(repeats):
            began = time.perf_counter()
            states, over = jax.block_until_ready(run(pool, states, jax.random.fold_in(key, i)))
            rates.append(batch * steps / (time.perf_counter() - began))
            games += int(over)
        if statistics.median(rates) > best["median"]:
            best = {**_spread(rates), "batch_axis": axis, "games_ended": games}
    return best


def _spread(rates: list[float]) -> dict[str, float]:
    return {"median": statistics.median(rates), "low": min(rates), "high": max(rates)}


def _compile_seconds(init, step, key, batch: int) -> float:
    """Seconds to trace and compile `init` and `step`, vmapped over `batch` games."""
    began = time.perf_counter()
    keys = jax.random.split(key, batch)
    initial = jax.jit(jax.vmap(init)).lower(keys).compile()
    states = initial(keys)
    actions = jnp.zeros(batch, jnp.int32)
    jax.jit(jax.vmap(step)).lower(states, actions, keys).compile()
    return time.perf_counter() - began


def _observe_rate(game, key, batch: int, repeats: int) -> dict[str, float]:
    """Observations per second, each game seen by its mover."""
    states = jax.jit(jax.vmap(game.init))(jax.random.split(key, batch))
    see = jax.jit(lambda s: jax.vmap(game.observe)(s, s.current_player))
    jax.block_until_ready(see(states))
    calls, rates = 20, []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(calls):
            seen = see(states)
        jax.block_until_ready(seen)
        rates.append(batch * calls / (time.perf_counter() - began))
    return {**_spread(rates), "batch": batch}


def _peer(name: str, ours, key, batch_sizes, steps: int, repeats: int) -> dict[str, Any] | None:
    """A pgx environment in the same loop, or None where pgx is not installed."""
    try:
        import pgx
    except ImportError:
        return None
    env = pgx.make(name)

    def step(state, action, chance):
        return env.step(state, action, chance)

    rates = {str(b): _measure(env.init, step, key, b, steps, repeats) for b in batch_sizes}
    ratio = {b: ours[b]["median"] / rate["median"] for b, rate in rates.items()}
    return {"rates": rates, "ratio": ratio}
