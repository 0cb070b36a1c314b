"""The server of `jaxgames dashboard`: the pages and /v1/runs, behind the fences of the server."""

from __future__ import annotations

import pathlib

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from experiments.dashboard.run import Catalogue
from experiments.serve import problems, runs

WEB = pathlib.Path(__file__).resolve().parents[1] / "web"
PAGE = "/dashboard.html"


def build(catalogue: Catalogue) -> FastAPI:
    """The application for the runs of a catalogue."""
    app = FastAPI(title="jaxgames dashboard", docs_url=None, redoc_url=None, openapi_url=None)
    problems.install(app)
    app.include_router(runs.of_catalogue(catalogue))

    @app.get("/health/live")
    def live() -> dict[str, str]:
        return {"status": "live"}

    @app.get("/")
    def home() -> RedirectResponse:
        return RedirectResponse(PAGE)

    @app.websocket("/")
    async def old(socket: WebSocket) -> None:
        """Where clients of the original dashboard connect: the first run that is listed."""
        await runs.old_client(socket, catalogue, "", runs.Slots(runs.STREAMS))

    app.mount("/", StaticFiles(directory=WEB, html=True))
    return app
