"""A finished search told to people: its tree without what a search needs only to go on.

    analysis, outline = jax.jit(agent.explain)(params, key, states, player)
    one = jax.tree.map(lambda leaf: leaf[0], outline)       # of one decision
    branches(game, one, top=5)                              # the tree as JSON values
    lines(game, one)                                        # the line behind each move

The worlds of a decision are told as one tree: a branch is what a seat does, in whatever worlds
it did it, with visits as means over all worlds, as in an `Analysis`.

Letters: B decisions, K worlds of each, N nodes per tree, T teams.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.search.base import MASKED_LOGIT, Array
from algorithms.search.tree import ROOT, Tree
from jaxgames.core import Game


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Outline:
    """B times K trees of at most N nodes; node 0 is the root, a parent precedes its children.

    Attributes:
      parent: int32[B, K, N].
      action: int32[B, K, N], the action of the game that led here.
      seat: int32[B, K, N], the seat to move here.
      visits: int32[B, K, N], simulations that reached the node; 0: there is none.
      prior: float32[B, K, N], probability that the parent's prior gives the action.
      moves: int32[B, K, N], actions open here; 0 where the game is over.
      value: float32[B, K, N, T], mean of what came of going here, rewards on the way included.
      states: [B, K, N] positions; None where the search stepped none.
    """

    parent: Array
    action: Array
    seat: Array
    visits: Array
    prior: Array
    moves: Array
    value: Array
    states: Any = None


def outline(
    tree: Tree, seat: Array, states: Any = None, action: Array | None = None, worlds: int = 1
) -> Outline:
    """The outline of trees [B * K, N], the worlds of a decision side by side.

    Args:
      seat: int32[B * K, N], the seat to move at each node.
      states: [B * K, N] positions, if there are any.
      action: int32[B * K, N], the tree's actions as those of the game; None: they are.
      worlds: K.
    """
    rows = jnp.arange(tree.parent.shape[0])[:, None]
    total = jax.nn.logsumexp(tree.prior, axis=-1)
    logit = tree.prior[rows, tree.parent, tree.action]
    prior = jnp.exp(logit - total[rows, tree.parent]).at[:, ROOT].set(1.0)
    moves = jnp.sum(tree.prior > MASKED_LOGIT / 2, axis=-1)
    value = tree.reward + tree.discount[..., None] * tree.value
    found = Outline(
        parent=tree.parent,
        action=tree.action if action is None else action,
        seat=seat.astype(jnp.int32),
        visits=tree.visits,
        prior=prior,
        moves=jnp.where(tree.discount == 0, 0, moves),
        value=value,
        states=states,
    )
    return jax.tree.map(lambda leaf: leaf.reshape(-1, worlds, *leaf.shape[1:]), found)


# ---- on the host: one decision, leaves [K, N, ...] ----

#: A node of all worlds together: its nodes, as (world, node).
Group = list[tuple[int, int]]


class _Worlds:
    """The trees of one decision as one."""

    def __init__(self, game: Game, one: Outline):
        self.game = game
        self.one = jax.tree.map(np.asarray, one)
        self.number = self.one.parent.shape[0]
        self.below: dict[tuple[int, int], list[int]] = {}
        for world, node in np.argwhere(self.one.visits[:, 1:] > 0).tolist():
            parent = int(self.one.parent[world, node + 1])
            self.below.setdefault((world, parent), []).append(node + 1)
        self.root: Group = [(world, ROOT) for world in range(self.number)]

    def children(self, group: Group) -> list[tuple[int, int, Group]]:
        """(seat, action, nodes) of what was done here, most visited first."""
        found: dict[tuple[int, int], Group] = {}
        for world, node in group:
            seat = int(self.one.seat[world, node])
            for child in self.below.get((world, node), ()):
                key = seat, int(self.one.action[world, child])
                found.setdefault(key, []).append((world, child))
        ordered = sorted(found.items(), key=lambda item: (-self.visits(item[1]), item[0]))
        return [(*key, nodes) for key, nodes in ordered]

    def visits(self, group: Group) -> float:
        """Mean over all worlds."""
        return sum(int(self.one.visits[at]) for at in group) / self.number

    def mean(self, leaf: np.ndarray, group: Group) -> np.ndarray:
        """`leaf` [K, N, ...] of a group, by visits."""
        weights = [int(self.one.visits[at]) for at in group]
        return np.average([leaf[at] for at in group], axis=0, weights=weights)

    def text(self, group: Group, action: int) -> str:
        """An action as it is written in the position before it, that of `group`."""
        states, at = self.one.states, group[0]
        state = None if states is None else jax.tree.map(lambda leaf: leaf[at], states)
        return self.game.action_to_text(state, action)

    def node(self, text: str, seat: int, group: Group) -> dict[str, Any]:
        value = self.mean(self.one.value, group)
        return {
            "text": text,
            "seat": seat,
            "prior": round(float(self.mean(self.one.prior, group)), 4),
            "visits": round(self.visits(group), 2),
            "value": [round(float(value[team]), 4) for team in self.game.team_of],
            "children": [],
            "others": None,
        }

    def others(self, group: Group, hidden: list[tuple[int, int, Group]], shown: int):
        """What of a node is not told: {"moves", "visits"}; None if all is.

        In worlds that differ in what is open, of the world that has most.
        """
        most = max(int(self.one.moves[at]) for at in group)
        moves = max(most, shown + len(hidden)) - shown
        if not moves:
            return None
        visits = sum(self.visits(nodes) for _, _, nodes in hidden)
        return {"moves": moves, "visits": round(visits, 2)}


def branches(
    game: Game, one: Outline, *, top: int = 5, depth: int = 6, nodes: int = 120
) -> dict[str, Any]:
    """The tree as JSON values: at most `top` children of a node, `depth` moves, so many nodes,
    those of most visits.

    A node is {"text": the move that led there, "seat": who made it, "prior", "visits",
    "value": per seat, "children": most visited first, "others": {"moves", "visits"} of those
    not told, or None}. The root's text is "", its seat the one to move.
    """
    worlds = _Worlds(game, one)
    root = worlds.node("", int(worlds.one.seat[0, ROOT]), worlds.root)
    order = itertools.count()
    waiting = [(-root["visits"], next(order), 0, worlds.root, root)]
    told = 1
    while waiting:
        _, _, level, group, node = heapq.heappop(waiting)
        found = worlds.children(group)
        room = 0 if level >= depth else min(top, max(nodes - told, 0))
        for seat, action, below in found[:room]:
            child = worlds.node(worlds.text(group, action), seat, below)
            node["children"].append(child)
            heapq.heappush(waiting, (-child["visits"], next(order), level + 1, below, child))
            told += 1
        node["others"] = worlds.others(group, found[room:], len(node["children"]))
    return root


def lines(game: Game, one: Outline, length: int = 8) -> dict[int, list[dict[str, Any]]]:
    """For each action that was tried, the moves expected from it on: it, then always what was
    visited most, as [{"seat", "text"}], at most `length`."""
    worlds = _Worlds(game, one)
    found = {}
    for seat, action, group in worlds.children(worlds.root):
        line = [{"seat": seat, "text": worlds.text(worlds.root, action)}]
        while len(line) < length and (below := worlds.children(group)):
            seat_next, action_next, nodes = below[0]
            line.append({"seat": seat_next, "text": worlds.text(group, action_next)})
            group = nodes
        found[action] = line
    return found
