"""`jaxgames train` with agent=ppo: a whole run, resumed exactly, and its bundle plays."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import configs
import experiments
from algorithms import agents, bundle
from experiments import training
from experiments.cli import Flags
from experiments.progress import Progress
from tests.algorithms.test_checkpoint import bits
from tests.experiments.test_train import last_state
from tests.toys.cli import TINY

PPO = (
    *[text for text in TINY if not text.startswith("alphazero.")],
    "agent=ppo",
    "network.kind=cards",
    "network.q_head=false",
    "ppo.games=8",
    "ppo.steps=4",
    "ppo.minibatch=8",
    "ppo.groups=1",
    "ppo.opponent_share=0.5",
    "ppo.bots=[random]",
    "ppo.snapshots=2",
    "ppo.snapshot_updates=2",
    "ppo.critic.enabled=true",
    "ppo.critic.updates=2",
    "ppo.critic.network.hidden=16",
    "ppo.chunk_updates=2",
)


def ppo(folder, *texts):
    """PPO below `folder`, with `texts` over it."""
    keys = {text.split("=")[0] for text in texts}
    return [t for t in PPO if t.split("=")[0] not in keys] + [f"run.dir={folder}", *texts]


def test_a_run_and_its_resumption(tmp_path):
    """Two chunks and two more are four chunks, bit for bit; the bundle is an agent's."""
    fixed = ("train.decay=false", "train.eval.every=0")
    result = experiments.train("", ppo(tmp_path, *fixed, "run.name=whole"))
    assert result["updates"] == 8
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").open()]
    train = [row for row in rows if row["kind"] == "train"]
    assert "loss/critic" in train[0] and "league/win" in train[1]

    rest = (*fixed, "train.eval.final_pairs=0")
    experiments.train("", ppo(tmp_path, *rest, "run.name=part", "train.chunks=2"))
    texts = [f"run.dir={tmp_path}", "run.name=part", "run.resume=true", "train.chunks=4"]
    experiments.train("", texts)
    assert bits(last_state(tmp_path / "part")) == bits(last_state(tmp_path / "whole"))

    # Who starts from the run takes its critic along.
    begun = training.Trainer(
        configs.load("", ppo(tmp_path, "run.name=next", f"train.start={tmp_path}/whole")),
        Progress(Flags(quiet=True)),
    )._begin(jax.random.key(0))
    for mine, name in ((begun.params, "best"), (begun.critic.params, "critic")):
        assert bits(mine) == bits(bundle.load(tmp_path / "whole" / name).params)

    # Former selves are left behind as agents: two places, filled every second update.
    league = tmp_path / "whole" / "league"
    assert result["league"] == [str(league / "4"), str(league / "6")]
    assert sorted(path.name for path in league.iterdir()) == ["4", "6"]
    assert bundle.read_meta(league / "4")["step"] == 4
    # Those of the run before it was resumed are still there.
    assert {"4", "6"} < {path.name for path in (tmp_path / "part" / "league").iterdir()}

    meta = bundle.read_meta(tmp_path / "whole" / "best")
    assert meta["agent"] == "ppo" and meta["network"]["kind"] == "cards"
    game = configs.make_game(configs.load("", PPO).config)
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 2))
    for spec in ("whole:net", "whole:sims=2:worlds=1", "whole/league/6"):
        seat = agents.from_spec(f"{tmp_path}/{spec}", game)
        action = jax.jit(seat.agent.act)(
            seat.params, jax.random.key(1), states, states.current_player
        )
        assert bool(jnp.all((action >= 0) & (action < 9)))


def test_settings_that_do_not_fit_are_named(tmp_path):
    for text, key in (
        ("ppo.bots=[rndom]", "ppo.bots: unknown name 'rndom'; did you mean random"),
        ("ppo.minibatch=33", "ppo.minibatch: at most"),
        ("agent=mcts_dqn", "network.q_head: must be true"),
    ):
        with pytest.raises(configs.ConfigError, match=key):
            experiments.train("", ppo(tmp_path, text, "run.name=x"))


@pytest.mark.slow
def test_the_smoke_preset_trains(tmp_path):
    """Guandan: six updates from scratch, among them two of the critic alone."""
    result = experiments.train("guandan/ppo_smoke", [f"run.dir={tmp_path}", "run.name=a"])
    assert result["updates"] == 6 and len(result["evaluations"]) == 1
    rows = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").open()]
    train = [row for row in rows if row["kind"] == "train"]
    assert [row["selfplay/illegal"] for row in train] == [0, 0, 0]
    assert all(np.isfinite(row["loss/total"]) for row in train)
