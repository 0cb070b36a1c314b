"""Team frames: absolute order everywhere, mover-first order inside the network.

Absolute: component t belongs to team t. Relative to team m: component i belongs to team
(m + i) mod T, so that component 0 is always the mover's. These two functions are the only
places where one order becomes the other.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxgames.core import Array, Game, State


def to_relative(values: Array, team: Array) -> Array:
    """`values` [..., T] in absolute order, as seen by `team` int32[...]; [..., T]."""
    return _rotate(values, team)


def to_absolute(values: Array, team: Array) -> Array:
    """Inverse of `to_relative`."""
    return _rotate(values, -team)


def _rotate(values: Array, by: Array) -> Array:
    teams = values.shape[-1]
    source = (jnp.arange(teams) + jnp.asarray(by)[..., None]) % teams
    return jnp.take_along_axis(values, jnp.broadcast_to(source, values.shape), axis=-1)


def mover_team(game: Game, state: State) -> Array:
    """Team of the seat to move, int32[...] for a state or a batch of states."""
    return jnp.asarray(game.team_of, jnp.int32)[state.current_player]


def team_rewards(game: Game, rewards: Array) -> Array:
    """Rewards per seat [..., P] as rewards per team [..., T], absolute order.

    A team's reward is that of any of its seats (see `jaxgames.core`).
    """
    first_seat = np.array([game.team_of.index(team) for team in range(game.num_teams)])
    return rewards[..., first_seat]
