"""Rules about who may know what: observations, re-deals, bots and pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.conformance.report import rule
from jaxgames.conformance.trial import Trial, difference, differing, require, rows, singles

_PUBLIC = ("current_player", "rewards", "terminated", "truncated", "illegal")


@rule("observation")
def observation(trial: Trial) -> str:
    """Every seat sees an int8 board of the declared shape and finite float32 features."""
    game = trial.game
    seen = trial.observe(*trial.seen)
    views = {
        "observe": seen,
        "observe_all": jax.jit(jax.vmap(game.observe_all))(*trial.seen),
    }
    for name, view in views.items():
        require(isinstance(view, dict), f"{name} gives no dict")
        require(set(view) == {"board", "features"}, f"{name} gives {sorted(view)}")
        board, features = view["board"], view["features"]
        require(board.dtype == jnp.int8, f"{name}: board is {board.dtype}, want int8")
        require(features.dtype == jnp.float32, f"{name}: features are {features.dtype}")
        require(board.ndim == 4, f"{name}: board has {board.ndim - 1} dimensions, want H, W, C")
        require(features.ndim == 2, f"{name}: features have {features.ndim - 1} dimensions")
        require(bool(jnp.isfinite(features).all()), f"{name}: features are not all finite")
    shape = seen["board"].shape[1:3]
    require(shape == game.board_shape, f"board {shape}, board_shape {game.board_shape}")
    return f"board {list(seen['board'].shape[1:])}, {seen['features'].shape[1]} features"


@rule("knowledge")
def knowledge(trial: Trial) -> str:
    """Positions that differ only in what a seat can not see look the same to it."""
    states, seats = trial.seen
    views = trial.observe(states, seats)
    found = difference(views, trial.observe(trial.worlds, seats))
    require(found is None, f"hidden information shows in the observation: {found}")
    index = trial.mover_rows
    same = np.array_equal(states.legal_action_mask[index], trial.worlds.legal_action_mask[index])
    require(same, "hidden information shows in the mover's own mask")
    hidden = differing(states, trial.worlds)
    return f"{len(seats)} views, {hidden.sum()} with something hidden"


@rule("resample-public")
def resample_public(trial: Trial) -> str:
    """A re-deal changes nothing public."""
    states, seats = trial.seen
    for name in _PUBLIC:
        same = np.array_equal(getattr(states, name), getattr(trial.worlds, name))
        require(same, f"resample changes {name}")
    return ", ".join(_PUBLIC)


@rule("resample-legal")
def resample_legal(trial: Trial) -> str:
    """A re-deal is a position like any other: its text is accepted and it plays on."""
    game, worlds = trial.game, trial.worlds
    for state in singles(worlds, 16):
        found = difference(state, game.from_text(game.to_text(state)))
        require(found is None, f"the text of a re-deal gives another position: {found}")
    state = rows(
        worlds,
        (
            np.arange(trial.n) * game.num_players
            + trial.rng.integers(game.num_players, size=trial.n)
        ),
    )
    for ply in range(game.max_steps):
        if bool(state.done.all()):
            break
        stuck = ~np.asarray(state.legal_action_mask).any(axis=1)
        require(not stuck.any(), "a re-deal has no legal action")
        _, _, state = trial.random_moves(state, 7, ply)
        require(not bool(state.illegal.any()), "a legal action in a re-deal is illegal")
    require(bool(state.done.all()), "games from a re-deal run past max_steps")
    return f"{trial.n} re-deals played to the end"


@rule("resample-function")
def resample_function(trial: Trial) -> str:
    """A re-deal depends on the seat's knowledge and the key alone."""
    _, seats = trial.seen
    for number in range(2):
        again = trial.dealt(trial.dealt(*trial.seen, 1), seats, 2 + number)
        found = difference(trial.dealt(*trial.seen, 2 + number), again)
        require(found is None, f"equal knowledge and key give different re-deals: {found}")
    return f"{2 * len(seats)} re-deals of re-deals"


@rule("resample-varies")
def resample_varies(trial: Trial) -> str:
    """What chance hides from a seat, resample deals anew for it."""
    one, two = trial.play.moves.after, trial.other_luck
    states, seats = trial.all_seats(one)
    others, _ = trial.all_seats(two)
    views = trial.observe(states, seats), trial.observe(others, seats)
    unseen = differing(states, others) & ~differing(*views) & ~np.asarray(states.done)
    if not unseen.any():
        return "no hidden chance met"
    varied = np.zeros(len(seats), bool)
    for number in range(4):
        varied |= differing(states, trial.dealt(states, seats, 8 + number))
    require((varied & unseen).any(), "chance hides something that resample never changes")
    return f"{(varied & unseen).sum()} of {unseen.sum()} views with hidden chance"


@rule("bots")
def bots(trial: Trial) -> str:
    """The bots, "random" among them, play legal actions."""
    game, before = trial.game, trial.play.moves.before
    require("random" in game.bots, "no bot 'random'")
    for name, bot in game.bots.items():
        action = jax.jit(jax.vmap(bot))(before, trial.keys(9))
        form = (action.shape, action.dtype)
        require(form == ((trial.n,), jnp.int32), f"bot {name!r} gives {form[1]}{form[0][1:]}")
        inside = (action >= 0) & (action < game.num_actions)
        require(bool(inside.all()), f"bot {name!r} plays outside the head")
        legal = before.legal_action_mask[jnp.arange(trial.n), action]
        require(bool(legal.all()), f"bot {name!r} plays an illegal action")
    return f"{', '.join(game.bots)}: {trial.n} positions each"


@rule("bots-knowledge")
def bots_knowledge(trial: Trial) -> str:
    """A bot's choice does not depend on what its seat can not see."""
    worlds = rows(trial.worlds, trial.mover_rows)
    for name, bot in trial.game.bots.items():
        act = jax.jit(jax.vmap(bot))
        same = np.array_equal(
            act(trial.play.moves.before, trial.keys(9)), act(worlds, trial.keys(9))
        )
        require(same, f"bot {name!r} looks at hidden information")
    return f"{', '.join(trial.game.bots)}"


@rule("picture")
def picture(trial: Trial) -> str:
    """Every position draws as well-formed SVG, as text and as JSON, for each viewer."""
    game, count = trial.game, 0
    viewers = [None, *range(min(game.num_players, 4))]
    for state in singles(trial.play.moves.before, 3) + singles(trial.finished, 2):
        for viewer in viewers:
            root = xml.etree.ElementTree.fromstring(game.draw(state, viewer))
            require(root.tag.endswith("svg"), f"draw gives <{root.tag}>, not <svg>")
            words = game.draw_text(state, viewer)
            require(isinstance(words, str) and words.strip(), "draw_text gives nothing")
            scene = game.scene_json(state, viewer)
            require(isinstance(scene.get("kind"), str), "scene_json says no kind")
            back = json.loads(json.dumps(scene, allow_nan=False))
            require(back == scene, "scene_json gives more than JSON values")
            count += 1
    return f"{count} pictures"


@rule("picture-knowledge")
def picture_knowledge(trial: Trial) -> str:
    """A picture for a seat hides what that seat may not see."""
    game, (states, seats) = trial.game, trial.seen
    index = np.flatnonzero(differing(states, trial.worlds))
    index = trial.rng.permutation(index)[:8]
    if not len(index):
        return "nothing hidden"
    viewers = np.asarray(seats)[index].tolist()
    pairs = zip(singles(states, index), singles(trial.worlds, index), viewers, strict=True)
    for one, two, seat in pairs:
        for name in ("draw", "draw_text", "scene_json"):
            show = getattr(game, name)
            same = show(one, seat) == show(two, seat)
            require(same, f"{name} shows seat {seat} what it may not see")
    return f"{len(index)} pictures with something hidden"
