"""Simulations per second of the search, next to mctx in the same process.

Both search the same hash tree (`hash_tree.py`) from the same roots under the same key; ours
with a value for each of two sides, mctx with one signed value. Their outputs are compared
before any figure is reported.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable

import jax
import mctx
import numpy as np

from algorithms import search
from experiments.benchmarks import hash_tree
from experiments.benchmarks.hash_tree import HashTree

#: Roots, simulations, actions.
CASES = ((1, 200, 441), (64, 32, 441), (64, 128, 441), (16, 800, 441))
#: Short and long search whose rates show whether cost is linear in the simulations.
LINEARITY = ((16, 50, 441), (16, 800, 441))
POLICIES = {
    "gumbel": (search.gumbel_policy, mctx.gumbel_muzero_policy),
    "puct": (search.puct_policy, mctx.muzero_policy),
}
#: A call longer than this is timed once.
LONG_SECONDS = 5.0


def benchmark_search(
    cases: tuple[tuple[int, int, int], ...] = CASES,
    repeats: int = 3,
    *,
    linearity: tuple[tuple[int, int, int], ...] = LINEARITY,
    peers: bool = True,
    policy: str = "gumbel",
    say: Callable[[str], None] = lambda text: None,
) -> dict:
    """Measures the cases; everything in the result is JSON-ready.

    Args:
      cases: (roots, simulations, actions) of each.
      repeats: timed calls, ours and mctx in turn; medians are reported.
      linearity: two cases whose rates are compared, or none; ours alone.
      peers: measure mctx too.
      policy: "gumbel" or "puct".
      say: reports progress.

    Returns:
      {"policy", "cases": [{"roots", "simulations", "actions", "ours": rate, "mctx": rate,
      "ratio", "agree", "compile_seconds": {"ours", "mctx"}}], "linearity": {"rates",
      "ratio"}, "bytes_per_node_action", "hardware"}; a rate is {"median", "low", "high"} in
      simulations per second over all roots; "agree": same actions and visits, weights
      within 1e-5.
    """
    measured = []
    for case in cases:
        say(f"{policy} search of {case[0]} roots x {case[1]} simulations x {case[2]} actions")
        measured.append(_case(policy, case, repeats, peers))
    rates = [_case(policy, case, repeats, False)["ours"] for case in linearity]
    return {
        "policy": policy,
        "cases": measured,
        "linearity": {
            "cases": [list(case) for case in linearity],
            "rates": rates,
            "ratio": rates[0]["median"] / rates[-1]["median"] if rates else None,
        },
        "bytes_per_node_action": bytes_per_node_action(cases[0][2]),
        "hardware": {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count()},
    }


def bytes_per_node_action(actions: int) -> float:
    """Bytes of a whole tree, embeddings of 8 bytes included, over nodes times actions."""
    policy = search.gumbel(31)

    def begin():
        root, _ = hash_tree.ours(HashTree(actions), np.uint32(0), 1)
        return search.start(policy, jax.random.key(0), root).tree

    leaves = jax.tree.leaves(jax.eval_shape(begin))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) / (32 * actions)


def run(config, say: Callable[[str], None]) -> dict:
    """The rows of `jaxgames benchmark search`."""
    knobs = config.benchmark
    report = benchmark_search(repeats=knobs.repeats, peers=knobs.peers, say=say)
    rows, compile_s = [], {}
    for case in report["cases"]:
        name = f"{case['roots']} x {case['simulations']} x {case['actions']}"
        for side in ("ours", "mctx"):
            if side in case:
                rows.append(_row(f"{name}, {side}", case[side], "simulations/s", knobs.repeats))
                compile_s[f"{name}, {side}"] = case["compile_seconds"][side]
        if "ratio" in case:
            rows.append({"what": f"{name}, times mctx", "value": case["ratio"], "unit": "x"})
            rows.append(
                {"what": f"{name}, outputs equal", "value": int(case["agree"]), "unit": "of 1"}
            )
    slowdown = {"value": report["linearity"]["ratio"], "unit": "x"}
    rows.append({"what": "rate at 16 x 50 over 16 x 800", **slowdown})
    memory = {"value": report["bytes_per_node_action"], "unit": "bytes"}
    rows.append({"what": "memory per node and action", **memory})
    return {"rows": rows, "compile_s": compile_s, "detail": report}


def _row(what: str, rate: dict, unit: str, repeats: int) -> dict:
    return {
        "what": what,
        "value": rate["median"],
        "low": rate["low"],
        "high": rate["high"],
        "unit": unit,
        "repeats": repeats,
    }


def _case(policy: str, case: tuple[int, int, int], repeats: int, peers: bool) -> dict:
    """One case measured; see `benchmark_search`."""
    roots, simulations, actions = case
    args = (np.uint32(3), jax.random.key(5))
    sides, compile_seconds = {}, {}
    for side, function in _searches(policy, case).items():
        if side == "mctx" and not peers:
            continue
        begin = time.perf_counter()
        sides[side] = jax.jit(function).lower(*args).compile()
        compile_seconds[side] = time.perf_counter() - begin
    seconds, outputs = {side: [] for side in sides}, {}
    for _ in range(repeats):
        for side, compiled in sides.items():
            if seconds[side] and seconds[side][0] > LONG_SECONDS:
                continue
            begin = time.perf_counter()
            outputs[side] = jax.block_until_ready(compiled(*args))
            seconds[side].append(time.perf_counter() - begin)
    result = {
        "roots": roots,
        "simulations": simulations,
        "actions": actions,
        "compile_seconds": compile_seconds,
        **{side: _rate(roots * simulations, taken) for side, taken in seconds.items()},
    }
    if peers:
        result["ratio"] = result["ours"]["median"] / result["mctx"]["median"]
        result["agree"] = _agree(outputs["ours"], outputs["mctx"])
    return result


def _searches(policy: str, case: tuple[int, int, int]) -> dict[str, Callable]:
    """`(seed, key) -> (action, weights, visits)` by each side."""
    roots, simulations, actions = case
    tree = HashTree(actions, ends=False)
    mine, reference = POLICIES[policy]

    def ours(seed, key):
        root, fn = hash_tree.ours(tree, seed, roots)
        out = mine((), key, root, fn, simulations)
        return out.action, out.action_weights, out.visits

    def theirs(seed, key):
        root, fn = hash_tree.theirs(tree, seed, roots)
        out = reference((), key, root, fn, simulations)
        return out.action, out.action_weights, out.search_tree.summary().visit_counts

    return {"ours": ours, "mctx": theirs}


def _agree(ours: tuple, theirs: tuple) -> bool:
    same = all(np.array_equal(ours[i], theirs[i]) for i in (0, 2))
    return bool(same and np.allclose(ours[1], theirs[1], atol=1e-5))


def _rate(simulations: int, seconds: list[float]) -> dict[str, float]:
    rates = [simulations / s for s in seconds]
    return {"median": statistics.median(rates), "low": min(rates), "high": max(rates)}
