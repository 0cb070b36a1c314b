"""A search told to people: the same visits as the search counted, and nothing made up."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401  (registers "highcard")
from algorithms.networks.model import NetworkConfig, build, evaluator
from algorithms.search.config import SearchConfig
from algorithms.search.outline import branches, lines, outline
from algorithms.search.worlds import search_worlds
from jaxgames import core

GAME = core.make("highcard", players=4)
WORLDS, SIMULATIONS = 3, 24
CONFIG = SearchConfig(num_simulations=SIMULATIONS, policy="puct", dirichlet_fraction=0.0)


@pytest.fixture(scope="module")
def searched():
    """(outline [B, K, N], PolicyOutput) of four positions of a card game with hidden cards."""
    model = build(GAME, NetworkConfig(channels=4, blocks=0, hidden=8))
    policy = CONFIG.build()

    @jax.jit
    def run(params, key):
        states = jax.vmap(GAME.init)(jax.random.split(key, 4))
        out = search_worlds(
            GAME,
            evaluator(GAME, model),
            params,
            key,
            states,
            states.current_player,
            num_worlds=WORLDS,
            policy=policy,
        )
        positions = out.tree.embedding
        return outline(out.tree, positions.current_player, positions, worlds=WORLDS), out

    return jax.device_get(run(model.init(jax.random.key(1)), jax.random.key(2)))


def row(found, i):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i], found)


def choosing(found):
    """A decision with two moves open."""
    return row(found, int(np.flatnonzero(found.moves[:, 0, 0] == 2)[0]))


def nodes(tree, depth=0):
    yield tree, depth
    for child in tree["children"]:
        yield from nodes(child, depth + 1)


def whole(one, **limits):
    return branches(GAME, one, **(dict(top=99, depth=99, nodes=10_000) | limits))


def test_root_branches_have_the_visits_of_the_search(searched):
    found, out = searched
    for i in range(4):
        tree = whole(row(found, i))
        named = {GAME.action_to_text(None, a): v for a, v in enumerate(out.visits[i]) if v > 0}
        told = {child["text"]: child["visits"] for child in tree["children"]}
        assert told == pytest.approx(named, abs=0.01)
        assert sum(told.values()) == pytest.approx(SIMULATIONS, abs=0.05)
        q = {GAME.action_to_text(None, a): q for a, q in enumerate(out.q[i])}
        seat = tree["seat"]
        for child in tree["children"]:
            assert child["value"][seat] == pytest.approx(q[child["text"]], abs=1e-3)


def test_a_node_has_its_own_visit_and_those_below(searched):
    found, _ = searched
    for tree, depth in nodes(whole(row(found, 0))):
        below = sum(child["visits"] for child in tree["children"])
        assert below <= tree["visits"] + 1e-2
        order = [child["visits"] for child in tree["children"]]
        assert order == sorted(order, reverse=True)
        if depth == 0:
            assert tree["visits"] == pytest.approx(below + 1, abs=0.05)  # the root's own


def test_seats_move_in_turn_and_priors_are_shares(searched):
    found, _ = searched
    tree = whole(choosing(found))
    deepest = 0
    for node, depth in nodes(tree):
        deepest = max(deepest, depth)
        assert 0 < node["prior"] <= 1
        assert len(node["value"]) == GAME.num_players
        for child in node["children"]:
            assert child["seat"] in range(GAME.num_players)
    assert deepest > 1
    shares = [child["prior"] for child in tree["children"]]
    assert len(shares) == 2 and sum(shares) == pytest.approx(1, abs=1e-3)


def test_what_is_left_out_is_counted(searched):
    found, _ = searched
    one = choosing(found)
    full, short = whole(one), whole(one, top=1)
    assert len(full["children"]) == 2 and len(short["children"]) == 1
    left = short["others"]
    assert left["moves"] == int(one.moves[:, 0].max()) - 1
    shown = short["children"][0]["visits"]
    assert left["visits"] == pytest.approx(SIMULATIONS - shown, abs=0.05)
    assert short["children"][0]["text"] == full["children"][0]["text"]
    assert full["others"] is None
    cut = whole(one, depth=0)
    assert cut["others"] == {"moves": 2, "visits": pytest.approx(SIMULATIONS, abs=0.05)}


def test_limits_hold_and_json_holds_it(searched):
    found, _ = searched
    tree = branches(GAME, row(found, 3), top=3, depth=2, nodes=7)
    told = list(nodes(tree))
    assert len(told) <= 7 and max(depth for _, depth in told) <= 2
    assert json.loads(json.dumps(tree, allow_nan=False)) == tree


def test_lines_follow_the_most_visited(searched):
    found, out = searched
    one = row(found, 0)
    tree, told = whole(one), lines(GAME, one, length=5)
    assert set(told) == set(np.flatnonzero(out.visits[0] > 0).tolist())
    for child in tree["children"]:
        line = told[GAME.action_from_text(None, child["text"])]
        node, want = child, [child["text"]]
        while node["children"] and len(want) < 5:
            node = node["children"][0]
            want.append(node["text"])
        assert [move["text"] for move in line] == want


def test_moves_are_those_of_the_position(searched):
    """A branch in one world alone is a legal move of the world's position."""
    found, _ = searched
    one = row(found, 0)
    for world, node in np.argwhere(one.visits[:, 1:] > 0).tolist():
        parent, action = int(one.parent[world, node + 1]), int(one.action[world, node + 1])
        mask = one.states.legal_action_mask[world, parent]
        assert mask[action]
        assert one.moves[world, parent] == mask.sum()
        assert one.seat[world, parent] == one.states.current_player[world, parent]


def test_an_ended_game_has_no_moves(searched):
    found, _ = searched
    one = row(found, 0)
    done = np.asarray(one.states.terminated) & (one.visits > 0)
    assert (one.moves[done] == 0).all()


def test_trees_without_positions_are_told_too(searched):
    found, _ = searched
    one = row(found, 0)
    bare = dataclasses.replace(one, states=None)
    assert whole(bare) == whole(one)
