"""`jaxgames train` with a curriculum: up its stages, resumed exactly on the way."""

import json
import types

import jax
import numpy as np
import pytest

import configs
import experiments
import tests.toys.mnk  # noqa: F401  (registers "mnk")
from algorithms import agents, bundle
from algorithms.checkpoint import Checkpoints
from experiments import health, training
from experiments.cli import Flags
from experiments.progress import Progress
from jaxgames import core
from tests.algorithms.test_checkpoint import bits

#: Three stages, the first two in one program; the third changes it.
STAGES = (
    "rows=3 cols=3 win_length=2 bucket=4",
    "rows=4 cols=4 win_length=3 max_plies=9 bucket=4",
    "rows=5 cols=5 win_length=3 max_plies=9 bucket=5",
)
NAMES = [text.replace(" ", ",") for text in STAGES]
TINY = (
    "game=eight_in_a_row",
    "agent=mcts_dqn",
    "network.channels=4",
    "network.blocks=0",
    "network.hidden=8",
    "dqn.games=4",
    "dqn.steps=4",
    "dqn.replay_length=16",
    "dqn.learn_after=12",
    "dqn.batch_size=4",
    "dqn.learn_steps=1",
    "dqn.horizon=1",
    "dqn.chunk_updates=2",
    "curriculum.stages=[" + ",".join(f"'{text}'" for text in STAGES) + "]",
    "curriculum.promote=0.01",
    "curriculum.in_a_row=1",
    "curriculum.min_updates=2",
    "train.chunks=4",
    "train.decay=false",
    "train.save_every=1",
    "train.eval.every=1",
    "train.eval.pairs=2",
    "train.eval.final_pairs=0",
)


def trainer(*texts):
    return training.Trainer(configs.load("", list(texts)), Progress(Flags(quiet=True)))


def last_state(path, step=None):
    """The restored state of a run's checkpoint, in the program of its stage."""
    resolved = configs.load_file(path / "config.yaml")
    one = training.Trainer(resolved, Progress(Flags(quiet=True)))
    with Checkpoints(path / "ckpt") as saved:
        one.at = training.Position(**saved.meta(step)["position"])
        one._enter()
        return saved.restore(jax.eval_shape(one.learner.init, jax.random.key(0)), step)[0]


def rows(path):
    return [json.loads(line) for line in path.open()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with the run "whole", and "part", resumed twice: before and after the program
    changed."""
    folder = tmp_path_factory.mktemp("runs")
    experiments.train("", [*TINY, f"run.dir={folder}", "run.name=whole"])
    first = [text for text in TINY if not text.startswith("train.chunks")]
    experiments.train("", [*first, f"run.dir={folder}", "run.name=part", "train.chunks=1"])
    again = [f"run.dir={folder}", "run.name=part", "run.resume=true"]
    for chunks in (2, 4):
        experiments.train("", [*again, f"train.chunks={chunks}"])
    return folder


@pytest.mark.slow
def test_two_halves_are_the_whole_through_promotions_and_another_program(runs):
    whole, part = (last_state(runs / name) for name in ("whole", "part"))
    assert whole.actor.states.cells.shape[1:] == (5, 5)
    assert bits(whole) == bits(part)
    metas = [Checkpoints(runs / name / "ckpt").meta() for name in ("whole", "part")]
    assert metas[0]["position"]["standing"] == metas[1]["position"]["standing"]
    assert metas[0]["position"]["standing"]["stage"] == 2
    status = json.loads((runs / "part" / "STATUS.json").read_text())
    assert status["stage"] == status["result"]["stage"] == NAMES[2]


@pytest.mark.slow
def test_the_ladder_can_be_drawn(runs):
    events = [e for e in rows(runs / "whole" / "events.jsonl") if e["event"] == "stage"]
    told = [(e["step"], e["was"], e["stage"], e["why"]) for e in events]
    assert told == [(2, NAMES[0], NAMES[1], "promoted"), (4, NAMES[1], NAMES[2], "promoted")]
    metrics = rows(runs / "whole" / "metrics.jsonl")
    train = [row for row in metrics if row["kind"] == "train"]
    assert [row["curriculum/stage"] for row in train] == [0, 1, 2, 2]
    shares = [[row[f"curriculum/share/{name}"] for name in NAMES] for row in train]
    np.testing.assert_allclose(shares[0], [1, 0, 0])
    np.testing.assert_allclose(shares[-1], np.array([1, 2, 4]) / 7, rtol=1e-6)
    evaluated = [row for row in metrics if row["kind"] == "eval"]
    assert [row["curriculum/stage"] for row in evaluated] == [0, 1, 2, 2]
    for row in evaluated:
        name = f"curriculum/winrate/{NAMES[int(row['curriculum/stage'])]}"
        assert row[f"{name}/low"] <= row[name] <= row[f"{name}/high"]
        # A stage is judged by the games against all opponents of the preset together.
        games = {bot: row[f"eval/games/{bot}"] for bot in ("threat", "random")}
        won = sum(row[f"eval/winrate/{bot}"] * number for bot, number in games.items())
        assert row[name] == pytest.approx(won / sum(games.values()))


@pytest.mark.slow
def test_what_was_promoted_is_left_and_plays(runs):
    for number, text in enumerate(STAGES[:2]):
        meta = bundle.read_meta(runs / "whole" / "stages" / str(number))
        assert meta["stage"] == NAMES[number]
        assert meta["rules"]["win_length"] == int(text.split("win_length=")[1][0])
    best = bundle.read_meta(runs / "whole" / "best")
    assert best["rules"]["rows"] == 5
    game = core.make("eight_in_a_row", rows=5, cols=5, win_length=3, bucket=5)
    assert agents.from_spec(f"{runs}/whole:net", game).params


def test_lights_look_at_the_present_stage():
    """A harder stage is no loss of strength."""
    row = lambda stage, rate: {  # noqa: E731
        "kind": "eval", "curriculum/stage": float(stage), "eval/winrate/bot": rate,
        "eval/winrate/bot/low": rate - 0.05, "eval/winrate/bot/high": rate + 0.05,
    }  # fmt: skip
    before = [row(0, 0.9), row(0, 0.95)]
    strength = lambda rows: health.levels(health.lights(rows)).get("strength")  # noqa: E731
    assert strength([*before, row(0, 0.3)]) == "warn"
    assert strength([*before, row(1, 0.3), row(1, 0.3)]) == "ok"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["agent=ppo"], "curriculum.stages: the agent ppo has no curriculum"),
        (["curriculum.stages=[stage16,stage30]"], "unknown preset 'stage16'; did you mean stage15"),
        (["curriculum.stages=['row=3','rows=4']"], "no option 'row'; did you mean rows"),
        (["curriculum.stages=['rows=many','rows=4']"], "stages: rows: needs a whole number"),
        (["curriculum.stages=['','rows=4']"], "'' changes nothing"),
        (["curriculum.stages=['rows=6 cols=5','cols=5  rows=6']"], "is the same game as 'rows=6 c"),
        (["curriculum.stages=['rows=999','rows=4']"], "'rows=999': rows: a whole number 1 to 200"),
        (["curriculum.stages=['players=2','players=3']"], "can not be played together"),
        (["train.eval.every=0"], "train.eval.every: set this or curriculum.max_updates"),
        (["train.eval.opponents=[threats]"], "train.eval.opponents: unknown name 'threats'"),
        (["curriculum.start=elsewhere"], "curriculum.start: one of"),
        (["dqn.replay_bytes=2000"], r"dqn.replay_bytes: at least \d+ for 4 steps of 4 games"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_named_before_anything_runs(texts, message):
    keys = {text.split("=")[0] for text in texts}
    kept = [text for text in TINY if text.split("=")[0] not in keys]
    with pytest.raises(configs.ConfigError, match=message):
        trainer(*kept, *texts)


@pytest.mark.parametrize(
    ("standing", "rule"),
    [(None, "the run began without a curriculum"), ({"stage": 7}, "of a stage beyond these")],
)
def test_a_checkpoint_of_other_stages_is_refused(standing, rule):
    """As when a run without stages, or with more of them, is resumed with these."""
    saved = types.SimpleNamespace(
        steps=lambda: (2,), meta=lambda step: {"position": {"standing": standing}}
    )
    with pytest.raises(configs.ConfigError, match=f"^curriculum.stages: .*{rule}"):
        trainer(*TINY)._start(saved)


@pytest.mark.slow
def test_a_population_climbs_as_its_fittest_does(tmp_path):
    """Through promotions and another program; two halves are the whole, bit for bit."""
    texts = [*TINY, "population.members=2", "population.every=1", "population.pairs=2"]
    texts += [f"run.dir={tmp_path}"]
    result = experiments.train("", [*texts, "run.name=whole"])
    half = [text for text in texts if not text.startswith("train.chunks")]
    experiments.train("", [*half, "run.name=part", "train.chunks=2"])
    again = [f"run.dir={tmp_path}", "run.name=part", "run.resume=true", "train.chunks=4"]
    experiments.train("", again)
    whole, part = (last_state(tmp_path / name) for name in ("whole", "part"))
    assert whole.actor.states.cells.shape == (2, 4, 5, 5)
    assert bits(whole) == bits(part)
    np.testing.assert_allclose(whole.hyper["mix"], np.array([[1, 2, 4]] * 2) / 7, rtol=1e-6)
    assert not np.array_equal(*whole.hyper["learning_rate"])
    stages = [e for e in rows(tmp_path / "whole" / "events.jsonl") if e["event"] == "stage"]
    assert [(e["step"], e["was"]) for e in stages] == [(2, NAMES[0]), (4, NAMES[1])]
    assert result["stage"] == NAMES[2] and len(result["population"]["fitness"]) == 2
    meta = bundle.read_meta(tmp_path / "whole" / "stages" / "0")
    assert meta["stage"] == NAMES[0] and meta["step"] == 2


@pytest.mark.slow
def test_sequence_has_a_curriculum_too(tmp_path):
    """Options that are no data of a state: one sequence to win, then two."""
    texts = (
        "curriculum.stages=['sequences_to_win=1','sequences_to_win=2']", "curriculum.max_updates=4",
        "curriculum.min_updates=0", "train.eval.every=0", "train.eval.final_pairs=0",
        "train.chunks=4", "train.minutes=0", "train.eval.pairs=2", f"run.dir={tmp_path}",
    )  # fmt: skip
    experiments.train("sequence/smoke", [*texts, "run.name=s"])
    events = [e for e in rows(tmp_path / "s" / "events.jsonl") if e["event"] == "stage"]
    assert [e["why"] for e in events] == ["due"]
    state = last_state(tmp_path / "s")
    assert set(np.asarray(state.actor.states.stage)) <= {0, 1}
    assert bundle.read_meta(tmp_path / "s" / "best")["rules"]["sequences_to_win"] == 2


@pytest.mark.slow
def test_muzero_climbs_and_resumes(tmp_path):
    texts = ["muzero.games=4", "muzero.steps=4", "muzero.learn_after=8", "muzero.replay_length=16",
             "muzero_network.focus=false", "muzero.view=4", f"run.dir={tmp_path}",
             "curriculum.stages=['rows=4 cols=4 win_length=3 max_plies=8 bucket=4',"
             "'rows=6 cols=6 win_length=3 max_plies=8 bucket=6']",
             "curriculum.max_updates=2", "curriculum.min_updates=0", "train.eval.every=0",
             "train.eval.final_pairs=0", "train.eval.pairs=1", "train.save_every=1",
             "train.decay=false"]  # fmt: skip
    preset = "eight_in_a_row/curriculum_smoke"
    experiments.train(preset, [*texts, "run.name=whole", "train.chunks=4"])
    experiments.train(preset, [*texts, "run.name=part", "train.chunks=2"])
    again = [f"run.dir={tmp_path}", "run.name=part", "run.resume=true", "train.chunks=4"]
    experiments.train("", again)
    whole, part = (last_state(tmp_path / name) for name in ("whole", "part"))
    assert whole.actor.states.cells.shape[1:] == (6, 6) and int(whole.opt_state.count) > 0
    assert bits(whole) == bits(part)
    small = core.make("eight_in_a_row", rows=4, cols=4, win_length=3)
    assert agents.from_spec(f"{tmp_path}/whole:net", small).params
