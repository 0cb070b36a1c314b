"""The fences: who may call, from where, with how much. Pure ASGI, outside all routes."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import os
import pathlib
import secrets
import urllib.parse
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from configs import ConfigError
from configs.schema import ServeConfig
from experiments.serve import problems
from experiments.serve.problems import Problem
from jaxgames.record import RecordError, parse_json

#: Bytes of a body at most, counted as they come in.
BODY_BYTES = 1 << 20
#: Bytes from which on a body is looked at in a thread.
LARGE = 1 << 16
#: Seconds in which a body must have come in.
BODY_S = 30.0
#: Bytes of a refused body that are still taken in, and for how many seconds at most: who is cut
#: off while he sends does not get to read why.
LINGER_BYTES, LINGER_S = 8 << 20, 5.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
#: Paths that need no token, as they tell nothing of anybody: whether the server lives. They are
#: also answered in the loop in front (`process.Aside`), so that nothing below them may take long
#: or touch what belongs to the application's loop.
OPEN = ("/health/", "/v2/health/")
_GUARDED = ("/v1/", "/api/", "/metrics", "/openapi.json", "/ws")
_SAFE = ("GET", "HEAD", "OPTIONS")


class Keys:
    """Tokens, and the cookies that stand for them.

    Attributes:
      play, read: the tokens of the two scopes; None where none is needed.
      fresh: whether they were made now, and so have to be told.
      code: what a page may swap for a cookie, once.
    """

    def __init__(self, play: str | None = None, read: str | None = None, fresh: bool = False):
        self.play, self.read, self.fresh = play, read, fresh
        self.code = secrets.token_urlsafe(24) if play else None
        self._cookies: list[str] = []

    @property
    def needed(self) -> bool:
        return self.play is not None

    def swap(self, code: str) -> str | None:
        """A new cookie for the one-time code, or for the token; None for neither."""
        once = self.code is not None and _same(code, self.code)
        if once:
            self.code = None
        elif not (self.play and _same(code, self.play)):
            return None
        self._cookies = [*self._cookies[-15:], secrets.token_urlsafe(32)]
        return self._cookies[-1]

    def scope(self, headers: Headers, cookie: str) -> str | None:
        """ "play", "read" or None: what the caller may do; `cookie` is the name of ours."""
        if not self.needed:
            return "play"
        kind, _, token = headers.get("authorization", "").partition(" ")
        found = None
        if kind.lower() == "bearer":
            for name in ("read", "play"):
                found = name if _same(token.strip(), getattr(self, name)) else found
        value = cookie_parser(headers.get("cookie", "")).get(cookie, "")
        for known in self._cookies:
            found = "play" if _same(value, known) else found
        return found


def _same(one: str, two: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), two.encode())


def cookie_name(scope: Scope) -> str:
    """Of the server that was called: browsers keep one jar for all ports of a host."""
    _, port = scope.get("server") or ("", None)
    return f"jaxgames-{port}" if port else "jaxgames"


def keys(settings: ServeConfig) -> Keys:
    """The tokens that the settings ask for; raises ConfigError for a file that others may read."""
    if is_loopback(settings.host) or settings.insecure_no_auth:
        return Keys()
    path = pathlib.Path(settings.token_file) if settings.token_file else _token_file()
    if path.exists():
        return _kept(path)
    told = {"play": secrets.token_urlsafe(32), "read": secrets.token_urlsafe(32)}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(told, file)
    return Keys(told["play"], told["read"], fresh=True)


def _kept(path: pathlib.Path) -> Keys:
    if path.stat().st_mode & 0o077:
        raise ConfigError("serve.token_file", f"{path} may be read by others: chmod 600 it")
    try:
        told = json.loads(path.read_text("utf-8")[:4096])
        tokens = [told[name] for name in ("play", "read")]
        if any(not isinstance(t, str) or len(t) < 16 for t in tokens):
            raise ValueError
    except (ValueError, KeyError, TypeError, OSError):
        raise ConfigError("serve.token_file", f"{path} holds no tokens: remove it") from None
    return Keys(*tokens)


def _token_file() -> pathlib.Path:
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home) / "jaxgames" / "token.json"


def is_loopback(host: str) -> bool:
    """Whether only this machine can call there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_name(text: str) -> str:
    """The name in "name", "name:port" or "[::1]:port", lower case; "" for what is none."""
    try:
        parts = urllib.parse.urlsplit(f"//{text}")
        parts.port  # noqa: B018  (checks it)
        plain = not (parts.path or parts.query or parts.fragment or parts.username)
        return (parts.hostname or "") if plain else ""
    except ValueError:
        return ""


def router(keys: Keys) -> APIRouter:
    """Where a page swaps its one-time code for a cookie."""
    routes = APIRouter(responses=problems.RESPONSES)

    @routes.post("/v1/session", status_code=204, tags=["operations"])
    async def session(request: Request) -> Response:
        """A cookie for the code or the token in `Authorization: Bearer ...`."""
        kind, _, code = request.headers.get("authorization", "").partition(" ")
        if not keys.needed:
            return Response(status_code=204)
        value = keys.swap(code.strip()) if kind.lower() == "bearer" else None
        if value is None:
            raise Problem("unauthorized", "this code was used already, or is none")
        response = Response(status_code=204)
        name = cookie_name(request.scope)
        response.set_cookie(name, value, httponly=True, samesite="strict", path="/")
        return response

    return routes


async def refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": problem.detail[:100]})
        return
    scope.setdefault("state", {})["code"] = problem.code
    await problems.answer(problem)(scope, receive, send)


def only_reads(request: Request) -> bool:
    """Whether the caller's token lets him change nothing: for what a GET would change."""
    return getattr(request.state, "may", "play") != "play"


class Fence:
    """Host, Origin and token."""

    def __init__(self, app: ASGIApp, settings: ServeConfig, keys: Keys):
        self.app, self.keys = app, keys
        self.origins = {origin.lower().rstrip("/") for origin in settings.cors}
        self.hosts = {*LOOPBACK, *(host_name(h) or h.lower() for h in settings.allowed_hosts)}
        self.any_address = settings.host in ("0.0.0.0", "::")
        if not self.any_address:
            self.hosts.add(settings.host.lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        problem = self.wrong(scope, headers)
        if problem is not None:
            return await refuse(problem, scope, receive, send)
        origin = headers.get("origin", "").lower()
        if origin in self.origins and scope["type"] == "http":
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                return await _preflight(origin)(scope, receive, send)
            send = _with_headers(send, {"Access-Control-Allow-Origin": origin, "Vary": "Origin"})
        await self.app(scope, receive, send)

    def wrong(self, scope: Scope, headers: Headers) -> Problem | None:
        """Why the caller is not let in; who is let in by a token has its scope in `state.may`."""
        if len(headers.getlist("host")) != 1 or not self._known(headers["host"]):
            rule = "this name is not one of serve.allowed_hosts"
            return Problem("forbidden", rule, "host")
        changes = scope["type"] == "websocket" or scope["method"] not in _SAFE
        path = scope["path"]
        # a page can not read what it asks of others, but it can keep them busy
        asks = path.startswith(_GUARDED) or "text/event-stream" in headers.get("accept", "")
        if (changes or asks) and not self._own(headers):
            return Problem("forbidden", "a page of another origin may not do this", "origin")
        if path.startswith(OPEN) or not path.startswith(_GUARDED) or path == "/v1/session":
            return None
        if headers.get("origin", "").lower() in self.origins and scope.get("method") == "OPTIONS":
            return None
        allowed = self.keys.scope(headers, cookie_name(scope))
        if allowed is None:
            return Problem("unauthorized", "send the token as `Authorization: Bearer TOKEN`")
        if changes and allowed != "play":
            return Problem("forbidden", "this token may only read")
        scope.setdefault("state", {})["may"] = allowed
        return None

    def _known(self, host: str) -> bool:
        name = host_name(host)
        if name in self.hosts:
            return bool(name)
        if not self.any_address:
            return False
        try:  # an address can not be rebound by a name server
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _own(self, headers: Headers) -> bool:
        """Whether it comes from no page, from ours, or from one that was let in."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        if origin.lower() in self.origins:
            return True
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not self._known(host):
            return False
        return host.lower() == headers["host"].lower()


def _preflight(origin: str) -> ASGIApp:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "authorization, content-type",
            "Vary": "Origin",
        },
    )


class TooLarge(Problem):
    """A body that is; `more` of it may still come."""

    def __init__(self, more: bool = True):
        super().__init__("too_large", f"at most {BODY_BYTES} bytes", "body")
        self.more = more


async def _linger(receive: Receive) -> None:
    """Takes in what still comes of a body, and lets it go."""
    size, more = 0, True
    while more and size < LINGER_BYTES:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)


class Gate:
    """Bodies: how large, of which type, and JSON without tricks."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _SAFE:
            return await self.app(scope, receive, send)
        try:
            body = await asyncio.wait_for(self._body(scope, receive), BODY_S)
        except TimeoutError:
            problem = Problem("bad_request", f"the body did not come in within {BODY_S:g} s")
            return await refuse(problem, scope, receive, send)
        except TooLarge as problem:
            if problem.more and "expect" not in Headers(scope=scope):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(_linger(receive), LINGER_S)
            return await refuse(problem, scope, receive, send)
        except Problem as problem:
            return await refuse(problem, scope, receive, send)
        if body is None:
            return  # gone before it was said
        told = False

        async def replay() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:12]) > BODY_BYTES:
            raise TooLarge()
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > BODY_BYTES:
                raise TooLarge(more)
        body = b"".join(parts)
        if body:
            kind = headers.get("content-type", "")
            if len(body) > LARGE:
                await asyncio.to_thread(check_json, body, kind)
            else:
                check_json(body, kind)
        return body


def check_json(body: bytes, content_type: str) -> None:
    """Refuses what is not JSON, or only a lax reader would take for it."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise Problem("media_type", "send application/json", "content-type")
    try:
        parse_json(body.decode("utf-8"), "body")
    except UnicodeError:
        raise Problem("bad_json", "not UTF-8", "body") from None
    except RecordError as error:
        raise Problem("bad_json", error.message[:200], error.field[:80]) from None


class Headed:
    """The headers that every answer carries."""

    def __init__(self, app: ASGIApp, settings: ServeConfig):
        self.app = app
        frames = " ".join(settings.frame_ancestors) or "'none'"
        self.headers = {
            "Content-Security-Policy": (
                "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
                f"base-uri 'none'; form-action 'self'; frame-ancestors {frames}"
            ),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            send = _with_headers(send, self.headers, store=scope["path"].startswith(_GUARDED))
        await self.app(scope, receive, send)


def _with_headers(send: Send, more: Mapping[str, Any], store: bool = False) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(more)
            if store:
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
