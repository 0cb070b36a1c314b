"""Compiles what the host needs to follow games of some rules, by following one."""

from __future__ import annotations

import numpy as np

from experiments.serve import positions
from jaxgames import record
from jaxgames.core import Game
from jaxgames.match import IllegalAction, Match

_WARM: set[Game] = set()


def host(game: Game, plies: int = 48) -> None:
    """Once for each game: moves, texts, notes, records, knowledge, and why a move is illegal."""
    if game in _WARM:
        return
    hidden = positions.hides(game)
    match = Match(game, 0)
    told = []
    for ply in range(plies):
        if match.done:
            match = Match(game, ply)
        told.append(match.state)
        legal = match.legal()
        action, text = legal[(7 * ply) % len(legal)]
        note = game.action_notes(match.state, [action])[0]
        try:
            match.play(f"{text}: {note}" if note and ply % 2 else text)
        except IllegalAction:  # the note is no detail of a move here
            match.play(action)
        game.announce(match.states[-2], action, match.state)
    for state in (told[0], told[1], told[-1]):
        game.from_text(game.to_text(state))
        illegal = np.flatnonzero(~np.asarray(state.legal_action_mask))[:1]
        for action in illegal.tolist():
            game.explain_illegal(state, action)
        if hidden and (knowledge := game.to_knowledge(state)) is not None:
            game.from_knowledge(knowledge)
    record.replay(record.loads(record.dumps(record.from_match(match))))
    _WARM.add(game)
