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
    from experiments.serve.app import build

    app = build(settings)
    keys, service = app.state.keys, app.state.service
    if keys.fresh:
        tell_tokens(keys, say)
    if keys.needed:
        path += f"#code={keys.code}"
    listen(app, settings.host, settings.port, path, say)
    if service.fault:
        raise errors.RunError(service.fault)


def tell_tokens(keys: Any, say: Any) -> None:
    """Says tokens that were made just now."""
    say(f"token: {keys.play}\ntoken that only reads: {keys.read}")
    say("they are kept in serve.token_file and not shown again")


def listen(app: Any, host: str, port: int, path: str = "/", say: Any = print) -> None:
    """Serves an application until interrupted; says one address. RunError: it is taken."""
    import uvicorn

    from experiments.serve import http, process

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # who calls at once waits, and is not refused
    except OSError as error:
        listener.close()
        message = f"can not listen on {host}:{port} ({error.strerror})"
        raise errors.RunError(f"serve.port: {message}") from None
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    say(f"http://{shown}:{listener.getsockname()[1]}{path}")
    limits = dict(http=http.Http, ws_max_size=1 << 16)  # clients say little
    quiet = dict(log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(uvicorn.Config(process.Aside(app), **limits, **quiet))
    if hasattr(app.state, "service"):
        service = app.state.service
        service.on_fault = lambda: setattr(server, "should_exit", True)
        service.on_warm = process.settled
        process.first()
    server.run(sockets=[listener])
