"""What is exported: a bundle with its game, and its network as a function of observations.

Letters: B rows, A actions of the game, V actions that the network knows, T teams.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import agents, bundle, muzero
from algorithms.muzero import brain, play
from experiments.errors import UsageError
from experiments.serve.models import game_of
from jaxgames.core import Array, Game, State

#: What a search divides Q by for its prior, see `networks.model.evaluator`.
Q_SCALE = 0.1


@dataclasses.dataclass(frozen=True)
class Subject:
    """Attributes:
    name: what to call it.
    path: the bundle.
    meta: its model.json.
    game: the game that it was trained for.
    params: its weights (MuZero: with the bank, if it has one).
    look: (params, states[B]) -> (observation, legal bool[B, V]), what the network is told of
      the seats to move, and what they may do.
    judge: (params, observation) -> {"logits" float32[B, V], "value" float32[B, T], and "q"
      float32[B, V, T] where there is one}; the team of the seat to move comes first.
    actions: what V counts, in words.
    plays: "q" of a player that takes the legal action of the highest Q for its own team, else
      "logits"; without a search, that is.
    """

    name: str
    path: pathlib.Path
    meta: Mapping[str, Any]
    game: Game
    params: Any
    look: Callable[[Any, State], tuple[dict[str, Array], Array]]
    judge: Callable[[Any, dict[str, Array]], dict[str, Array]]
    actions: str
    plays: str = "logits"

    def preferences(self, outputs: Mapping[str, Array]) -> Array:
        """float32[B, V], logits of what it plays; of a Q, those that its search begins with."""
        return outputs["logits"] if self.plays == "logits" else outputs["q"][..., 0] / Q_SCALE

    @property
    def says(self) -> str:
        """How to read the outputs."""
        best = "logits" if self.plays == "logits" else "q[:, :, 0]"
        told = "logits and Q are of" if self.plays == "q" else "logits are of"
        return (
            f"{told} the {self.actions}, the team of the seat to move comes first; "
            f"its move is the legal one of the largest {best}"
        )

    @functools.cached_property
    def observation(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes and dtypes of one row of an observation, by name."""
        batch, _ = jax.eval_shape(self.look, self.params, self.states(1))
        return {k: jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for k, x in batch.items()}

    def states(self, rows: int) -> State:
        """Shapes of so many states."""
        deal = jax.vmap(self.game.init)
        return jax.eval_shape(lambda key: deal(jax.random.split(key, rows)), jax.random.key(0))


def read(word: str) -> Subject:
    """The subject that a word names: a bundle, a run (itself or below runs/), or GAME/NAME of a
    bundle that comes with the package.

    Raises:
      UsageError: nothing there. BundleError: a bundle that can not be used.
    """
    path = _find(word)
    meta = bundle.read_meta(path)
    game = game_of(meta)
    bundle.check_game(meta, game)
    plays = "logits"
    name = f"{game.id}_{path.parent.name if path.name == 'best' else path.name}"
    if meta["agent"] == "muzero":
        model = muzero.model_of(meta, game)
        look, judge = _muzero(model)
        params, actions = muzero.load(path, model), "actions of the network's view of the board"
        if model.viewer.num_actions == game.num_actions:
            actions = "actions of the game"
    else:
        model = agents.bundle_model(meta, game)
        expected = jax.eval_shape(model.init, jax.random.key(0))
        params = jax.tree.map(jnp.asarray, bundle.load(path, expected, game).params)
        look, judge, actions = *_plain(model), "actions of the game"
        plays = "q" if agents.head_of(meta["agent"]) == "q" else "logits"
    return Subject(name, path, meta, game, params, look, judge, actions, plays)


def _find(word: str) -> pathlib.Path:
    tried = (agents.BUNDLES / word, pathlib.Path(word), pathlib.Path("runs") / word)
    for path in tried:
        for candidate in (path, path / "best"):
            if word and (candidate / bundle.META).is_file():
                return candidate
    for path in tried:
        if word and (path / "config.yaml").is_file():
            raise UsageError(f"export: {path} is a run that has no bundle in best/ yet")
    known = sorted(f"{p.parent.name}/{p.name}" for p in agents.BUNDLES.glob("*/*/"))
    raise UsageError(
        f"export: no bundle at {word!r} or runs/{word}; those of the package are {', '.join(known)}"
    )


def _plain(model: Any) -> tuple[Callable, Callable]:
    def look(params, states):
        del params
        return model.observe(states), states.legal_action_mask

    def judge(params, observation):
        return _named(model.apply(params, observation)._asdict())

    return look, judge


def _muzero(model: Any) -> tuple[Callable, Callable]:
    def look(params, states):
        view, observation = play.look(model, params, states)
        return observation, jax.vmap(model.viewer.legal)(states, view)

    def judge(params, observation):
        net = brain.net(model, params)
        latent = model.represent(net, observation, brain.bank(model, params))
        found = model.predict(net, latent)
        return _named({"logits": found.logits, "value": found.value})

    return look, judge


def _named(outputs: Mapping[str, Any]) -> dict[str, Array]:
    return {k: x.astype(jnp.float32) for k, x in outputs.items() if x is not None}
