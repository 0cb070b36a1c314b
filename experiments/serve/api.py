"""The routes below /v1."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from experiments.serve.service import Service
from jaxgames import core


def router(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.get("/v1/games")
    async def games() -> dict[str, Any]:
        return {
            "games": [
                {"name": name, "version": core.game_type(name).version,
                 "presets": list(core.game_type(name).presets)}
                for name in core.games()
            ]
        }  # fmt: skip

    @routes.get("/v1/models")
    async def models() -> dict[str, Any]:
        rows = []
        for name in core.games():
            game = core.make(name)
            rows += [
                {"name": m.name, "game": m.game, "kind": m.kind} for m in service.models.of(game)
            ]
        return {"models": rows}

    @routes.get("/health/live")
    async def live() -> dict[str, Any]:
        return {"live": True}

    return routes
