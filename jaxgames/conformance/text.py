"""Rules about texts and the host: notation, explanations, chance, matches and records."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.conformance.report import rule
from jaxgames.conformance.trial import Trial, difference, differing, require, singles
from jaxgames.core import PositionError, State
from jaxgames.match import IllegalAction, Match
from jaxgames.move_list import from_move_list, to_move_list
from jaxgames.record import dumps, from_match, game_of, loads, replay

_JUNK = ("", " ", "?", "\x00", "nonsense", "9" * 40, "-1", "[]", "{}", "\u00e9\u2603")
_RECORD_PLIES = 200


@rule("action-text")
def action_text(trial: Trial) -> str:
    """Every action has its own text on one line, which gives the action back."""
    game, known = trial.game, {}
    for state in (singles(trial.start, 1)[0], singles(trial.play.moves.before, 3)[1]):
        known = {}
        for action in range(game.num_actions):
            text = game.action_to_text(state, action)
            require(_one_line(text) and not text.startswith("#"), f"action {action} is {text!r}")
            require(text not in known, f"{text!r} is action {known.get(text)} and {action}")
            known[text] = action
            back = game.action_from_text(state, text)
            require(back == action, f"{text!r} of action {action} gives {back!r}")
        for text in _JUNK:
            try:
                action = game.action_from_text(state, text)
            except ValueError:
                continue
            require(
                text in known or text.strip() in known,
                f"action_from_text({text!r}) gives {action!r}, want a ValueError",
            )
    return f"{len(known)} actions, such as {next(iter(known))!r}"


@rule("position-text")
def position_text(trial: Trial) -> str:
    """A position's text gives back every leaf exactly."""
    game, count = trial.game, 0
    for states in (trial.start, trial.play.moves.before, trial.finished, trial.forfeited):
        for state in singles(states, 12):
            text = game.to_text(state)
            back = game.from_text(text)
            found = difference(state, back)
            require(found is None, f"from_text(to_text(state)): {found}")
            weak = [jnp.asarray(leaf).weak_type for leaf in jax.tree.leaves(back)]
            require(not any(weak), "from_text gives weak types")
            require(game.to_text(back) == text, "to_text of the same position differs")
            count += 1
    return f"{count} positions, the last in {len(text)} characters"


@rule("position-errors")
def position_errors(trial: Trial) -> str:
    """A text that is no position raises PositionError and nothing else."""
    game = trial.game
    text = game.to_text(singles(trial.play.moves.before, 3)[1])
    cuts = [text[: len(text) * i // 8] for i in range(1, 8)] + [text + "x"]
    middle = len(text) // 2
    cuts += [text[:middle] + c + text[middle + 1 :] for c in ("\x00", "-", "9")]
    refused = 0
    for wrong in (*_JUNK, *cuts):
        try:
            state = game.from_text(wrong)
        except PositionError as error:
            require(error.field, f"PositionError without a field for {wrong[:30]!r}")
            refused += 1
            continue
        except Exception as error:
            kind = type(error).__name__
            raise AssertionError(f"from_text({wrong[:30]!r}) raises {kind}: {error}") from error
        found = difference(state, game.from_text(game.to_text(state)))
        require(found is None, f"from_text accepts {wrong[:30]!r} but not its own text of it")
        require(wrong not in _JUNK, f"from_text accepts {wrong[:30]!r}")
    return f"{refused} wrong texts refused"


@rule("explain")
def explain(trial: Trial) -> str:
    """explain_illegal is None for legal actions and a sentence for all others."""
    game, legal, illegal = trial.game, 0, 0
    states = singles(trial.play.moves.before, 8) + singles(trial.finished, 2)
    for state in states:
        mask = np.asarray(state.legal_action_mask) & ~bool(state.done)
        some = trial.rng.permutation(game.num_actions)[:48].tolist()
        some += trial.rng.permutation(np.flatnonzero(mask))[:16].tolist()
        for action in [*some, -1, game.num_actions]:
            reason = game.explain_illegal(state, action)
            allowed = 0 <= action < game.num_actions and bool(mask[action])
            if allowed:
                require(reason is None, f"legal action {action} is explained: {reason!r}")
                legal += 1
            else:
                good = isinstance(reason, str) and _one_line(reason)
                require(good, f"illegal action {action} is explained by {reason!r}")
                illegal += 1
    return f"{legal} legal and {illegal} illegal actions"


@rule("chance-text")
def chance_text(trial: Trial) -> str:
    """step_with_chance and the text of what chance decided give the same position."""
    game, move = trial.game, trial.play.moves
    lucky = differing(move.after, trial.other_luck)
    index = np.concatenate([np.flatnonzero(lucky)[:12], np.flatnonzero(~lucky)[:4]])
    texts = set()
    actions = np.asarray(move.action)[index].tolist()
    batches = (move.before, move.after, trial.other_luck)
    for before, one, other, action in zip(
        *(singles(b, index) for b in batches), actions, strict=True
    ):
        for after in (one, other):
            text = game.chance_to_text(before, action, after)
            require(text is None or _one_line(text), f"chance_to_text gives {text!r}")
            again = game.step_with_chance(before, action, text)
            found = difference(after, again)
            require(found is None, f"step_with_chance({text!r}) gives another position: {found}")
            texts.add(text)
        try:
            game.step_with_chance(before, action, "\x00nonsense")
        except ValueError:
            continue
        raise AssertionError("step_with_chance accepts nonsense")
    return f"{len(index)} moves, {len(texts - {None})} different texts of chance"


@rule("record")
def record(trial: Trial) -> str:
    """A match is recorded, written, read and replayed exactly, and refuses illegal actions."""
    game = trial.game
    match = Match(game, seed=int(trial.rng.integers(2**32)))
    for _ in range(min(game.max_steps, _RECORD_PLIES)):
        if match.done:
            break
        _refuses(match)
        actions = np.flatnonzero(np.asarray(match.state.legal_action_mask))
        match.play(int(trial.rng.choice(actions)))
    _refuses(match)
    _undo(match)
    written = from_match(match)
    require(game_of(written) == game, "the record's ruleset makes another game")
    text = dumps(written)
    require(dumps(loads(text)) == text, "a record does not survive JSON")
    for again in (replay(loads(text)), replay(from_move_list(to_move_list(written)))):
        for ply, (want, got) in enumerate(zip(match.states, again.states, strict=True)):
            found = difference(want, got)
            require(found is None, f"the replay differs at ply {ply}: {found}")
    return f"{match.ply} plies, {len(text)} bytes"


def _refuses(match: Match) -> None:
    """An action outside the mask is refused and changes nothing."""
    state: State = match.state
    if match.done:
        actions = [0]
    else:
        illegal = np.flatnonzero(~np.asarray(state.legal_action_mask))[:1].tolist()
        actions = [*illegal, match.game.num_actions]
    for action in actions:
        try:
            match.play(action)
        except IllegalAction as error:
            require(error.rule, "an illegal action is refused without a reason")
            require(match.state is state, "a refused action changes the match")
            continue
        raise AssertionError(f"a match accepts illegal action {action}")


def _undo(match: Match) -> None:
    """The last move, undone and played again, gives the same."""
    last, state = match.actions[-1], match.state
    match.undo()
    found = difference(state, match.play(last))
    require(found is None, f"undo and the same move again: {found}")


def _one_line(text: str) -> bool:
    return isinstance(text, str) and text.strip() != "" and not set(text) & set("\n\r\t")
