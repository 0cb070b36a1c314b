"""Evaluation during training: games of what is trained against the opponents of its run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from algorithms import agents, arena
from experiments import figures, pool, showcase
from jaxgames import record
from jaxgames.core import Game

#: Does some work and returns what came of it, however it waits meanwhile.
Wait = Callable[[Callable[[], Any]], Any]


class Evaluator:
    """Who plays, and against whom, at one stage of a run.

    Attributes:
      settings: `train.eval`.
      game: of the stage.
      agents: "network" and "search", of what is trained.
      opponents: by name; the first one decides which weights are best.
      wait: through which all games are played.
    """

    def __init__(self, config: Any, kind: Any, game: Game, model: Any, wait: Wait):
        self.settings, self.seed = config.train.eval, config.seed
        self.game, self.wait = game, wait
        self.agents = kind.players(model, config)
        self.opponents = {n: figures.opponent(n, game) for n in self.settings.opponents}

    def play(
        self, params: Any, agent: str, opponent: str, pairs: int, seed: int
    ) -> arena.Evaluation:
        """An agent of `params` against an opponent."""
        seat, other = agents.Seat(self.agents[agent], params), self.opponents[opponent]
        opening = self.settings.opening
        return self.wait(
            lambda: arena.evaluate_paired(self.game, seat, other, pairs, seed, opening=opening)
        )

    def measure(self, params: Any) -> dict[str, arena.Evaluation]:
        """The evaluation that is due every so many chunks, by opponent."""
        agent, pairs = self.settings.agent, self.settings.pairs
        return {name: self.play(params, agent, name, pairs, self.seed) for name in self.opponents}

    def fitness(self, params: Any, pairs: int, seed: int) -> list[float]:
        """Win rates against all opponents."""
        agent = self.settings.agent
        return [self.play(params, agent, n, pairs, seed).winrate.mean for n in self.opponents]

    def games(self, params: Any, step: int) -> list[record.Record]:
        """`settings.games` games against the first opponent for people to look at."""
        name, game = self.settings.agent, self.game
        other = next(iter(self.opponents))
        mine = (agents.Seat(self.agents[name], params), name)
        shown = []
        for number in range(self.settings.games):
            held = number % game.num_teams  # a seat of each team in turn
            who = [mine if t == held else (self.opponents[other], other) for t in game.team_of]
            seats, names = zip(*who, strict=True)
            seed = (self.seed + 1009 * step + number) % 2**32
            play = functools.partial(showcase.play, game, seats, names, seed, {"step": step})
            shown.append(self.wait(play))
        return shown

    def ratings(self, params: Any, former: Sequence[tuple[int, Any]]) -> dict[str, float]:
        """Of `params` among `former` selves and the opponents, see `pool`."""
        settings = self.settings
        seats = pool.seats(self.agents[settings.agent], params, former, settings.rated)
        numbers = (settings.rated_pairs, self.seed, settings.opening)
        return self.wait(lambda: pool.rate(self.game, self.opponents | seats, *numbers))


def told(evaluations: Mapping[str, arena.Evaluation]) -> dict[str, float]:
    """Metrics of evaluations by opponent."""
    values: dict[str, float] = {}
    for name, one in evaluations.items():
        values[f"eval/winrate/{name}"] = one.winrate.mean
        values[f"eval/winrate/{name}/low"] = one.winrate.low
        values[f"eval/winrate/{name}/high"] = one.winrate.high
        values[f"eval/games/{name}"] = one.alone.size
    return values
