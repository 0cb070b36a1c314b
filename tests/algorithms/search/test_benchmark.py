"""The figures of the search benchmark: complete, consistent, and of equal searches."""

import json

import pytest

from experiments.benchmarks.search import benchmark_search, bytes_per_node_action


def test_small_cases():
    report = benchmark_search(((2, 8, 6),), 2, linearity=((2, 4, 6), (2, 8, 6)))
    assert json.loads(json.dumps(report)) == report
    (case,) = report["cases"]
    assert case["agree"] is True
    for side in ("ours", "mctx"):
        assert 0 < case[side]["low"] <= case[side]["median"] <= case[side]["high"]
        assert case["compile_seconds"][side] > 0
    assert case["ratio"] == case["ours"]["median"] / case["mctx"]["median"]
    assert bytes_per_node_action(441) <= 8


@pytest.mark.slow
def test_targets():
    """The floors of the search's speed; on an idle machine."""
    report = benchmark_search()
    floors = {(1, 200): 1.3, (64, 32): 6, (64, 128): 10, (16, 800): 60}
    for case in report["cases"]:
        assert case["agree"]
        assert case["ratio"] >= floors[case["roots"], case["simulations"]], case
    assert report["linearity"]["ratio"] <= 3
    assert report["bytes_per_node_action"] <= 8
