"""The server of `jaxgames dashboard`: the pages and /v1/runs, behind the fences of the server."""

from __future__ import annotations

import pathlib

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from configs.schema import ServeConfig
from experiments.dashboard.run import Catalogue
from experiments.serve import problems, runs, security

WEB = pathlib.Path(__file__).resolve().parents[1] / "web"
PAGE = "/dashboard.html"


def build(catalogue: Catalogue, settings: ServeConfig) -> FastAPI:
    """The application for the runs of a catalogue; `settings` say who may look."""
    keys = security.keys(settings)
    app = FastAPI(title="jaxgames dashboard", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.keys = keys
    problems.install(app)
    app.include_router(runs.of_catalogue(catalogue))
    app.include_router(security.router(keys))
    slots = runs.Slots(runs.STREAMS)

    @app.get("/health/live")
    def live() -> dict[str, str]:
        return {"status": "live"}

    @app.get("/")
    def home() -> RedirectResponse:
        return RedirectResponse(PAGE[1:])  # beside it: a proxy may put both below a folder

    @app.websocket("/")
    async def old(socket: WebSocket) -> None:
        """Where clients of the original dashboard connect: the first run that is listed."""
        if keys.scope(socket.headers, security.cookie_name(socket.scope)) is None:
            await socket.close(1008, "a token is needed")
            return
        await runs.old_client(socket, catalogue, "", slots)

    app.mount("/", StaticFiles(directory=WEB, html=True))
    # the last is the outermost
    app.add_middleware(security.Gate)
    app.add_middleware(security.Fence, settings=settings, keys=keys)
    app.add_middleware(security.Headed, settings=settings)
    return app
