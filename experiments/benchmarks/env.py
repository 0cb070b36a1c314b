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


def choose(masks: jax.Array, u: jax.Array, axis: int = -1) -> jax.Array:
    """int32[B]: for each game the legal action number floor(u * count) of its mask.

    Exact for float32 `u` in [0, 1). It counts per word of 32 actions and per group of words,
    then goes down from the group to the bit; always over whole rows of games.

    Args:
      masks: bool[A, B], or bool[B, A] for `axis` 0.
      u: float32[B].
    """
    actions = masks.shape[1 + axis]
    words = -(-actions // 32)
    size = max(1, round(words**0.5))  # words of a group
    groups = -(-words // size)
    if axis == 0:
        counts = jnp.pad(_row_counts(masks), ((0, 0), (0, groups * size - words)))
        counts = counts.reshape(-1, groups, size)
        group, k = _descend(jnp.sum(counts, axis=2).T, u)
        inside = jnp.take_along_axis(counts, group[:, None, None], axis=1)[:, 0]
        word, k = _find(inside.T, k)
        first = (group * size + word) * 32
        place = first[:, None] + np.arange(32)
        bits = jnp.take_along_axis(masks, place, axis=1, mode="fill", fill_value=False)
        return first + _bit(_pack(bits.T)[0], k)
    pad = groups * size * 32 - actions
    packed = _pack(jnp.pad(masks, ((0, pad), (0, 0)))).reshape(groups, size, -1)
    group, k = _descend(jnp.sum(_count(packed), axis=1), u)
    inside = _pick(packed, group)
    word, k = _find(_count(inside), k)
    return (group * size + word) * 32 + _bit(_pick(inside, word), k)


def _row_counts(masks: jax.Array) -> jax.Array:
    """int32[B, words], legal actions per 32 of bool[B, A]."""
    whole = masks.shape[1] // 32 * 32
    counts = jnp.sum(masks[:, :whole].reshape(len(masks), -1, 32), axis=2, dtype=jnp.int32)
    if whole == masks.shape[1]:
        return counts
    return jnp.append(counts, jnp.sum(masks[:, whole:], 1, dtype=jnp.int32)[:, None], axis=1)


def _pack(masks: jax.Array) -> jax.Array:
    """uint32[words, B] of bool[words * 32, B], the first action lowest."""
    bits = masks.reshape(-1, 4, 8, masks.shape[1]).astype(jnp.uint8)
    for width in (4, 2, 1):
        bits = bits[:, :, :width] | (bits[:, :, width:] << width)
    octets = bits[:, :, 0].astype(jnp.uint32)
    return octets[:, 0] | octets[:, 1] << 8 | octets[:, 2] << 16 | octets[:, 3] << 24


def _count(words: jax.Array) -> jax.Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def _pick(rows: jax.Array, index: jax.Array) -> jax.Array:
    """uint32[..., B], row index[b] of `rows` uint32[N, ..., B] for each game b."""
    number = np.arange(len(rows)).reshape((-1,) + (1,) * (rows.ndim - 1))
    return jnp.sum(jnp.where(number == index, rows, 0), axis=0, dtype=jnp.uint32)


def _descend(counts: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`_find` of number floor(u * total) in `counts` int32[N, B]."""
    total = jnp.sum(counts, axis=0)
    return _find(counts, jnp.minimum((u * total).astype(jnp.int32), total - 1))


def _find(counts: jax.Array, k: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(row in which item number k of `counts` int32[N, B] lies, its number there)."""
    through = index = before = jnp.zeros_like(k)
    for row in counts[:-1]:
        through = through + row
        passed = through <= k
        index = index + passed
        before = jnp.where(passed, through, before)
    return index, k - before


def _bit(words: jax.Array, k: jax.Array) -> jax.Array:
    """int32[B], place of set bit number k of `words` uint32[B]."""
    offset = jnp.zeros_like(k)
    for width in (16, 8, 4, 2, 1):
        low = words & np.uint32((1 << width) - 1)
        skip = k >= _count(low)
        k = jnp.where(skip, k - _count(low), k)
        words = jnp.where(skip, words >> width, low)
        offset = jnp.where(skip, offset + width, offset)
    return offset


def _loop(init, step, finished, batch: int, steps: int, axis: int):
    """(start, run): a pool of `batch` fresh states; `steps` decisions of random play.

    `axis` is where the batch lies in the leaves of the states, 0 or -1.
    """

    def start(key):
        states = jax.vmap(init)(jax.random.split(key, batch))
        return jax.tree.map(lambda x: jnp.moveaxis(x, 0, axis), states)

    def decide(pool, states, key):
        over = finished(states)
        states = (_renew_rows if axis == 0 else _renew)(pool, states, over)
        choice, chance = jax.random.split(key)
        actions = choose(states.legal_action_mask, jax.random.uniform(choice, (batch,)), axis)
        move = jax.vmap(step, in_axes=(axis, 0, 0), out_axes=axis)
        return move(states, actions, jax.random.split(chance, batch)), jnp.sum(over)

    def run(pool, states, key):
        keys = jax.random.split(key, steps)
        states, over = jax.lax.scan(lambda s, k: decide(pool, s, k), states, keys)
        return states, jnp.sum(over)

    return jax.jit(start), jax.jit(run)


def _renew(pool, states, over):
    """`states` with those of `pool` where `over` bool[B], the batch last."""
    return jax.tree.map(lambda new, old: jnp.where(over, new, old), pool, states)


def _renew_rows(pool, states, over):
    """The same with the batch first: game by game, since few are over at a time."""
    which = jnp.nonzero(over, size=len(over))[0]

    def one(i, states):
        return jax.tree.map(lambda old, new: old.at[which[i]].set(new[which[i]]), states, pool)

    return jax.lax.fori_loop(0, jnp.sum(over), one, states)


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
    began = time.perf_counter()
    jax.block_until_ready(see(states))
    calls, rates = int(np.clip(1 / (time.perf_counter() - began), 1, 20)), []  # about a second
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
