"""T teams seen as two: the root's team, and everybody else playing against it.

The reduction gives up what the others want for themselves and lets the search use two-sided
values. Team 0 of the reduced problem is the team in question, team 1 is the rest. Its value is
then what that team can force against all others together.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from algorithms.search.base import Array, RecurrentFn, Root, take_team


def paranoid(
    root: Root, recurrent_fn: RecurrentFn, team: Array | None = None
) -> tuple[Root, RecurrentFn]:
    """The reduced root, with embedding `(team int32[B], embedding)`, and its model.

    `team` int32[B] is the one against the rest; None: the team to move at the root.
    """
    team = (root.to_move if team is None else team).astype(jnp.int32)

    def reduced_fn(params, key, action, embedding):
        team, inner = embedding
        step, inner = recurrent_fn(params, key, action, inner)
        step = dataclasses.replace(
            step,
            reward=_against(step.reward, team),
            value=_against(step.value, team),
            to_move=_side(step.to_move, team),
        )
        return step, (team, inner)

    reduced = dataclasses.replace(
        root,
        value=_against(root.value, team),
        to_move=_side(root.to_move, team),
        embedding=(team, root.embedding),
    )
    return reduced, reduced_fn


def _against(values: Array, team: Array) -> Array:
    """[B, T] to [B, 2]: what the team gets, and its opposite."""
    own = take_team(values, team)
    return jnp.stack([own, -own], axis=-1)


def _side(to_move: Array, team: Array) -> Array:
    return (to_move != team).astype(jnp.int32)
