"""`jaxgames train` with agent=muzero: a whole run, resumed exactly, and its bundle plays."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import configs
import experiments
from algorithms import agents, bundle
from experiments.kinds import KINDS
from tests.algorithms.test_checkpoint import bits
from tests.experiments.test_train import last_state

TINY = (
    "game.options.rows=3",
    "game.options.cols=3",
    "game.options.win_length=3",
    "muzero_network.memory=true",
    "muzero_network.memory_size=16",
    "muzero_network.memory_heads=2",
    "muzero.memory_updates=2",
    "muzero.teacher=threat",
    "muzero.teacher_updates=1",
    "muzero.teacher_steps=8",
    "train.decay=false",
    "train.save_every=1",
    "train.eval.final_pairs=0",
)


@pytest.mark.slow
def test_a_run_and_its_resumption(tmp_path):
    """Two chunks and two more are four chunks, bit for bit; the bundle holds the memory."""
    texts = [*TINY, f"run.dir={tmp_path}"]
    result = experiments.train("eight_in_a_row/smoke", [*texts, "run.name=whole"])
    assert result["updates"] == 8 and result["games"] > 10 and result["memory_mb"] > 100
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").open()]
    train = [row for row in rows if row["kind"] == "train"]
    assert "search/top_share" not in train[0] and "search/top_share" in train[1]
    assert train[-1]["loss/consistency"] > 0

    part = [*texts, "run.name=part", "train.chunks=2"]
    experiments.train("eight_in_a_row/smoke", part)
    resumed = [f"run.dir={tmp_path}", "run.name=part", "run.resume=true", "train.chunks=4"]
    experiments.train("", resumed)
    assert bits(last_state(tmp_path / "part")) == bits(last_state(tmp_path / "whole"))

    config = configs.load("eight_in_a_row/smoke", texts).config
    game = configs.make_game(config)
    meta = bundle.read_meta(tmp_path / "whole" / "best")
    assert meta["agent"] == "muzero" and meta["view"] == 0 and meta["network"]["memory"]
    seat = agents.from_spec(f"{tmp_path}/whole:sims=4", game)
    assert int(seat.params["bank"].count) >= 16
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 4))
    action = jax.jit(seat.agent.act)(seat.params, jax.random.key(1), states, states.current_player)
    assert bool(jnp.all(states.legal_action_mask[np.arange(4), action]))
    # Another run may begin with these weights.
    start = [*texts, "run.name=next", f"train.start={tmp_path}/whole", "train.chunks=1"]
    experiments.train("eight_in_a_row/smoke", start)


def test_settings_reach_the_network_and_the_view():
    config = configs.load("eight_in_a_row/large_smoke").config
    model = KINDS["muzero"].model(configs.make_game(config), config)
    assert model.config.focus and model.looks and model.viewer.num_actions == 457
    about = KINDS["muzero"].about(config, model)
    assert about == {
        "view": 21,  # chosen for 100x100, and the same on every board
        "thinking": {"dynamics": "rules", "paranoid": False, "discount": 1.0},
    }


def test_what_does_not_fit_is_named():
    texts = ["muzero.dynamics=learned", "muzero_network.reward=false", "run.dir=nowhere"]
    with pytest.raises(configs.ConfigError, match="^muzero_network.reward: must be true"):
        experiments.train("eight_in_a_row/smoke", texts)
    with pytest.raises(configs.ConfigError, match="^muzero.view: "):
        experiments.train("eight_in_a_row/smoke", ["muzero.view=2", "run.dir=nowhere"])
