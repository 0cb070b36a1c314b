"""Search under hidden information: several deals that the player can not tell apart.

Each of K worlds is drawn by `game.resample`, so the true hidden cards never enter: what comes
out depends on the player's knowledge and the key alone. The worlds of a row are searched as
rows of one batch, share prior, legal actions and root noise (they are one and the same
decision), and their improved policies, values and visits are averaged.

With candidates more deals than worlds are drawn, and the worlds chosen among them by how well
they explain the others' last decisions (`belief.py`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from algorithms.search import belief, game_model
from algorithms.search.base import Array, Params, PolicyOutput, RecurrentFn, split_key
from algorithms.search.game_model import Evaluate
from algorithms.search.rounds import Policy, Search, advance, finish, start
from jaxgames.core import Game, State


def search_worlds(
    game: Game,
    evaluate: Evaluate,
    params: Params,
    key: Array,
    states: State,
    player: Array,
    *,
    num_worlds: int,
    policy: Policy,
    num_candidates: int = 0,
) -> PolicyOutput:
    """Searches K resampled worlds per row and averages them.

    Args:
      game: rules.
      evaluate: see `game_model`.
      params: handed to `evaluate`.
      key: consumed; one, or key[B], by which every row is searched as if it were alone.
      states: [B] true states; only what `player` knows of them is used.
      player: int32[B], the seats to move.
      num_worlds: K >= 1; one is enough without hidden information.
      policy: see `gumbel`, `puct`, `SearchConfig.build`.
      num_candidates: M >= K deals that the worlds are chosen from, by weight; 0: K deals, all
        alike. Costs M * `belief.REMEMBERED` evaluations per row.

    Returns:
      PolicyOutput of B rows: weights, value, visits and q are means over the worlds (q by
      visits); `tree` holds the B * K trees, the worlds of a row side by side. The action is
      the policy's choice from the averaged weights under the shared noise; with one world it
      is that world's.

    Raises:
      ValueError: "num_worlds: ..." below 1; "num_candidates: ..." below the worlds, or in a
        game that does not tell past decisions.
    """
    if num_worlds < 1:
        raise ValueError(f"num_worlds: must be at least 1, got {num_worlds}")
    if num_candidates and num_candidates < num_worlds:
        raise ValueError(f"num_candidates: 0 or at least {num_worlds}, got {num_candidates}")
    if num_candidates:
        belief.require(game)
    numbers = dict(num_worlds=num_worlds, policy=policy, num_candidates=num_candidates)
    search = begin(game, evaluate, params, key, states, player, **numbers)
    fn = recurrent_fn(game, evaluate)
    search = advance(policy, params, search, fn, policy.num_simulations)
    return finish(policy, search, share=num_worlds)


def begin(
    game: Game,
    evaluate: Evaluate,
    params: Params,
    key: Array,
    states: State,
    player: Array,
    *,
    num_worlds: int,
    policy: Policy,
    num_candidates: int = 0,
) -> Search:
    """`search_worlds` before its first simulation; `advance` it with `recurrent_fn(...)` and
    `finish` it with share=num_worlds. Rows with keys of their own, key[B], are searched as if
    each were alone."""
    deal_key, search_key = split_key(key, 2)
    if num_candidates:
        numbers = (num_candidates, num_worlds)
        deals = _believed(game, evaluate, params, deal_key, states, player, *numbers)
    else:
        deals = _deal(game, states, player, deal_key, num_worlds)
    model = game.for_search()
    worlds = jax.tree.map(_merge, deals).replace(game=model)
    root = game_model.root(model, evaluate, params, worlds)
    return start(policy, search_key, root, ~worlds.legal_action_mask, share=num_worlds)


def recurrent_fn(game: Game, evaluate: Evaluate) -> RecurrentFn:
    """What steps these worlds."""
    return game_model.recurrent_fn(game.for_search(), evaluate)


def _deal(game: Game, states: State, player: Array, key: Array, number: int) -> State:
    """[B, number] deals that `player` int32[B] can not tell from `states` [B]."""
    rows = player.shape[0]
    keys = jax.random.split(key, (rows, number)) if key.ndim == 0 else split_key(key, number).T
    return jax.vmap(jax.vmap(game.resample, (None, None, 0)))(states, player, keys)


def _believed(
    game: Game,
    evaluate: Evaluate,
    params: Params,
    key: Array,
    states: State,
    player: Array,
    candidates: int,
    number: int,
) -> State:
    """[B, number] of so many candidates, drawn by weight."""
    deal_key, choice_key = split_key(key, 2)
    deals = _deal(game, states, player, deal_key, candidates)
    flat, seats = jax.tree.map(_merge, deals), jnp.repeat(player, candidates)
    weights = belief.log_likelihood(game, evaluate, params, flat, seats)
    chosen = belief.resample(weights.reshape(-1, candidates), choice_key, number)
    rows = jnp.arange(player.shape[0])[:, None]
    return jax.tree.map(lambda leaf: leaf[rows, chosen], deals)


def _merge(leaf: Array) -> Array:
    """[B, K, ...] to [B * K, ...]."""
    return leaf.reshape(-1, *leaf.shape[2:])
