"""What a page draws of Eight-in-a-Row, as JSON values. On the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxgames.eight_in_a_row.notation import sizes
from jaxgames.eight_in_a_row.scene import Scene, ending_runs, outcome_texts, score_texts


def scene_json(state, viewer: int | None = None) -> dict[str, Any]:
    """A position; nothing is hidden, `viewer` is only named.

    "cells" has a string per row, "." empty, else the player's number, seat + 1. Places are
    [row, column]. "threats" are empty cells on which a seat would win, or come one short of it.
    """
    scene = Scene.of(state)
    rows, cols, length, plies = sizes(scene.state)
    over = bool(scene.state.terminated | scene.state.truncated)
    outcomes, scores = outcome_texts(scene), score_texts(scene)
    return {
        "kind": "eight_in_a_row",
        "headline": scene.headline(),
        "about": scene.about(),
        "progress": scene.progress,
        "viewer": viewer,
        "mover": None if over else int(scene.state.current_player),
        "rows": rows,
        "cols": cols,
        "length": length,
        "cap": plies,
        "stones": int(scene.state.ply),
        "cells": ["".join(".1234"[stone] for stone in row) for row in scene.board.tolist()],
        "newest": scene.newest,
        "lines": [[list(place) for place in line] for line in scene.won_lines],
        "seats": [
            {
                "seat": seat,
                "last": None if place is None else list(place),
                "name": None if place is None else scene.name(place),
                "longest": scene.longest(seat),
                "outcome": outcomes[seat],
                "score": scores[seat],
            }
            for seat, place in enumerate(scene.last)
        ],
        "threats": [] if over else _threats(scene.board, len(scene.last), length),
    }


def potential(board: np.ndarray, stone: int) -> np.ndarray:
    """int[rows, cols], the longest run of `stone` that one more of it would make on each empty
    cell, 0 on the others."""
    own = board == stone
    best = np.zeros(board.shape, int)
    # a column, a row laid out as one, and both diagonals; the way back is the board turned round
    for turned, slope in ((False, 0), (True, 0), (False, 1), (False, -1)):
        cells = own.T if turned else own
        before = _before(cells, slope)
        after = _before(cells[::-1, ::-1], slope)[::-1, ::-1]
        along = before + after + 1
        best = np.maximum(best, along.T if turned else along)
    return np.where(board == 0, best, 0)


def _before(own: np.ndarray, slope: int) -> np.ndarray:
    """int[rows, cols], length of the run that ends one row above each cell, `slope` aside."""
    rows, cols = own.shape
    ending = np.pad(ending_runs(own, slope), ((1, 0), (1, 1)))
    return ending[:rows, 1 - slope : 1 - slope + cols]


def _threats(board: np.ndarray, players: int, length: int) -> list[dict[str, Any]]:
    found = []
    for seat in range(players):
        runs = potential(board, seat + 1)
        for row, col in np.argwhere(runs >= max(length - 1, 2)).tolist():
            wins = bool(runs[row, col] >= length)
            found.append({"seat": seat, "place": [row, col], "wins": wins})
    return found
