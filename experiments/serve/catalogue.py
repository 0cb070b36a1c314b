"""What there is: games, models, legal moves, and whether a record holds."""

from __future__ import annotations

import dataclasses
from typing import Any

from fastapi import Request

from experiments.serve import bodies, positions
from experiments.serve.service import Service
from jaxgames import core, record
from jaxgames.match import Match

_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", tuple: "array"}


def games() -> dict[str, Any]:
    """Every game: its presets, the JSON schema of its options, and how things are written."""
    return {"games": [_game(name) for name in core.games()]}


def _game(name: str) -> dict[str, Any]:
    cls = core.game_type(name)
    game = core.make(name)
    rules = cls.rules_type
    return {
        "name": name,
        "version": cls.version,
        "seats": game.num_players,
        "teams": list(game.team_of),
        "hides": positions.hides(game),
        "presets": {k: _plain(v) for k, v in cls.presets.items()},
        "options": {
            "type": "object",
            "additionalProperties": False,
            "properties": {f.name: _option(rules, f) for f in dataclasses.fields(rules)},
        },
        "encodings": {
            "moves": f"{name} notation",
            "position": f"{name} text",
            "record": f"{record.FORMAT}/{record.VERSION}",
        },
    }


def _option(rules: type, field: dataclasses.Field) -> dict[str, Any]:
    """The JSON schema of one option."""
    told: dict[str, Any] = {"default": _plain(field.default)}
    choices = getattr(rules, "choices", {}).get(field.name)
    low_high = getattr(rules, "ranges", {}).get(field.name)
    if choices:
        told["enum"] = list(choices)
    elif type(field.default) in _KINDS:
        told["type"] = _KINDS[type(field.default)]
    if low_high:
        told |= {"type": "integer", "minimum": low_high[0], "maximum": low_high[1]}
    if field.default is None:
        told = {"anyOf": [told, {"type": "null"}], "default": None}
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return list(value) if isinstance(value, tuple) else value


def models(service: Service) -> dict[str, Any]:
    """Every model: what it plays, from which weights, and how strong it was found."""
    firsts = {name: service.models.default(core.make(name)).name for name in core.games()}
    return {
        "models": [
            {
                "name": m.name,
                "game": m.game,
                "kind": m.kind,
                "agent": m.meta.get("agent", "bot"),
                "default": firsts[m.game] == m.name,
                "searches": not m.bare,
                "sha256": m.sha256 or None,
                **{k: m.meta.get(k) for k in ("step", "run", "licence", "rules", "strength")},
            }
            for m in service.models.all()
        ],
        "simulations": list(service.settings.simulations),
        "max_simulations": service.settings.max_simulations,
    }


def legal(game: core.Game, match: Match, request_id: str | None) -> dict[str, Any]:
    """Legal moves of the seat to move: none when the game is over."""
    moves = match.legal()
    notes = game.action_notes(match.state, [action for action, _ in moves]) if moves else []
    rows = [
        {"action": action, "text": text} | ({"note": note} if note else {})
        for (action, text), note in zip(moves, notes, strict=True)
    ]
    told = {"game": game.id, "done": match.done, "ply": match.ply, "legal": rows}
    told |= {"seat": None if match.done else match.seat}
    return told | ({} if request_id is None else {"request_id": request_id})


def validated(service: Service, body: bodies.Validate, request: Request) -> dict[str, Any]:
    """What a record that holds says; Problem for one that does not."""
    found = positions.recorded(body.record)
    request.state.game = found.game if found.game in core.games() else ""
    if found.game in core.games():
        service.check_rules(positions.game_of(found.game, dict(found.ruleset)))
    found, match = positions.replayed(body.record)
    result = match.result()
    told = {
        "valid": True,
        "game": found.game,
        "plies": match.ply,
        "done": match.done,
        "result": {"rewards": list(result.rewards)}
        | {"terminated": result.terminated, "truncated": result.truncated},
    }
    return told | ({} if body.request_id is None else {"request_id": body.request_id})
