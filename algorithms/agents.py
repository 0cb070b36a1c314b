"""Agents: one face for bots, networks and searches.

`act` and `analyse` take a batch of states and are jittable; the weights travel beside the
agent in a `Seat`, so that new weights need no new compilation. An agent sees a state only
through `game.observe`, `game.resample` and the legal mask of the seat to move.

Letters: B batch, A actions, T teams.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import bundle
from algorithms.networks.model import Model, NetworkConfig, build, evaluator, masked
from algorithms.search import belief
from algorithms.search.config import SearchConfig
from algorithms.search.outline import Outline, outline
from algorithms.search.rounds import advance, finish
from algorithms.search.worlds import begin, recurrent_fn, search_worlds
from jaxgames.core import Array, FieldError, Game, State, nearest

#: Bundles that come with the package: BUNDLES / game id / name.
BUNDLES = pathlib.Path(__file__).resolve().parent / "bundles"
#: Kinds of agents that learnt to play without a search, and do so unless told otherwise.
PLAY_BARE = ("ppo", "imitation")
#: Rows times worlds that a search likes to hold at once.
SEARCH_ROWS = 256
#: The search of play and evaluation: no noise, the best move it knows. In games of luck few
#: candidates, each looked at often, and values on their own scale: siblings differ by chance.
PLAY_SEARCH = SearchConfig(
    num_simulations=32,
    num_worlds=4,
    gumbel_scale=0.0,
    dirichlet_fraction=0.0,
    temperature=0.0,
    max_num_considered_actions=4,
    q_scale="outcome",
)

#: (params, key[] or key[B], states[B], player int32[B]) -> int32[B]
Act = Callable[[Any, Array, State, Array], Array]


class AgentError(FieldError):
    """A text that names no agent; `field` is the offending part."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Analysis:
    """What an agent thinks of a batch of positions.

    Attributes:
      action: int32[B], its choice.
      weights: float32[B, A], its distribution over actions.
      value: float32[B, T], absolute team order.
      prior: float32[B, A], the network's distribution over legal actions.
      visits: float32[B, A], search visits, mean over the worlds; zero without a search.
      q: float32[B, A], value of each action for the team to move; nan where unknown.
      seen: bool[B, A], the legal actions within the part that the agent looked at; None: it
        looks at all of the game.
    """

    action: Array
    weights: Array
    value: Array
    prior: Array
    visits: Array
    q: Array
    seen: Array | None = None


@dataclasses.dataclass(frozen=True)
class Rounds:
    """A search that can be watched and stopped; jittable. Every row draws from its own key, so
    that what comes out of it does not depend on the rows beside it.

    Attributes:
      begin: (params, key[B], states[B], player int32[B]) -> a search, a pytree.
      advance: (params, search, simulations int32[]) -> the search, so many further.
      read: search -> Analysis of the simulations so far.
      outline: search -> its tree, `search.outline.Outline`.
      simulations: of the whole search, in each world.
      worlds: deals that are searched for each position.
    """

    begin: Callable[[Any, Array, State, Array], Any]
    advance: Callable[[Any, Any, Array], Any]
    read: Callable[[Any], Analysis]
    outline: Callable[[Any], Outline]
    simulations: int
    worlds: int = 1


@dataclasses.dataclass(frozen=True)
class Agent:
    """Attributes:
    name: shown to people.
    act: see `Act`. With key[B] the rows are independent of each other where the agent
      allows it (bots, networks); a search draws for its whole batch from the first key.
    analyse: as `act`, returns `Analysis`; None for agents with nothing to show.
    capacity: rows it likes to act on at once.
    rounds: the same search for a server; None for agents without one.
    """

    name: str
    act: Act
    analyse: Callable[[Any, Array, State, Array], Analysis] | None = None
    capacity: int = 1024
    rounds: Rounds | None = None


@dataclasses.dataclass(frozen=True)
class Seat:
    """An agent with its weights (None for bots) and where they come from (JSON values)."""

    agent: Agent
    params: Any = None
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def row_keys(key: Array, rows: int) -> Array:
    """key[rows] from one key, or the given key[rows]."""
    return key if key.ndim else jax.random.split(key, rows)


def batch_key(key: Array) -> Array:
    """One key for the whole batch."""
    return key[0] if key.ndim else key


def bot_agent(game: Game, name: str) -> Agent:
    """A rule bot of `game.bots`. Raises AgentError with the nearest names."""
    bots = game.bots
    if name not in bots:
        raise AgentError("agent", f"unknown name {name!r}{nearest(name, bots)}")
    bot = bots[name]

    def act(params, key, states, player):
        del params
        return jax.vmap(bot)(states, row_keys(key, player.shape[0])).astype(jnp.int32)

    return Agent(name, act)


def network_agent(
    game: Game,
    model: Model,
    temperature: float = 0.0,
    head: str = "policy",
    name: str = "network",
) -> Agent:
    """A network without a search.

    Args:
      temperature: 0 takes the best legal action, more draws from softmax(logits / temperature).
      head: "policy" or "q" (the Q of the team to move takes the place of the logits).
    """
    if not temperature >= 0:
        raise AgentError("temp", f"at least 0, got {temperature}")
    # At temperature 1 the evaluator's logits of the Q head are the values themselves.
    evaluate = evaluator(game, model, head=head, temperature=1.0)

    def distribution(params, states):
        logits, value = evaluate(params, states)
        legal = states.legal_action_mask
        # Masked after the division: a high temperature would lift forbidden actions, too.
        return masked(logits, legal), masked(logits / (temperature or 1.0), legal), value

    def choose(key, logits):
        if temperature == 0:
            return jnp.argmax(logits, axis=1).astype(jnp.int32)
        keys = row_keys(key, logits.shape[0])
        return jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)

    def act(params, key, states, player):
        del player
        return choose(key, distribution(params, states)[1])

    def analyse(params, key, states, player):
        del player
        logits, scaled, value = distribution(params, states)
        action = choose(key, scaled)
        weights = jax.nn.softmax(scaled)
        if temperature == 0:
            weights = jax.nn.one_hot(action, game.num_actions)
        unknown = jnp.full(logits.shape, jnp.nan, jnp.float32)
        q = jnp.where(states.legal_action_mask, logits, jnp.nan) if head == "q" else unknown
        return Analysis(action, weights, value, jax.nn.softmax(logits), jnp.zeros_like(q), q)

    return Agent(name, act, analyse)


def q_agent(game: Game, model: Model, name: str = "q") -> Agent:
    """Takes the legal action of the highest Q for the team to move."""
    return network_agent(game, model, head="q", name=name)


def search_agent(
    game: Game,
    model: Model,
    config: SearchConfig = PLAY_SEARCH,
    head: str = "policy",
    name: str = "search",
) -> Agent:
    """A search over worlds that the seat to move can not tell apart.

    The true hidden cards never enter: the search starts from `game.resample`.

    Args:
      head: "policy" for policy prior and value head, "q" for Q as prior and value.

    Raises:
      ValueError: "num_candidates: ..." in a game that does not tell past decisions.
    """
    if config.num_candidates:
        belief.require(game)
    evaluate, policy = evaluator(game, model, head=head), config.build()

    def search(params, key, states, player):
        return search_worlds(
            game,
            evaluate,
            params,
            batch_key(key),
            states,
            player,
            num_worlds=config.num_worlds,
            policy=policy,
            num_candidates=config.num_candidates,
        )

    def act(params, key, states, player):
        return search(params, key, states, player).action.astype(jnp.int32)

    def analyse(params, key, states, player):
        out = search(params, key, states, player)
        logits, _ = evaluate(params, states)
        return Analysis(
            action=out.action.astype(jnp.int32),
            weights=out.action_weights,
            value=out.value,
            prior=jax.nn.softmax(masked(logits, states.legal_action_mask)),
            visits=out.visits,
            q=jnp.where(out.visits > 0, out.q, jnp.nan),
        )

    rounds = _rounds(game, evaluate, config, policy)
    return Agent(name, act, analyse, max(SEARCH_ROWS // config.num_worlds, 8), rounds)


def _rounds(game: Game, evaluate: Any, config: SearchConfig, policy: Any) -> Rounds:
    worlds = config.num_worlds
    fn = recurrent_fn(game, evaluate)

    def begin_search(params, key, states, player):
        numbers = dict(num_worlds=worlds, policy=policy, num_candidates=config.num_candidates)
        return begin(game, evaluate, params, key, states, player, **numbers)

    def read(search):
        out = finish(policy, search, share=worlds)
        return Analysis(
            action=out.action.astype(jnp.int32),
            weights=out.action_weights,
            value=out.value,
            prior=jax.nn.softmax(search.tree.prior[::worlds, 0]),
            visits=out.visits,
            q=jnp.where(out.visits > 0, out.q, jnp.nan),
        )

    def tell(search):
        states = search.tree.embedding
        return outline(search.tree, states.current_player, states, worlds=worlds)

    return Rounds(
        begin=begin_search,
        advance=lambda params, search, count: advance(policy, params, search, fn, count),
        read=read,
        outline=tell,
        simulations=config.num_simulations,
        worlds=worlds,
    )


def mcts_dqn_agent(
    game: Game, model: Model, config: SearchConfig = PLAY_SEARCH, name: str = "mcts_dqn"
) -> Agent:
    """The network's Q proposes and judges, the search refines."""
    return search_agent(game, model, config, head="q", name=name)


# ---- names ----

_SEARCH_OPTIONS = {
    "sims": ("num_simulations", int),
    "worlds": ("num_worlds", int),
    "candidates": ("num_candidates", int),
    "policy": ("policy", str),
    "considered": ("max_num_considered_actions", int),
    "scale": ("gumbel_scale", float),
    "qscale": ("q_scale", str),
    "vscale": ("value_scale", float),
}
_OPTIONS = {
    "net": "the network alone",
    "search": "the network with a search",
    "temp": "0 the best move, more is looser (with net)",
    "head": "policy or q",
    "dynamics": "rules or learned (muzero)",
    "paranoid": "everybody against the root (muzero)",
    "prove": "carry ends of games up exactly (muzero)",
    **{name: field for name, (field, _) in _SEARCH_OPTIONS.items()},
}
_BARE_WORDS = ("net", "search", "paranoid", "prove")
_OF_MUZERO = ("dynamics", "paranoid", "prove")


def packaged(game: Game) -> tuple[str, ...]:
    """Names of the bundles that come with the package and fit `game`."""
    names = []
    for path in sorted((BUNDLES / game.id).glob("*/")):
        try:
            bundle.check_game(bundle.read_meta(path), game)
        except bundle.BundleError:
            continue
        names.append(path.name)
    return tuple(names)


def default_spec(game: Game) -> str:
    """A packaged bundle that fits, else the game's strongest bot (the last of its list)."""
    return (*packaged(game), None)[0] or list(game.bots)[-1]


def from_spec(spec: str, game: Game) -> Seat:
    """The agent that `spec` names: `NAME[:OPTION[=VALUE]]...`

    NAME is a bot of the game, a packaged bundle, or the path of a bundle or of a run folder
    with one in `best/`. Options of bundles: `net` or `search`, `temp=` (net),
    `sims= worlds= candidates= policy= considered= scale= qscale= vscale=` (search),
    `head=policy|q`.
    Bundles of MuZero know `dynamics=rules|learned`, `paranoid` and `prove` besides, and no worlds.
    Without options a bundle searches with 32 simulations in each of 4 worlds (1 if nothing is
    hidden), but one whose kind is in `PLAY_BARE` plays its network alone.

    Raises:
      AgentError: no such agent or option; `field` is "agent" or the option.
      BundleError: a bundle that is broken or made for another game.
    """
    name, *texts = spec.split(":")
    if name in game.bots:
        if texts:
            raise AgentError("agent", f"{spec!r}: the bot {name} takes no options")
        return Seat(bot_agent(game, name))
    path = bundle_path(name, game)
    options = _parse_options(spec, texts)
    meta = bundle.read_meta(path)
    bundle.check_game(meta, game)
    origin = {k: meta[k] for k in ("agent", "step", "run", "sha256", "strength") if k in meta}
    if meta["agent"] == "muzero":
        from algorithms import muzero  # its agents are made of what is above

        return Seat(*muzero.from_bundle(path, name, options, meta, game), origin)
    model = bundle_model(meta, game)
    expected = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(jnp.asarray, bundle.load(path, expected, game).params)
    return Seat(_bundle_agent(name, options, meta["agent"], game, model), params, origin)


def weights(name: str, model: Model) -> Any:
    """The weights of a packaged bundle, or of the bundle or run folder at the path `name`, for
    exactly the game and the network of `model`.

    One thing may be missing: a bundle of a network without advice, alike in all else, begins
    an advised one, with fresh weights for what it makes of the advice.

    Raises:
      AgentError: no such bundle. BundleError: a broken one, or one of another game or network.
    """
    path = bundle_path(name, model.game)
    meta = bundle.read_meta(path)
    bundle.check_game(meta, model.game)
    theirs = dataclasses.replace(bundle_model(meta, model.game), critic=model.critic)
    wanted, fresh = model.config, {}
    if wanted.advice and not theirs.config.advice:
        head = "reasons" if wanted.reasons else "advice"
        wanted = dataclasses.replace(wanted, advice="", reasons=False, trust=theirs.config.trust)
        fresh = {head: model.init(jax.random.key(0))[head]}
    for field, want in vars(wanted).items():
        if (has := getattr(theirs.config, field)) != want:
            raise bundle.BundleError(f"network.{field}", f"it has {has!r}, not {want!r}")
    expected = jax.eval_shape(theirs.init, jax.random.key(0))
    return fresh | jax.tree.map(jnp.asarray, bundle.load(path, expected, model.game).params)


def bundle_path(name: str, game: Game) -> pathlib.Path:
    """Where the packaged bundle, bundle or run folder that a spec begins with lies; AgentError."""
    shipped = BUNDLES / game.id / name
    if name and "/" not in name and "\\" not in name and name[0] != "." and shipped.is_dir():
        return shipped
    path = pathlib.Path(name)
    for candidate in (path, path / "best"):
        if name and (candidate / bundle.META).is_file():
            return candidate
    if name and path.exists():
        raise AgentError("agent", f"{name!r} holds no bundle ({bundle.META})")
    known = (*game.bots, *packaged(game))
    raise AgentError("agent", f"unknown name {name!r}{nearest(name, known)}; or give a path")


def _parse_options(spec: str, texts: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if key not in _OPTIONS:
            raise AgentError("agent", f"{spec!r}: no option {key!r}{nearest(key, _OPTIONS)}")
        if key in options or bool(equals) == (key in _BARE_WORDS) or equals and not value:
            form = key if key in _BARE_WORDS else f"{key}=VALUE"
            raise AgentError(key, f"{spec!r}: write {form}, once")
        options[key] = value
    searching = {"search", *_SEARCH_OPTIONS, *_OF_MUZERO} & options.keys()
    if searching and {"net", "temp"} & options.keys():
        raise AgentError(min(searching), f"{spec!r}: not together with net or temp")
    if options.get("head", "q") not in ("policy", "q"):
        raise AgentError("head", f"{spec!r}: policy or q")
    return options


def head_of(kind: str) -> str:
    """What a bundle of this kind of agent plays by unless told otherwise: "policy" or "q"."""
    return "q" if "dqn" in kind else "policy"


def _bundle_agent(name: str, options: dict[str, str], kind: str, game: Game, model: Model) -> Agent:
    head = options.get("head", head_of(kind))
    if head == "q" and not model.config.q_head:
        raise AgentError("head", f"{name}: the network has no Q head")
    foreign = [key for key in _OF_MUZERO if key in options]
    if foreign:
        raise AgentError(foreign[0], f"{name}: only agents of muzero know it")
    suffix = f":head={options['head']}" if "head" in options else ""
    searching = "search" in options or _SEARCH_OPTIONS.keys() & options.keys()
    if {"net", "temp"} & options.keys() or kind in PLAY_BARE and not searching:
        temperature = _number("temp", options.get("temp", "0"), float)
        shown = f":temp={temperature:g}" if temperature else ""
        return network_agent(game, model, temperature, head, f"{name}:net{shown}{suffix}")
    changes: dict[str, Any] = {} if hides_something(game) else {"num_worlds": 1}
    for key, (field, kind_of) in _SEARCH_OPTIONS.items():
        if key in options:
            changes[field] = _number(key, options[key], kind_of)
    try:
        config = dataclasses.replace(PLAY_SEARCH, **changes)
        shown = f":sims={config.num_simulations}:worlds={config.num_worlds}"
        for key in ("candidates", "policy", "considered", "scale", "qscale", "vscale"):
            if key in options:
                shown += f":{key}={options[key]}"
        return search_agent(game, model, config, head, f"{name}{shown}{suffix}")
    except ValueError as error:
        raise AgentError("agent", f"{name}: {error}") from None


def _number(field: str, text: str, kind: type) -> Any:
    try:
        value = kind(text)
    except ValueError:
        raise AgentError(field, f"not a number: {text!r}") from None
    if kind is float and not -1e9 < value < 1e9:
        raise AgentError(field, f"not finite: {text!r}")
    return value


def bundle_model(meta: Mapping[str, Any], game: Game) -> Model:
    """The network that a bundle's metadata describes; raises BundleError."""
    config = _network_config(meta["network"])
    try:
        return build(game, config)
    except ValueError as error:
        field, _, rule = str(error).partition(": ")
        raise bundle.BundleError(field, rule) from None


def _network_config(fields: Mapping[str, Any]) -> NetworkConfig:
    """The sizes that a bundle's metadata gives, checked."""
    wanted = {f.name: type(f.default) for f in dataclasses.fields(NetworkConfig)}
    # Bundles from before these settings came; all of them have the defaults.
    before = {"kind": "conv", "q_head": True, "norm": True, "advice": ""}
    before |= {"reasons": False, "trust": 3.0}
    fields = before | dict(fields)
    for name in fields.keys() | wanted.keys():
        if name not in wanted:
            raise bundle.BundleError(f"network.{name}", "no such setting")
        if name not in fields:
            raise bundle.BundleError(f"network.{name}", "missing")
        if wanted[name] is int and type(fields[name]) is not int:
            raise bundle.BundleError(f"network.{name}", f"not a whole number: {fields[name]!r}")
        if wanted[name] is bool and type(fields[name]) is not bool:
            raise bundle.BundleError(f"network.{name}", f"not true or false: {fields[name]!r}")
    try:
        return NetworkConfig(**fields)
    except (TypeError, ValueError) as error:
        raise bundle.BundleError("network", str(error)) from None


def hides_something(game: Game) -> bool:
    """Whether `game.resample` changes anything; traced, not run."""
    kept: list[bool] = []

    def deal_again(key, player):
        state = game.init(key)
        again = game.resample(state, player, key)
        kept.extend(a is b for a, b in zip(*map(jax.tree.leaves, (state, again)), strict=True))
        return again

    jax.eval_shape(deal_again, jax.random.key(0), jnp.int32(0))
    return not all(kept)
