"""The loop around a learner: chunks, metrics, checkpoints, the best bundle.

Nothing in here changes what is learnt, except the end of the learning rate's schedule: the
share of the budget that is spent. With a budget in chunks a run is a function of its
settings and seed, however often it was interrupted; with one in minutes it is not.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import agents, bundle, ratings
from algorithms.checkpoint import Checkpoints
from algorithms.learner import TrainState
from configs import ConfigError, make_game
from experiments import errors, evaluation, evolution, figures, health, run_folder
from experiments.evaluation import Evaluator
from experiments.figures import Position
from experiments.interrupts import Interrupts
from experiments.kinds import KINDS
from experiments.ladder import Ladder
from experiments.progress import Progress
from jaxgames import record

#: Where a run keeps the critic of its best weights, for runs that start from it.
CRITIC = "critic"


class Trainer:
    """One sitting of a run. Raises ConfigError for settings that the game can not meet."""

    folder: run_folder.RunFolder
    interrupts: Interrupts

    def __init__(self, resolved, progress: Progress):
        self.resolved, self.config = resolved, resolved.config
        self.progress = progress
        self.kind = kind = KINDS[self.config.agent]
        self.settings = getattr(self.config, kind.section)
        self.at, self.ladder, self.evolution = Position(), None, None
        try:
            if self.config.curriculum.stages:
                self.ladder = Ladder(self.config, kind)
                self.at.standing = dataclasses.asdict(self.ladder.first)
                for game in self.ladder.games:  # not when a stage is reached
                    for name in self.config.train.eval.opponents:
                        figures.opponent(name, game)
            self._enter()
        except ConfigError:
            raise
        except ValueError as error:
            field, _, rule = str(error).partition(": ")
            own = field.startswith(("network.", f"{kind.network}."))
            key = field if own else f"{kind.section}.{field}"
            raise ConfigError(key, rule) from None
        self.weights = None if self.config.run.resume else self._weights()
        self._began = time.monotonic()
        self._chunk_seconds = 0.0
        self._score: float | None = None
        self._text = "compiling"
        self._rows: collections.deque[dict[str, Any]] = collections.deque(maxlen=health.WINDOW)
        self._lights: list[health.Light] = []

    def _enter(self) -> None:
        """Take the game, and what plays and learns it, of where the run stands."""
        if self.ladder is None:
            # Moves that are forced are no decisions: learners do not see them.
            self.game = make_game(self.config).for_search()
            self.model = self.kind.model(self.game, self.config)
            self.learner = self.kind.make(self.game, self.model, self.settings)
        else:
            stage = self._stage
            self.game, self.learner = self.ladder.games[stage], self.ladder.learner(stage)
            self.model = self.kind.model(self.game, self.config)
        if self.config.population.members > 1:
            numbers = (self.config.population, self.settings.optim, self.config.seed)
            self.evolution = evolution.Evolution(*numbers)
            self.learner = self.evolution.learner(self.learner)
        self.evaluator = Evaluator(self.config, self.kind, self.game, self.model, self._wait)

    @property
    def _stage(self) -> int:
        return self.at.standing["stage"]

    # ---- the loop ----

    def run(self, folder: run_folder.RunFolder) -> dict[str, Any]:
        """Train to the end of the budget; returns the result as JSON values.

        Raises:
          errors.Interrupted: after Ctrl-C, with everything saved.
          errors.NumericsError: NaN or infinity, with everything saved.
          OSError: full disk; what was saved before is untouched.
        """
        self.folder = folder
        with (
            Checkpoints(folder.path / "ckpt", self.config.train.keep) as saved,
            Interrupts(self._first_interrupt, self._second_interrupt) as self.interrupts,
        ):
            state = None
            try:
                state = self.interrupts.run(lambda: self._start(saved))
                while not self._finished():
                    state = self._chunk(state, saved)
                    if self.interrupts.wanted:
                        break
                self._save(state, saved)
                self._leave_if_wanted()
                result = self._final(state)
            except errors.Interrupted:
                folder.status("interrupted", **self._where(state))
                raise
            except BaseException as error:
                _try(lambda error=error: folder.status("failed", message=str(error)))
                raise
            folder.status("finished", **self._where(state), result=result)
            folder.event("finish")
            return result

    def _start(self, saved: Checkpoints) -> TrainState:
        key = jax.random.key(self.config.seed)
        steps = saved.steps()
        if not steps:  # a resumed run may have been killed before its first checkpoint
            self.folder.rewind(0)
            return self._begin(key)
        step = self.config.run.step
        if self.ladder is not None:  # what is restored has the shapes of its stage
            self.at = Position(**saved.meta(step)["position"])
            stood = (self.at.standing or {}).get("stage", -1)
            if not 0 <= stood < len(self.ladder.games):
                rule = "the checkpoint is of a stage beyond these" if stood >= 0 else (
                    "the run began without a curriculum")  # fmt: skip
                raise ConfigError("curriculum.stages", rule)
            self._enter()
        state, meta = saved.restore(jax.eval_shape(self.learner.init, key), step)
        aside = saved.set_aside(meta["step"], self.folder.path / "ckpt.discarded")
        gone = self.folder.rewind(meta["step"])
        with contextlib.suppress(FileNotFoundError):
            self._rows.extend(health.read(self.folder.path))
        self._lights = health.lights(self._rows)  # told before
        self.at = Position(**meta["position"])
        self.folder.event("restore", step=meta["step"], rows_discarded=gone, set_aside=aside)
        self.progress.say(f"resumed {self.folder.path} at update {meta['step']}")
        return state

    def _begin(self, key) -> TrainState:
        """A first state, with the weights of train.start if that is set."""
        weights = self._weights() if self.weights is None else self.weights
        self.weights = None
        if self.ladder is not None:
            weights["mix"] = self.ladder.config.mix(self._stage)
        return self.learner.init(key, **weights)

    def _weights(self) -> dict[str, Any]:
        """What train.start names, as arguments of `Learner.init`; a run brings its critic along.
        Raises ConfigError where it does not fit."""
        spec, judge = self.config.train.start, self.learner.judge
        if not spec:
            return {}
        if spec in self.game.bots:
            raise ConfigError("train.start", f"{spec} is a rule bot and has no weights")
        try:
            found = {"params": self.kind.weights(spec, self.model)}
            if judge is not None and (pathlib.Path(spec) / CRITIC).is_dir():
                found["critic"] = agents.weights(str(pathlib.Path(spec) / CRITIC), judge)
            return found
        except (agents.AgentError, bundle.BundleError) as error:
            rule = str(error).removeprefix("agent: ")
            raise ConfigError("train.start", f"{spec} can not be begun with ({rule})") from None

    def _chunk(self, state: TrainState, saved: Checkpoints) -> TrainState:
        """One chunk and what is due after it."""
        train = self.config.train
        state = self._schedule(state)
        start, first = time.monotonic(), self._chunk_seconds == 0
        before = figures.played(state)
        state, metrics = self._wait(lambda: figures.to_host(self.learner.run_chunk(state)))
        seconds = time.monotonic() - start
        self._chunk_seconds = seconds
        self.at.chunks += 1
        if self.evolution is not None:
            metrics = evolution.of_lead(metrics, self.at.fitness)
        metrics = {name: float(value) for name, value in metrics.items()}
        lead = self._lead(state)
        env_steps, step = int(lead.env_steps), int(lead.updates)
        moves, games = figures.played(state) - before
        pace = {
            "time/chunk": seconds,
            "time/first_chunk": float(first),  # compiling included
            "env/steps_per_s": float(moves / seconds),
            "selfplay/games_per_s": float(games / seconds),
            **figures.machine(self.learner),
        }
        if self.ladder is not None:
            pace |= self.ladder.metrics(self._stage)
        if self.learner.standings is not None:
            pace |= self.learner.standings(lead)
        self._metric("train", step, env_steps, {**metrics, **pace})
        sick = figures.not_finite(metrics)
        self._score = None
        if self.evolution is not None and not sick:
            state = self._evolve(state)
            lead = self._lead(state)
        if not sick and train.eval.every and self.at.chunks % train.eval.every == 0:
            self._score = self._evaluate(lead)
        if self.ladder is not None and not sick:
            state = self._climb(state)
        self._text = figures.summary(lead, {**metrics, **pace}, self.at.best)
        self._tick()
        if sick or self._score is not None or self.at.chunks % train.save_every == 0:
            self._health(step)
        if sick or self.at.chunks % train.save_every == 0:
            self._save(state, saved)
        self.folder.status("running", **self._where(state))
        if sick:
            before = [s for s in saved.steps() if s < step]
            hint = f"; an earlier state is run.step={before[-1]}" if before else ""
            raise errors.NumericsError(
                f"{', '.join(sick)} became NaN or infinite at update {step}; "
                f"the state is saved in {self.folder.path}{hint}"
            )
        return state

    def _final(self, state: TrainState) -> dict[str, Any]:
        """The last evaluation, and the bundle with its measured strength."""
        settings = self.config.train.eval
        if self.evolution is not None:
            self._measure(state)
            state = self._lead(state)
        if settings.every and self.at.chunks % settings.every or self.at.best is None:
            self._evaluate(state)
        result = {
            "run": str(self.folder.path),
            "bundle": str(self.folder.path / "best"),
            "updates": int(state.updates),
            "env_steps": int(state.env_steps),
            "games": int(state.games),
            "minutes": round(self._seconds() / 60, 2),
            "games_per_minute": round(60 * self._games_per_s(), 1),
            "memory_mb": round(figures.memory() / 2**20),
            "evaluations": [],
        }
        if self.learner.members is not None:
            result["league"] = self._members(state)
        if self.ladder is not None:
            result["stage"] = self.ladder.name(self._stage)
        if self.evolution is not None:
            result["population"] = self.evolution.result(state, self.at.fitness)
        if not settings.final_pairs:
            return result
        expected = self.kind.shapes(self.model)
        best = bundle.load(self.folder.path / "best", expected, self.game)
        params = jax.tree.map(jnp.asarray, best.params)
        agent = settings.final_agent
        for name in self.evaluator.opponents:
            self._leave_if_wanted()
            # Deals of their own: the ones before chose the weights.
            seed = self.config.seed + 1
            played = self.evaluator.play(params, agent, name, settings.final_pairs, seed)
            row = {"agent": agent, "opponent": name, **figures.brief(played)}
            result["evaluations"].append(row)
            self.folder.games("final", played.rows())
            self.folder.metric(
                "eval", best.meta["step"], best.meta["env_steps"], {f"eval/final/{name}": row}
            )
            self.progress.say(
                f"{agent} against {name}: {played.winrate} over {played.alone.size} games"
            )
        strength = {"search": dataclasses.asdict(settings.search), "games": result["evaluations"]}
        bundle.save(self.folder.path / "best", best.params, {**best.meta, "strength": strength})
        return result

    # ---- parts of it ----

    def _wait(self, work: Callable[[], Any]) -> Any:
        """`work()`, while signals are seen and the live line goes on."""
        return self.interrupts.run(work, self._tick)

    def _leave_if_wanted(self) -> None:
        if self.interrupts.wanted:
            raise errors.Interrupted(
                f"interrupted; {self.folder.path} is saved, go on with "
                f"run.name={self.folder.name} run.resume=true"
            )

    def _schedule(self, state: TrainState) -> TrainState:
        """Let the learning rate reach its end when the budget is spent.

        From the steps so far, and the share of the budget they took, follows the step at
        which the fall ends.
        """
        share, optim = self._share(), self.settings.optim
        done = int(np.max(state.opt_state.count)) - optim.warmup_steps
        if not self.config.train.decay or optim.decay_steps or share <= 0 or done <= 0:
            return state
        end = jnp.full_like(state.hyper["decay_steps"], max(done / share, 1.0))
        hyper = {**state.hyper, "decay_steps": end}
        return dataclasses.replace(state, hyper=hyper)

    def _share(self) -> float:
        """How much of the budget is spent, 0..1."""
        train = self.config.train
        by_time = self._seconds() / (60 * train.minutes) if train.minutes else 0.0
        by_count = self.at.chunks / train.chunks if train.chunks else 0.0
        return min(max(by_time, by_count), 1.0)

    def _finished(self) -> bool:
        train = self.config.train
        if train.chunks and self.at.chunks >= train.chunks:
            return True
        # Half a chunk early or late: on time on average.
        left = 60 * train.minutes - self._seconds()
        return bool(train.minutes) and left < self._chunk_seconds / 2

    def _seconds(self) -> float:
        return self.at.seconds + time.monotonic() - self._began

    def _evaluate(self, state: TrainState) -> float:
        """Play the opponents; returns the win rate against the first, and keeps best/."""
        step, env_steps = int(state.updates), int(state.env_steps)
        start = time.monotonic()
        found = self.evaluator.measure(state.params)
        for one in found.values():
            self.folder.games(str(step), one.rows())
        if shown := self.evaluator.games(state.params, step):
            record.write(self.folder.path / "games" / f"{step}.jsonl", shown)
        values = evaluation.told(found)
        if self.ladder is not None:
            values |= self.ladder.measured(self._stage, [one.alone for one in found.values()])
        if self.config.train.eval.rated:
            former = [] if self.learner.members is None else self.learner.members(state)
            values |= self.evaluator.ratings(state.params, former)
        values["time/eval"] = time.monotonic() - start
        self._metric("eval", step, env_steps, values)
        texts = ", ".join(f"{name} {one.winrate}" for name, one in found.items())
        agent = self.config.train.eval.agent
        self.progress.say(f"update {step}: {agent} against {texts}", **values)
        first = next(iter(found.values()))
        if figures.is_better(first.winrate, self.at.best):
            best = self.at.best
            self._bundle(state, first.winrate, first.alone.size)
            if best is None or first.winrate.mean >= best["mean"]:
                best = vars(first.winrate)
            self.at.best = dict(best)
        return first.winrate.mean

    def _lead(self, state: TrainState) -> TrainState:
        """The fittest of a population, without its games and replay; else the learner itself."""
        if self.evolution is None:
            return state
        return evolution.lead(state, self.at.fitness)

    def _measure(self, state: TrainState) -> None:
        """Every member's fitness, if a chunk was trained since it was last measured."""
        if self.at.measured == self.at.chunks:
            return
        pairs = self.config.population.pairs
        rates = lambda params, seed: self.evaluator.fitness(params, pairs, seed)  # noqa: E731
        self.at.fitness = self.evolution.measure(state, rates, self.at.chunks)
        self.at.measured = self.at.chunks

    def _evolve(self, state: TrainState) -> TrainState:
        """The next generation of a population, when it is due."""
        if self.at.chunks % self.config.population.every:
            return state
        start = time.monotonic()
        self._measure(state)
        fitness = self.at.fitness
        state, generation = self.evolution.breed(state, fitness, self.at.chunks)
        lead = self._lead(state)
        step, env_steps = int(lead.updates), int(lead.env_steps)
        values = evolution.told(fitness, generation)
        values["time/population"] = time.monotonic() - start
        self._metric("event", step, env_steps, values)
        self.folder.event("generation", step=step, **evolution.event(fitness, generation))
        return state

    def _climb(self, state: TrainState) -> TrainState:
        """What the last chunk means for the curriculum; at another stage the weights that were
        promoted are left as a bundle, and what they are measured by begins anew. A population
        climbs as its fittest member does."""
        lead = self._lead(state)
        old, step = self.ladder.name(self._stage), int(lead.updates)
        now, why = self.ladder.judge(self.at.standing, step, self._score is not None)
        before, self.at.standing = self._stage, now
        if not why:
            return state
        new = self.ladder.name(self._stage)
        if why != "demoted":
            meta = self._meta(step=step, env_steps=int(lead.env_steps), stage=old)
            bundle.save(self.folder.path / "stages" / str(before), lead.params, meta)
        self.folder.event("stage", step=step, was=old, stage=new, why=why)
        self.progress.say(f"update {step}: {why} from {old} to {new}")
        self._enter()
        self.at.best, self.at.measured, self._chunk_seconds = None, 0, 0.0
        members = self.config.population.members
        return self._wait(lambda: self.ladder.move(state, before, self._stage, members))

    def _bundle(self, state: TrainState, rate: ratings.Interval, games: int) -> None:
        strength = {
            "opponent": next(iter(self.evaluator.opponents)),
            "agent": self.config.train.eval.agent,
            "games": games,
            **vars(rate),
        }
        moment = {"step": int(state.updates), "env_steps": int(state.env_steps)}
        meta = self._meta(**moment, strength=strength)
        bundle.save(self.folder.path / "best", state.params, meta)
        if (judge := self.learner.judge) is not None:
            meta = self._meta(**moment) | {"agent": CRITIC, "network": vars(judge.config)}
            bundle.save(self.folder.path / CRITIC, state.critic.params, meta)

    def _members(self, state: TrainState) -> list[str]:
        """The learner's former selves as bundles league/UPDATES, beside those left earlier."""
        folder, members = self.folder.path / "league", self.learner.members(state)
        for updates, params in members:
            bundle.save(folder / str(updates), params, self._meta(step=updates))
        return [str(folder / str(updates)) for updates, _ in members]

    def _meta(self, **more: Any) -> dict[str, Any]:
        return bundle.describe(
            self.game,
            agent=self.config.agent,
            network=getattr(self.config, self.kind.network),
            run=self.folder.name,
            seed=self.config.seed,
            commit=run_folder.commit(),
            **self.kind.about(self.config, self.model),
            **more,
        )

    def _save(self, state: TrainState, saved: Checkpoints) -> None:
        """Write a checkpoint, unless this step has one."""
        lead = self._lead(state)
        start, step = time.monotonic(), int(lead.updates)
        if step in saved.steps():
            return
        position = dataclasses.replace(self.at, seconds=round(self._seconds(), 3))
        meta = {
            "position": dataclasses.asdict(position),
            "config": self.resolved.flat(),
            "preset": self.resolved.preset,
            "game": self.game.id,
            "game_version": self.game.version,
            "commit": run_folder.commit(),
            "versions": run_folder.versions(),
        }
        saved.save(step, state, meta, self._score)
        values = {"time/ckpt": time.monotonic() - start}
        self.folder.metric("event", step, int(lead.env_steps), values)

    def _where(self, state: TrainState | None) -> dict[str, Any]:
        if state is None:
            return {}
        state = self._lead(state)
        return {
            "step": int(state.updates),
            "env_steps": int(state.env_steps),
            "chunks": self.at.chunks,
            "share": round(self._share(), 4),
            "minutes": round(self._seconds() / 60, 2),
            "best": self.at.best,
            **({"stage": self.ladder.name(self._stage)} if self.ladder is not None else {}),
            "lights": [dataclasses.asdict(light) for light in self._lights],
        }

    def _metric(self, kind: str, step: int, env_steps: int, values: dict[str, Any]) -> None:
        """A row of metrics, kept for the health lights."""
        self.folder.metric(kind, step, env_steps, values)
        self._rows.append({"step": step, "kind": kind, **values})

    def _health(self, step: int) -> None:
        """Judge the last rows; lights that changed become events, and warnings are shown."""
        before = health.levels(self._lights)
        self._lights = health.lights(self._rows)
        for light in health.changes(self._lights, before):
            was = before.get(light.name, "ok")
            self.folder.event("light", step=step, was=was, **dataclasses.asdict(light))
            if light.level != "ok":
                self.progress.say(f"{light.level}: {light.name}: {light.text}, see {light.look}")

    def _games_per_s(self) -> float:
        """Over the last chunks that no compilation slowed, learning included."""
        rows = [row for row in self._rows if not row.get("time/first_chunk", 1.0)]
        games = sum(row["selfplay/games_per_s"] * row["time/chunk"] for row in rows)
        return games / max(sum(row["time/chunk"] for row in rows), 1e-9)

    def _tick(self) -> None:
        self.progress.update(self._share(), self._text, chunks=self.at.chunks)

    def _first_interrupt(self) -> None:
        self.progress.say("finishing the chunk and saving; once more to stop now")

    def _second_interrupt(self) -> None:
        self.progress.stop()  # the process ends without unwinding
        _try(lambda: self.folder.status("interrupted", message="stopped at once"))


def _try(action: Callable[[], None]) -> None:
    """For last words on a disk that may be full."""
    try:
        action()
    except OSError:
        pass
