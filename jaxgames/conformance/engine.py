"""Rules about init and step as pure, jittable functions, and what they cost."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

from jaxgames.conformance.report import rule
from jaxgames.conformance.trial import (
    Trial,
    difference,
    draws,
    inner_equations,
    require,
    singles,
)
from jaxgames.core import choose_uniform, game_type, games, make


@rule("identity")
def identity(trial: Trial) -> str:
    """id, version and presets are right, and equal options make equal, hashable games."""
    game, cls = trial.game, type(trial.game)
    require(isinstance(game.version, str) and game.version, f"version {game.version!r} is no text")
    require(cls(rules=game.rules) == game, "equal options make unequal games")
    require(hash(cls(rules=game.rules)) == hash(game), "equal games have unequal hashes")
    require(game.id in games(), f"id {game.id!r} is not registered")
    require(game_type(game.id) is cls, f"id {game.id!r} is registered for another class")
    for name in game.presets:
        require(isinstance(make(game.id, name), cls), f"preset {name!r} makes another game")
    return f"version {game.version}, presets {', '.join(game.presets)}"


@rule("sizes")
def sizes(trial: Trial) -> str:
    """Counts fit together."""
    game = trial.game
    p, a, teams = game.num_players, game.num_actions, game.team_of
    for name in ("num_players", "num_actions", "max_steps"):
        value = getattr(game, name)
        require(type(value) is int and value >= 1, f"{name} is {value!r}")
    require(type(teams) is tuple and len(teams) == p, f"team_of {teams} for {p} seats")
    require(set(teams) == set(range(game.num_teams)), f"team_of {teams} is not 0..T-1")
    height, width = game.board_shape
    on_board = game.board_actions * height * width * game.action_slots
    require(on_board <= a, f"{on_board} board actions of {a}")
    return f"{p} seats, {game.num_teams} teams, {a} actions, at most {game.max_steps} steps"


@rule("types")
def types(trial: Trial) -> str:
    """The public fields have the contract's types, and step keeps every leaf's type."""
    game, state = trial.game, _first(trial)
    a, p = game.num_actions, game.num_players
    public = {
        "current_player": ((), jnp.int32),
        "legal_action_mask": ((a,), jnp.bool_),
        "rewards": ((p,), jnp.float32),
        **dict.fromkeys(("terminated", "truncated", "illegal"), ((), jnp.bool_)),
    }
    for name, (shape, dtype) in public.items():
        leaf = getattr(state, name)
        message = f"{name} is {leaf.dtype}{list(leaf.shape)}, want {np.dtype(dtype)}{list(shape)}"
        require(leaf.shape == shape and leaf.dtype == dtype, message)
    for name in ("_step", "step"):
        after = jax.eval_shape(getattr(game, name), state, jnp.int32(0), _key(0))
        found = _type_change(state, after)
        require(found is None, f"{name} changes {found}")
    leaves = jax.tree.leaves(state)
    size = sum(
        leaf.size * leaf.dtype.itemsize for leaf in leaves if hasattr(leaf.dtype, "itemsize")
    )
    return f"{len(leaves)} leaves, {size} bytes"


@rule("weak-types")
def weak_types(trial: Trial) -> str:
    """No leaf of a state or an observation is weakly typed."""
    game, state = trial.game, _first(trial)
    made = {
        "init": state,
        "step": jax.eval_shape(game.step, state, jnp.int32(0), _key(0)),
        "observe": jax.eval_shape(game.observe, state, jnp.int32(0)),
        "observe_all": jax.eval_shape(game.observe_all, state, jnp.int32(0)),
        "resample": jax.eval_shape(game.resample, state, jnp.int32(0), _key(0)),
    }
    for name, tree in made.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            where = jax.tree_util.keystr(path)
            require(not leaf.weak_type, f"{name}: {where} has a weak type")
    return "none"


@rule("no-keys")
def no_keys(trial: Trial) -> str:
    """A state holds no random key, so stepping it can not tell the future."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(_first(trial)):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        require(not is_key, f"{jax.tree_util.keystr(path)} is a key")
    return "none"


@rule("one-trace")
def one_trace(trial: Trial) -> str:
    """init, step and observe are traced once, whatever the state came from."""
    game, counts = trial.game, {}

    def counted(name: str) -> Any:
        def call(*args: Any) -> Any:
            counts[name] = counts.get(name, 0) + 1
            return getattr(game, name)(*args)

        return jax.jit(call)

    init, step, observe = counted("init"), counted("step"), counted("observe")
    first = jax.eval_shape(init, _key(0))
    jax.eval_shape(init, _key(1))
    action, player = jnp.int32(0), jnp.int32(0)
    after = jax.eval_shape(step, first, action, _key(0))
    world = jax.eval_shape(game.resample, after, player, _key(0))
    start = singles(trial.start, 1)[0]
    told = game.from_text(game.to_text(start))
    for state in (first, after, world, start, told):
        jax.eval_shape(step, state, action, _key(0))
        jax.eval_shape(observe, state, player)
    for name, count in counts.items():
        require(count == 1, f"{name} was traced {count} times")
    return "init, step, observe: once"


@rule("deterministic")
def deterministic(trial: Trial) -> str:
    """The same input gives the same program and the same output."""
    game, state = trial.game, singles(trial.start, 1)[0]
    calls = {
        "init": (_key(0),),
        "step": (state, jnp.int32(0), _key(0)),
        "observe": (state, jnp.int32(0)),
        "resample": (state, jnp.int32(0), _key(0)),
    }
    for name, args in calls.items():
        one, two = (_program(getattr(game, name), args) for _ in range(2))
        require(one == two, f"{name} traces to another program each time")
    move = trial.play.moves
    found = difference(move.after, trial.step(move.before, move.action, move.key))
    require(found is None, f"step, done again with the same key: {found}")
    found = difference(trial.start, trial.init(trial.keys(0)))
    require(found is None, f"init, done again with the same key: {found}")
    return f"{trial.n} deals and moves repeated"


@rule("chance")
def chance(trial: Trial) -> str:
    """What draws random numbers depends on the key it is given."""
    game, state = trial.game, singles(trial.start, 1)[0]
    deals = len({_bytes(s) for s in singles(trial.start, trial.n)})
    if draws(game.init, _key(0)):
        require(deals > 1, "init draws random numbers, but every key gives the same deal")
    moves = 0
    if draws(game.step, state, jnp.int32(0), _key(0)):
        move = trial.play.moves
        for again in range(8):
            other = trial.step(move.before, move.action, trial.keys(4, again))
            moves += difference(move.after, other) is not None
        require(moves, "step draws random numbers, but no key changes anything")
    return f"{deals} different deals of {trial.n}; moves {'differ' if moves else 'do not differ'}"


@rule("vmap")
def vmap(trial: Trial) -> str:
    """A batch gives what single calls give, leaf by leaf."""
    move = trial.play.moves
    batches = [(move.before, move.action, move.key, move.after)]
    minus = jnp.full(trial.n, -1, jnp.int32)
    batches.append((move.before, minus, move.key, trial.forfeited))
    count = 0
    for before, actions, keys, after in batches:
        moves = zip(singles(before, trial.n), np.asarray(actions), keys, strict=True)
        for want, move in zip(singles(after, trial.n), moves, strict=True):
            found = difference(trial.one_step(*move), want)
            require(found is None, f"step under vmap differs from a single one: {found}")
            count += 1
    init = jax.jit(trial.game.init)
    for key, want in zip(trial.keys(0)[:8], singles(trial.start, trial.n)[:8], strict=True):
        found = difference(init(key), want)
        require(found is None, f"init under vmap differs from a single one: {found}")
    return f"{count} steps"


@rule("scan")
def scan(trial: Trial) -> str:
    """Steps run inside scan and give what a loop gives."""
    length = min(8, trial.game.max_steps)
    state, actions, keys = trial.start, [], []
    for ply in range(length):
        action, key, state = trial.random_moves(state, 1, ply)
        actions.append(action)
        keys.append(key)

    def body(states: Any, move: Any) -> tuple[Any, None]:
        return jax.vmap(trial.game.step)(states, *move), None

    moves = (jnp.stack(actions), jnp.stack(keys))
    final, _ = jax.jit(lambda s, m: jax.lax.scan(body, s, m))(trial.start, moves)
    found = difference(state, final)
    require(found is None, f"scan differs from a loop: {found}")
    return f"{length} steps of {trial.n} games"


@rule("key-reuse")
def key_reuse(trial: Trial) -> str:
    """init, step, resample and the bots consume each key once."""
    game = trial.game
    bots = list(game.bots.values())

    def whole(key: Any) -> Any:
        keys = jax.random.split(key, 4 + len(bots))
        state = game.init(keys[0])
        action = choose_uniform(state.legal_action_mask, jax.random.uniform(keys[1]))
        state = game.step(state, action, keys[2])
        world = game.resample(state, jnp.int32(0), keys[3])
        return world, [bot(state, keys[4 + i]) for i, bot in enumerate(bots)]

    with jax.debug_key_reuse(True):
        jax.block_until_ready(jax.jit(whole)(_key(0)))
    return f"init, step, resample and {len(bots)} bots"


@rule("cost")
def cost(trial: Trial) -> str:
    """Equations and compile seconds stay within the budget."""
    game, budget = trial.game, trial.budget
    state = singles(trial.start, 1)[0]
    calls = {
        "init": (_key(0),),
        "step": (state, jnp.int32(0), _key(0)),
        "observe": (state, jnp.int32(0)),
    }
    figures = []
    for name, args in calls.items():
        count = _equations(jax.make_jaxpr(getattr(game, name))(*args).jaxpr)
        limit = getattr(budget, f"{name}_equations")
        require(limit is None or count <= limit, f"{name} has {count} equations, budget {limit}")
        figures.append(f"{name} {count}")
    figure = f"equations: {', '.join(figures)}"
    if budget.compile_seconds is not None:
        seconds = sum(_compile_seconds(getattr(game, n), calls[n]) for n in ("init", "step"))
        message = f"init and step compile in {seconds:.1f} s, budget {budget.compile_seconds} s"
        require(seconds <= budget.compile_seconds, message)
        figure += f"; init and step compile in {seconds:.2f} s"
    return figure


# ---- programs ----


def _key(number: int) -> Any:
    return jax.random.key(number)


def _first(trial: Trial) -> Any:
    return jax.eval_shape(trial.game.init, _key(0))


def _type_change(old: Any, new: Any) -> str | None:
    if jax.tree.structure(old) != jax.tree.structure(new):
        return "the tree structure"
    leaves = zip(jax.tree_util.tree_leaves_with_path(old), jax.tree.leaves(new), strict=True)
    for (path, a), b in leaves:
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            where = jax.tree_util.keystr(path)
            return f"{where} from {a.dtype}{list(a.shape)} to {b.dtype}{list(b.shape)}"
    return None


def _program(function: Callable, args: tuple) -> tuple[str, list[bytes]]:
    """A jaxpr as text without addresses, and its constants."""
    closed = jax.make_jaxpr(lambda *a: function(*a))(*args)
    consts = [
        jax.random.key_data(c) if jnp.issubdtype(c.dtype, jax.dtypes.prng_key) else c
        for c in map(jnp.asarray, closed.consts)
    ]
    text = re.sub(r"0x[0-9a-f]+", "", str(closed.jaxpr))
    return text, [np.asarray(c).tobytes() for c in consts]


def _equations(jaxpr: Any) -> int:
    return sum(1 for _ in inner_equations(jaxpr))


def _compile_seconds(function: Callable, args: tuple) -> float:
    """Seconds to trace, lower and compile, no cache helping."""
    enabled = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # it looks at the setting only once
    try:
        started = time.perf_counter()
        jax.jit(lambda *a: function(*a)).lower(*args).compile()
        return time.perf_counter() - started
    finally:
        jax.config.update("jax_enable_compilation_cache", enabled)
        compilation_cache.reset_cache()


def _bytes(state: Any) -> bytes:
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state))
