"""Metrics cut to so many points: nothing is lost while they are few, extremes never."""

import math

import hypothesis
import pytest
from hypothesis import strategies

from experiments.dashboard.series import MOST_NAMES, Store


def rows(values, name="a"):
    return [{"seq": i + 1, "step": i, "env_steps": 10 * i, "t": 0.5 * i, name: v}
            for i, v in enumerate(values)]  # fmt: skip


def test_few_rows_come_as_they_are():
    store = Store(8)
    store.add(rows([3.0, None, 1.0]))
    table = store.table()
    assert table["y"] == {"a": [3, None, 1]}
    assert table["x"] == {"step": [0, 1, 2], "env_steps": [0, 10, 20], "t": [0, 0.5, 1]}
    assert (table["rows"], table["width"], store.seq) == (3, 1, 3)


@hypothesis.given(
    values=strategies.lists(
        strategies.one_of(strategies.none(), strategies.floats(-1e6, 1e6)), max_size=300
    ),
    parts=strategies.integers(1, 50),
)
def test_extremes_stay_and_points_are_bounded(values, parts):
    """However the rows come in: all at once or a few at a time."""
    store, whole = Store(8), Store(8)
    given = rows(values)
    for first in range(0, len(given), parts):
        store.add(given[first : first + parts])
    whole.add(given)
    table = store.table()
    assert table == whole.table()
    assert len(table["x"]["step"]) <= 8 + 2
    steps = table["x"]["step"]
    assert steps == sorted(steps)
    if given:
        assert steps[0] == 0 and steps[-1] == len(given) - 1
    numbers = [v for v in values if v is not None]
    kept = [v for v in table["y"].get("a", []) if v is not None]
    assert bool(numbers) == bool(kept)
    if numbers:
        close = dict(rel_tol=1e-5, abs_tol=1e-9)
        assert math.isclose(min(kept), min(numbers), **close)
        assert math.isclose(max(kept), max(numbers), **close)
        assert all(any(math.isclose(k, n, **close) for n in numbers) for k in kept)


def test_extremes_come_in_their_order():
    store = Store(4)
    store.add(rows([0, 5, 1, 1, 1, -7, 1, 2, 9]))  # 2 buckets of 4 rows, and an open one
    assert store.width == 4
    assert store.table()["y"]["a"] == [0, 5, -7, 2, 9, 9]


def test_what_is_no_finite_number_is_a_gap():
    store = Store()
    store.add([{"seq": 1, "kind": "eval", "a": 1, "b": True, "c": {"mean": 1}, "d": float("nan"),
                "e": 10**400, "f": "x", "g": None, "step": None}])  # fmt: skip
    assert store.names == ["a"]
    assert store.table()["x"]["step"] == [0]


def test_names_are_bounded():
    store = Store(4)
    store.add([{"seq": i, f"name{i}": 1.0} for i in range(MOST_NAMES + 50)])
    assert len(store.names) == MOST_NAMES and store.left_out == 50


def test_a_metric_that_begins_late_has_gaps_before():
    store = Store(4)
    store.add(rows([1.0] * 40))
    store.add([{"seq": 41, "step": 40, "b": 2.0}])
    assert store.table()["y"]["b"].count(None) == len(store.table()["y"]["a"]) - 2


@pytest.mark.parametrize("points", [0, 3, 6])
def test_points_that_can_not_be_halved(points):
    with pytest.raises(ValueError, match="a multiple of 4"):
        Store(points)
