"""The engine and the plain-Python rule book play the same games, move by move.

The engine plays batches under vmap and scan; each game is then replayed in the twin, which is
told only the moves. Every position must agree in every part.
"""

import dataclasses

import jax
import numpy as np
import pytest

from jaxgames import core
from tests.reference.eight_in_a_row_twin import Options, Twin

FOUR = dict(players=4, payoffs=(1, 0.25, -0.25, -1))

# (options, sizes of a bucket's games). Between both tables: every profile, every number of
# players, sides of 1 and 2, rectangles, caps before, at and after the full board, shared places,
# sessions, buckets.
TABLE = {
    "fair": (dict(rows=4, cols=5, win_length=3), None),
    "classic": (dict(rows=5, cols=4, win_length=4, profile="classic", max_plies=20), None),
    "capped": (dict(rows=6, cols=6, win_length=4, max_plies=14, payoffs=(1, 0.5, 0)), None),
    "four players": (dict(rows=5, cols=5, win_length=3, **FOUR), None),
    "session": (dict(rows=3, cols=4, win_length=3, unit="session"), None),
    "bucket": (
        dict(rows=4, cols=6, win_length=4, bucket=7),
        ((4, 6, 4, 0), (7, 7, 3, 0), (2, 3, 2, 5), (1, 5, 5, 0), (6, 3, 6, 11), (7, 7, 7, 49)),
    ),
}
MORE = {
    "a row": (dict(rows=1, cols=7, win_length=3, profile="wdl", max_plies=9), None),
    "one player": (dict(rows=3, cols=4, win_length=4, players=1, max_plies=8), None),
    "two players": (dict(rows=3, cols=3, win_length=3, players=2, profile="wdl"), None),
    "draws": (dict(rows=5, cols=6, win_length=6), None),
    "two columns": (dict(rows=6, cols=2, win_length=2), None),
    "classic session": (
        dict(rows=2, cols=5, win_length=3, unit="session", profile="classic", max_plies=8),
        None,
    ),
    "fifteen": (dict(), None),
    "fifteen capped": (dict(max_plies=150), None),
    "gomoku": (dict(players=2, profile="wdl"), None),
    "two players fair": (dict(rows=7, cols=7, win_length=5, players=2), None),
    "two player session": (
        dict(rows=4, cols=4, win_length=3, players=2, unit="session", points=(3, 1)),
        None,
    ),
    "four players shared": (
        dict(rows=4, cols=4, win_length=4, unit="session", points=(7, 4, 2, 0), **FOUR),
        None,
    ),
    "a column": (dict(rows=9, cols=1, win_length=4, profile="classic"), None),
    "wide": (dict(rows=3, cols=40, win_length=8, max_plies=100), None),
    "large bucket": (
        dict(win_length=5, bucket=21),
        ((15, 15, 5, 150), (21, 21, 8, 0), (10, 21, 6, 0), (3, 3, 3, 0), (21, 4, 7, 40)),
    ),
    "session in a bucket": (
        dict(rows=3, cols=3, win_length=3, bucket=5, unit="session", session_games=7),
        ((3, 3, 3, 0), (5, 4, 3, 0), (2, 5, 4, 6)),
    ),
}


def rollout(game, sizes, batch, seed):
    """(actions int[S, B], leaves [S + 1, B] on the host) of `batch` games of random moves, a
    step past the end of the longest."""
    keys = jax.random.split(jax.random.key(seed), batch)
    if sizes is None:
        states = jax.vmap(game.init)(keys)
    else:
        rows = np.array([sizes[i % len(sizes)] for i in range(batch)], np.int32)
        states = jax.vmap(game.start)(*rows.T)

    def step(state, key):
        action = core.random_bot(state, key)
        return game.step(state, action, key), action

    def tick(states, key):
        after, action = jax.vmap(step)(states, jax.random.split(key, batch))
        return after, (action, leaves(after))

    def leaves(states):
        return {f.name: getattr(states, f.name) for f in dataclasses.fields(states)[1:]}

    steps = jax.random.split(jax.random.key(seed + 1), game.max_steps + 1)
    _, (actions, after) = jax.jit(lambda s, k: jax.lax.scan(tick, s, k))(states, steps)
    first = jax.tree.map(lambda x: np.asarray(x)[None], leaves(states))
    after = {k: np.concatenate([first[k], np.asarray(v)]) for k, v in after.items()}
    return np.asarray(actions), after


def twin_of(game, size):
    r = game.rules
    rows, cols, win_length, cap = size or (r.rows, r.cols, r.win_length, r.max_plies)
    games = r.session_games if r.unit == "session" else 0
    height, width = r.shape
    return Twin(
        Options(rows, cols, win_length, r.players, r.profile, cap, r.payoffs, r.points, games,
                height, width)
    )  # fmt: skip


def assert_same(twin, leaves, longest):
    """Every public part of one position."""
    over = bool(leaves["terminated"] or leaves["truncated"])
    assert over == twin.over and bool(leaves["truncated"]) == twin.capped
    assert not leaves["illegal"]
    np.testing.assert_array_equal(leaves["cells"], twin.board)
    np.testing.assert_array_equal(leaves["legal_action_mask"], twin.legal())
    np.testing.assert_allclose(leaves["rewards"], [float(r) for r in twin.rewards], atol=1e-6)
    assert leaves["ply"] == twin.ply
    np.testing.assert_array_equal(leaves["last"], twin.last)
    runs = np.array(twin.runs(longest - 1)).reshape(twin.options.players, -1)
    runs[:, twin.options.win_length - 1 :] = 0  # a run that wins is not counted
    np.testing.assert_array_equal(leaves["runs"], runs)
    if not over:
        assert leaves["current_player"] == twin.mover
    if "points" in leaves:
        assert leaves["games"] == twin.played
        np.testing.assert_array_equal(leaves["points"], [12 * p for p in twin.points])
        np.testing.assert_array_equal(leaves["firsts"], twin.firsts)


def replay(options, sizes, batch, seed):
    """Compares `batch` games; how each ended: the set of (rewards, truncated)."""
    game = core.make("eight_in_a_row", **options)
    actions, after = rollout(game, sizes, batch, seed)
    ends = set()
    for g in range(batch):
        twin = twin_of(game, sizes and sizes[g % len(sizes)])
        pages = [{k: v[t, g] for k, v in after.items()} for t in range(len(actions) + 1)]
        assert_same(twin, pages[0], game.rules.longest)
        for action, page in zip(actions[:, g].tolist(), pages[1:], strict=True):
            was_over = twin.over
            twin.play(action)
            assert_same(twin, page, game.rules.longest)
            if was_over:
                break
            if twin.over:
                ends.add((tuple(map(float, twin.rewards)), twin.capped))
        assert was_over
    return ends


@pytest.mark.parametrize("name", TABLE)
def test_small_boards(name):
    ends = replay(*TABLE[name], batch=24, seed=1)
    assert len(ends) > 1, ends


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TABLE, *MORE])
def test_many_games(name):
    options, sizes = {**TABLE, **MORE}[name]
    game = core.make("eight_in_a_row", **options)
    batch = 40 if game.num_actions > 100 else 500
    assert len(replay(options, sizes, batch, seed=7)) > 1


def test_the_comparison_notices(monkeypatch):
    """A twin whose players share no places contradicts the engine."""
    from tests.reference import eight_in_a_row_twin as module

    plain = module.ranking
    monkeypatch.setattr(module, "ranking", lambda worths, first, by_id: plain(worths, first, True))
    with pytest.raises(AssertionError):
        replay(*TABLE["fair"], batch=24, seed=1)
