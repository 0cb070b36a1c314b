"""What each switch of a learner is worth: every variant trained for the same budget, one table.

Variants are data, `configs/ablations/NAME.yaml`: a name, what it is about, and settings as the
command line takes them, over those of the base (preset and overrides of the command). Each is
trained with several seeds; then it plays against the game's strongest rule bot and against the
base before any training.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
from omegaconf import OmegaConf

import configs
from algorithms import agents, arena, ratings
from algorithms.learner import Learner, TrainState
from configs import ConfigError, Resolved, loader
from experiments import errors, run_folder
from experiments.figures import not_finite
from experiments.kinds import KINDS
from jaxgames.core import Game, nearest

#: The base before any training, among the opponents.
UNTRAINED = "untrained"
#: Settings that say how much of a table is wanted, and where; all others make another table.
_EXTENT = ("benchmark.variants", "benchmark.seeds", "benchmark.out")
#: Share of a training, at its end, that losses are averaged over.
_END = 0.25

# ---- variants ----


@dataclasses.dataclass(frozen=True)
class Variant:
    """Attributes:
    name: as `benchmark.variants` has it.
    about: what it changes, in words.
    set: what it changes, as overrides.
    sees: part of the observation without which it means nothing; empty: none.
    """

    name: str
    about: str
    set: tuple[str, ...] = ()
    sees: str = ""


def lists() -> tuple[str, ...]:
    """Names that `variants` knows."""
    return tuple(sorted(path.stem for path in loader.ABLATIONS.glob("*.yaml")))


def variants(name: str) -> tuple[Variant, ...]:
    """The variants of configs/ablations/NAME.yaml, in its order; raises ConfigError."""
    if name not in lists():
        rule = f"no variants are listed for {name!r}{nearest(name, lists())}"
        raise ConfigError("benchmark.ablation", rule)
    return read(loader.ABLATIONS / f"{name}.yaml")


def read(path: pathlib.Path) -> tuple[Variant, ...]:
    """The variants of a file; raises ConfigError for anything that is none."""
    fields = {f.name for f in dataclasses.fields(Variant)} - {"name"}
    tree = OmegaConf.to_container(OmegaConf.load(path))
    found = []
    for name, entry in tree.items() if isinstance(tree, dict) else ():
        where = f"{path.name}: {name}"
        if not isinstance(entry, dict) or not isinstance(entry.get("about"), str):
            raise ConfigError("", f"{where}: needs a section with a text `about`")
        for key in entry.keys() - fields:
            raise ConfigError("", f"{where}: unknown key {key!r}{nearest(str(key), fields)}")
        texts, sees = entry.get("set", []), entry.get("sees", "")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ConfigError("", f"{where}: set is a list of texts like key=value, got {texts!r}")
        if not isinstance(sees, str):
            raise ConfigError("", f"{where}: sees is a text, got {sees!r}")
        found.append(Variant(str(name), entry["about"], tuple(texts), sees))
    if not found:
        raise ConfigError("", f"{path.name}: lists no variants")
    return tuple(found)


def applied(base: Resolved, variant: Variant) -> Resolved:
    """The base's settings under those of the variant, which win; raises ConfigError."""
    changed = {text.partition("=")[0] for text in variant.set}
    kept = [text for text in base.overrides if text.partition("=")[0] not in changed]
    return configs.load(base.preset, (*kept, *variant.set))


@dataclasses.dataclass(frozen=True)
class Trial:
    """A variant ready to be trained."""

    variant: Variant
    config: Any
    model: Any
    learner: Learner

    @functools.cached_property
    def player(self) -> agents.Agent:
        players = KINDS[self.config.agent].players(self.model, self.config)
        return players[self.config.benchmark.player]


def trial(variant: Variant, resolved: Resolved, game: Game) -> Trial:
    """Builds network and learner, and compiles nothing; raises ValueError("FIELD: ...") for
    settings that the game can not meet."""
    config = resolved.config
    kind = KINDS[config.agent]
    model = kind.model(game, config)
    return Trial(variant, config, model, kind.make(game, model, getattr(config, kind.section)))


def trials(base: Resolved, plain: Trial, game: Game) -> tuple[list[Trial], dict[str, str]]:
    """(what to train, why the others are left out). Of variants asked for by name, one that does
    not fit raises ConfigError."""
    settings = base.config.benchmark
    known = {v.name: v for v in variants(settings.ablation or base.config.game.name)}
    seen = getattr(plain.model, "observation_spec", {})
    found, skipped = [], {}
    for name in settings.variants or known:
        if name not in known:
            rule = f"unknown name {name!r}{nearest(name, tuple(known))}"
            raise ConfigError("benchmark.variants", rule)
        variant = known[name]
        if variant.sees and variant.sees not in seen:
            skipped[name] = f"observations have no {variant.sees!r} here"
            continue
        try:
            resolved = applied(base, variant)
            if variant.set and resolved.config == base.config:
                skipped[name] = "the base has it"
            else:
                found.append(trial(variant, resolved, game))
        except ValueError as error:
            if settings.variants:
                raise ConfigError("benchmark.variants", f"{name}: {error}") from None
            skipped[name] = str(error)
    return found, skipped


# ---- the table ----


def run(
    base: Resolved,
    say: Callable[[str], None],
    keep: Callable[[dict[str, Any]], None] = lambda report: None,
) -> dict[str, Any]:
    """Trains what the table of `benchmark.out` does not have yet; returns the whole table.

    `keep(report)` is called after each training.

    Raises:
      ConfigError: a variant that does not exist or fit, or a table of other settings.
      errors.Interrupted: Ctrl-C; what was kept stays.
    """
    config, settings = base.config, base.config.benchmark
    game = configs.make_game(config).for_search()
    if game.num_teams < 2:
        raise ConfigError("game.options", "strength is measured against others: two teams or more")
    try:
        plain = trial(Variant("base", ""), base, game)
    except ValueError as error:
        raise ConfigError("", str(error)) from None
    wanted, skipped = trials(base, plain, game)
    for name, why in skipped.items():
        say(f"{name} is left out: {why}")
    report = {
        "game": game.id,
        "agent": config.agent,
        "base": base.preset,
        "budget": f"{settings.seconds:g} s" if settings.seconds else f"{settings.updates} updates",
        "settings": _settings(base),
        "rows": [],
        "skipped": skipped,
    }
    before = _before(settings.out, report["settings"])
    order = [v.name for v in variants(settings.ablation or config.game.name)]
    seeds = range(config.seed, config.seed + settings.seeds)

    def rows():
        known = (row for row in before.values() if row["variant"] in order)
        return sorted(known, key=lambda row: order.index(row["variant"]))

    report["rows"] = rows()  # what is there stays, also where nothing is left to do
    number, work = 0, [(one, seed) for one in wanted for seed in seeds]
    try:
        for number, (one, seed) in enumerate(work):
            name = one.variant.name
            row = before.get(name)
            fits = row is not None and row["changes"] == list(one.variant.set)
            runs = row["runs"] if fits else []
            if all(run["seed"] != seed for run in runs):
                say(f"{name}, seed {seed} ({number + 1} of {len(work)})")
                runs = [*runs, measure(one, plain, game, seed, say)]
            before[name] = summary(one.variant, one.model.num_params(), runs)
            report["rows"] = rows()
            keep(report)
    except KeyboardInterrupt:
        again = "the same command goes on" if settings.out else "benchmark.out=FILE would keep it"
        raise errors.Interrupted(
            f"interrupted after {number} of {len(work)} trainings; {again}"
        ) from None
    return report


def _settings(base: Resolved) -> dict[str, Any]:
    return {key: value for key, value in base.flat().items() if key not in _EXTENT}


def _before(out: str, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows of the table at `out` by variant; raises ConfigError for one of other settings."""
    if not out or not pathlib.Path(out).exists():
        return {}
    try:
        report = json.loads(pathlib.Path(out).read_text("utf-8"))
        theirs, rows = report["settings"], {row["variant"]: row for row in report["rows"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError("benchmark.out", f"{out} is there and holds no ablation") from None
    for key in (*settings, *theirs):
        has, want = theirs.get(key), run_folder.clean(settings.get(key))
        if has != want:
            raise ConfigError("benchmark.out", f"{out} is of {key}={has}, not {want}")
    return rows


def summary(variant: Variant, parameters: int, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row: medians over the trainings, and strength over the games of all of them."""

    def middle(values):
        values = [value for value in values if value is not None]
        return statistics.median(values) if values else None

    well = [run for run in runs if not run["problem"]]
    names = {name: None for run in well for name in run["loss"]}
    opponents = {name: None for run in well for name in run["strength"]}
    return {
        "variant": variant.name,
        "about": variant.about,
        "changes": list(variant.set),
        "parameters": parameters,
        "updates": middle(run["updates"] for run in runs),
        "moves_per_s": middle(run["moves_per_s"] for run in runs),
        "update_s": middle(run["update_s"] for run in runs),
        "compile_s": max(run["compile_s"] for run in runs),  # the first one compiles
        "loss": {name: middle(run["loss"].get(name) for run in well) for name in names},
        "explained_var": middle(run["explained_var"] for run in well),
        "strength": {name: _pooled([run["strength"][name] for run in well]) for name in opponents},
        "problems": [run["problem"] for run in runs if run["problem"]],
        "runs": list(runs),
    }


def _pooled(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rate over all games with its Wilson 95 % interval, and those of the trainings."""
    games = sum(part["games"] for part in parts)
    rate = ratings.wilson(sum(part["mean"] * part["games"] for part in parts), games)
    means = [part["mean"] for part in parts]
    return {"games": games, "even": parts[0]["even"], **vars(rate), "by_seed": means}


# ---- one training ----


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Attributes:
    seconds: it took.
    moves: of self-play in it.
    updates: in it.
    fresh: compiling included.
    learned: the learner's own play, and optimiser steps.
    """

    seconds: float
    moves: int
    updates: int
    fresh: bool
    learned: bool
    metrics: Mapping[str, float]


def measure(
    one: Trial, plain: Trial, game: Game, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Trains once and plays; figures as JSON values. Where a figure became NaN or infinite the
    training ends, "problem" says so, and nothing is played."""
    start = time.monotonic()
    state = jax.block_until_ready(one.learner.init(jax.random.key(seed)))
    compile_s = time.monotonic() - start
    state, chunks, problem = _trained(one, state)
    steady = [c for c in chunks if c.learned and not c.fresh]
    update_s = statistics.median(c.seconds / c.updates for c in steady) if steady else None
    for c in chunks:
        if c.fresh:
            compile_s += max(c.seconds - c.updates * (update_s or 0.0), 0.0)
    learned = [c.metrics for c in chunks if c.learned]
    end = learned[-max(int(_END * len(learned)), 1) :]
    average = {name: statistics.fmean(m[name] for m in end) for name in (end[0] if end else ())}
    losses = {n.removeprefix("loss/"): x for n, x in average.items() if n.startswith("loss/")}
    return {
        "seed": seed,
        "updates": int(state.updates),
        "games": int(state.games),
        "moves_per_s": statistics.median(c.moves / c.seconds for c in steady) if steady else None,
        "update_s": update_s,
        "compile_s": compile_s,
        "train_s": sum(c.seconds for c in chunks),
        "loss": losses,
        "explained_var": average.get("value/explained_var"),
        "strength": {} if problem else _strength(one, plain, state.params, game, seed, say),
        "problem": problem,
        "commit": run_folder.commit(),
    }


def _trained(one: Trial, state: TrainState) -> tuple[TrainState, list[Chunk], str]:
    """(state, chunks, problem or "") at the end of the budget. In a budget of seconds, chunks that
    compile count nothing."""
    budget, learner = one.config.benchmark, one.learner
    teacher = getattr(getattr(one.config, KINDS[one.config.agent].section), "teacher_updates", 0)
    chunks: list[Chunk] = []
    while True:
        updates, moves, compiled = int(state.updates), int(state.env_steps), learner.compiled()
        if budget.seconds:
            if sum(c.seconds for c in chunks if not c.fresh) >= budget.seconds:
                return state, chunks, ""
        elif updates >= budget.updates:
            return state, chunks, ""
        start = time.monotonic()
        state, metrics = jax.block_until_ready(learner.run_chunk(state))
        seconds = time.monotonic() - start
        metrics = {name: float(value) for name, value in jax.device_get(metrics).items()}
        sick = not_finite(metrics)
        chunks.append(
            Chunk(
                seconds,
                int(state.env_steps) - moves,
                int(state.updates) - updates,
                fresh=learner.compiled() != compiled,
                learned=updates >= teacher and metrics.get("optim/lr", 0.0) > 0,
                metrics=metrics,
            )
        )
        if sick:
            what = f"{', '.join(sick)} became NaN or infinite at update {int(state.updates)}"
            return state, chunks, what


def _strength(
    one: Trial, plain: Trial, params: Any, game: Game, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """{opponent: rate}. All variants meet the same deals under the same seed."""
    settings = one.config.benchmark
    bot = list(game.bots)[-1]
    opponents = {
        bot: agents.Seat(_bot(game, bot)),
        UNTRAINED: agents.Seat(plain.player, plain.learner.init(jax.random.key(seed)).params),
    }
    found = {}
    for name, opponent in opponents.items():
        played = arena.evaluate_paired(
            game,
            agents.Seat(one.player, params),
            opponent,
            settings.pairs,
            seed,
            opening=settings.opening,
        )
        say(f"  {played.winrate} against {name} over {played.alone.size} games")
        found[name] = {"games": played.alone.size, "even": played.even, **vars(played.winrate)}
    return found


_bot = functools.cache(agents.bot_agent)  # one agent, compiled once


# ---- on the terminal ----


def show(report: dict[str, Any]) -> None:
    """Print what the variants cost, how well they learned and how well they play; and below it
    what each changes."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    rows = report["rows"]
    losses = list(dict.fromkeys(name for row in rows for name in row["loss"]))
    even = {name: part["even"] for row in rows for name, part in row["strength"].items()}
    costs = {
        "parameters": "parameters",
        "moves/s": "moves_per_s",
        "s/update": "update_s",
        "compile s": "compile_s",
    }
    tables = (
        (costs, lambda row: [_number(row[key]) for key in costs.values()]),
        (
            [*losses, "explained variance"],
            lambda row: (
                [_number(row["loss"].get(n)) for n in losses] + [_number(row["explained_var"])]
            ),
        ),
        (
            [f"% against {name} (even {100 * share:.0f})" for name, share in even.items()],
            lambda row: [_rate(row["strength"].get(name)) for name in even],
        ),
    )
    for heads, cells in tables:
        console.print(_table(heads, [[row["variant"], *cells(row)] for row in rows]))
        console.print()
    for row in rows:
        changes = f": {' '.join(row['changes'])}" if row["changes"] else ""
        console.print(f"{row['variant']}: {row['about']}{changes}")
        for problem in row["problems"]:
            console.print(f"  {problem}")
    for name, why in report["skipped"].items():
        console.print(f"{name}: left out, {why}")
    counts = sorted({len(row["runs"]) for row in rows})
    seeds = "-".join(map(str, counts))
    machine = report["hardware"]
    console.print(
        f"{report['budget']} each, {seeds} seeds, Wilson 95 % over the games of all seeds; "
        f"{machine['cores']} cores, {', '.join(machine['devices'])}"
    )


def _table(heads: Iterable[str], rows: Iterable[Sequence[str]]):
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("variant")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _rate(rate: Mapping[str, float] | None) -> str:
    if rate is None:
        return ""
    mean, low, high = (100 * rate[key] for key in ("mean", "low", "high"))
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"
