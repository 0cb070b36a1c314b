"""The stages of a run: the game, the network and the learner of each.

What a curriculum means is `algorithms.curriculum`'s business; here its texts become games, and
games become programs: stages whose sizes are data of one program share it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from algorithms import curriculum, ratings
from algorithms.curriculum import Standing
from algorithms.learner import Learner, TrainState
from algorithms.ratings import Interval
from configs import ConfigError, make_game, schema
from configs.overrides import coerce, parse
from jaxgames import core
from jaxgames.core import Game

_KEY = "curriculum.stages"


def stage_game(config: Any, text: str) -> Game:
    """The game of a stage: presets and options over `config.game`, as searches step it.

    Raises ConfigError for what that game does not know.
    """
    cls = core.game_type(config.game.name)
    known, hints = cls.presets, schema.hints(cls.rules_type)
    options: dict[str, Any] = {}
    for word in text.split():
        name, equals, _ = word.partition("=")
        if not equals:
            if name not in known:
                raise ConfigError(_KEY, f"{text!r}: unknown preset {name!r}"
                                        f"{core.nearest(name, known)}")  # fmt: skip
            options |= known[name]
            continue
        if name not in hints:
            raise ConfigError(_KEY, f"{text!r}: no option {name!r}{core.nearest(name, hints)}")
        (override,) = parse([word])
        options[name] = coerce(override.value, hints[name], f"{_KEY}: {name}", override.quoted)
    if not options:
        raise ConfigError(_KEY, f"{text!r} changes nothing")
    try:
        rules = dataclasses.replace(make_game(config).rules, **options)
    except core.RulesError as error:
        raise ConfigError(_KEY, f"{text!r}: {error}") from None
    return cls(rules=rules).for_search()


class Ladder:
    """The stages of a run with a curriculum.

    Attributes:
      config: of the curriculum.
      games: the game of each stage.
      programs: the game as which each stage is played, earlier ones beside it.

    Raises ConfigError where the stages do not go together.
    """

    def __init__(self, config: Any, kind: Any):
        self.whole, self.config, self.kind = config, config.curriculum, kind
        if not kind.staged:
            raise ConfigError(_KEY, f"the agent {config.agent} has no curriculum")
        if not config.train.eval.every and not self.config.max_updates:
            rule = "set this or curriculum.max_updates, or no stage is ever left"
            raise ConfigError("train.eval.every", rule)
        self.games = tuple(stage_game(config, text) for text in self.config.stages)
        for i, game in enumerate(self.games):
            if (first := self.games.index(game)) < i:
                one, other = (self.config.stages[n] for n in (i, first))
                raise ConfigError(_KEY, f"{one!r} is the same game as {other!r}")
        try:
            self.programs = curriculum.programs(self.games, self.config.hard)
        except ValueError as error:
            raise ConfigError(_KEY, f"they can not be played together ({error})") from None
        shapes = [jax.tree.leaves(kind.shapes(kind.model(g, config))) for g in self.games]
        for text, found in zip(self.config.stages, shapes, strict=True):
            if found != shapes[0]:
                view = " (set muzero.view)" if config.agent == "muzero" else ""
                rule = f"weights of {text!r} have other shapes than those of the first stage{view}"
                raise ConfigError(_KEY, rule)
        for stage in range(len(self.games)):  # what can not be is told before anything runs
            self.learner(stage)
        self._score: Interval | None = None

    @property
    def first(self) -> Standing:
        """Where a run begins."""
        return Standing(stage=self.config.first)

    def learner(self, stage: int) -> Learner:
        """Equal programs have the same one, compiled once."""
        game = self.programs[stage]
        model = self.kind.model(game, self.whole)
        settings = getattr(self.whole, self.kind.section)
        return self.kind.make(game, model, settings, curriculum.Stages(game, self.games))

    def name(self, stage: int) -> str:
        """Of a stage, without blanks."""
        return ",".join(self.config.stages[stage].split())

    def move(self, state: TrainState, old: int, new: int, members: int = 1) -> TrainState:
        """`state` at another stage, in the learner of that stage; of a population all members."""
        mix = self.config.mix(new)
        if self.programs[old] == self.programs[new] and not self.config.hard:
            moved = functools.partial(curriculum.with_mix, mix=mix)
        else:
            moved = functools.partial(curriculum.carry, learner=self.learner(new), mix=mix)
        return (moved if members == 1 else jax.vmap(moved))(state)

    def judge(
        self, standing: dict[str, Any], updates: int, measured: bool
    ) -> tuple[dict[str, Any], str]:
        """As `curriculum.judge`, by what was `measured` just now."""
        score = self._score if measured else None
        at, why = curriculum.judge(self.config, Standing(**standing), updates, score)
        return dataclasses.asdict(at), why

    def measured(self, stage: int, firsts: Sequence[np.ndarray]) -> dict[str, float]:
        """Metrics of an evaluation at `stage`; `firsts` are the shares of first places in the games
        against each opponent. All games count alike."""
        won = sum(float(part.sum()) for part in firsts)
        self._score = score = ratings.wilson(won, sum(part.size for part in firsts))
        name = f"curriculum/winrate/{self.name(stage)}"
        bounds = {name: score.mean, f"{name}/low": score.low, f"{name}/high": score.high}
        return {"curriculum/stage": float(stage), **bounds}

    def metrics(self, stage: int) -> dict[str, float]:
        """For each row of metrics: the present stage and the shares of new games."""
        shares = {
            f"curriculum/share/{self.name(i)}": float(share)
            for i, share in enumerate(self.config.mix(stage))
        }
        return {"curriculum/stage": float(stage), **shares}
