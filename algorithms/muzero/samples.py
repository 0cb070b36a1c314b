"""From the replay to a batch: the root's view of every step, turned by a symmetry.

The replay holds positions; what the network sees of them is cut here by the view of the root,
and actions and policies of later steps, chosen in views of their own, are named in it. What lies
outside it ends the unroll (an action) or is left out (a share of a policy).

Letters: N windows, S entries, K unrolled steps, V actions of the view, A actions of the game.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from algorithms.muzero.config import Config
from algorithms.muzero.loss import Batch
from algorithms.muzero.targets import Window, unrolled
from algorithms.networks.muzero import Model
from algorithms.replay import ReplayState, Sample
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


def ended(game: Game, ring: ReplayState, sample: Sample) -> State:
    """[N], the last positions of the samples' games; any where a game still runs.

    The replay keeps positions before actions, so the last action is played once more.
    """
    where = (sample.outcome[:, game.num_teams].astype(jnp.int32), sample.row)
    states = unpack(game, jax.tree.map(lambda x: x[where], ring.items["state"]))
    keys = jax.random.split(jax.random.key(0), sample.row.shape[0])
    return jax.vmap(game.step)(states, ring.items["action"][where], keys)


def chances(model: Model, config: Config, key: Array, number: int) -> tuple[Array, Array]:
    """(int32[N, K] actions for absorbing states, int32[N] symmetries) of N = `number` windows."""
    action_key, turn_key = jax.random.split(key)
    viewer, shape = model.viewer, (number, config.unroll)
    anything = jax.random.randint(action_key, shape, 0, viewer.num_actions)
    return anything, jax.random.randint(turn_key, (number,), 0, viewer.symmetries)


def batch(
    game: Game,
    model: Model,
    config: Config,
    part: tuple[Sample, State | None, Array, tuple[Array, Array]],
) -> Batch:
    """What the loss reads.

    `part` is (sample, `ended` of it or None, importance float32[N], `chances`). The sample's
    outcome is that of its game in absolute order, and the column of its last action.
    """
    sample, last, importance, (anything, number) = part
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
    # The teacher leaves no searched value: its share goes to the outcome.
    searched = jnp.any(items["root_value"][:, :steps] != 0.0, axis=-1, keepdims=True)
    share = config.root_share * searched
    targets = unrolled(window, config.unroll, config.td_steps, config.discount, share)

    observe = jax.vmap(jax.vmap(viewer.observe, (0, 0, None)))
    observation = observe(states, states.current_player, view)
    legal = jax.vmap(jax.vmap(viewer.legal, (0, None)))(states, view)
    played = jax.vmap(jax.vmap(viewer.from_game, (None, 0)))(view, items["action"][:, :steps])
    action, alive = played[:, :-1], targets.alive
    seen = (action >= 0) | ~alive[:, :-1]
    known = jnp.concatenate([alive[:, :1], seen], axis=1)
    known = jnp.cumprod(known.astype(jnp.int32), axis=1).astype(bool)
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
        focus=_focus(viewer, weights[:, 0], states, view) if model.looks else None,
        aux=_aux(game, model, config, sample, last, states, view, played, alive),
        sight=_sight(viewer, states) if model.looks else None,
        mover=jax.nn.one_hot(states.current_player[:, 0], game.num_players, dtype=jnp.int32),
    )
    if config.symmetries and viewer.symmetries > 1:
        made = turned(viewer, made, number)
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


def _sight(viewer: Any, states: State) -> Any:
    """Observations [N, ...] of the roots by the viewer's own judgement, whatever the view they were
    played in: it is of these that `play.look` asks where to look, before there is another."""
    first = jax.tree.map(lambda x: x[:, 0], states)
    view = jax.vmap(viewer.focus)(first)
    return jax.vmap(viewer.observe)(first, first.current_player, view)


def _focus(viewer: Any, weights: Array, states: State, view: Any) -> Array:
    """float32[N, rows * cols], where on the coarse board the best action of the root lies."""

    def one(policy, state, view):
        place = viewer.locate(state, viewer.to_game(view, jnp.argmax(policy)))
        return jax.nn.one_hot(place, math.prod(viewer.heat_shape))

    return jax.vmap(one)(weights, jax.tree.map(lambda x: x[:, 0], states), view)


def _aux(game, model, config, sample, last, states, view, played, alive) -> dict[str, Array]:
    """Answers to the auxiliary heads, for each step [N, K + 1]; empty without them.

    "next_action": int32, what the next seat did, -1: unknown. "plies_left": float32, log2(1 + n)
    / 8 of n plies, the same on every board, -1: unknown. "runs": int8[..., h, w, P, R] of the end
    (`Viewer.ending`), the step's mover first.
    """
    if not (config.weights.aux and model.config.auxiliary):
        return {}
    steps = config.unroll + 1
    later = jnp.where(alive[:, 1:], played[:, 1:], -1)
    end = sample.outcome[:, game.num_teams].astype(jnp.int32)
    left = (end - sample.column) % config.replay_length + 1
    left = left[:, None] - jnp.arange(steps)
    known = sample.over[:, None] & alive
    found = {
        "next_action": jnp.pad(later, ((0, 0), (0, 1)), constant_values=-1),
        "plies_left": jnp.where(known, jnp.log2(1.0 + jnp.maximum(left, 0)) / 8, -1.0),
    }
    if last is not None and (ending := _ending(model, last, states, view)) is not None:
        found["runs"] = jnp.where(known[..., None, None, None, None], ending, -1)
    return found


def _ending(model: Model, last: State, states: State, view: Any) -> Array | None:
    see = jax.vmap(jax.vmap(model.viewer.ending, (None, 0, None)))
    return see(last, states.current_player, view)


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
        focus=_turn_focus(viewer, made, number),
        aux=_turn_aux(viewer, made, number, table),
        sight=None if made.sight is None else jax.vmap(viewer.turn)(made.sight, number),
    )


def _turn_focus(viewer: Any, made: Batch, number: Array) -> Array | None:
    """The coarse board is turned as the observation's is."""
    if made.focus is None:
        return None

    def one(seen, focus, i):
        whole = focus.reshape(*viewer.heat_shape, 1)
        return viewer.turn({**seen, "whole": whole}, i)["whole"].reshape(-1)

    first = jax.tree.map(lambda x: x[:, 0], made.observation)
    return jax.vmap(one)(first, made.focus, number)


def _turn_aux(viewer: Any, made: Batch, number: Array, table: Array) -> dict[str, Array]:
    aux = dict(made.aux)
    if "next_action" in aux:
        action = jnp.take_along_axis(table, jnp.maximum(aux["next_action"], 0), axis=1)
        aux["next_action"] = jnp.where(aux["next_action"] < 0, -1, action)
    if "runs" in aux:

        def one(seen, runs, i):
            board = runs.reshape(*runs.shape[:2], -1)
            return viewer.turn({**seen, "board": board}, i)["board"].reshape(runs.shape)

        each = jax.vmap(jax.vmap(one, (0, 0, None)))
        aux["runs"] = each(made.observation, aux["runs"], number)
    return aux
