"""Which metrics are looked at together, and what each means: the page, `experiments.plots`
and the table in README.md beside this file are all made from here.

A name may end in `*` for any text ("eval/winrate/*" is a name of every opponent), and hold `*`
before that for one part between slashes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from typing import Any


@dataclasses.dataclass(frozen=True)
class Chart:
    """Attributes:
    id: unique; the page's texts are found by it.
    title: in English, for pictures.
    names: metrics, in the order in which they are drawn.
    log: the vertical axis is logarithmic.
    share: values are shares, 0..1.
    missing: settings that turn these metrics on, for a chart that is empty.
    """

    id: str
    title: str
    names: tuple[str, ...]
    log: bool = False
    share: bool = False
    missing: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    """Attributes:
    id: unique.
    title: in English.
    charts: of metrics.
    extra: what the page shows besides: "placements", "reliability", "board", ...
    missing: how to have what `extra` shows.
    """

    id: str
    title: str
    charts: tuple[Chart, ...] = ()
    extra: str = ""
    missing: str = ""


_EVALS = "train.eval.every=10 train.eval.opponents=[random]"

PANELS = (
    Panel(
        "strength",
        "Strength",
        (
            Chart("winrate", "Win rate, 95 % interval", ("eval/winrate/*",), share=True,
                  missing=_EVALS),
            Chart("rating", "Rating, 2 sigma", ("rating/*",), missing="train.eval.rated=3"),
        ),
    ),
    Panel(
        "losses",
        "Losses",
        (Chart("losses", "Loss per head", ("loss/*",), log=True, missing="train.chunks=1"),),
    ),
    Panel(
        "policy",
        "Policy and search",
        (
            Chart("entropy", "Entropy", ("policy/entropy", "policy/target_entropy"),
                  missing="agent=alphazero | muzero | ppo | imitation"),
            Chart("entropy_share", "Entropy as a share of log(legal)", ("policy/entropy_share",),
                  share=True, missing="agent=alphazero | muzero | ppo | imitation"),
            Chart("kl", "KL divergence", ("policy/kl_target", "policy/kl"), log=True,
                  missing="agent=alphazero | muzero | ppo"),
            Chart("top1", "Agreement and mass", ("policy/top1_agree", "policy/top1_agree_choice",
                  "policy/illegal_mass", "policy/clip_share"), share=True,
                  missing="agent=alphazero | muzero | imitation"),
            Chart("search", "Search", ("search/*",), missing="agent=alphazero | muzero"),
        ),
    ),
    Panel(
        "value",
        "Value",
        (
            Chart("explained", "Explained variance", ("value/explained_var",
                  "val/value/explained_var"), missing="agent=alphazero | muzero | ppo | imitation"),
            Chart("bias", "Errors of the value", ("value/bias_abs", "value/td_abs",
                  "value/unrolled_error", "value/advantage_spread", "value/calibration",
                  "val/calibration"), missing="agent=alphazero | muzero | ppo | imitation"),
            Chart("calibration", "Calibration by seat to move", ("value/calibration/*",),
                  missing="agent=alphazero | mcts_dqn | muzero"),
        ),
        extra="reliability",
        missing="agent=imitation imitation.validation_share=0.05",
    ),
    Panel(
        "seats",
        "Seats and places",
        (
            Chart("outcome", "Mean outcome by seat", ("selfplay/outcome/*",),
                  missing="agent=alphazero | mcts_dqn | muzero | ppo"),
            Chart("games", "Length of games", ("selfplay/length_mean",),
                  missing="agent=alphazero | mcts_dqn | muzero | ppo"),
            Chart("ends", "How games end", ("selfplay/draws", "selfplay/cap_share"), share=True,
                  missing="agent=alphazero | mcts_dqn | muzero | ppo"),
        ),
        extra="placements",
        missing=_EVALS,
    ),
    Panel(
        "speed",
        "Speed and time",
        (
            Chart("steps", "Moves per second", ("env/steps_per_s",), missing="train.chunks=1"),
            Chart("rate", "Games per second", ("selfplay/games_per_s",), missing="train.chunks=1"),
            Chart("time", "Seconds", ("time/chunk", "time/eval", "time/ckpt"), log=True,
                  missing="train.chunks=1"),
            Chart("memory", "Memory", ("sys/rss", "sys/device_mem"), missing="train.chunks=1"),
        ),
    ),
    Panel(
        "replay",
        "Replay",
        (
            Chart("replay", "Positions", ("replay/size",),
                  missing="agent=alphazero | mcts_dqn | muzero | imitation"),
            Chart("age", "Age of the samples (steps of a game)",
                  ("replay/age*", "replay/reuse", "actor/staleness"),
                  missing="agent=alphazero | mcts_dqn | muzero"),
        ),
    ),
    Panel(
        "optimiser",
        "Optimiser",
        (
            Chart("gradient", "Gradient norm before clipping", ("optim/grad_norm",), log=True,
                  missing="train.chunks=1"),
            Chart("ratio", "Norm of a step over the norm of the weights", ("optim/update_ratio",),
                  log=True, missing="train.chunks=1"),
            Chart("rate_of_learning", "Learning rate", ("optim/lr",), missing="train.chunks=1"),
            Chart("clipped", "Clipped steps", ("optim/clip_share", "optim/stopped"), share=True,
                  missing="train.chunks=1"),
        ),
    ),
    Panel("board", "Games", extra="board", missing="train.eval.games=1"),
    Panel(
        "league",
        "League",
        (Chart("league", "Wins against the league", ("league/win", "league/win/*", "league/rate/*"),
               share=True, missing="agent=ppo | muzero muzero.league.share=0.25"),),
        extra="matrix",
        missing="train.eval.opponents=[random,greedy]",
    ),
    Panel(
        "population",
        "Population",
        (
            Chart("fitness", "Fitness by member", ("population/fitness/*",),
                  missing="population.members=4"),
            Chart("members", "Numbers of the members", ("population/learning_rate/*",
                  "population/weight_decay/*", "population/clip_norm/*", "population/optim/lr/*"),
                  log=True, missing="population.members=4"),
        ),
        extra="lineage",
        missing="population.members=4",
    ),
    Panel(
        "curriculum",
        "Curriculum",
        (
            Chart("curriculum", "Stage, and shares of new games", ("curriculum/stage",
                  "curriculum/share/*"), missing="curriculum.stages=[...]"),
            Chart("stage_winrate", "Win rate at a stage, 95 % interval", ("curriculum/winrate/*",),
                  share=True, missing="curriculum.stages=[...]"),
        ),
        extra="ladder",
        missing="curriculum.stages=[...]",
    ),
    Panel("log", "Events", extra="log"),
    Panel("config", "Settings that differ from the defaults", extra="config"),
)  # fmt: skip


#: Metric -> what it is. `Chart.names` say where each is shown; the rest is shown at the end.
MEANING = {
    "loss/total": "what the optimiser lowers, weights applied",
    "loss/policy": "cross entropy of the policy to its target, or PPO's clipped objective",
    "loss/value": "error of the value head",
    "loss/reward": "error of the reward head",
    "loss/q": "error of the Q head",
    "loss/margin": "how far Q of other moves comes within the margin of the teacher's",
    "loss/bc": "cross entropy to the teacher's moves",
    "loss/critic": "error of the critic that sees everything",
    "loss/consistency": "latent states against those of the true next positions",
    "loss/focus": "error of the head that says where to look",
    "loss/*": "error of another head",
    "policy/entropy": "nats, over legal moves",
    "policy/entropy_share": "entropy over log(number of legal moves)",
    "policy/entropy_weight": "weight of the entropy bonus",
    "policy/target_entropy": "nats, of what the policy is taught",
    "policy/kl_target": "KL divergence of the policy from its target, nats",
    "policy/kl": "KL divergence from the policy that played, nats",
    "policy/clip_share": "share of decisions beyond PPO's clip",
    "policy/ratio_max": "largest ratio of new to old probability",
    "policy/top1_agree": "share of positions whose best move is the target's",
    "policy/top1_agree_choice": "the same where there is a choice",
    "policy/illegal_mass": "probability on illegal moves before the mask",
    "policy/lead/*": "share of a kind of play among leads",
    "policy/*": "a figure of the policy",
    "value/explained_var": "1 - variance of the error / variance of the target",
    "value/bias_abs": "|mean value - mean target|",
    "value/td_abs": "mean |temporal difference|",
    "value/unrolled_error": "error of the value after learnt steps",
    "value/advantage_spread": "standard deviation of the advantages",
    "value/calibration": "|said - happened| over bins of the value; what happened is the training "
    "target, which dqn and muzero partly bootstrap from their own values",
    "value/calibration/*": "the same of positions in which this seat is to move",
    "value/*": "a figure of the value",
    "val/calibration": "|said - happened| over bins of the policy's confidence, held-out",
    "val/*": "the same figure on held-out positions",
    "search/top_share": "share of the visits that the most visited move has",
    "search/visit_entropy": "entropy of the visits, nats",
    "search/root_minus_net": "value of the root less the network's",
    "search/*": "a figure of the search",
    "selfplay/games": "games that ended in the chunk",
    "selfplay/games_per_s": "finished games per second of wall time, learning included",
    "selfplay/length_mean": "moves per game",
    "selfplay/draws": "share of games in which all did equally well",
    "selfplay/cap_share": "share of games that the cap on the length ended",
    "selfplay/illegal": "games that an illegal move ended",
    "selfplay/epsilon": "share of random moves",
    "selfplay/outcome/*": "mean return of a seat per game",
    "selfplay/*": "a figure of the games played for learning",
    "rollout/own_share": "share of decisions that are the learner's own",
    "rollout/*": "a figure of the collected play",
    "replay/size": "positions that may be sampled",
    "replay/age_p50": "steps of a game since half of the samples were played, at most",
    "replay/age_p95": "steps of a game since 19 of 20 samples were played, at most",
    "replay/*": "a figure of the replay",
    "actor/*": "a figure of the playing copies",
    "optim/grad_norm": "norm of the gradient before clipping",
    "optim/clip_share": "share of steps whose gradient was clipped",
    "optim/lr": "learning rate",
    "optim/update_ratio": "norm of a step over the norm of the weights",
    "optim/nan_skips": "steps left out because something was not finite",
    "optim/stopped": "share of epochs that a large KL divergence ended",
    "optim/*": "a figure of the optimiser",
    "net/*": "a figure of the network's units",
    "env/steps_per_s": "moves per second of wall time, learning included",
    "env/*": "a figure of the environment",
    "time/chunk": "seconds of self-play and learning of a chunk",
    "time/first_chunk": "1 where the seconds of the chunk include compilation",
    "time/eval": "seconds of an evaluation",
    "time/ckpt": "seconds of writing a checkpoint",
    "time/*": "seconds",
    "sys/rss": "bytes of memory that the process held at most",
    "sys/device_mem": "bytes that the first device held at most",
    "sys/recompiles": "how often a program was compiled again after its warm-up: 0",
    "sys/*": "a figure of the machine",
    "league/win": "score against all opponents of the league",
    "league/win/*": "score against an opponent of the league",
    "league/rate/*": "how often the learner is placed above a member, fading",
    "league/n/*": "from how many games, fading",
    "league/snapshots": "former selves kept",
    "league/games": "games against the league that ended in the chunk",
    "league/*": "a figure of the league",
    "population/fitness/*": "mean win rate of a member against the pool",
    "population/best": "the fittest member, which stands for the run",
    "population/broken": "members whose figures are not all finite",
    "population/parent/*": "whose weights a member goes on with",
    "population/*": "a number or a figure of a member of the population",
    "curriculum/stage": "the present stage, from 0",
    "curriculum/share/*": "share of new games that are of a stage",
    "curriculum/winrate/*/low": "lower end of its Wilson 95 % interval",
    "curriculum/winrate/*/high": "upper end of its Wilson 95 % interval",
    "curriculum/winrate/*": "share of first places against all opponents at a stage",
    "curriculum/*": "a figure of the curriculum",
    "king/*": "a figure of the king of the hill",
    "rating/*/low": "the rating less 2 sigma",
    "rating/*/high": "the rating plus 2 sigma",
    "rating/*": "logistic Elo above the first opponent, of the learner and of former selves",
    "payoff/*": "how often one is placed above another among those rated, a tie half",
    "eval/winrate/*/low": "lower end of its Wilson 95 % interval",
    "eval/winrate/*/high": "upper end of its Wilson 95 % interval",
    "eval/winrate/*": "share of first places against an opponent (a tie shared), fair seatings",
    "eval/games/*": "games behind the win rate",
    "eval/final/*": "the last evaluation of the best weights, with their interval",
    "eval/*": "a figure of an evaluation",
}


def matches(name: str, pattern: str) -> bool:
    """Whether a metric has that name."""
    expression = "[^/]+".join(re.escape(part) for part in pattern.split("*"))
    if pattern.endswith("*"):
        expression = expression.removesuffix("[^/]+") + ".+"
    return re.fullmatch(expression, name) is not None


def meaning(name: str) -> str | None:
    """What a metric is, by its exact name or else by the first pattern that fits."""
    if name in MEANING:
        return MEANING[name]
    return next((text for pattern, text in MEANING.items() if matches(name, pattern)), None)


def drawn(chart: Chart, names: Collection[str]) -> list[str]:
    """Those of `names` that the chart draws, in its order; bounds of intervals go with them."""
    names = sorted(n for n in names if not is_bound(n, names))
    found = [name for pattern in chart.names for name in names if matches(name, pattern)]
    return list(dict.fromkeys(found))


def is_bound(name: str, names: Collection[str]) -> bool:
    """Whether it is an end of the interval of another one."""
    base, _, end = name.rpartition("/")
    return end in ("low", "high") and base in names


def rest(names: Collection[str]) -> list[str]:
    """Names that no chart draws; bounds of intervals go with what they bound."""
    shown = {name for panel in PANELS for chart in panel.charts for name in drawn(chart, names)}
    return sorted(n for n in names if n not in shown and not is_bound(n, names))


def to_json() -> list[dict[str, Any]]:
    """The panels for the page."""
    return [dataclasses.asdict(panel) for panel in PANELS]


def markdown() -> str:
    """README.md of this folder: every metric and what it is."""
    lines = [
        "# Metrics",
        "",
        "What `metrics.jsonl` of a run may hold; `*` stands for a name. Each row also has `seq`,",
        "`t` (seconds since 1970), `step` (updates), `env_steps` (moves) and `kind` (`train`,",
        "`eval` or `event`). Made by `python -m experiments.dashboard.panels`.",
        "",
        "| metric | what it is | chart |",
        "|---|---|---|",
    ]
    charts = [chart for panel in PANELS for chart in panel.charts]
    for name, text in MEANING.items():
        shown = [c.title for c in charts if any(name == n or matches(name, n) for n in c.names)]
        told = text.replace("|", "\\|")
        lines.append(f"| `{name}` | {told} | {', '.join(shown)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
