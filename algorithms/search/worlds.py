"""Search under hidden information: several deals that the player can not tell apart.

Each of K worlds is drawn by `game.resample`, so the true hidden cards never enter: what comes
out depends on the player's knowledge and the key alone. The worlds of a row are searched as
rows of one batch, share prior, legal actions and root noise (they are one and the same
decision), and their improved policies, values and visits are averaged.
"""

from __future__ import annotations

import jax

from algorithms.search import game_model
from algorithms.search.base import Array, Params, PolicyOutput
from algorithms.search.game_model import Evaluate
from algorithms.search.rounds import Policy, advance, finish, start
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
) -> PolicyOutput:
    """Searches K resampled worlds per row and averages them.

    Args:
      game: rules.
      evaluate: see `game_model`.
      params: handed to `evaluate`.
      key: consumed.
      states: [B] true states; only what `player` knows of them is used.
      player: int32[B], the seats to move.
      num_worlds: K >= 1; one is enough without hidden information.
      policy: see `gumbel`, `puct`, `SearchConfig.build`.

    Returns:
      PolicyOutput of B rows: weights, value, visits and q are means over the worlds (q by
      visits); `tree` holds the B * K trees, the worlds of a row side by side. The action is
      the policy's choice from the averaged weights under the shared noise; with one world it
      is that world's.

    Raises:
      ValueError: "num_worlds: ..." below 1.
    """
    if num_worlds < 1:
        raise ValueError(f"num_worlds: must be at least 1, got {num_worlds}")
    batch = player.shape[0]
    deal_key, search_key = jax.random.split(key)
    deal_keys = jax.random.split(deal_key, (batch, num_worlds))
    deal = jax.vmap(jax.vmap(game.resample, (None, None, 0)))
    worlds = jax.tree.map(_merge, deal(states, player, deal_keys))

    root = game_model.root(game, evaluate, params, worlds)
    invalid = ~worlds.legal_action_mask
    search = start(policy, search_key, root, invalid, share=num_worlds)
    fn = game_model.recurrent_fn(game, evaluate)
    search = advance(policy, params, search, fn, policy.num_simulations)
    return finish(policy, search, share=num_worlds)


def _merge(leaf: Array) -> Array:
    """[B, K, ...] to [B * K, ...]."""
    return leaf.reshape(-1, *leaf.shape[2:])
