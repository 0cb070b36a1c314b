"""The application: routes, pages and the fences around them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pathlib

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from configs.schema import ServeConfig
from experiments.serve import api, problems
from experiments.serve.models import Models
from experiments.serve.service import Service

WEB = pathlib.Path(__file__).resolve().parents[1] / "web"
#: Routers of their own modules: module -> what its `router` is given.
PARTS = {"tables": lambda service: service, "runs": lambda service: service.settings.runs_dir}


def build(settings: ServeConfig) -> FastAPI:
    """The application; raises ConfigError or BundleError for what it can not serve."""
    service = Service(settings, Models(settings.models_dir))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI):
        service.start()
        try:
            yield
        finally:
            service.stop()

    app = FastAPI(title="jaxgames", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service
    problems.install(app)
    app.include_router(api.router(service))
    for name, given in PARTS.items():
        module = f"experiments.serve.{name}"
        if importlib.util.find_spec(module) is not None:
            app.include_router(importlib.import_module(module).router(given(service)))
    if WEB.is_dir():
        app.mount("/", StaticFiles(directory=WEB, html=True))

    @app.middleware("http")
    async def guarded(request, call_next):
        response = await call_next(request)
        response.headers["Content-Security-Policy"] = (
            "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return app
