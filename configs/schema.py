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
from configs.commands import (
    BenchmarkConfig,
    DashboardConfig,
    DataConfig,
    ExportConfig,
    LogConfig,
    PlayConfig,
    PlotConfig,
    ReplayConfig,
    ServeConfig,
    TournamentConfig,
    WireConfig,
    require,
)
from configs.overrides import ConfigError, coerce
from jaxgames import core

# ---- settings of the house ----


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
    plot: PlotConfig = PlotConfig()
    replay: ReplayConfig = ReplayConfig()
    serve: ServeConfig = ServeConfig()
    export: ExportConfig = ExportConfig()
    log: LogConfig = LogConfig()

    def __post_init__(self):
        for field, values in (("seed", (self.seed,)), ("seeds", self.seeds)):
            fit = all(0 <= value < 2**32 for value in values)
            require(fit, field, f"0 to 4294967295, got {getattr(self, field)}")
        require(len(set(self.seeds)) == len(self.seeds), "seeds", "each seed once")
        require(not (self.seeds and self.run.resume), "seeds", "resume one run at a time")


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
