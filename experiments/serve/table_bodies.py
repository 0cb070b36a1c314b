"""The requests of /v1/tables as they come in: names, types and limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from experiments.serve.bodies import Body


class SeatBody(Body):
    kind: Literal["human", "model", "bot", "network"] = "human"
    name: Annotated[str, Field(max_length=200)] = ""
    simulations: Annotated[int, Field(ge=1, le=65536)] | None = None
    temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0


class GameBody(Body):
    game: Annotated[str, Field(max_length=64)]
    preset: Annotated[str, Field(max_length=64)] | None = None
    options: Annotated[dict[str, Any], Field(max_length=64)] = {}


class OpenBody(GameBody):
    """A new game, or `record` (JSON or a list of moves, whose game counts) to look at, or with
    `seats` to play on after `ply` of its moves."""

    game: Annotated[str, Field(max_length=64)] = ""
    seats: Annotated[list[SeatBody], Field(max_length=64)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    position: str | None = None
    record: str | None = None
    ply: Annotated[int, Field(ge=0)] | None = None


Viewer = Annotated[str, Field(max_length=8)]


class LookBody(Body):
    viewer: Viewer = "0"


class SeatedBody(LookBody):
    seat: Annotated[int, Field(ge=0)]


class MoveBody(SeatedBody):
    move: Annotated[str, Field(max_length=400)]
    ply: Annotated[int, Field(ge=0)]


class PlyBody(LookBody):
    ply: Annotated[int, Field(ge=0)]


class RunBody(LookBody):
    on: bool


class BranchBody(Body):
    ply: Annotated[int, Field(ge=0)]
    seats: Annotated[list[SeatBody], Field(max_length=64)]


class AnalyseBody(LookBody):
    """`ply` alone, or the whole game without it; without a budget as the model likes."""

    ply: Annotated[int, Field(ge=0)] | None = None
    model: Annotated[str, Field(max_length=200)] = ""
    simulations: Annotated[int, Field(ge=1, le=65536)] | None = None
    network: bool = False
