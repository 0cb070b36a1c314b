"""Positions from their parts as JSON values."""

import jax
import numpy as np
import pytest

from jaxgames import core
from jaxgames.core import PositionError
from jaxgames.match import Match

OPTIONS = {
    "usual": {},
    "small": dict(rows=5, cols=6, win_length=3),
    "bucket": dict(rows=6, cols=5, win_length=4, bucket=8),
    "two": dict(rows=3, cols=3, win_length=3, players=2, profile="wdl"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_parts_of_played_positions_read_back(name):
    game = core.make("eight_in_a_row", **OPTIONS[name])
    rng, ends = np.random.default_rng(0), 0
    for seed in range(2):
        match = Match(game, seed)
        while not match.done and match.ply < 60:
            match.play(int(rng.choice([action for action, _ in match.legal()])))
        for state in (*match.states[:: max(match.ply // 4, 1)], match.state):
            rows, cols = (int(n) for n in state.dims[:2])
            width = game.rules.shape[1]
            board = np.asarray(state.cells)[:rows, :cols]
            last = [None if c < 0 else divmod(int(c), width) for c in np.asarray(state.last)]
            read = game.from_parts({"board": board.tolist(), "last": last})
            for one, two in zip(jax.tree.leaves(state), jax.tree.leaves(read), strict=True):
                np.testing.assert_array_equal(one, two)
            guessed = game.from_parts({"board": ["".join(".123"[m] for m in row) for row in board]})
            np.testing.assert_array_equal(guessed.cells, state.cells)
            assert bool(guessed.done) == bool(state.done)
            ends += bool(state.done)
    assert ends or name == "usual"


EMPTY = [[0] * 3 for _ in range(3)]


@pytest.mark.parametrize(
    "parts, field",
    [
        ({}, "board"),
        ({"board": 3}, "board"),
        ({"board": EMPTY[:2]}, "board"),
        ({"board": [*EMPTY[:2], [0]]}, "board"),
        ({"board": [*EMPTY[:2], [0, 0, 3]]}, "board"),
        ({"board": [*EMPTY[:2], [0, 0, True]]}, "board"),
        ({"board": [*EMPTY[:2], [0, 0, "1"]]}, "board"),
        ({"board": [*EMPTY[:2], "..x"]}, "board"),
        ({"board": [[2, 0, 0], *EMPTY[:2]]}, "board"),
        ({"board": [[1, 1, 1], [2, 2, 2], [0, 0, 0]]}, "board"),
        ({"board": EMPTY, "seat": 1}, "seat"),
        ({"board": EMPTY, "last": [[0, 0], None]}, "last"),
        ({"board": EMPTY, "last": [None]}, "last"),
        ({"board": EMPTY, "last": "x"}, "last"),
        ({"boards": EMPTY}, "boards"),
        ({"board": EMPTY, "rows": 3}, "rows"),
    ],
)
def test_what_is_no_position(parts, field):
    game = core.make("eight_in_a_row", **OPTIONS["two"])
    with pytest.raises(PositionError) as error:
        game.from_parts(parts)
    assert error.value.field == field and "\n" not in str(error.value)


def test_boards_in_a_bucket_say_their_size():
    game = core.make("eight_in_a_row", **OPTIONS["bucket"])
    state = game.from_parts({"board": [[0] * 7] * 7, "rows": 7, "cols": 7, "win_length": 5})
    assert np.asarray(state.dims).tolist()[:3] == [7, 7, 5]
    for wrong in ({"rows": 9}, {"rows": "7"}, {"win_length": 99}):
        with pytest.raises(PositionError):
            game.from_parts({"board": [[0] * 5] * 6} | wrong)
