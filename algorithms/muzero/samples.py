"""From the replay to a batch: the root's view of every step, turned by a symmetry.

The replay holds positions; what the network sees of them is cut here by the view of the root,
and actions and policies of later steps, chosen in views of their own, are named in it. What lies
outside it ends the unroll (an action) or is left out (a share of a policy).

Letters: N windows, S entries, K unrolled steps, V actions of the view, A actions of the game.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from algorithms.muzero.config import Config
from algorithms.muzero.loss import Batch
from algorithms.muzero.targets import Window, unrolled
from algorithms.replay import Sample
from jaxgames.core import Array, Game, State

#: Share of a later step's policy that has to lie in the root's view for it to be learned.
LEAST_SEEN = 0.5


def pack(state: State) -> State:
    """States as the replay keeps them: eight actions of the mask in a byte."""
    return state.replace(legal_action_mask=jnp.packbits(state.legal_action_mask, axis=-1))


def unpack(game: Game, state: State) -> State:
    """Inverse of `pack`."""
    bits = jnp.unpackbits(state.legal_action_mask, axis=-1, count=game.num_actions)
    return state.replace(legal_action_mask=bits.astype(bool))


def batch(game: Game, model: Any, config: Config, part: tuple[Sample, Array, Array]) -> Batch:
    """What the loss reads; `part` is (sample, importance float32[N], key[N] for each window)."""
    sample, importance, keys = part
    items, viewer = sample.items, model.viewer
    steps = config.unroll + 1
    states = unpack(game, jax.tree.map(lambda x: x[:, :steps], items["state"]))
    view = jax.tree.map(lambda x: x[:, 0], items["view"])
    window = Window(
        reward=items["reward"],
        done=items["done"],
        same_game=sample.same_game,
        to_go=sample.outcome[:, None, : game.num_teams] - items["returns"],
        root_value=items["root_value"],
        team=jnp.asarray(game.team_of, jnp.int32)[items["state"].current_player],
    )
    targets = unrolled(window, config.unroll, config.td_steps, config.discount, config.root_share)

    observe = jax.vmap(jax.vmap(viewer.observe, (0, 0, None)))
    observation = observe(states, states.current_player, view)
    legal = jax.vmap(jax.vmap(viewer.legal, (0, None)))(states, view)
    played = items["action"][:, : config.unroll]
    action = jax.vmap(jax.vmap(viewer.from_game, (None, 0)))(view, played.astype(jnp.int32))
    alive = targets.alive
    seen = (action >= 0) | ~alive[:, :-1]
    known = jnp.concatenate([alive[:, :1], seen], axis=1)
    known = jnp.cumprod(known.astype(jnp.int32), axis=1).astype(bool)
    split = jax.vmap(jax.random.split)(keys)
    anything = jax.vmap(
        lambda key: jax.random.randint(key, (config.unroll,), 0, viewer.num_actions)
    )(split[:, 0])
    action = jnp.where(alive[:, :-1] & (action >= 0), action, anything)
    weights, share = _in_view(viewer, items, view, steps)
    if config.dynamics == "learned":
        legal = jnp.ones_like(legal)  # the tree can not mask: priors have to know the rules
    made = Batch(
        observation=observation,
        legal=legal,
        weights=weights,
        train_policy=items["train_policy"][:, :steps] * (share >= LEAST_SEEN),
        action=action.astype(jnp.int32),
        value=targets.value,
        reward=targets.reward,
        alive=alive,
        known=known,
        importance=importance,
    )
    if config.symmetries and viewer.symmetries > 1:
        number = jax.vmap(lambda key: jax.random.randint(key, (), 0, viewer.symmetries))
        made = turned(viewer, made, number(split[:, 1]))
    return made


def _in_view(viewer: Any, items: Any, view: Any, steps: int) -> tuple[Array, Array]:
    """Policies float32[N, K + 1, V] of the window named in the root's view, each summing to one,
    and float32[N, K + 1], how much of each lies in it."""
    weights = items["weights"][:, :steps].astype(jnp.float32)
    if jax.tree.leaves(view):
        own = jax.tree.map(lambda x: x[:, :steps], items["view"])
        actions = jnp.arange(viewer.num_actions)

        def rename(root, here, policy):
            cells = jax.vmap(viewer.to_game, (None, 0))(here, actions)
            place = jax.vmap(viewer.from_game, (None, 0))(root, cells)
            place = jnp.where(place < 0, viewer.num_actions, place)
            return jnp.zeros_like(policy).at[place].add(policy, mode="drop")

        weights = jax.vmap(jax.vmap(rename, (None, 0, 0)))(view, own, weights)
    share = weights.sum(-1)
    return weights / jnp.maximum(share, 1e-6)[..., None], share


def turned(viewer: Any, made: Batch, number: Array) -> Batch:
    """The same batch, each window turned by its symmetry `number` int32[N]."""
    table = jax.vmap(viewer.turn_action)(number)  # [N, V]
    back = jnp.argsort(table, axis=1)[:, None]

    def pick(per_action):
        return jnp.take_along_axis(per_action, back, axis=-1)

    return made._replace(
        observation=jax.vmap(jax.vmap(viewer.turn, (0, None)))(made.observation, number),
        legal=pick(made.legal),
        weights=pick(made.weights),
        action=jnp.take_along_axis(table, made.action, axis=1),
    )
