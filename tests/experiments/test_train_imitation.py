"""`jaxgames train` with agent=imitation: a whole run, resumed exactly; others start from it."""

import json

import jax
import jax.numpy as jnp
import pytest

import configs
import experiments
from algorithms import agents, bundle
from experiments import training
from experiments.cli import Flags
from experiments.progress import Progress
from tests.algorithms.test_checkpoint import bits
from tests.experiments.test_train import last_state, tiny
from tests.toys.cli import TINY

CLONE = (
    *[text for text in TINY if not text.startswith(("alphazero.", "train.eval."))],
    "agent=imitation",
    "imitation.teacher=random",
    "imitation.games=8",
    "imitation.steps=4",
    "imitation.validation_share=0.25",
    "imitation.replay_length=16",
    "imitation.learn_after=8",
    "imitation.validation_batch=8",
    "imitation.batch_size=8",
    "imitation.learn_steps=2",
    "imitation.chunk_updates=4",
    "train.decay=false",
    "train.eval.every=0",
    "train.eval.pairs=2",
    "train.eval.final_pairs=0",
)


def clone(folder, *texts):
    """A clone below `folder`, with `texts` over its settings."""
    keys = {text.split("=")[0] for text in texts}
    return [t for t in CLONE if t.split("=")[0] not in keys] + [f"run.dir={folder}", *texts]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of runs with an uninterrupted one called "whole"."""
    folder = tmp_path_factory.mktemp("runs")
    result = experiments.train("", clone(folder, "run.name=whole"))
    assert result["updates"] == 16
    return folder


def test_a_run_and_its_resumption(whole):
    """Two chunks and two more are four chunks, bit for bit; the bundle is an agent's."""
    rows = [json.loads(line) for line in (whole / "whole" / "metrics.jsonl").open()]
    train = [row for row in rows if row["kind"] == "train"]
    assert "val/calibration" in train[-1] and train[-1]["loss/bc"] > 0

    experiments.train("", clone(whole, "run.name=part", "train.chunks=2"))
    texts = [f"run.dir={whole}", "run.name=part", "run.resume=true", "train.chunks=4"]
    experiments.train("", texts)
    assert bits(last_state(whole / "part")) == bits(last_state(whole / "whole"))

    meta = bundle.read_meta(whole / "whole" / "best")
    assert meta["agent"] == "imitation"
    game = configs.make_game(configs.load("", CLONE).config)
    seat = agents.from_spec(f"{whole}/whole:net", game)
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 2))
    action = jax.jit(seat.agent.act)(seat.params, jax.random.key(1), states, states.current_player)
    assert bool(jnp.all((action >= 0) & (action < 9)))


def first_state(texts):
    trainer = training.Trainer(configs.load("", texts), Progress(Flags(quiet=True)))
    return trainer._begin(jax.random.key(0))


@pytest.mark.parametrize("agent", ["imitation", "alphazero", "mcts_dqn", "ppo"])
def test_others_start_from_its_weights(whole, tmp_path, agent):
    options = [f"agent={agent}", "run.name=x", f"train.start={whole}/whole"]
    if agent == "ppo":
        options += ["ppo.games=8", "ppo.steps=4", "ppo.minibatch=8", "ppo.critic.enabled=true"]
    texts = (clone if agent == "imitation" else tiny)(tmp_path, *options)
    state = first_state(texts)
    given = bundle.load(whole / "whole" / "best").params
    assert bits(state.params) == bits(given)
    if agent == "mcts_dqn":
        assert bits(state.target) == bits(given)
    if agent == "ppo":
        assert int(state.league.taken) == 0  # the first snapshot will be of these weights
    assert int(state.updates) == 0 and not any(x.any() for x in jax.tree.leaves(state.opt_state))


def test_a_start_is_kept_in_the_run(whole, tmp_path):
    """A run that was killed before its first checkpoint begins with the same weights again."""
    texts = clone(tmp_path, "run.name=a", f"train.start={whole}/whole", "train.chunks=1")
    experiments.train("", texts)
    want = bits(last_state(tmp_path / "a"))
    for path in (tmp_path / "a" / "ckpt").iterdir():
        path.rename(tmp_path / path.name)
    experiments.train("", [f"run.dir={tmp_path}", "run.name=a", "run.resume=true"])
    assert bits(last_state(tmp_path / "a")) == want


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("train.start=nobody", "unknown name 'nobody'"),
        ("train.start=random", "random is a rule bot and has no weights"),
        ("network.hidden=16", "network.hidden: it has 8, not 16"),
        ("network.board_scale=0.25", "network.board_scale: it has 0.5, not 0.25"),
        ("game.options.k=2", r"rules: trained with other rules \(k\)"),
        ("imitation.teacher=rndom", "imitation.teacher: unknown name 'rndom'; did you mean random"),
    ],
)
def test_what_does_not_fit_is_named(whole, tmp_path, text, why):
    texts = clone(tmp_path, "run.name=x", f"train.start={whole}/whole")
    key = text.split("=")[0]
    texts = [t for t in texts if t.split("=")[0] != key] + [text]
    with pytest.raises(configs.ConfigError, match=why):
        experiments.train("", texts)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_smoke_preset_trains(tmp_path):
    """Guandan: copies the greedy bot for a minute."""
    result = experiments.train("guandan/clone_smoke", [f"run.dir={tmp_path}", "run.name=a"])
    assert result["updates"] == 16 and len(result["evaluations"]) == 1
    rows = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").open()]
    train = [row for row in rows if row["kind"] == "train"]
    assert all(row["selfplay/illegal"] == 0 for row in train)
    assert train[-1]["loss/bc"] < train[0]["loss/bc"] or train[0]["loss/bc"] == 0
