"""The application: routes, pages and the fences around them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pathlib
import time
from importlib import metadata

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from configs.schema import ServeConfig
from experiments.serve import api, original, problems, security
from experiments.serve.metrics import Metrics
from experiments.serve.models import Models
from experiments.serve.service import Service

WEB = pathlib.Path(__file__).resolve().parents[1] / "web"
#: Routers of their own modules: module -> what its `router` is given.
PARTS = {
    "table_routes": lambda service: service,
    "runs": lambda service: service.settings.runs_dir,
}


def build(settings: ServeConfig) -> FastAPI:
    """The application; raises ConfigError or BundleError for what it can not serve."""
    service, keys = Service(settings, Models(settings.models_dir)), security.keys(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI):
        service.start()
        try:
            yield
        finally:
            service.stop()

    app = FastAPI(
        title="jaxgames",
        version=metadata.version("jaxgames"),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service, app.state.keys = service, keys
    problems.install(app)
    app.include_router(api.router(service))
    app.include_router(original.router(service))
    app.include_router(security.router(keys))
    for name, given in PARTS.items():
        module = f"experiments.serve.{name}"
        if importlib.util.find_spec(module) is not None:
            part = importlib.import_module(module).router(given(service))
            app.include_router(part, responses=problems.RESPONSES)
    if WEB.is_dir():
        app.router.default = StaticFiles(directory=WEB, html=True)  # where no route is meant
    # the last is the outermost
    app.add_middleware(security.Gate)
    app.add_middleware(security.Fence, settings=settings, keys=keys)
    app.add_middleware(security.Headed, settings=settings)
    app.add_middleware(Measured, metrics=service.metrics)
    return app


class Measured:
    """Counts answers and how long they took, by route, game and code; pure ASGI."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = time.monotonic(), 500
        state = scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            code = state.get("code", "ok" if status < 400 else str(status))
            self.metrics.requests.add(route=route, game=state.get("game", ""), code=code)
            self.metrics.request_seconds.add(time.monotonic() - began, route=route)
