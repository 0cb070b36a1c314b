"""The requests of /v1 as they come in: names, types and limits, nothing about games."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

#: Limits of a request.
MOVES, TURNS, CANDIDATES, TREE_NODES = 20_000, 400, 64, 120
SIMULATIONS, TIME_MS = 4096, 600_000
MOVE_TEXT, POSITION_TEXT, RECORD_TEXT = 400, 120_000, 1 << 20

Text = Annotated[str, Field(max_length=64)]
Moves = Annotated[
    list[Annotated[str, Field(max_length=MOVE_TEXT)]],
    Field(max_length=MOVES, description="The moves so far, in the game's notation."),
]


class Body(BaseModel):
    """Unknown fields are refused, and no text is taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Budget(Body):
    """How long to think, in one of three ways; none: as the model likes."""

    simulations: int | None = Field(None, ge=1, le=SIMULATIONS)
    time_ms: float | None = Field(None, gt=0, le=TIME_MS, allow_inf_nan=False)
    mode: Literal["policy"] | None = Field(None, description="policy: no search at all.")

    @model_validator(mode="after")
    def _one(self) -> Budget:
        if sum(value is not None for value in (self.simulations, self.time_ms, self.mode)) > 1:
            raise ValueError("one of simulations, time_ms and mode")
        return self


class At(Body):
    """A position: `moves` from the start or from `position`, or `position` alone, or what one
    seat knows."""

    game: Text
    ruleset: Text | dict[str, Any] | None = Field(
        None, description="A preset's name, or options of the game."
    )
    moves: Moves | None = None
    position: dict[str, Any] | None = Field(
        None, description='{"text": the game\'s own text}, or its parts where the game reads them.'
    )
    knowledge: dict[str, Any] | None = Field(
        None, description="What a seat may know, in games that hide something."
    )
    request_id: str | None = Field(None, max_length=128, description="Given back as it is.")


class Ask(At):
    """A question about a position."""

    model: Text | None = None
    seat: int | None = Field(None, ge=0, le=64, description="Must be the seat to move.")
    budget: Budget = Budget()
    temperature: float = Field(0.0, ge=0, le=100, allow_inf_nan=False)
    seed: int = Field(0, ge=0, lt=2**32)
    candidates: int = Field(5, ge=0, le=CANDIDATES)
    include: list[Literal["policy", "tree", "pv"]] = Field(default=[], max_length=3)


class Move(Ask):
    """Best play for one seat."""


class Analyze(Ask):
    """A look at one or many positions of a game."""

    record: dict[str, Any] | Annotated[str, Field(max_length=RECORD_TEXT)] | None = Field(
        None, description="A game record, or a list of moves as text."
    )
    turns: list[Annotated[int, Field(ge=0, le=MOVES)]] | None = Field(
        None, max_length=TURNS, description="Plies to look at; none: the last position."
    )
    perfect_information: bool = Field(
        False, description="Needed where the input tells what some seat may not know."
    )
    stream: bool = Field(False, description="Server-sent events; so does accept: text/event-stream")


class Legal(At):
    """Which moves are legal."""


class Validate(Body):
    """A record to check."""

    record: dict[str, Any] | Annotated[str, Field(max_length=RECORD_TEXT)]
    request_id: str | None = Field(None, max_length=128)


class OldMove(BaseModel):
    """The original project's request; fields that it does not know are left alone."""

    model_config = ConfigDict(extra="ignore", strict=True)

    board: list[Annotated[list[Annotated[int, Field(ge=0, le=4)]], Field(max_length=200)]] = Field(
        min_length=1, max_length=200, description="0 empty, else the player 1, 2, 3."
    )
    current_player: int = Field(ge=1, le=4)
    move_history: list[list[int] | dict[str, int]] | None = Field(
        None, max_length=40_000, description="[row, col] or {row, col, ...} of each stone."
    )
    win_length: int | None = Field(None, ge=2, le=200)
    model: Text | None = None
    simulations: int | None = Field(None, ge=1, le=SIMULATIONS)
    temperature: float = Field(0.0, ge=0, le=100, allow_inf_nan=False)
    top_k: int = Field(5, ge=1, le=CANDIDATES)
