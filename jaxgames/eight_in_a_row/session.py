"""Sessions of several games with one result (rule book 1.8)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.eight_in_a_row import standing
from jaxgames.eight_in_a_row.rules import FIRSTS_TO_WIN, SessionState

#: Points are counted in parts of 1/12: the shares of up to four seats are whole then.
UNIT = 12


def fresh(players: int) -> dict[str, jax.Array]:
    """The session's own fields at its start."""
    return dict(
        games=jnp.int8(0),
        points=jnp.zeros(players, jnp.int32),
        firsts=jnp.zeros(players, jnp.int8),
    )


def after_game(state: SessionState, over: jax.Array, place: standing.Places) -> SessionState:
    """`state` after a stone: where its game is `over`, counted, and the next one begun or, at
    the session's end, everybody paid; the session's last game stays on the board.

    Args:
      place: of the game, in case it is over.
    """
    rules = state.game.rules
    table = np.rint(standing.shares(rules.place_points) * UNIT).astype(np.int32)
    sole_first = [(b == 0) & (s == 1) for b, s in zip(*place, strict=True)]
    counted = state.replace(
        games=state.games + jnp.int8(1),
        points=state.points + standing.paid(place, table),
        firsts=state.firsts + jnp.stack(sole_first).astype(jnp.int8),
    )
    champion = jnp.any(counted.firsts >= FIRSTS_TO_WIN)
    ended = over & (champion | (counted.games >= rules.session_games))
    begun = state.game.start(*(state.dims if rules.bucket else ())).replace(
        games=counted.games, points=counted.points, firsts=counted.firsts
    )
    nxt = _where(over & ~ended, begun, _where(ended, counted, state))
    payoffs = standing.shares(rules.place_payoffs).astype(np.float32)
    return nxt.replace(
        rewards=jnp.where(ended, standing.paid(final_places(counted), payoffs), 0.0),
        terminated=state.terminated & ~over | ended,
        truncated=state.truncated & ~over,
    )


def _where(flag, one, other):
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), one, other)


def final_places(state: SessionState) -> standing.Places:
    """Places of the session: a champion of three firsts, then by points."""
    champion = state.firsts >= FIRSTS_TO_WIN
    winner = jnp.where(jnp.any(champion), jnp.argmax(champion), -1)
    order = standing.winner_first(standing.by_values(state.points[:, None]), winner)
    rules = state.game.rules
    return standing.places(order, rules.players, shared=rules.profile == "fair")


def session_vector(state: SessionState, player: jax.Array) -> jax.Array:
    """float32[P + 1]: points of `player` and of the others in turn order, each as a share of
    five points per game of a full session; then the share of games left."""
    rules = state.game.rules
    most = UNIT * rules.place_points[0] * rules.session_games
    mine = jnp.roll(state.points, -player)
    left = (rules.session_games - state.games.astype(jnp.float32)) / rules.session_games
    return jnp.append(mine.astype(jnp.float32) / most, left)
