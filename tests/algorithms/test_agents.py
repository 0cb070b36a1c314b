"""Agents share one face, and their names one grammar."""

import jax
import numpy as np
import pytest

from algorithms import agents
from jaxgames import core

MNK = core.make("mnk")


def _states(batch):
    return jax.vmap(MNK.init)(jax.random.split(jax.random.key(0), batch))


def test_bot_rows_do_not_depend_on_each_other():
    seat = agents.from_spec("random", MNK)
    states, keys = _states(8), jax.random.split(jax.random.key(1), 8)
    whole = seat.agent.act(None, keys, states, states.current_player)
    part = jax.tree.map(lambda x: x[3:5], states)
    np.testing.assert_array_equal(
        whole[3:5], seat.agent.act(None, keys[3:5], part, part.current_player)
    )
    one = seat.agent.act(None, jax.random.key(2), states, states.current_player)
    assert one.shape == (8,) and one.dtype == np.int32


@pytest.mark.parametrize("spec", ["randon", "", "random:sims=3", "no/such/bundle"])
def test_unknown_agents_are_refused(spec):
    with pytest.raises(agents.AgentError) as error:
        agents.from_spec(spec, MNK)
    assert error.value.field == "agent"


def test_near_names_are_suggested():
    with pytest.raises(agents.AgentError, match="did you mean random"):
        agents.from_spec("randm", MNK)
