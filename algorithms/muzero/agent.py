"""MuZero's agents: the network alone, and with a search; from bundles, too.

Their answers are in actions of the game; what the view of a position leaves out gets no weight.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import bundle
from algorithms.agents import (
    PLAY_SEARCH,
    SEARCH_ROWS,
    Agent,
    AgentError,
    Analysis,
    Rounds,
    batch_key,
    bundle_path,
    row_keys,
)
from algorithms.muzero import brain, model_search, play
from algorithms.networks import masked
from algorithms.networks.muzero import Model, MuZeroNetworkConfig, build
from algorithms.search.config import SearchConfig
from algorithms.search.outline import outline
from jaxgames.core import Array, Game

#: The search of play: no noise, and the rules are known, so every move is worth a look.
PLAY = dataclasses.replace(
    PLAY_SEARCH, num_simulations=64, num_worlds=1, max_num_considered_actions=8
)
RULES = play.Thinking()


def network_agent(
    game: Game, model: Model, temperature: float = 0.0, name: str = "network"
) -> Agent:
    """The network without a search: its best move in the view at temperature 0, else a draw from
    softmax(logits / temperature)."""
    if not temperature >= 0:
        raise AgentError("temp", f"at least 0, got {temperature}")

    def look(params, states):
        view, observation = play.look(model, params, states)
        return view, model_search.root(game, model, params, states, view, observation)

    def choose(key, logits, legal):
        if temperature == 0:
            return jnp.argmax(masked(logits, legal), axis=1)
        keys = row_keys(key, logits.shape[0])
        return jax.vmap(jax.random.categorical)(keys, masked(logits / temperature, legal))

    def act(params, key, states, player):
        del player
        view, (root, legal) = look(params, states)
        action = choose(key, root.prior_logits, legal)
        return jax.vmap(model.viewer.to_game)(view, action).astype(jnp.int32)

    def analyse(params, key, states, player):
        del player
        view, (root, legal) = look(params, states)
        chosen = choose(key, root.prior_logits, legal)
        prior = jax.nn.softmax(root.prior_logits)
        weights = prior
        if temperature == 0:
            weights = jax.nn.one_hot(chosen, model.viewer.num_actions)
        elif temperature != 1:
            weights = jax.nn.softmax(masked(root.prior_logits / temperature, legal))
        lay = functools.partial(_lay, game, model, view, legal)
        nothing = jnp.zeros((chosen.shape[0], game.num_actions), jnp.float32)
        action = jax.vmap(model.viewer.to_game)(view, chosen).astype(jnp.int32)
        unknown, seen = jnp.full_like(nothing, jnp.nan), _seen(game, model, view, legal)
        return Analysis(action, lay(weights), root.value, lay(prior), nothing, unknown, seen)

    return Agent(name, act, analyse)


def search_agent(
    game: Game,
    model: Model,
    config: SearchConfig = PLAY,
    thinking: play.Thinking = RULES,
    name: str = "search",
) -> Agent:
    """A search in the learned model, `config` in one world whatever it says of worlds."""
    config = dataclasses.replace(config, num_worlds=1, num_candidates=0)
    searcher = play.Searcher(game, model, config, thinking)

    def act(params, key, states, player):
        del player
        return searcher.search(params, batch_key(key), states).action

    def tell(done):
        out = done.out
        lay = functools.partial(_lay, game, model, done.view, done.legal)
        visits = lay(out.visits)
        q = lay(out.visits * out.q) / jnp.maximum(visits, 1.0)
        return Analysis(
            action=done.action,
            weights=lay(out.action_weights),
            value=out.value,
            prior=lay(jax.nn.softmax(done.root.prior_logits)),
            visits=visits,
            q=jnp.where(visits > 0, q, jnp.nan),
            seen=_seen(game, model, done.view, done.legal),
        )

    def analyse(params, key, states, player):
        del player
        return tell(searcher.search(params, batch_key(key), states))

    def begin(params, key, states, player):
        del player
        return searcher.begin(params, key, states)

    def read(begun):
        return tell(searcher.finish(begun))

    def told(begun):
        tree = begun.search.tree
        embedding = tree.embedding[1] if thinking.paranoid else tree.embedding
        states, seat = (None, embedding[1])
        if thinking.dynamics == "rules":
            states, seat = seat, seat.current_player
        action = jax.vmap(jax.vmap(model.viewer.to_game, (None, 0)))(begun.view, tree.action)
        found = outline(tree, seat, states, action)
        if thinking.paranoid:
            value = play.of_all(game, begun.root, found.value)
            found = dataclasses.replace(found, value=value)
        return found

    rounds = Rounds(
        begin=begin,
        advance=searcher.advance,
        read=read,
        outline=told,
        simulations=config.num_simulations,
    )
    return Agent(name, act, analyse, SEARCH_ROWS, rounds)


def _lay(game: Game, model: Model, view: Any, legal: Array, per_action: Array) -> Array:
    """Numbers of the view's actions [B, V] as those of the game's [B, A], illegal ones left out."""

    def one(view, legal, numbers):
        cell = jax.vmap(model.viewer.to_game, (None, 0))(view, jnp.arange(legal.shape[0]))
        cell = jnp.where(legal, cell, game.num_actions)
        return jnp.zeros(game.num_actions, jnp.float32).at[cell].add(numbers, mode="drop")

    return jax.vmap(one)(view, legal, per_action.astype(jnp.float32))


def _seen(game: Game, model: Model, view: Any, legal: Array) -> Array | None:
    """`Analysis.seen`: bool[B, A] of a view that shows a part of the game, else None."""
    if not model.viewer.size:
        return None
    return _lay(game, model, view, legal, jnp.ones_like(legal)) > 0


@functools.cache  # equal agents are then the same one, compiled once
def players(model: Model, config: SearchConfig, thinking: play.Thinking) -> dict[str, Agent]:
    """What is evaluated during training."""
    return {
        "network": network_agent(model.game, model),
        "search": search_agent(model.game, model, config, thinking),
    }


def model(game: Game, view: int, config: MuZeroNetworkConfig) -> Model:
    """The network of `game` seen through `game.viewer(view)`.

    Raises ValueError("view: ...") for a view that the game does not have.
    """
    try:
        viewer = game.viewer(view)
    except ValueError as error:
        rule = str(error).partition(": ")[2] or str(error)
        raise ValueError(f"view: {rule}") from None
    return build(game, viewer, config)


# ---- bundles ----

#: Options of a spec that these agents know.
OPTIONS = ("net", "search", "temp", "sims", "policy", "considered", "scale", "qscale", "vscale",
           "dynamics", "paranoid", "prove")  # fmt: skip
_SEARCH = {
    "sims": ("num_simulations", int),
    "policy": ("policy", str),
    "considered": ("max_num_considered_actions", int),
    "scale": ("gumbel_scale", float),
    "qscale": ("q_scale", str),
    "vscale": ("value_scale", float),
}


def describe(thinking: play.Thinking, view: int) -> dict[str, Any]:
    """What a bundle's metadata says beside the network: the view's size (`Viewer.size`), which is
    the same on every board, and the kind of search."""
    return {"view": view, "thinking": dataclasses.asdict(thinking)}


def model_of(meta: Mapping[str, Any], game: Game) -> Model:
    """The network that a bundle's metadata describes; raises BundleError."""
    wanted = {f.name: type(f.default) for f in dataclasses.fields(MuZeroNetworkConfig)}
    fields = meta["network"]
    for name in fields.keys() | wanted.keys():
        if name not in wanted or name not in fields:
            missing = "missing" if name in wanted else "no such setting"
            raise bundle.BundleError(f"network.{name}", missing)
        if type(fields[name]) is not wanted[name]:
            kind = wanted[name].__name__
            raise bundle.BundleError(f"network.{name}", f"needs a {kind}, got {fields[name]!r}")
    viewer = bundle.viewer_of({"view": 0, **meta}, game)
    try:
        return build(game, viewer, MuZeroNetworkConfig(**fields))
    except ValueError as error:
        raise bundle.BundleError("network", str(error)) from None


def thinking_of(meta: Mapping[str, Any]) -> play.Thinking:
    """How the bundle's agent searched while it learned; raises BundleError."""
    fields = meta.get("thinking", {})
    try:
        return play.Thinking(**fields)
    except (TypeError, ValueError) as error:
        raise bundle.BundleError("thinking", str(error)) from None


def from_bundle(
    path: Any, name: str, options: Mapping[str, str], meta: Mapping[str, Any], game: Game
) -> tuple[Agent, Any]:
    """(agent, brain) of the bundle at `path` under the options of a spec, see
    `agents.from_spec`; raises AgentError, BundleError."""
    model = model_of(meta, game)
    return _agent(name, options, meta, model), load(path, model)


def weights(spec: str, model: Model) -> Any:
    """As `agents.weights`, for a MuZero network."""
    path = bundle_path(spec, model.game)
    meta = bundle.read_meta(path)
    bundle.check_game(meta, model.game)
    if meta["agent"] != "muzero":
        raise bundle.BundleError("agent", f"it is of {meta['agent']!r}, not of muzero")
    theirs = model_of(meta, model.game)
    if theirs.viewer != model.viewer:
        raise bundle.BundleError("view", "it saw the game through another view")
    for field, want in vars(model.config).items():
        if (has := getattr(theirs.config, field)) != want:
            raise bundle.BundleError(f"muzero_network.{field}", f"it has {has!r}, not {want!r}")
    return load(path, model)


def load(path: Any, model: Model) -> Any:
    """The brain that the bundle at `path` holds; raises BundleError."""
    loaded = bundle.load(path, brain.shapes(model), model.game)
    return jax.tree.map(jnp.asarray, loaded.params)


def _agent(name: str, options: Mapping[str, str], meta: Mapping[str, Any], model: Model) -> Agent:
    for key in options:
        if key not in OPTIONS:
            raise AgentError(
                key, f"{name}: not an option of muzero, which has {', '.join(OPTIONS)}"
            )
    game = model.game
    if {"net", "temp"} & options.keys():
        temperature = _number("temp", options.get("temp", "0"), float)
        shown = f":temp={temperature:g}" if temperature else ""
        return network_agent(game, model, temperature, f"{name}:net{shown}")
    changes = {
        field: _number(key, options[key], kind)
        for key, (field, kind) in _SEARCH.items()
        if key in options
    }
    shown = "".join(f":{key}={options[key]}" if options[key] else f":{key}" for key in options)
    thinking = thinking_of(meta)
    try:
        config = dataclasses.replace(PLAY, prove="prove" in options, **changes)
        thinking = dataclasses.replace(
            thinking,
            dynamics=options.get("dynamics", thinking.dynamics),
            paranoid=thinking.paranoid or "paranoid" in options,
        )
    except ValueError as error:
        raise AgentError("agent", f"{name}: {error}") from None
    if "sims" not in options:
        shown += f":sims={config.num_simulations}"
    return search_agent(game, model, config, thinking, f"{name}{shown}")


def _number(field: str, text: str, kind: type) -> Any:
    try:
        value = kind(text)
    except ValueError:
        raise AgentError(field, f"not a number: {text!r}") from None
    if kind is float and not -1e9 < value < 1e9:
        raise AgentError(field, f"not finite: {text!r}")
    return value
