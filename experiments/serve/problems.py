"""Errors as `application/problem+json`: a status, a code, the field, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from jaxgames.core import FieldError, nearest

MEDIA_TYPE = "application/problem+json"

#: code -> (status, title). Every error of the server is one of these.
CODES: dict[str, tuple[int, str]] = {
    "bad_json": (400, "The body is not JSON"),
    "bad_request": (400, "The request can not be read"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "Not from there"),
    "not_found": (404, "Nothing here"),
    "unknown_game": (404, "No such game"),
    "unknown_model": (404, "No such model"),
    "method": (405, "Not this way"),
    "game_over": (409, "The game is over"),
    "conflict": (409, "Not in this state"),
    "too_large": (413, "Too large"),
    "media_type": (415, "Not JSON"),
    "unknown_field": (422, "Unknown field"),
    "invalid": (422, "Not a valid request"),
    "illegal": (422, "Against the rules"),
    "hidden": (422, "More than the seat may know"),
    "not_served": (422, "Not served here"),
    "queue_full": (429, "Too many questions"),
    "internal": (500, "The server failed"),
    "not_ready": (503, "Not ready"),
    "deadline": (504, "Not in time"),
}


def _whole(text: str) -> str:
    """Without halves of characters, which no answer can hold, and no longer than anybody reads."""
    return text[:2000].encode("utf-8", "replace").decode()


class Problem(Exception):
    """An answer that is an error.

    Args:
      code: a key of `CODES`.
      detail: one sentence.
      field: the part of the request that is wrong, "" for none.
      retry_after: seconds after which to try again.
    """

    def __init__(self, code: str, detail: str, field: str = "", retry_after: int | None = None):
        detail, field = _whole(detail), _whole(field)
        super().__init__(detail)
        self.code, self.detail, self.field, self.retry_after = code, detail, field, retry_after
        self.status, self.title = CODES[code]

    def json(self) -> dict[str, Any]:
        told = {"type": f"urn:jaxgames:problem:{self.code}", "title": self.title}
        told |= {"status": self.status, "code": self.code, "detail": self.detail}
        return told | ({"field": self.field} if self.field else {})


#: For the OpenAPI document: which problems a route may answer.
_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "field")},
        "code": {"type": "string", "enum": list(CODES)},
        "status": {"type": "integer"},
    },
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": ", ".join(code for code, (s, _) in CODES.items() if s == status),
        "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
    }
    for status in sorted({status for status, _ in CODES.values()})
}


def answer(problem: Problem) -> JSONResponse:
    headers: Mapping[str, str] = {}
    if problem.retry_after is not None:
        headers = {"Retry-After": str(problem.retry_after)}
    return JSONResponse(problem.json(), problem.status, headers=headers, media_type=MEDIA_TYPE)


def of_field(error: FieldError, code: str = "invalid", under: str = "") -> Problem:
    """A problem of a `FieldError`, whose field lies below the field `under`."""
    inner = error.field if error.field != under else ""
    field = f"{under}.{inner}" if under and inner else under or inner
    return Problem(code, error.message, field)


def install(app: FastAPI) -> None:
    """All errors of `app` become problems."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _failed)


async def _problem(request: Request, error: Problem) -> JSONResponse:
    request.state.code = error.code
    return answer(error)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    """Nothing of the server's insides is told; the traceback goes to the log."""
    request.state.code = "internal"
    return answer(Problem("internal", "the server failed to answer; its log says why"))


async def _http(request: Request, error: HTTPException) -> JSONResponse:
    by_status = {status: code for code, (status, _) in reversed(CODES.items())}
    code = by_status.get(error.status_code, "bad_request")
    if error.status_code == 404:
        code = "not_found"
    request.state.code = code
    found = Problem(code, str(error.detail))
    response = answer(found)
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    found = of_validation(error.errors(), _body_model(request))
    request.state.code = found.code
    return answer(found)


def _body_model(request: Request) -> Any:
    """The class of the body that the route takes, None for none."""
    field = getattr(request.scope.get("route"), "body_field", None)
    return getattr(getattr(field, "field_info", None), "annotation", None)


def of_validation(errors: Any, model: Any = None) -> Problem:
    """A problem of pydantic's first error in a body of the class `model`; of an unknown field
    with the nearest names."""
    first = errors[0]
    place = list(first["loc"][1:]) if first["loc"][:1] in (("body",), ("query",), ("path",)) else []
    field = "".join(f"[{p}]" if isinstance(p, int) else f".{p}"[:65] for p in place).lstrip(".")
    if first["type"] == "extra_forbidden":
        known = _known(model, place[:-1])
        return Problem("unknown_field", f"no such field{nearest(place[-1], known)}", field)
    if first["type"] in ("json_invalid", "json_type"):
        return Problem("bad_json", "the body is not JSON", field)
    if first["type"] == "missing":
        return Problem("invalid", "missing", field or "body")
    return Problem("invalid", str(first["msg"])[:300], field)


def _known(model: Any, place: list[Any]) -> list[str]:
    """Names of the fields of the part of a body at `place`."""
    for part in place:
        here = getattr(model, "model_fields", {}).get(part)
        model = here.annotation if here is not None else model
    return list(getattr(model, "model_fields", {}))
