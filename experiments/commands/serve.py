"""`jaxgames serve`: the HTTP server."""

from __future__ import annotations

import socket
from typing import Any

from configs.schema import ServeConfig
from experiments import errors
from experiments.device import select, use_compile_cache


def main(call) -> int:
    config = call.resolved.config
    select(config.device)
    if config.serve.compile_cache:
        use_compile_cache()
    run(config.serve, say=lambda text: None if call.flags.quiet else print(text, flush=True))
    return errors.DONE


def run(settings: ServeConfig, path: str = "/", say: Any = print) -> None:
    """Serves until interrupted; says one address, that of the page `path`.

    Raises:
      ConfigError, BundleError: what can not be served.
      RunError: the address is taken.
    """
    import uvicorn

    from experiments.serve.app import build

    app = build(settings)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        where = f"{settings.host}:{settings.port}"
        raise errors.RunError(f"serve.port: can not listen on {where} ({error.strerror})") from None
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"http://{host}:{listener.getsockname()[1]}{path}")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.run(sockets=[listener])
