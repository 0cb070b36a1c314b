"""The arena: many games at once between any agents, and paired evaluation.

Letters: G games, P seats, T teams, N groups, L seatings per group.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import ratings
from algorithms.agents import Agent, Seat
from jaxgames.core import Array, Game, State

#: Games of one table; more are played in rounds.
MAX_GAMES = 8192
#: Progress is reported about this often, in seconds.
REPORT_S = 0.5


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Table:
    """Games in play. states [G], returns float32[G, P], steps int32[G]."""

    states: State
    returns: Array
    steps: Array


@dataclasses.dataclass(frozen=True)
class Results:
    """Finished games, on the host.

    Attributes:
      returns: float32[G, P], sum of rewards per seat.
      steps: int32[G], calls of `step`.
      truncated: bool[G], ended by a cap on the length.
      illegal: bool[G], ended by an illegal action.
    """

    returns: np.ndarray
    steps: np.ndarray
    truncated: np.ndarray
    illegal: np.ndarray


def play_games(
    game: Game,
    seats: Sequence[Seat],
    assignment: np.ndarray,
    deal_keys: Array,
    play_keys: Array,
    capacity: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Plays G games to the end.

    In every tick each agent acts on up to `capacity` unfinished games in which it is to
    move, lowest index first: games end in order, fresh ones take their place, and batches
    stay full until the last few games. No agent runs on rows that are not its own.

    Args:
      seats: the distinct agents.
      assignment: int[G, P], index into `seats` of the agent of every seat.
      deal_keys: key[G], all chance of a game; equal keys deal equal cards.
      play_keys: key[G], the agents' own chance.
      capacity: rows per agent and tick; None asks the agents.
      progress: called with (finished games, G) between ticks.
    """
    assignment = np.asarray(assignment, np.int32)
    games = assignment.shape[0]
    if assignment.shape != (games, game.num_players) or games == 0:
        raise ValueError(f"assignment: want int[G, {game.num_players}], got {assignment.shape}")
    if assignment.min() < 0 or assignment.max() >= len(seats):
        raise ValueError(f"assignment: entries within 0..{len(seats) - 1}")
    if capacity is None:
        capacity = min(seat.agent.capacity for seat in seats)
    if capacity < 1:
        raise ValueError(f"capacity: at least 1, got {capacity}")
    agents = tuple(seat.agent for seat in seats)
    params = tuple(seat.params for seat in seats)
    table, chance_keys = _deal(game, deal_keys)
    ticks, finished = 1, 0
    while finished < games:
        start = time.monotonic()
        table, done = _advance(
            table,
            params,
            jnp.asarray(assignment),
            chance_keys,
            play_keys,
            jnp.int32(ticks),
            agents=agents,
            capacity=min(capacity, games),
        )
        finished = int(done)
        if progress is not None:
            progress(finished, games)
        if time.monotonic() - start < REPORT_S / 2:
            ticks *= 2
    states, returns, steps = jax.device_get((table.states, table.returns, table.steps))
    if not np.all(states.terminated | states.truncated):
        raise RuntimeError(f"{game.id}: a game went on after max_steps={game.max_steps}")
    return Results(returns, steps, states.truncated, states.illegal)


@functools.partial(jax.jit, static_argnames="game")
def _deal(game: Game, keys: Array) -> tuple[Table, Array]:
    """First positions and the keys of later chance, key[G]."""

    def deal(key):
        first, chance = jax.random.split(key)
        return game.init(first), chance

    games = keys.shape[0]
    states, chance = jax.vmap(deal)(keys)
    table = Table(
        states=states,
        returns=jnp.zeros((games, game.num_players), jnp.float32),
        steps=jnp.zeros(games, jnp.int32),
    )
    return table, chance


@functools.partial(jax.jit, static_argnames=("agents", "capacity"), donate_argnames=("table",))
def _advance(
    table: Table,
    params: tuple[Any, ...],
    assignment: Array,
    chance_keys: Array,
    play_keys: Array,
    ticks: Array,
    *,
    agents: tuple[Agent, ...],
    capacity: int,
) -> tuple[Table, Array]:
    """Up to `ticks` ticks; also returns the number of finished games, int32[]."""
    game: Game = table.states.game
    games = assignment.shape[0]

    def over(table: Table) -> Array:
        return table.states.done | (table.steps >= game.max_steps)

    def turn(i: int, table: Table) -> Table:
        mover = table.states.current_player
        owner = jnp.take_along_axis(assignment, mover[:, None], axis=1)[:, 0]
        wanted = ~over(table) & (owner == i)
        rows = jnp.nonzero(wanted, size=capacity, fill_value=games)[0]
        source = jnp.minimum(rows, games - 1)  # padding repeats the last game, unused
        states = jax.tree.map(lambda x: x[source], table.states)
        steps = table.steps[source]
        keys = jax.vmap(jax.random.fold_in)(play_keys[source], steps)
        # Only the action is conditional: a branch that carried the table would copy it.
        action = jax.lax.cond(
            jnp.any(wanted),
            lambda: agents[i].act(params[i], keys, states, states.current_player),
            lambda: jnp.zeros(capacity, jnp.int32),
        )
        chance = jax.vmap(jax.random.fold_in)(chance_keys[source], steps)
        states = jax.vmap(game.step)(states, action, chance)

        def put(whole, part):
            return whole.at[rows].set(part, mode="drop")

        return Table(
            states=jax.tree.map(put, table.states, states),
            returns=table.returns.at[rows].add(states.rewards, mode="drop"),
            steps=put(table.steps, steps + 1),
        )

    def tick(carry):
        count, table = carry
        for i in range(len(agents)):
            table = turn(i, table)
        return count + 1, table

    def going(carry):
        count, table = carry
        return (count < ticks) & ~jnp.all(over(table))

    _, table = jax.lax.while_loop(going, tick, (jnp.int32(0), table))
    return table, jnp.sum(over(table))


# ---- paired evaluation ----


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """How two agents are compared.

    Attributes:
      agent: spec of the agent under test (`agents.from_spec`); empty: the best bundle of the
        run that `run.name` names, else the packaged one, else the strongest bot.
      opponent: spec of the agent it is measured against; empty: the strongest bot.
      pairs: deals (groups); each is played once per seating.
      capacity: rows per agent and tick; 0 leaves it to the agents.
      bootstrap: resamples of the group bootstrap.
      sprt: stop early, once a sequential test decides.
      out: file for the report as JSON; empty: none.
      rows: file for one JSON line per game; empty: none.
    """

    agent: str = ""
    opponent: str = ""
    pairs: int = 500
    capacity: int = 0
    bootstrap: int = 2000
    sprt: ratings.SprtConfig = ratings.SprtConfig()
    out: str = ""
    rows: str = ""

    def __post_init__(self):
        for field, least in (("pairs", 1), ("capacity", 0), ("bootstrap", 100)):
            if getattr(self, field) < least:
                raise ValueError(f"{field}: must be at least {least}, got {getattr(self, field)}")


def seatings(num_teams: int) -> np.ndarray:
    """int[L, T]: every way to give each team to agent 0 or 1, none of them everywhere.

    Two teams: (0, 1) and (1, 0). Three: the orders of (0, 1, 1), then of (0, 0, 1). Both
    agents hold every team equally often, so equal strength means a mean score of 1/2.
    """
    if num_teams < 2:
        raise ValueError(f"seatings: a paired evaluation needs two teams, got {num_teams}")
    given = [s for s in itertools.product((0, 1), repeat=num_teams) if 0 < sum(s) < num_teams]
    return np.array(sorted(given, key=lambda s: (s.count(0), s)))


def first_place(returns: np.ndarray, team_of: Sequence[int]) -> np.ndarray:
    """float64[G, T]: each team's share of the first place, ties shared equally."""
    teams = np.asarray(team_of)
    first_seat = [int(np.flatnonzero(teams == t)[0]) for t in range(teams.max() + 1)]
    by_team = np.asarray(returns, np.float64)[:, first_seat]
    best = np.isclose(by_team, by_team.max(axis=1, keepdims=True), rtol=0, atol=1e-6)
    return best / best.sum(axis=1, keepdims=True)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Agent A against agent B over N groups of L seatings of the same deal.

    Attributes:
      game: the game.
      names: of A and B.
      seed: of the deals and of the agents' chance.
      lineup: int[L, T], the agent (0 = A) that holds each team.
      places: float64[N, L, T], each team's share of the first place.
      results: of the N * L games, group by group.
      resamples: of the bootstrap.
      seconds: wall time of the games, compilation included.
      sprt: the test's settings, its verdict and log likelihood ratio; None without it.
    """

    game: Game
    names: tuple[str, str]
    seed: int
    lineup: np.ndarray
    places: np.ndarray
    results: Results
    resamples: int
    seconds: float
    sprt: dict[str, Any] | None = None

    @property
    def groups(self) -> int:
        return self.places.shape[0]

    @property
    def games(self) -> int:
        return self.places.shape[0] * self.places.shape[1]

    @property
    def scores(self) -> np.ndarray:
        """float64[N, L], A's score in every game: the places of its teams together."""
        return np.sum(self.places * (self.lineup == 0), axis=-1)

    @functools.cached_property
    def winrate(self) -> ratings.Interval:
        """A's mean score with its Wilson 95 % interval over games (a draw is 1/2)."""
        return ratings.wilson(float(self.scores.sum()), self.games)

    @functools.cached_property
    def winrate_groups(self) -> ratings.Interval:
        """The same mean with a 95 % bootstrap interval over groups."""
        return ratings.bootstrap(self.scores.mean(axis=1), self.seed, self.resamples)

    @property
    def metrics(self) -> dict[str, ratings.Interval]:
        """What a gate can look at."""
        return {"winrate": self.winrate, "winrate_groups": self.winrate_groups}

    @property
    def draws(self) -> float:
        """Share of games whose first place is shared."""
        return float(np.mean(self.places.max(axis=-1) < 1))

    def by_lineup(self) -> list[dict[str, Any]]:
        """A's score by the number of teams it holds; `even` is that of equal strength."""
        held = (self.lineup == 0).sum(axis=1)
        rows = []
        for teams in np.unique(held):
            scores = self.scores[:, held == teams]
            interval = ratings.wilson(float(scores.sum()), scores.size)
            even = float(teams) / self.lineup.shape[1]
            rows.append(dict(teams=int(teams), games=scores.size, even=even, **vars(interval)))
        return rows

    def by_team(self) -> list[dict[str, Any]]:
        """Share of first places of every team (and so seat) in A's and in B's hands."""
        rows = []
        for team in range(self.lineup.shape[1]):
            seats = [s for s, t in enumerate(self.game.team_of) if t == team]
            row: dict[str, Any] = dict(team=team, seats=seats)
            for agent, name in enumerate("ab"):
                places = self.places[:, self.lineup[:, team] == agent, team]
                row[name] = vars(ratings.wilson(float(places.sum()), places.size))
                row[f"{name}_games"] = places.size
            rows.append(row)
        return rows

    def rows(self) -> list[dict[str, Any]]:
        """One JSON object per game, for `eval/*.jsonl`."""
        team_of, rows = np.asarray(self.game.team_of), []
        for g in range(self.games):
            group, seating = divmod(g, len(self.lineup))
            rows.append(
                dict(
                    game=self.game.id,
                    seed=self.seed,
                    group=group,
                    seating=seating,
                    seats=[self.names[i] for i in self.lineup[seating][team_of]],
                    returns=self.results.returns[g].tolist(),
                    score=float(self.scores[group, seating]),
                    steps=int(self.results.steps[g]),
                    truncated=bool(self.results.truncated[g]),
                    illegal=bool(self.results.illegal[g]),
                )
            )
        return rows

    def to_json(self) -> dict[str, Any]:
        """The whole result but the single games, as plain JSON values."""
        steps = self.results.steps
        return dict(
            game=dict(
                id=self.game.id,
                version=self.game.version,
                rules=dataclasses.asdict(self.game.rules),
            ),
            agent=self.names[0],
            opponent=self.names[1],
            seed=self.seed,
            groups=self.groups,
            games=self.games,
            winrate=vars(self.winrate),
            winrate_groups=vars(self.winrate_groups),
            elo={k: ratings.elo(v) for k, v in vars(self.winrate).items()},
            draws=self.draws,
            lineups=self.by_lineup(),
            teams=self.by_team(),
            steps=dict(mean=float(steps.mean()), max=int(steps.max())),
            truncated=int(self.results.truncated.sum()),
            illegal=int(self.results.illegal.sum()),
            seconds=round(self.seconds, 3),
            sprt=self.sprt,
        )


def evaluate_paired(
    game: Game,
    a: Seat,
    b: Seat,
    pairs: int,
    seed: int,
    *,
    sprt: ratings.SprtConfig | None = None,
    capacity: int | None = None,
    resamples: int = 2000,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """A against B on `pairs` deals, each played once per seating (see `seatings`).

    The cards of deal n follow from (seed, n) alone, and so do the draws of agents whose rows
    are independent (`Agent`): more pairs prolong a shorter run. A search draws for its whole
    batch, so its games also depend on which others are played beside them.
    With `sprt.enabled` the games stop at the first look that decides.

    Raises:
      ValueError: no pairs, or a game of one team.
    """
    if pairs < 1:
        raise ValueError(f"pairs: at least 1, got {pairs}")
    testing = sprt is not None and sprt.enabled
    lineup = seatings(game.num_teams)
    size = len(lineup)
    most = max(MAX_GAMES // size, 1)
    # Rounds of one shape, compiled once; a test never looks before `look` groups are there.
    look = min(sprt.look, most, pairs) if testing else most
    rounds = -(-pairs // look)
    per_round = look if testing else -(-pairs // rounds)
    assignment = np.tile(lineup[:, np.asarray(game.team_of)], (per_round, 1))
    parts: list[Results] = []
    verdict, start = None, time.monotonic()
    for r in range(rounds):
        report = None
        if progress is not None:

            def report(done: int, _, before: int = r * per_round * size) -> None:
                progress(min(before + done, pairs * size), pairs * size)

        groups = np.arange(r * per_round, (r + 1) * per_round)
        deal_keys, play_keys = _keys(seed, groups, size)
        part = play_games(game, (a, b), assignment, deal_keys, play_keys, capacity, report)
        parts.append(part)
        if testing:
            scores = _places(game, parts, size)[:pairs]
            means = np.sum(scores * (lineup == 0), axis=-1).mean(axis=1)
            verdict = ratings.sprt(means, sprt)
            ratio = ratings.log_likelihood_ratio(means, sprt)
            if verdict != "undecided":
                break
    places = _places(game, parts, size)[:pairs]
    count = places.shape[0] * size
    results = Results(*(np.concatenate(x)[:count] for x in zip(*map(_fields, parts), strict=True)))
    test = None
    if testing:
        test = dict(dataclasses.asdict(sprt), verdict=verdict, ratio=ratio, bounds=sprt.bounds)
    return Evaluation(
        game=game,
        names=(a.agent.name, b.agent.name),
        seed=seed,
        lineup=lineup,
        places=places,
        results=results,
        resamples=resamples,
        seconds=time.monotonic() - start,
        sprt=test,
    )


def _fields(results: Results) -> tuple[np.ndarray, ...]:
    return tuple(getattr(results, f.name) for f in dataclasses.fields(results))


def _places(game: Game, parts: Sequence[Results], size: int) -> np.ndarray:
    """float64[N, L, T] of all parts."""
    returns = np.concatenate([part.returns for part in parts])
    return first_place(returns, game.team_of).reshape(-1, size, game.num_teams)


def _keys(seed: int, groups: np.ndarray, size: int) -> tuple[Array, Array]:
    """(deal_keys, play_keys), key[len(groups) * size]: one deal per group, own play per game.

    The root differs from that of training with the same seed.
    """
    root = jax.random.fold_in(jax.random.key(seed), zlib.crc32(b"evaluate"))
    deal, play = jax.random.split(root)
    games = (groups[:, None] * size + np.arange(size)).ravel()
    fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
    return fold(deal, jnp.asarray(np.repeat(groups, size))), fold(play, jnp.asarray(games))
