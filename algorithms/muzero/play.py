"""Searching with the learned model: choose a view, hold it, search, and name the move.

Letters: B roots, V actions of the view, A actions of the game, T teams.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from algorithms.learner import require
from algorithms.muzero import brain, model_search
from algorithms.networks.muzero import Model
from algorithms.search import rounds
from algorithms.search.base import Array, PolicyOutput, Root, row_keys, split_key
from algorithms.search.config import SearchConfig
from algorithms.search.paranoid import paranoid
from jaxgames.core import Game, State

Dynamics = typing.Literal["rules", "learned"]


@dataclasses.dataclass(frozen=True)
class Thinking:
    """How to search, beside the numbers of `SearchConfig`.

    Attributes:
      dynamics: "rules" or "learned", see `model_search`.
      paranoid: everybody against the root instead of everybody for himself (max^n).
      discount: of values, per step.
    """

    dynamics: Dynamics = "rules"
    paranoid: bool = False
    discount: float = 1.0

    def __post_init__(self):
        require(self, "dynamics", self.dynamics in ("rules", "learned"), "rules or learned")
        require(self, "paranoid", isinstance(self.paranoid, bool), "true or false")
        require(self, "discount", 0.0 < self.discount <= 1.0, "above 0, at most 1")


class Thought(NamedTuple):
    """What came of a search.

    Attributes:
      out: in actions of the view; its values are those of the teams even where the search saw
        two sides.
      view: [B, ...], held for the whole search.
      legal: bool[B, V].
      root: the network's judgement.
      action: int32[B], of the game.
    """

    out: PolicyOutput
    view: Any
    legal: Array
    root: Root
    action: Array


def look(model: Model, params: Any, states: State, heated: Array | None = None) -> tuple[Any, Any]:
    """(view, observation of the mover) of `states` [B].

    Where the network has a head for it, the view follows its heat in the rows `heated` bool[B]
    (None: all), and the viewer's own judgement in the others.
    """
    viewer, player = model.viewer, states.current_player
    view = jax.vmap(viewer.focus)(states)
    observation = jax.vmap(viewer.observe)(states, player, view)
    heat = model.heat(brain.net(model, params), observation)
    if heat is None:
        return view, observation
    hot = jax.vmap(viewer.focus)(states, heat)
    if heated is None:
        view = hot
    else:
        rows = heated.shape[0]
        view = jax.tree.map(
            lambda a, b: jnp.where(heated.reshape(rows, *[1] * (a.ndim - 1)), a, b), hot, view
        )
    return view, jax.vmap(viewer.observe)(states, player, view)


class Begun(NamedTuple):
    """A search under way; a pytree. `search` is of the two sides where the search is paranoid."""

    search: rounds.Search
    view: Any
    legal: Array
    root: Root


@dataclasses.dataclass(frozen=True)
class Searcher:
    """What searches, all at once or some simulations at a time. Hashable.

    Attributes:
      game: whose positions are searched.
      model: of its network; `params` below are a brain of it.
      config: the numbers of the search.
      thinking: see `Thinking`.
    """

    game: Game
    model: Model
    config: SearchConfig
    thinking: Thinking

    def search(self, params: Any, key: Array, states: State, view: Any = None) -> Thought:
        """All simulations; see `begin`."""
        return self.finish(self.advance(params, self.begin(params, key, states, view)))

    def begin(self, params: Any, key: Array, states: State, view: Any = None) -> Begun:
        """A search from `states` [B] before its first simulation; consumes `key`.

        Rows with keys of their own, key[B], are searched as if each were alone. `view` [B, ...] is
        chosen by `look` where it is not given. What the mover can not know is drawn anew first,
        once (`game.resample`).
        """
        model, thinking = self.model, self.thinking
        deal_key, search_key = split_key(key, 2)
        player = states.current_player
        if view is None:
            view, observation = look(model, params, states)
        else:
            observation = jax.vmap(model.viewer.observe)(states, player, view)
        deal_keys = row_keys(deal_key, player.shape[0])
        states = jax.vmap(self.game.resample)(states, player, deal_keys)
        inner = self.game.for_search()
        states = states.replace(game=inner)
        root, legal = model_search.root(inner, model, params, states, view, observation)
        if thinking.dynamics == "learned":
            root = dataclasses.replace(root, embedding=(root.embedding[0], player))
        seen, _ = _sides(thinking, root, None)
        begun = rounds.start(self.config.build(), search_key, seen, ~legal)
        return Begun(begun, view, legal, root)

    def advance(self, params: Any, begun: Begun, simulations: Array | int | None = None) -> Begun:
        """So many simulations more, None: all."""
        model, thinking, inner = self.model, self.thinking, self.game.for_search()
        if thinking.dynamics == "rules":
            fn = model_search.rules_fn(inner, model, begun.view, thinking.discount)
        else:
            fn = model_search.learned_fn(inner, model, thinking.discount)
        _, fn = _sides(thinking, begun.root, fn)
        count = self.config.num_simulations if simulations is None else simulations
        net = brain.net(model, params)
        searched = rounds.advance(self.config.build(), net, begun.search, fn, count)
        return begun._replace(search=searched)

    def finish(self, begun: Begun) -> Thought:
        """What came of the simulations so far."""
        out = rounds.finish(self.config.build(), begun.search)
        if self.thinking.paranoid:
            out = dataclasses.replace(out, value=of_all(self.game, begun.root, out.value))
        action = jax.vmap(self.model.viewer.to_game)(begun.view, out.action)
        return Thought(out, begun.view, begun.legal, begun.root, action.astype(jnp.int32))


def _sides(thinking: Thinking, root: Root, fn: Any) -> tuple[Root, Any]:
    """The root and its model as the search sees them."""
    return paranoid(root, fn) if thinking.paranoid else (root, fn)


def of_all(game: Game, root: Root, value: Array) -> Array:
    """float32[B, ..., T] of the values [B, ..., 2] of a paranoid search: what it found for the
    root's team; the others share what is left of it as the network divides it."""
    teams, between = game.num_teams, tuple(range(1, value.ndim - 1))
    own = jnp.expand_dims(jax.nn.one_hot(root.to_move, teams), between)
    before = jnp.expand_dims(root.value, between)
    change = value[..., :1] - jnp.sum(before * own, -1, keepdims=True)
    return before + change * (own - (1.0 - own) / max(teams - 1, 1))
