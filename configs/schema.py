"""What can be set, once: frozen dataclasses, and OmegaConf mirrors derived from them.

The settings of a network, a search or a learner are declared beside the code that uses
them (`algorithms/*`); this module only gathers them under the top-level keys. OmegaConf
needs plain dataclasses (a frozen one makes a read-only node), so `mirror` derives one from
each frozen class, and `freeze` goes back, with every check of type and range on the way.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from typing import Any

from omegaconf import MISSING, DictConfig, OmegaConf

from algorithms import alphazero, dqn, imitation, muzero, ppo
from algorithms.agents import PLAY_SEARCH
from algorithms.arena import EvalConfig
from algorithms.curriculum import CurriculumConfig
from algorithms.networks.model import NetworkConfig
from algorithms.networks.muzero import MuZeroNetworkConfig
from algorithms.population import PopulationConfig
from algorithms.ratings import GateConfig
from algorithms.search.config import SearchConfig
from configs.overrides import ConfigError, coerce
from jaxgames import core

# ---- settings of the house ----


def require(holds: bool, field: str, rule: str) -> None:
    """The form of every range check: ValueError("field: rule")."""
    if not holds:
        raise ValueError(f"{field}: {rule}")


@dataclasses.dataclass(frozen=True)
class GameConfig:
    """Which game: `options` are the fields of that game's rules, over those of `preset`."""

    name: str
    preset: str | None = None
    options: Any = None


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Where a run is kept.

    Attributes:
      name: folder below `dir`; empty: the preset's name and the next free number.
      resume: continue the run of that name from its last checkpoint.
      step: resume from this checkpoint instead of the last one.
    """

    name: str = ""
    dir: str = "runs"
    resume: bool = False
    step: int | None = None

    def __post_init__(self):
        plain = not self.name or (
            self.name[0].isalnum()
            and self.name.replace("-", "").replace(".", "").replace("_", "").isalnum()
        )
        require(plain, "name", f"letters, digits and - _ . only, got {self.name!r}")
        require(bool(self.dir), "dir", "needs a folder")
        require(not self.resume or bool(self.name), "name", "say which run to resume")
        require(self.step is None or self.resume, "step", "needs resume=true")


@dataclasses.dataclass(frozen=True)
class TrainEvalConfig:
    """Evaluation inside training. Games come in pairs: one deal, seats swapped.

    Attributes:
      every: chunks between two evaluations; 0: only the final one.
      pairs: pairs per opponent; the first opponent decides which weights are best.
      opening: random moves that begin a game, the same in all seatings of a deal.
      agent: "network" (its most likely move) or "search".
      final_pairs: pairs per opponent at the end; 0: no final evaluation.
      final_agent: as `agent`.
      opponents: agents of the game to measure against.
      games: games against the first opponent that are written down after each evaluation, for
        the dashboard's board.
      search: what "search" does.
      rated: so many former selves of a league, at most, are rated in each evaluation, with the
        learner and the opponents, by games among all of them; 0: no ratings.
      rated_pairs: deals of these games, each played once by every lineup in every order.
    """

    every: int = 10
    pairs: int = 100
    opening: int = 0
    agent: typing.Literal["network", "search"] = "network"
    final_pairs: int = 500
    final_agent: typing.Literal["network", "search"] = "search"
    opponents: tuple[str, ...] = ("random",)
    games: int = 0
    search: SearchConfig = PLAY_SEARCH
    rated: int = 0
    rated_pairs: int = 10

    def __post_init__(self):
        least = dict(every=0, pairs=1, opening=0, final_pairs=0, games=0)
        for field, bound in least.items():
            value = getattr(self, field)
            require(value >= bound, field, f"at least {bound}, got {value}")
        require(self.games <= 100, "games", f"at most 100, got {self.games}")
        require(len(self.opponents) > 0, "opponents", "at least one")
        require(0 <= self.rated <= 20, "rated", f"0 to 20, got {self.rated}")
        require(self.rated_pairs >= 1, "rated_pairs", f"at least 1, got {self.rated_pairs}")


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How long to train, and what to leave behind.

    Attributes:
      minutes: stop after this time, compilation and evaluation included; 0: no limit.
      chunks: stop after so many chunks of updates; 0: no limit.
      decay: let the learning rate fall over that budget.
      start: begin with the weights of this bundle or run, of the same game and network, and with
        the critic of the run; empty: with fresh ones.
      save_every: chunks between two checkpoints.
      keep: last checkpoints kept, besides the best.
      compile_cache: keep compiled programs in the user's cache folder.
      dashboard: serve the dashboard of the run, from another process, while training.
      eval: see `TrainEvalConfig`.
    """

    minutes: float = 0.0
    chunks: int = 0
    decay: bool = True
    start: str = ""
    save_every: int = 10
    keep: int = 2
    compile_cache: bool = True
    dashboard: bool = False
    eval: TrainEvalConfig = TrainEvalConfig()

    def __post_init__(self):
        for field, least in (("minutes", 0), ("chunks", 0), ("save_every", 1), ("keep", 1)):
            value = getattr(self, field)
            require(value >= least, field, f"at least {least}, got {value}")


@dataclasses.dataclass(frozen=True)
class PlayConfig:
    """Who sits where in `jaxgames play`.

    Attributes:
      seats: one per seat, "human" or the spec of an agent (`agents.from_spec`); fewer are
        repeated over the seats. Empty: the person on seat 0, the default agent elsewhere.
      load: a record to go on from; empty: a fresh deal.
    """

    seats: tuple[str, ...] = ()
    load: str = ""


@dataclasses.dataclass(frozen=True)
class TournamentConfig:
    """`jaxgames tournament`: every two of some agents on the same paired deals, or every three
    in games of three teams.

    Attributes:
      agents: specs of agents (`agents.from_spec`), each once; empty: the bots of the game and
        the bundles that come with it.
      anchor: the one at rating 0; empty: random where it plays, else the first.
      forms: forms of the game to play, by name; empty: all that change no option of the game
        that was set.
      pairs: deals of every meeting, in each form; each is played once per seating.
      opening: random moves that begin a game, the same in all seatings of a deal.
      prior: drawn games that every two agents get besides, in the ratings alone.
      capacity: rows per agent and tick; 0: a share of the games.
      bootstrap: resamples of the group bootstrap.
      out: file for the report as JSON; empty: none.
    """

    agents: tuple[str, ...] = ()
    anchor: str = ""
    forms: tuple[str, ...] = ()
    pairs: int = 200
    opening: int = 0
    prior: float = 1.0
    capacity: int = 0
    bootstrap: int = 2000
    out: str = ""

    def __post_init__(self):
        for field in ("agents", "forms"):
            texts = getattr(self, field)
            require(len(set(texts)) == len(texts), field, f"each once, got {list(texts)}")
        require(len(self.agents) != 1, "agents", f"at least two, got {list(self.agents)}")
        if self.agents and self.anchor:
            require(self.anchor in self.agents, "anchor", f"one of {list(self.agents)}")
        for field, least in (("pairs", 1), ("opening", 0), ("capacity", 0), ("bootstrap", 100)):
            value = getattr(self, field)
            require(value >= least, field, f"at least {least}, got {value}")
        require(0 < self.prior <= 100, "prior", f"above 0, at most 100, got {self.prior}")


@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """What `jaxgames benchmark` measures.

    Attributes:
      batches: env: games side by side.
      steps: env: steps per measurement.
      repeats: measurements; the report gives their median and spread.
      chunks: train: chunks per measurement.
      peers: env, search: measure other libraries beside ours where installed.
      ablation: ablation: the file configs/ablations/NAME.yaml that lists the variants; empty:
        that of the game.
      variants: ablation: those to train, by name; empty: all.
      seeds: ablation: trainings of each, with the seeds from `seed` on.
      updates: ablation: updates of each training, rounded up to whole chunks.
      seconds: ablation: seconds of each training, compilation left out, instead of `updates`;
        0: so many updates.
      player: ablation: "network" (its most likely move) or "search" (as train.eval.search says).
      pairs: ablation: deals against each opponent after each training, played once per seating.
      opening: ablation: random moves that begin these games.
      out: also write the report as JSON to this file; empty: only stdout. An ablation goes on
        with what is there.
    """

    batches: tuple[int, ...] = (256, 1024, 4096)
    steps: int = 256
    repeats: int = 5
    chunks: int = 3
    peers: bool = True
    ablation: str = ""
    variants: tuple[str, ...] = ()
    seeds: int = 3
    updates: int = 200
    seconds: float = 0.0
    player: typing.Literal["network", "search"] = "search"
    pairs: int = 50
    opening: int = 2
    out: str = ""

    def __post_init__(self):
        for field in ("steps", "repeats", "chunks", "seeds", "updates", "pairs"):
            value = getattr(self, field)
            require(value >= 1, field, f"at least 1, got {value}")
        for field in ("seconds", "opening"):
            value = getattr(self, field)
            require(value >= 0, field, f"at least 0, got {value}")
        once = len(set(self.variants)) == len(self.variants)
        require(once, "variants", f"each once, got {list(self.variants)}")
        fit = len(self.batches) > 0 and min(self.batches) >= 1
        require(fit, "batches", f"one or more whole numbers from 1, got {list(self.batches)}")


@dataclasses.dataclass(frozen=True)
class WireConfig:
    """`jaxgames wire`: Guandan over WebSockets, as the v1006 platform speaks.

    Attributes:
      host: server: address to listen on.
      port: server: 0 takes a free one.
      seats: server: four, each "wire" (a client that connects) or the spec of an agent.
      matches: server: how many.
      reply_s: server: seconds for a client's answer; then the stand-in moves for it.
      misses: server: answers missed in a row until the stand-in keeps the seat.
      stand_in: server: the agent that moves for late and lost clients; empty: the strongest bot.
      ranks: server: tell the levels in `beginning` as well, which some clients need.
      log: server: folder for the logs, one file per match; empty: none.
      url: client: the platform.
      name: client: the last part of the path, where `url` has none.
      agent: client: who plays; empty: the default agent of the game.
      wait_s: client: how long to try while nobody listens.
    """

    host: str = "127.0.0.1"
    port: int = 23456
    seats: tuple[str, ...] = ("wire", "wire", "wire", "wire")
    matches: int = 1
    reply_s: float = 30.0
    misses: int = 3
    stand_in: str = ""
    ranks: bool = True
    log: str = ""
    url: str = "ws://127.0.0.1:23456"
    name: str = "jaxgames"
    agent: str = ""
    wait_s: float = 30.0

    def __post_init__(self):
        require(bool(self.host), "host", "needs an address")
        require(0 <= self.port < 65536, "port", f"0 to 65535, got {self.port}")
        require(len(self.seats) == 4, "seats", f"four, got {len(self.seats)}")
        for field, least in (("matches", 1), ("misses", 1), ("reply_s", 0.01), ("wait_s", 0)):
            value = getattr(self, field)
            require(value >= least, field, f"at least {least}, got {value}")
        require(self.url.startswith(("ws://", "wss://")), "url", "ws://HOST:PORT/game/NAME")


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """`jaxgames data`: logs of Guandan matches.

    Attributes:
      seats: make: who plays: one spec for all seats, two by team, or four; empty: the
        strongest bot.
      matches: make: how many.
      out: make: folder for the logs, one file per match; check: for the clean ones, empty: none.
    """

    seats: tuple[str, ...] = ()
    matches: int = 1
    out: str = ""

    def __post_init__(self):
        fit = len(self.seats) in (0, 1, 2, 4)
        require(fit, "seats", f"one, two or four agents, got {len(self.seats)}")
        require(self.matches >= 1, "matches", f"at least 1, got {self.matches}")


@dataclasses.dataclass(frozen=True)
class ServeConfig:
    """`jaxgames serve`: the HTTP server.

    Attributes:
      host: address to listen on; any but a loopback one needs a token.
      port: 0 takes a free one.
      games: rulesets that are compiled before the server is ready, each "NAME" or "NAME/PRESET";
        empty: every game with its default rules.
      models: players that are compiled for them, by name; empty: the default one of each.
      models_dir: folder of bundles or run folders that are served besides; empty: none.
      lazy: compile what was not listed when it is first asked for; false: refuse it.
      simulations: numbers of simulations that searches have; a budget is rounded up to one. The
        usual one of a model is compiled before the server is ready, and without `lazy` all.
      max_simulations: the most that a request may ask for.
      batches: rows that programs are compiled for; a batch is padded to the next of them.
      wait_ms: how long a busy server waits for a batch to fill.
      queue: questions waiting at most; more are answered 429.
      deadline_s: seconds in which a question must be answered.
      runs_dir: folder of the runs that the dashboard shows.
      insecure_no_auth: listen beyond loopback without a token.
      token_file: where the token is kept, readable by the owner alone; empty: in the user's
        cache folder.
      allowed_hosts: names besides the loopback ones by which clients may call the server.
      cors: origins of other pages that may read answers.
      frame_ancestors: pages that may show ours in a frame.
      compile_cache: keep compiled programs in the user's cache folder.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    games: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    models_dir: str = ""
    lazy: bool = True
    simulations: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    max_simulations: int = 4096
    batches: tuple[int, ...] = (1, 4)
    wait_ms: float = 3.0
    queue: int = 64
    deadline_s: float = 30.0
    runs_dir: str = "runs"
    insecure_no_auth: bool = False
    token_file: str = ""
    allowed_hosts: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    frame_ancestors: tuple[str, ...] = ()
    compile_cache: bool = True

    def __post_init__(self):
        require(bool(self.host), "host", "needs an address")
        require(0 <= self.port < 65536, "port", f"0 to 65535, got {self.port}")
        for field in ("games", "models", "simulations", "batches", "allowed_hosts", "cors"):
            values = getattr(self, field)
            require(len(set(values)) == len(values), field, f"each once, got {list(values)}")
        for field, most in (("simulations", 4096), ("batches", 256)):
            sizes = list(getattr(self, field))
            rising = (
                len(sizes) > 0 and sizes == sorted(sizes) and 1 <= sizes[0] <= sizes[-1] <= most
            )
            require(rising, field, f"one or more rising numbers 1 to {most}, got {sizes}")
        require(self.batches[0] == 1, "batches", f"1 first, got {list(self.batches)}")
        top = 1 <= self.max_simulations <= self.simulations[-1]
        require(top, "max_simulations", f"1 to the last of simulations, got {self.max_simulations}")
        require(1 <= self.queue <= 100_000, "queue", f"1 to 100000, got {self.queue}")
        require(0 <= self.wait_ms <= 1000, "wait_ms", f"0 to 1000, got {self.wait_ms}")
        require(0 < self.deadline_s <= 3600, "deadline_s", f"above 0 to 3600: {self.deadline_s}")
        for field in ("allowed_hosts", "cors", "frame_ancestors"):
            for name in getattr(self, field):
                plain = name.isascii() and name.isprintable() and not set(name) & set(" ;,'\"*")
                require(bool(name) and plain, field, f"names without * or spaces, got {name!r}")


@dataclasses.dataclass(frozen=True)
class DashboardConfig:
    """`jaxgames dashboard`: runs in a browser. Who may look is said by the keys of `serve`.

    Attributes:
      host: address to listen on.
      port: 0 takes a free one.
      report: write one HTML file with the data inside and stop; empty: serve.
    """

    host: str = "127.0.0.1"
    port: int = 8001
    report: str = ""

    def __post_init__(self):
        require(bool(self.host), "host", "needs an address")
        require(0 <= self.port < 65536, "port", f"0 to 65535, got {self.port}")


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings. `config_type(game)` narrows `game.options` to that game's rules.

    Attributes:
      agent: what to train.
      seed: root of all chance.
      seeds: train once with each of these, one run after the other, instead of with `seed`.
      device: platform that jax computes on.
    """

    game: GameConfig
    agent: typing.Literal["alphazero", "mcts_dqn", "ppo", "imitation", "muzero"] = "alphazero"
    seed: int = 0
    seeds: tuple[int, ...] = ()
    device: typing.Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    run: RunConfig = RunConfig()
    network: NetworkConfig = NetworkConfig()
    alphazero: alphazero.Config = alphazero.Config()
    dqn: dqn.Config = dqn.Config()
    ppo: ppo.Config = ppo.Config()
    imitation: imitation.Config = imitation.Config()
    muzero_network: MuZeroNetworkConfig = MuZeroNetworkConfig()
    muzero: muzero.Config = muzero.Config()
    train: TrainConfig = TrainConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    eval: EvalConfig = EvalConfig()
    population: PopulationConfig = PopulationConfig()
    gate: GateConfig = GateConfig()
    tournament: TournamentConfig = TournamentConfig()
    play: PlayConfig = PlayConfig()
    benchmark: BenchmarkConfig = BenchmarkConfig()
    wire: WireConfig = WireConfig()
    data: DataConfig = DataConfig()
    dashboard: DashboardConfig = DashboardConfig()
    serve: ServeConfig = ServeConfig()

    def __post_init__(self):
        for field, values in (("seed", (self.seed,)), ("seeds", self.seeds)):
            fit = all(0 <= value < 2**32 for value in values)
            require(fit, field, f"0 to 4294967295, got {getattr(self, field)}")
        require(len(set(self.seeds)) == len(self.seeds), "seeds", "each seed once")
        require(not (self.seeds and self.run.resume), "seeds", "resume one run at a time")
        alone = self.population.members == 1 or not self.curriculum.stages
        require(alone, "population", "1 member with a curriculum")


@functools.cache
def config_type(game: str, root: type = Config) -> type:
    """`root` with `game.options` typed as the rules of the registered game `game`."""
    try:
        rules = core.game_type(game).rules_type
    except core.RulesError as error:
        raise ConfigError("game.name", str(error).partition(": ")[2]) from None
    # MISSING, not `rules()`: what a rule derives from the others must stay open here.
    options = dataclasses.field(default=MISSING)
    name = dataclasses.field(default=game)
    narrowed = dataclasses.make_dataclass(
        "GameConfig",
        [("name", str, name), ("options", rules, options)],
        bases=(GameConfig,),
        frozen=True,
    )
    field = dataclasses.field(default=MISSING)
    return dataclasses.make_dataclass(
        root.__name__, [("game", narrowed, field)], bases=(root,), frozen=True
    )


# ---- mirrors ----


@functools.cache
def hints(cls: type) -> dict[str, Any]:
    """Field name -> annotation, resolved, in the order of the class."""
    found = typing.get_type_hints(cls)
    return {f.name: found[f.name] for f in dataclasses.fields(cls) if f.init}


@functools.cache
def mirror(cls: type) -> type:
    """A plain dataclass with the fields and defaults of the frozen `cls`, for OmegaConf."""
    by_name = {f.name: f for f in dataclasses.fields(cls)}
    fields = []
    for name, want in hints(cls).items():
        default = _default(by_name[name])
        if dataclasses.is_dataclass(want):
            factory = functools.partial(_mirrored, want, default)
            fields.append((name, mirror(want), dataclasses.field(default_factory=factory)))
        else:
            factory = functools.partial(_plain, default)
            fields.append((name, _node_type(want), dataclasses.field(default_factory=factory)))
    return dataclasses.make_dataclass(cls.__name__, fields)


def _default(field: dataclasses.Field) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return MISSING


def _mirrored(cls: type, value: Any) -> Any:
    """The mirror instance that holds what the frozen `value` holds."""
    if isinstance(value, str) and value == MISSING:
        return mirror(cls)()
    values = {}
    for name, want in hints(cls).items():
        item = getattr(value, name)
        values[name] = _mirrored(want, item) if dataclasses.is_dataclass(want) else _plain(item)
    return mirror(cls)(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name.lower()
    return [_plain(v) for v in value] if isinstance(value, (tuple, list)) else value


def _node_type(want: Any) -> Any:
    """What OmegaConf can hold: lists for tuples, text for choices, Any for the rest."""
    origin, arguments = typing.get_origin(want), typing.get_args(want)
    if want in (bool, int, float, str):
        return want
    if origin is typing.Literal or isinstance(want, type) and issubclass(want, enum.Enum):
        return str
    if origin in (typing.Union, types.UnionType):
        kinds = [a for a in arguments if a is not type(None)]
        return typing.Optional[_node_type(kinds[0])] if len(kinds) == 1 else Any  # noqa: UP045
    if origin is tuple and len(set(arguments) - {Ellipsis}) == 1:
        inner = _node_type(arguments[0])
        return list[inner] if inner in (bool, int, float, str) else list[Any]
    return Any


def structured(cls: type) -> DictConfig:
    """A typed tree of the defaults of the frozen `cls`."""
    return OmegaConf.structured(mirror(cls))


def annotation(cls: type, key: str) -> Any:
    """What `key` ("a.b.c") holds below `cls`; raises ConfigError with the nearest names."""
    here: Any = cls
    parts = key.split(".")
    for depth, part in enumerate(parts):
        section = ".".join(parts[:depth])
        if not dataclasses.is_dataclass(here):
            raise ConfigError(key, f"{section} is a single value and has no keys below it")
        if part not in hints(here):
            where = f"in section {section!r}" if section else "at the top level"
            raise ConfigError(key, f"unknown key {part!r} {where}{core.nearest(part, hints(here))}")
        here = hints(here)[part]
    return here


# ---- back to frozen ----


def freeze(tree: DictConfig, cls: type, path: str = "") -> Any:
    """The frozen `cls` that `tree` describes; raises ConfigError with the full key."""
    values = {}
    for name, want in hints(cls).items():
        key = f"{path}.{name}" if path else name
        if OmegaConf.is_missing(tree, name):
            raise ConfigError(key, "must be set")
        value = tree[name]
        if dataclasses.is_dataclass(want):
            values[name] = freeze(value, want, key)
        else:
            if OmegaConf.is_config(value):
                value = OmegaConf.to_container(value, resolve=True)
            values[name] = coerce(value, want, key)
    try:
        return cls(**values)
    except ConfigError:
        raise
    except ValueError as error:
        field, colon, rule = str(error).partition(": ")
        if colon and field.split("[")[0].split(".")[0] in values:
            raise ConfigError(f"{path}.{field}" if path else field, rule) from None
        raise ConfigError(path, str(error)) from None
