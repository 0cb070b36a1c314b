"""Settings of the commands, one frozen dataclass for each; `configs.schema` gathers them."""

from __future__ import annotations

import dataclasses
import typing


def require(holds: bool, field: str, rule: str) -> None:
    """The form of every range check: ValueError("field: rule")."""
    if not holds:
        raise ValueError(f"{field}: {rule}")


@dataclasses.dataclass(frozen=True)
class PlayConfig:
    """Who sits where in `jaxgames play`.

    Attributes:
      seats: one per seat, "human" or the spec of an agent (`agents.from_spec`); fewer are
        repeated over the seats. Empty: the person on seat 0, the default agent elsewhere.
      load: a record to go on from; empty: a fresh deal.
      web: play on a page in a browser, which `serve.port` and its like serve, not in the terminal.
      browser: open the page in the system's browser, where there is one.
    """

    seats: tuple[str, ...] = ()
    load: str = ""
    web: bool = False
    browser: bool = True


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
      switches: train: instead, an update without and with each of league, king of the hill and,
        where stages are set, curriculum.
      peers: env, search: measure other libraries beside ours where installed.
      ablation: ablation: the file configs/ablations/NAME.yaml that lists the variants; empty:
        that of the game.
      variants: ablation: those to train, by name; empty: all.
      seeds: ablation: trainings of each, with the seeds from `seed` on.
      updates: ablation: updates of each training, rounded up to whole chunks.
      seconds: ablation: seconds of each training, compilation left out, instead of `updates`;
        0: so many updates.
      player: ablation: "network" (its most likely move) or "search" (as train.eval.search says).
      opponents: ablation: bots of the game, or "untrained", the base before any training; empty:
        the strongest bot and "untrained".
      pairs: ablation: deals against each opponent after each training, played once per seating.
      opening: ablation: random moves that begin these games.
      load: serve: so many mixed requests at once against a server in a process of its own, with
        the settings `serve.*`, instead of single moves; 0: single moves.
      out: also write the report as JSON to this file; empty: only stdout. An ablation goes on
        with what is there.
    """

    batches: tuple[int, ...] = (256, 1024, 4096)
    steps: int = 256
    repeats: int = 5
    chunks: int = 3
    switches: bool = False
    peers: bool = True
    ablation: str = ""
    variants: tuple[str, ...] = ()
    seeds: int = 3
    updates: int = 200
    seconds: float = 0.0
    player: typing.Literal["network", "search"] = "search"
    opponents: tuple[str, ...] = ()
    pairs: int = 50
    opening: int = 2
    load: int = 0
    out: str = ""

    def __post_init__(self):
        fit = self.load == 0 or 20 <= self.load <= 1000
        require(fit, "load", f"0, or 20 to 1000, got {self.load}")
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
      analysis_s: the same of each position of an analysis, which can be watched and stopped.
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
    analysis_s: float = 600.0
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
        top = 1 <= self.max_simulations <= self.simulations[-1]
        require(top, "max_simulations", f"1 to the last of simulations, got {self.max_simulations}")
        require(1 <= self.queue <= 100_000, "queue", f"1 to 100000, got {self.queue}")
        require(0 <= self.wait_ms <= 1000, "wait_ms", f"0 to 1000, got {self.wait_ms}")
        for field in ("deadline_s", "analysis_s"):
            value = getattr(self, field)
            require(0 < value <= 86_400, field, f"above 0 to 86400, got {value}")
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
class ExportConfig:
    """`jaxgames export`: a bundle as files for other programs.

    Attributes:
      formats: "network" and "search": StableHLO that jax.export reads back; "onnx": the network for
        ONNX runtimes; "int8": the network with its large weights in 8 bits, as StableHLO.
      out: folder for them; empty: exports/NAME, after the bundle.
      overwrite: replace files that are there.
      platforms: what StableHLO is lowered for: cpu, cuda, rocm, tpu.
      rows: search: positions that it takes at once.
      simulations: search: how many; 0: as the bundle plays.
      positions: int8: positions of the network's own games that its loss is measured on.
    """

    formats: tuple[str, ...] = ("network", "search", "onnx", "int8")
    out: str = ""
    overwrite: bool = False
    platforms: tuple[str, ...] = ("cpu", "cuda")
    rows: int = 1
    simulations: int = 0
    positions: int = 256

    def __post_init__(self):
        for field, known in (
            ("formats", ("network", "search", "onnx", "int8")),
            ("platforms", ("cpu", "cuda", "rocm", "tpu")),
        ):
            values = getattr(self, field)
            fit = 0 < len(set(values) & set(known)) == len(values)
            require(fit, field, f"some of {', '.join(known)}, each once, got {list(values)}")
        for field, least, most in (
            ("rows", 1, 4096),
            ("simulations", 0, 4096),
            ("positions", 1, 65536),
        ):
            value = getattr(self, field)
            require(least <= value <= most, field, f"{least} to {most}, got {value}")


@dataclasses.dataclass(frozen=True)
class LogConfig:
    """Where metrics go besides the run folder, whose files are complete without.

    Attributes:
      sinks: "tensorboard": event files in the run folder's tensorboard/; "wandb": Weights & Biases,
        as WANDB_MODE and the other settings of that program say.
      project: wandb: the project that runs belong to.
    """

    sinks: tuple[str, ...] = ()
    project: str = "jaxgames"

    def __post_init__(self):
        known = ("tensorboard", "wandb")
        fit = len(set(self.sinks) & set(known)) == len(self.sinks)
        require(fit, "sinks", f"some of {', '.join(known)}, each once, got {list(self.sinks)}")
        require(bool(self.project), "project", "needs a name")


@dataclasses.dataclass(frozen=True)
class PlotConfig:
    """`jaxgames plot`: pictures of runs and of positions.

    Attributes:
      kinds: what to draw (`jaxgames plot` lists them); empty: all that the runs recorded, or the
        board and the moves of a position.
      out: folder, or one file; empty: plots/ in the run, or here for several.
      format: of the files, where `out` does not say.
      x: what curves lie over.
      record: a game record, whose position is drawn; empty: the newest recorded game of the run.
      ply: the position after so many moves; below 0 from the end, -1 before the last move.
      agent: who thinks about the position (a spec); empty: the run's best weights, else the
        default player.
      viewer: hide what this seat may not see.
    """

    kinds: tuple[str, ...] = ()
    out: str = ""
    format: typing.Literal["svg", "png"] = "svg"
    x: typing.Literal["step", "env_steps", "wall"] = "step"
    record: str = ""
    ply: int = -1
    agent: str = ""
    viewer: int | None = None

    def __post_init__(self):
        once = len(set(self.kinds)) == len(self.kinds)
        require(once, "kinds", f"each once, got {list(self.kinds)}")
        fit = self.viewer is None or self.viewer >= 0
        require(fit, "viewer", f"a seat from 0, got {self.viewer}")


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """`jaxgames replay RECORD`: a recorded game, move by move.

    Attributes:
      game: which one of a file of several, from 0.
      ply: show only the position after so many moves; below 0 from the end; empty: all.
      viewer: hide what this seat may not see.
      seconds: pause between two moves.
      out: write the position at `ply`, else the last one, as a picture (.svg or .png).
    """

    game: int = 0
    ply: int | None = None
    viewer: int | None = None
    seconds: float = 0.0
    out: str = ""

    def __post_init__(self):
        require(self.game >= 0, "game", f"at least 0, got {self.game}")
        require(0 <= self.seconds <= 60, "seconds", f"0 to 60, got {self.seconds}")
        fit = self.viewer is None or self.viewer >= 0
        require(fit, "viewer", f"a seat from 0, got {self.viewer}")
