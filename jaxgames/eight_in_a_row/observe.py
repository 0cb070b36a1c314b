"""What a seat sees of a board: mover-first planes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

#: Longest side of what an agent sees cell by cell (rule book 2).
WINDOW = 21


def observe(state, player: jax.Array) -> dict[str, jax.Array]:
    """{"board": int8[H, W, P + 1], "features": float32[3]}: stones by seat from `player` on,
    empty cells; win length, plies and cap as shares of the board."""
    seats = state.game.num_players
    turns = (player + jnp.arange(seats)) % seats
    stones = state.cells[..., None] == (turns + 1).astype(jnp.int8)
    empty = state.cells[..., None] == 0
    size = state.game.num_actions
    sizes = jnp.stack([state.dims[2], state.ply, state.dims[3]]).astype(jnp.float32)
    return {
        "board": jnp.concatenate([stones, empty], axis=-1).astype(jnp.int8),
        "features": sizes / size,
    }
