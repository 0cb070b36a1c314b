"""`jaxgames tournament`: every two of some agents on paired deals, or every three in games in
which three play for themselves; payoffs and ratings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from algorithms import agents, arena, free_for_all, ratings
from configs import ConfigError, Resolved
from experiments import errors
from experiments.commands.evaluate import device, forms_of, part_of, seat, write
from experiments.device import select, use_compile_cache
from experiments.progress import Progress
from experiments.shell import as_typed
from jaxgames.core import Game

#: The agent that gives ratings their zero.
ANCHOR = "random"
Meetings = Mapping[tuple[int, int], arena.Evaluation]


def main(call) -> int:
    config = call.resolved.config
    select(config.device)
    use_compile_cache()
    with Progress(call.flags) as progress:

        def told(done: int, total: int) -> None:
            progress.update(done / total, f"{done} of {total} games", done=done, total=total)

        report = run(call.resolved, told)
    report["command"] = as_typed(("jaxgames", call.command, *call.configs, *call.overrides))
    if config.tournament.out:
        write(config.tournament.out, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    if call.flags.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        show(report)
    if illegal := sum(form["illegal"] for form in report["forms"].values()):
        raise errors.RunError(f"{illegal} games ended by an illegal move")
    return errors.DONE


def run(resolved: Resolved, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Plays the tournament that the settings ask for; its report as JSON values.

    Raises:
      ConfigError: an agent or a form that does not exist, or a game of one team.
    """
    config, settings = resolved.config, resolved.config.tournament
    games = forms_of(resolved, "tournament.forms", settings.forms)
    first = next(iter(games.values()))
    if first.num_teams < 2:
        raise ConfigError("game.options", "tournaments need two teams, this game has one")
    specs = settings.agents or (*first.bots, *agents.packaged(first))
    if len(specs) < 2:
        raise ConfigError("tournament.agents", f"at least two, {first.id} comes with {len(specs)}")
    anchor = settings.anchor or (ANCHOR if ANCHOR in specs else specs[0])
    if anchor not in specs:
        raise ConfigError("tournament.anchor", f"one of {list(specs)}, got {anchor!r}")
    pools = {
        name: [seat("tournament.agents", spec, game) for spec in specs]
        for name, game in games.items()
    }
    forms = {}
    for number, (name, game) in enumerate(games.items()):
        play, part = (
            (arena.round_robin, describe) if game.num_teams == 2 else (free_for_all.play, placed)
        )
        played = play(
            game,
            pools[name],
            settings.pairs,
            config.seed,
            opening=settings.opening,
            capacity=settings.capacity or None,
            resamples=settings.bootstrap,
            progress=part_of(progress, number, len(games)),
        )
        forms[name] = part(played, specs.index(anchor), settings.prior)
    pool = next(iter(pools.values()))
    return dict(
        tournament=first.id,
        agents=[s.agent.name for s in pool],
        models=[dict(s.meta) for s in pool],
        anchor=specs.index(anchor),
        seed=config.seed,
        pairs=settings.pairs,
        opening=settings.opening,
        prior=settings.prior,
        forms=forms,
        versions={name: metadata.version(name) for name in ("jaxgames", "jax", "numpy")},
        device=device(),
    )


def describe(meetings: Meetings, anchor: int, prior: float) -> dict[str, Any]:
    """One form's part of the report. Matrices [K][K] have the row's agent against the column's,
    None on the diagonal; payoff and gain are {mean, low, high} with intervals over deals."""
    game = next(iter(meetings.values())).game
    count = 1 + max(j for _, j in meetings)
    scores = [[0.0] * count for _ in range(count)]
    payoff: list[list[Any]] = [[None] * count for _ in range(count)]
    gain: list[list[Any]] = [[None] * count for _ in range(count)]
    for (i, j), met in meetings.items():
        scores[i][j] = float(met.scores.sum())
        scores[j][i] = met.games - scores[i][j]
        payoff[i][j] = vars(met.winrate_groups)
        payoff[j][i] = _turned(payoff[i][j], 1.0)
        if (won := met.gain()) is not None:
            gain[i][j] = {key: won[key] for key in ("mean", "low", "high")}
            gain[j][i] = _turned(gain[i][j], 0.0)
    one = next(iter(meetings.values()))
    return dict(
        game=identity(game),
        model="Bradley-Terry",
        games=one.games,
        ratings=[vars(r) for r in ratings.bradley_terry(scores, anchor, prior)],
        scores=scores,
        payoff=payoff,
        gain=game.return_unit and dict(unit=game.return_unit[0], matrix=gain),
        truncated=sum(int(met.results.truncated.sum()) for met in meetings.values()),
        illegal=sum(int(met.results.illegal.sum()) for met in meetings.values()),
        seconds=round(max(met.seconds for met in meetings.values()), 3),
    )


def placed(met: free_for_all.FreeForAll, anchor: int, prior: float) -> dict[str, Any]:
    """The same of a game of three teams and more: the matrix `above` tells how often the row's
    agent is placed above the column's; `standings` has every agent's shares of the places, of first
    places by team held, and mean return."""
    count = range(len(met.names))
    games = met.games
    return dict(
        game=identity(met.game),
        model="Plackett-Luce",
        games=games,
        ratings=[vars(r) for r in met.ratings(anchor, prior)],
        above=[[None if i == j else vars(met.above(i, j)) for j in count] for i in count],
        standings=[
            dict(
                games=len(met.returns) * int(met.held(i).any(axis=1).sum()),
                places=met.place_shares(i).tolist(),
                first_by_team=met.first_by_team(i).tolist(),
                payoff=vars(met.payoff(i)),
            )
            for i in count
        ],
        even=1 / met.game.num_teams,
        rankings=len(met.rankings),
        truncated=int(met.results.truncated.sum()),
        capped=vars(ratings.wilson(float(met.results.truncated.sum()), games)),
        illegal=int(met.results.illegal.sum()),
        seconds=round(met.seconds, 3),
    )


def identity(game: Game) -> dict[str, Any]:
    """What was played."""
    return dict(id=game.id, version=game.version, rules=dataclasses.asdict(game.rules))


def _turned(interval: Mapping[str, float], total: float) -> dict[str, float]:
    """The same from the other side, where both sides' means sum to `total`."""
    low, high = total - interval["high"], total - interval["low"]
    return dict(mean=total - interval["mean"], low=low, high=high)


def show(report: dict[str, Any]) -> None:
    """Print the report as tables."""
    from rich.console import Console

    # As wide as a table needs to be: a terminal may wrap it, a file keeps it whole.
    console = Console(highlight=False, markup=False, soft_wrap=True, width=1000)
    names = report["agents"]
    for name, form in report["forms"].items():
        rules = ", ".join(f"{k}={v}" for k, v in form["game"]["rules"].items())
        console.print(f"--- {name} --- {form['game']['id']} {form['game']['version']} ({rules})")
        order = sorted(range(len(names)), key=lambda i: -form["ratings"][i]["mean"])
        (_show_pairs if "payoff" in form else _show_places)(console, names, order, form)
        anchor, seconds = names[report["anchor"]], f"{form['seconds']:.1f} s with compilation"
        games = f"{form['games']} games" + (" a meeting" if "payoff" in form else "")
        console.print(
            f"Elo: {anchor} = 0, +-2 sigma; {games}, cut at the cap "
            f"{form['truncated']}, illegal {form['illegal']}, {seconds}"
        )


def _show_pairs(console, names: Sequence[str], order: Sequence[int], form: dict[str, Any]) -> None:
    places = range(1, len(names) + 1)
    head = ["Elo", *(f"% vs {place}" for place in places)]
    cells = _cells(form["payoff"], order, 100, "{:.1f}")
    elo = [_elo(form["ratings"][i]) for i in order]
    _print(console, names, order, head, [[e, *row] for e, row in zip(elo, cells, strict=True)])
    if form["gain"]:
        head = [f"{form['gain']['unit']} vs {place}" for place in places]
        cells = _cells(form["gain"]["matrix"], order, 1, "{:+.2f}")
        _print(console, names, order, head, cells)


def _show_places(console, names: Sequence[str], order: Sequence[int], form: dict[str, Any]) -> None:
    teams = len(form["standings"][0]["places"])
    head = ["Elo (Plackett-Luce)", *(f"place {p + 1}, %" for p in range(teams)), "payoff"]
    head += [f"first as {team}, %" for team in range(teams)]
    rows = []
    for i in order:
        stands = form["standings"][i]
        mean, low, high = (f"{stands['payoff'][k]:+.3f}" for k in ("mean", "low", "high"))
        shares, firsts = (
            [f"{100 * x:.1f}" for x in stands[part]] for part in ("places", "first_by_team")
        )
        rows.append([_elo(form["ratings"][i]), *shares, f"{mean} [{low}, {high}]", *firsts])
    _print(console, names, order, head, rows)
    head = [f"% above {place}" for place in range(1, len(names) + 1)]
    _print(console, names, order, head, _cells(form["above"], order, 100, "{:.1f}"))


def _print(console, names: Sequence[str], order, head: Sequence[str], rows) -> None:
    """A table with a numbered row for each agent, best first."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for title in head:
        table.add_column(title, justify="right")
    for place, (i, row) in enumerate(zip(order, rows, strict=True), 1):
        table.add_row(f"{place} {names[i]}", *row)
    console.print(table)


def _cells(matrix, order, scale: float, form: str) -> list[list[str]]:
    def cell(entry):
        if entry is None:
            return "-"
        mean, low, high = (form.format(scale * entry[k]) for k in ("mean", "low", "high"))
        return f"{mean} [{low}, {high}]"

    return [[cell(matrix[i][j]) for j in order] for i in order]


def _elo(rating: Mapping[str, float]) -> str:
    return f"{rating['mean']:+.0f} [{rating['low']:+.0f}, {rating['high']:+.0f}]"
