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


class Problem(Exception):
    """An answer that is an error.

    Args:
      code: a key of `CODES`.
      detail: one sentence.
      field: the part of the request that is wrong, "" for none.
      retry_after: seconds after which to try again.
    """

    def __init__(self, code: str, detail: str, field: str = "", retry_after: int | None = None):
        super().__init__(detail)
        self.code, self.detail, self.field, self.retry_after = code, detail, field, retry_after
        self.status = CODES[code][0]


def body(problem: Problem) -> dict[str, Any]:
    """The JSON of a problem."""
    status, title = CODES[problem.code]
    fields = {"type": f"urn:jaxgames:problem:{problem.code}", "title": title, "status": status}
    fields |= {"code": problem.code, "detail": problem.detail}
    return fields | ({"field": problem.field} if problem.field else {})


def answer(problem: Problem) -> JSONResponse:
    headers: Mapping[str, str] = {}
    if problem.retry_after is not None:
        headers = {"Retry-After": str(problem.retry_after)}
    return JSONResponse(body(problem), problem.status, headers=headers, media_type=MEDIA_TYPE)


def of_field(error: FieldError, code: str = "invalid", under: str = "") -> Problem:
    """A problem of a `FieldError`, whose field lies below the field `under`."""
    field = f"{under}.{error.field}" if under and error.field else under or error.field
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
    return answer(Problem("internal", "the server failed to answer; its log says why"))


async def _http(request: Request, error: HTTPException) -> JSONResponse:
    by_status = {status: code for code, (status, _) in reversed(CODES.items())}
    code = by_status.get(error.status_code, "bad_request")
    if error.status_code == 404:
        code = "not_found"
    found = Problem(code, str(error.detail))
    response = answer(found)
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    return answer(of_validation(error.errors()))


def of_validation(errors: Any) -> Problem:
    """A problem of pydantic's first error; of an unknown field with the nearest names."""
    first = errors[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    field = "".join(f"[{p}]" if p.isdecimal() else f".{p}" for p in place).lstrip(".")
    if first["type"] == "extra_forbidden":
        known = (first.get("ctx") or {}).get("known", ())
        more = nearest(place[-1], known) if known else ""
        return Problem("unknown_field", f"no such field{more}", field)
    if first["type"] in ("json_invalid", "json_type"):
        return Problem("bad_json", "the body is not JSON", field)
    if first["type"] == "missing":
        return Problem("invalid", "missing", field)
    return Problem("invalid", str(first["msg"]), field)
