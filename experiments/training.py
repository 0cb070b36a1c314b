"""The loop around a learner: chunks, evaluation, metrics, checkpoints, the best bundle.

Nothing in here changes what is learnt, except the end of the learning rate's schedule: the
share of the budget that is spent. With a budget in chunks a run is a function of its
settings and seed, however often it was interrupted; with one in minutes it is not.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
import pathlib
import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import agents, arena, bundle, ratings
from algorithms.checkpoint import Checkpoints
from algorithms.learner import TrainState
from configs import ConfigError, make_game
from experiments import errors, health, run_folder, showcase
from experiments.interrupts import Interrupts
from experiments.kinds import KINDS
from experiments.progress import Progress
from jaxgames import record
from jaxgames.core import Game

#: Where a run keeps the critic of its best weights, for runs that start from it.
CRITIC = "critic"


@dataclasses.dataclass
class Position:
    """Where a run is; saved with each checkpoint.

    Attributes:
      chunks: chunks done.
      seconds: time spent, over all sittings.
      best: win rate of the weights in best/ against the first opponent, and its bounds.
    """

    chunks: int = 0
    seconds: float = 0.0
    best: dict[str, float] | None = None


class Trainer:
    """One sitting of a run. Raises ConfigError for settings that the game can not meet."""

    folder: run_folder.RunFolder

    def __init__(self, resolved, progress: Progress):
        self.resolved, self.config = resolved, resolved.config
        self.progress = progress
        self.kind = kind = KINDS[self.config.agent]
        self.settings = getattr(self.config, kind.section)
        # Moves that are forced are no decisions: learners do not see them.
        self.game = make_game(self.config).for_search()
        try:
            self.model = kind.model(self.game, self.config)
            self.learner = kind.make(self.game, self.model, self.settings)
        except ValueError as error:
            field, _, rule = str(error).partition(": ")
            own = field.startswith(("network.", f"{kind.network}."))
            key = field if own else f"{kind.section}.{field}"
            raise ConfigError(key, rule) from None
        self.weights = None if self.config.run.resume else self._weights()
        self.at = Position()
        self.agents = kind.players(self.model, self.config)
        self.opponents = {
            name: _opponent(name, self.game) for name in self.config.train.eval.opponents
        }
        self._began = time.monotonic()
        self._chunk_seconds = 0.0
        self._score: float | None = None
        self._text = "compiling"
        self._rows: collections.deque[dict[str, Any]] = collections.deque(maxlen=health.WINDOW)
        self._lights: list[health.Light] = []

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
            Interrupts(self._first_interrupt, self._second_interrupt) as interrupts,
        ):
            state = None
            try:
                state = interrupts.run(lambda: self._start(saved))
                while not self._finished():
                    state = self._chunk(state, saved, interrupts)
                    if interrupts.wanted:
                        break
                self._save(state, saved)
                self._leave_if_wanted(interrupts)
                result = self._final(state, interrupts)
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
        return self.learner.init(key, **weights)

    def _weights(self) -> dict[str, Any]:
        """What train.start names, as arguments of `Learner.init`; a run brings its critic along.
        Raises ConfigError where it does not fit."""
        spec, judge = self.config.train.start, self.learner.judge
        if not spec:
            return {}
        try:
            found = {"params": self.kind.weights(spec, self.model)}
            if judge is not None and (pathlib.Path(spec) / CRITIC).is_dir():
                found["critic"] = agents.weights(str(pathlib.Path(spec) / CRITIC), judge)
            return found
        except (agents.AgentError, bundle.BundleError) as error:
            rule = str(error).removeprefix("agent: ")
            raise ConfigError("train.start", f"{spec} can not be begun with ({rule})") from None

    def _chunk(self, state: TrainState, saved: Checkpoints, interrupts) -> TrainState:
        """One chunk and what is due after it."""
        train = self.config.train
        state = self._schedule(state)
        start, first = time.monotonic(), self._chunk_seconds == 0
        moves, games = int(state.env_steps), int(state.games)
        state, metrics = interrupts.run(lambda: _to_host(self.learner.run_chunk(state)), self._tick)
        seconds = time.monotonic() - start
        self._chunk_seconds = seconds
        self.at.chunks += 1
        env_steps, step = int(state.env_steps), int(state.updates)
        pace = {
            "time/chunk": seconds,
            "time/first_chunk": float(first),  # compiling included
            "env/steps_per_s": (env_steps - moves) / seconds,
            "selfplay/games_per_s": (int(state.games) - games) / seconds,
            "sys/rss": _memory(),
        }
        self._metric("train", step, env_steps, {**metrics, **pace})
        sick = not_finite(metrics)
        self._score = None
        if not sick and train.eval.every and self.at.chunks % train.eval.every == 0:
            self._score = self._evaluate(state, interrupts)
        self._text = summary(state, {**metrics, **pace}, self.at.best)
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

    def _final(self, state: TrainState, interrupts) -> dict[str, Any]:
        """The last evaluation, and the bundle with its measured strength."""
        settings = self.config.train.eval
        if settings.every and self.at.chunks % settings.every or self.at.best is None:
            self._evaluate(state, interrupts)
        result = {
            "run": str(self.folder.path),
            "bundle": str(self.folder.path / "best"),
            "updates": int(state.updates),
            "env_steps": int(state.env_steps),
            "games": int(state.games),
            "minutes": round(self._seconds() / 60, 2),
            "games_per_minute": round(60 * self._games_per_s(), 1),
            "memory_mb": round(_memory() / 2**20),
            "evaluations": [],
        }
        if self.learner.members is not None:
            result["league"] = self._members(state)
        if not settings.final_pairs:
            return result
        expected = self.kind.shapes(self.model)
        best = bundle.load(self.folder.path / "best", expected, self.game)
        params = jax.tree.map(jnp.asarray, best.params)
        agent = settings.final_agent
        for name in self.opponents:
            self._leave_if_wanted(interrupts)
            # Deals of their own: the ones before chose the weights.
            evaluation = self._play(
                params, agent, name, settings.final_pairs, self.config.seed + 1, interrupts
            )
            row = {"agent": agent, "opponent": name, **brief(evaluation)}
            result["evaluations"].append(row)
            self.folder.games("final", evaluation.rows())
            self.folder.metric(
                "eval", best.meta["step"], best.meta["env_steps"], {f"eval/final/{name}": row}
            )
            self.progress.say(
                f"{agent} against {name}: {evaluation.winrate} over {evaluation.alone.size} games"
            )
        strength = {"search": dataclasses.asdict(settings.search), "games": result["evaluations"]}
        bundle.save(self.folder.path / "best", best.params, {**best.meta, "strength": strength})
        return result

    # ---- parts of it ----

    def _leave_if_wanted(self, interrupts: Interrupts) -> None:
        if interrupts.wanted:
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
        done = int(state.opt_state.count) - optim.warmup_steps
        if not self.config.train.decay or optim.decay_steps or share <= 0 or done <= 0:
            return state
        hyper = {**state.hyper, "decay_steps": jnp.float32(max(done / share, 1.0))}
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

    def _evaluate(self, state: TrainState, interrupts) -> float:
        """Play the opponents; returns the win rate against the first, and keeps best/."""
        settings = self.config.train.eval
        step, env_steps = int(state.updates), int(state.env_steps)
        values: dict[str, Any] = {}
        rates = []
        start = time.monotonic()
        for name in self.opponents:
            evaluation = self._play(
                state.params, settings.agent, name, settings.pairs, self.config.seed, interrupts
            )
            rates.append(evaluation.winrate)
            values[f"eval/winrate/{name}"] = evaluation.winrate.mean
            values[f"eval/winrate/{name}/low"] = evaluation.winrate.low
            values[f"eval/winrate/{name}/high"] = evaluation.winrate.high
            values[f"eval/games/{name}"] = evaluation.alone.size
            self.folder.games(str(step), evaluation.rows())
        self._show(state, step, interrupts)
        values["time/eval"] = time.monotonic() - start
        self._metric("eval", step, env_steps, values)
        texts = [f"{n} {r}" for n, r in zip(self.opponents, rates, strict=True)]
        self.progress.say(f"update {step}: {settings.agent} against {', '.join(texts)}", **values)
        if is_better(rates[0], self.at.best):
            best = self.at.best
            self._bundle(state, rates[0], evaluation.alone.size)
            if best is None or rates[0].mean >= best["mean"]:
                best = vars(rates[0])
            self.at.best = dict(best)
        return rates[0].mean

    def _play(self, params, agent, opponent, pairs, seed, interrupts) -> arena.Evaluation:
        seat = agents.Seat(self.agents[agent], params)
        opening = self.config.train.eval.opening
        work = lambda: arena.evaluate_paired(  # noqa: E731
            self.game, seat, self.opponents[opponent], pairs, seed, opening=opening
        )
        return interrupts.run(work, self._tick)

    def _show(self, state: TrainState, step: int, interrupts) -> None:
        """Games against the first opponent for people to look at, in games/<step>.jsonl."""
        settings, game = self.config.train.eval, self.game
        other = next(iter(self.opponents))
        mine = (agents.Seat(self.agents[settings.agent], state.params), settings.agent)
        shown = []
        for number in range(settings.games):
            held = number % game.num_teams  # a seat of each team in turn
            who = [mine if t == held else (self.opponents[other], other) for t in game.team_of]
            seed = (self.config.seed + 1009 * step + number) % 2**32
            play = functools.partial(
                showcase.play, game, *zip(*who, strict=True), seed, {"step": step}
            )
            shown.append(interrupts.run(play, self._tick))
        if shown:
            record.write(self.folder.path / "games" / f"{step}.jsonl", shown)

    def _bundle(self, state: TrainState, rate: ratings.Interval, games: int) -> None:
        strength = {
            "opponent": next(iter(self.opponents)),
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
        start, step = time.monotonic(), int(state.updates)
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
        self.folder.metric("event", step, int(state.env_steps), values)

    def _where(self, state: TrainState | None) -> dict[str, Any]:
        if state is None:
            return {}
        return {
            "step": int(state.updates),
            "env_steps": int(state.env_steps),
            "chunks": self.at.chunks,
            "share": round(self._share(), 4),
            "minutes": round(self._seconds() / 60, 2),
            "best": self.at.best,
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


_bot = functools.cache(agents.bot_agent)


def _opponent(name: str, game: Game) -> agents.Seat:
    if name in game.bots:
        return agents.Seat(_bot(game, name))
    try:
        return agents.from_spec(name, game)
    except agents.AgentError as error:
        raise ConfigError("train.eval.opponents", str(error).removeprefix("agent: ")) from None


def _to_host(result: tuple[TrainState, dict[str, Any]]) -> tuple[TrainState, dict[str, float]]:
    state, metrics = result
    jax.block_until_ready(state)
    return state, {name: float(value) for name, value in jax.device_get(metrics).items()}


def _memory() -> int:
    """Bytes that the process has held at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def not_finite(metrics: dict[str, float]) -> list[str]:
    """Names of figures that are NaN or infinite."""
    return [name for name, value in metrics.items() if not math.isfinite(value)]


def is_better(rate: ratings.Interval, best: dict[str, float] | None) -> bool:
    """Whether newer weights take the place of the best: unless they are clearly worse.

    A few hundred games can not tell near equals apart, and later weights tend to be the
    stronger ones; "clearly" is below the interval of the highest rate so far.
    """
    return best is None or rate.mean >= best["low"]


def brief(evaluation: arena.Evaluation) -> dict[str, Any]:
    """The figures of an evaluation that a result carries."""
    return {
        "games": evaluation.alone.size,
        "even": evaluation.even,
        "winrate": vars(evaluation.winrate),
        "winrate_groups": vars(evaluation.winrate_groups),
        "seed": evaluation.seed,
    }


def summary(state: TrainState, metrics: dict[str, float], best: dict | None) -> str:
    """The live line."""
    parts = [f"update {int(state.updates)}", f"{int(state.games)} games"]
    parts += [f"loss {metrics['loss/total']:.3f}"] if "loss/total" in metrics else []
    parts += [f"{metrics['env/steps_per_s']:.0f} moves/s"] if "env/steps_per_s" in metrics else []
    parts += [f"best {100 * best['mean']:.0f} %"] if best else []
    return ", ".join(parts)


def _try(action: Callable[[], None]) -> None:
    """For last words on a disk that may be full."""
    try:
        action()
    except OSError:
        pass
