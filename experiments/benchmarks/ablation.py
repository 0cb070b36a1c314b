"""What each switch of a learner is worth: every variant trained for the same budget, one table.

Variants are data, `configs/ablations/NAME.yaml`: a name, what it is about, and settings as the
command line takes them, over those of the base (preset and overrides of the command). Each is
trained with several seeds; then it plays, by default against the game's strongest rule bot and
against the base before any training. What counts is how far it stands from the variant beside it,
next to what trainings that differ in nothing but the seed are apart (`compared`).
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

import configs
from algorithms import agents, arena, ratings
from algorithms.learner import Learner, TrainState
from configs import ConfigError, Resolved
from experiments import errors, run_folder
from experiments.benchmarks.variants import BASE, Variant, variants
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
    for name in settings.opponents:
        if name not in (UNTRAINED, *game.bots):
            rule = f"unknown name {name!r}{nearest(name, (UNTRAINED, *game.bots))}"
            raise ConfigError("benchmark.opponents", rule)
    try:
        plain = trial(Variant(BASE, ""), base, game)
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
    before = _before(base, report["settings"])
    listed = variants(settings.ablation or config.game.name)
    order, beside = [v.name for v in listed], {v.name: v.beside for v in listed}
    seeds = range(config.seed, config.seed + settings.seeds)

    def tell():
        known = (row for row in before.values() if row["variant"] in order)
        rows = sorted(known, key=lambda row: order.index(row["variant"]))
        report.update(rows=rows, compared=compared(rows, beside))

    tell()  # what is there stays, also where nothing is left to do
    # All seeds of one, then the next: compiling a variant takes longer than training it.
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
            tell()
            keep(report)
    except KeyboardInterrupt:
        again = "the same command goes on" if settings.out else "benchmark.out=FILE would keep it"
        raise errors.Interrupted(
            f"interrupted after {number} of {len(work)} trainings; {again}"
        ) from None
    return report


def _settings(base: Resolved) -> dict[str, Any]:
    return {key: value for key, value in base.flat().items() if key not in _EXTENT}


def _before(base: Resolved, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows of the table at `benchmark.out` by variant; raises ConfigError for one of other
    settings. Those that the table does not know, younger than it, may have any default."""
    out = base.config.benchmark.out
    if not out or not pathlib.Path(out).exists():
        return {}
    try:
        report = json.loads(pathlib.Path(out).read_text("utf-8"))
        theirs, rows = dict(report["settings"]), {}
        for row in report["rows"]:  # from the trainings anew: whatever lacks a figure fails here
            variant = Variant(row["variant"], row["about"], tuple(row["changes"]))
            runs = sorted(row["runs"], key=lambda run: run["seed"])
            once = len({run["seed"] for run in runs}) == len(runs)
            parts = [part for run in runs for part in run["strength"].values()]
            if not once or any(p["games"] < 1 or not 0 <= p["mean"] <= 1 for p in parts):
                raise ValueError("no figures of trainings")
            rows[variant.name] = summary(variant, row["parameters"], runs)
        compared(list(rows.values()), {})
    except (
        OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError
    ):  # fmt: skip
        raise ConfigError("benchmark.out", f"{out} is there and holds no ablation") from None
    young = {key for key in settings.keys() - theirs.keys() if base.origins[key] == "default"}
    for key in (*settings, *theirs):
        if key in young:
            continue
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
        "update_cpu_s": middle(run.get("update_cpu_s") for run in runs),
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


def compared(
    rows: Sequence[dict[str, Any]], beside: Mapping[str, str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """{variant: {opponent: how far its mean over the seeds is from that of the variant beside it}}.

    "error" is the standard error of the difference, from the spread of trainings that differ in
    the seed alone, pooled over all variants: three seeds of one tell too little. "beyond" is
    whether the difference is more than two of them. Without two seeds there is none of it.
    """
    means: dict[str, dict[str, Sequence[float]]] = {}
    for row in rows:
        for name, part in row["strength"].items():
            means.setdefault(name, {})[row["variant"]] = part["by_seed"]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for opponent, by_variant in means.items():
        many = [seeds for seeds in by_variant.values() if len(seeds) > 1]
        free = sum(len(seeds) - 1 for seeds in many)
        if not free:
            continue
        variance = sum(statistics.variance(seeds) * (len(seeds) - 1) for seeds in many) / free
        for variant, seeds in by_variant.items():
            other = beside.get(variant, BASE)
            if other == variant or other not in by_variant:
                continue
            theirs = by_variant[other]
            difference = statistics.fmean(seeds) - statistics.fmean(theirs)
            error = (variance * (1 / len(seeds) + 1 / len(theirs))) ** 0.5
            found.setdefault(variant, {})[opponent] = {
                "beside": other,
                "difference": difference,
                "error": error,
                "beyond": abs(difference) > 2 * error,
            }
    return found


# ---- one training ----


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Attributes:
    seconds: it took.
    cpu_s: seconds of all cores that it took.
    moves: of self-play in it.
    updates: in it.
    fresh: compiling included.
    learned: the learner's own play, and optimiser steps.
    """

    seconds: float
    cpu_s: float
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
        "update_cpu_s": statistics.median(c.cpu_s / c.updates for c in steady) if steady else None,
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
        start, cpu_start = time.monotonic(), time.process_time()
        state, metrics = jax.block_until_ready(learner.run_chunk(state))
        seconds, cpu_s = time.monotonic() - start, time.process_time() - cpu_start
        metrics = {name: float(value) for name, value in jax.device_get(metrics).items()}
        sick = not_finite(metrics)
        chunks.append(
            Chunk(
                seconds,
                cpu_s,
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
    found = {}
    for name in settings.opponents or (list(game.bots)[-1], UNTRAINED):
        if name == UNTRAINED:
            fresh = plain.learner.init(jax.random.key(seed)).params
            opponent = agents.Seat(plain.player, fresh)
        else:
            opponent = agents.Seat(_bot(game, name))
        played = arena.evaluate_paired(
            game,
            agents.Seat(one.player, params),
            opponent,
            settings.pairs,
            seed,
            opening=settings.opening,
            alone=True,
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
        "CPU s/update": "update_cpu_s",
        "compile s": "compile_s",
    }
    tables = (
        (costs, lambda row: [_number(row.get(key)) for key in costs.values()]),
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
    differences = report.get("compared", {})
    if differences:
        heads = [f"% more against {name} than the variant beside it" for name in even]
        parts = lambda row: differences.get(row["variant"], {})  # noqa: E731
        tables += ((heads, lambda row: [difference(parts(row).get(name)) for name in even]),)
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


def difference(part: Mapping[str, Any] | None) -> str:
    """A difference in percent and two standard errors of it."""
    if part is None:
        return ""
    text = f"{100 * part['difference']:+.1f} ± {200 * part['error']:.1f}"
    text += "" if part["beside"] == BASE else f" to {part['beside']}"
    return text + (" *" if part["beyond"] else "")


def _rate(rate: Mapping[str, float] | None) -> str:
    if rate is None:
        return ""
    mean, low, high = (100 * rate[key] for key in ("mean", "low", "high"))
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"
