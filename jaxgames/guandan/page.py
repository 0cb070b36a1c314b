"""What a page draws of Guandan, as JSON values; every play to the card. On the host."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxgames.guandan import actions, cards, exact
from jaxgames.guandan.cards import NAMES, RANKS
from jaxgames.guandan.human import roles, spelt
from jaxgames.guandan.round_check import payers_of
from jaxgames.guandan.rules import PLAY, RETURN, SEATS, TRIBUTE
from jaxgames.guandan.scene import Scene, Shown, headline, sides
from jaxgames.guandan.text import status

STAGES = {TRIBUTE: "tribute", RETURN: "return", PLAY: "play"}


def scene_json(state, viewer: int | None = None) -> dict[str, Any]:
    """A position for `viewer`; None sees all hands.

    Cards are names such as "S9", "HT", "SB", "HR", of a hand in ascending power. "plays" are
    those of the seat to move, for that seat alone; see `plays_of`.
    """
    scene = Scene(jax.tree.map(np.asarray, state), viewer)
    rules, mover = state.game.rules, scene.mover
    trick = [_play(scene, play) for play in scene.trick()]
    return {
        "kind": "guandan",
        "headline": headline(scene.state),
        "status": status(scene.state),
        "viewer": viewer,
        "mover": mover,
        "profile": rules.profile,
        "unit": rules.unit,
        "round": int(scene.state.rounds) + (mover is not None),
        "stage": STAGES[int(scene.state.stage)],
        "level": RANKS[scene.level],
        "wild": NAMES[scene.wild],
        "teams": [
            {"team": side.team, "level": RANKS[side.level], "owns": side.owns, "fails": fails}
            for side, fails in zip(sides(scene.state), scene.state.fails.tolist(), strict=True)
        ],
        "seats": [_seat(scene, seat) for seat in range(SEATS)],
        "trick": trick,
        "to_beat": trick[0] if scene.to_beat and trick else None,
        "passed": _passed(scene),
        "history": [_play(scene, play) for play in scene.history()],
        "tribute": _tribute(scene),
        "plays": plays_of(scene) if mover is not None and mover == viewer else None,
    }


def _seat(scene: Scene, seat: int) -> dict[str, Any]:
    """A seat; of a hidden hand "cards" are those that everybody knows to be there."""
    shown, hidden = scene.visible(seat)
    return {
        "seat": seat,
        "team": seat & 1,
        "left": int(scene.left[seat]),
        "place": scene.place_of(seat),
        "open": scene.sees(seat),
        "cards": [NAMES[card] for card in shown],
        "hidden": hidden,
    }


def _play(scene: Scene, play: Shown) -> dict[str, Any]:
    seat, action, held = play
    return {
        "seat": seat,
        "text": actions.NAMES[action],
        "cards": [NAMES[card] for card in held],
        "spelt": spelt(action, np.bincount(held, minlength=cards.TYPES), scene.level),
    }


def _passed(scene: Scene) -> list[int]:
    """Seats that passed since the last play: those between it and the mover, with cards."""
    if not scene.to_beat or scene.mover is None:
        return []
    last = int(scene.state.table_seat)
    between = ((last + i) % SEATS for i in range(1, (scene.mover - last) % SEATS))
    return [seat for seat in between if scene.left[seat]]


def _tribute(scene: Scene) -> dict[str, Any]:
    """Who pays whom and why: "finish" is the order of the round before, None where there was
    none or it is no longer known; "given" are tributes that all may see; "chosen" is the
    viewer's own card, face down so far."""
    state, mine = scene.state, scene.viewer
    waiting = int(state.stage) != PLAY
    order = [int(seat) for seat in state.order] if waiting else None
    chosen = None
    if waiting and mine is not None:
        given = state.tribute if int(state.stage) == TRIBUTE else state.back
        chosen = NAMES[given[mine]] if given[mine] >= 0 else None
    return {
        "anti": bool(state.anti),
        "finish": order,
        "payers": payers_of(order) if waiting else [],
        "given": [
            {"payer": p, "to": to, "card": NAMES[card], "back": None if b is None else NAMES[b]}
            for p, to, card, b in scene.tributes
        ],
        "chosen": chosen,
    }


def plays_of(scene: Scene) -> list[dict[str, Any]]:
    """All that the seat to move may do, to the card, an entry per action and in list order:
    "text" of the action, its "type" as on the wire, "roles" of its cards, and its "ways", each
    the cards in those roles. "TEXT: WAY" is a move; a pass has the one way "".
    """
    state, seat = scene.state, int(scene.state.current_player)
    if int(state.stage) == PLAY:
        greater = scene.exact(0) if scene.to_beat else None
        profile = state.game.rules.profile
        found = exact.legal_plays(scene.hands[seat], scene.level, greater, profile)
    else:
        give = exact.tribute_plays if int(state.stage) == TRIBUTE else exact.return_plays
        found = give(scene.hands[seat], scene.level)
    entries: dict[int, dict[str, Any]] = {}
    for play in found:
        action = exact.action_of(play, scene.level)
        if action not in entries:
            entries[action] = {
                "text": actions.NAMES[action],
                "type": play.type,
                "roles": roles(action, play),
                "ways": [],
            }
        entries[action]["ways"].append(" ".join(play.cards))
    return list(entries.values())
