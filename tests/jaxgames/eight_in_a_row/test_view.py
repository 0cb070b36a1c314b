"""What agents see of Eight-in-a-Row and what their action ids mean."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames import view as views
from jaxgames.eight_in_a_row import observe
from jaxgames.eight_in_a_row.view import View
from tests.jaxgames.eight_in_a_row.poses import longest_run, pose, random_cells, winning_cells

LARGE = dict(rows=40, cols=40, win_length=5)


@functools.cache
def setup(size=0, **options):
    game = jaxgames.make("eight_in_a_row", **options)
    viewer = game.viewer(size)
    tools = {
        name: jax.jit(getattr(viewer, name))
        for name in ("focus", "observe", "legal", "from_game", "turn", "turn_action", "locate")
    }
    tools["to_game"] = jax.jit(jax.vmap(viewer.to_game, in_axes=(None, 0)))
    tools["from_all"] = jax.jit(jax.vmap(viewer.from_game, in_axes=(None, 0)))
    return game, viewer, game.init(jax.random.key(0)), tools


def equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


# ---- planes and features ----


def named(game, state, player):
    """Planes, [H, W] each, and features by name."""
    seen = jax.tree.map(np.asarray, jax.jit(game.observe)(state, player))
    planes = np.moveaxis(seen["board"], -1, 0)
    return (
        dict(zip(observe.plane_names(game.rules), planes, strict=True)),
        dict(zip(observe.feature_names(game.rules), seen["features"], strict=True)),
    )


@pytest.mark.parametrize(
    "players, to_move", [(1, "me"), (2, "me"), (3, "prev"), (4, "after")], ids=str
)
def test_planes_and_features_are_named_and_in_turn_order(players, to_move):
    """Seen from the last seat; the first has put two stones and the second is to move."""
    payoffs = (1, 0, 0, -1) if players == 4 else ()
    game = jaxgames.make(
        "eight_in_a_row", rows=4, cols=6, win_length=4, players=players, payoffs=payoffs
    )
    step = jax.jit(game.step)
    state = game.init(jax.random.key(0))
    for action in range(players + 1):
        state = step(state, action, jax.random.key(0))
    planes, features = named(game, state, players - 1)
    mine = [0, 1] if players == 1 else [players - 1]
    assert list(np.flatnonzero(planes["me"])) == mine
    assert list(np.flatnonzero(planes["last stone of me"])) == mine[-1:]
    if players > 1:
        assert list(np.flatnonzero(planes["next"])) == [0, players]
        assert list(np.flatnonzero(planes["last stone of next"])) == [players]
        # a lone stone is four runs of one, three short of the win length
        np.testing.assert_allclose(features["runs of me, 3 short"], np.log2(5) / 4)
    assert planes["empty"].sum() == 24 - players - 1
    assert [name for name in features if "to move" in name and features[name]] == [
        f"{to_move} to move"
    ]
    assert features[f"sits on {players - 1}"] == 1
    np.testing.assert_allclose(features["rows"], 0.04)
    np.testing.assert_allclose(features["cols"], 0.06)
    np.testing.assert_allclose(features["plies left"], (24 - players - 1) / 250)


def test_sessions_tell_the_points():
    game = jaxgames.make("eight_in_a_row", rows=3, cols=3, win_length=3, unit="session")
    state = game.init(jax.random.key(0))
    state = state.replace(points=jnp.array([12, 24, 60]), games=jnp.int8(1))
    _, features = named(game, state, 1)
    np.testing.assert_allclose(features["points of me"], 2 / 25)
    np.testing.assert_allclose(features["points of next"], 5 / 25)
    np.testing.assert_allclose(features["points of prev"], 1 / 25)
    np.testing.assert_allclose(features["games left"], 4 / 5)


def test_off_the_board_no_plane_is_set():
    game = jaxgames.make("eight_in_a_row", rows=5, cols=7, win_length=4, bucket=9)
    board = jax.jit(game.observe)(game.init(jax.random.key(0)), 0)["board"]
    assert board[..., :7].sum() == 35 == board[:5, :7, 3].sum()
    assert board[5:].sum() == 0 == board[:, 7:].sum()


def test_prospects_of_a_stone():
    game = jaxgames.make("eight_in_a_row", rows=9, cols=9, win_length=5)
    blank = np.zeros((9, 9), np.int8)
    blank[4, 2:5] = 1  # 1 1 1 with both ends open, on an otherwise empty board
    cells = blank.copy()
    cells[4, 5] = 1
    blocked = cells.copy()
    blocked[4, 6] = 2

    see = jax.jit(game.observe)
    names = observe.plane_names(game.rules)

    def planes(cells):
        seen = np.asarray(see(pose(game.init(jax.random.key(0)), cells, 0), 0)["board"])
        return dict(zip(names, np.moveaxis(seen, -1, 0), strict=True))

    assert not planes(blank)["me wins here"].any()
    # four of the lines through (4, 5) have stones, (2 + 1 + 1/4) of an open three's worth
    assert planes(blank)["worth 8 to me"][4, 5] and not planes(blank)["worth 16 to me"].any()
    assert not planes(blank)["worth 1 to next"].any()
    assert set(zip(*np.nonzero(planes(cells)["me wins here"]), strict=True)) == {(4, 1), (4, 6)}
    assert set(zip(*np.nonzero(planes(blocked)["me wins here"]), strict=True)) == {(4, 1)}
    assert not planes(blocked)["next wins here"].any()


def test_a_crop_sees_what_the_whole_board_does():
    game, _, start, tools = setup(**LARGE)
    state = pose(start, random_cells(np.random.default_rng(3), 40, 40), 0)
    view = tools["focus"](state)
    row, col = np.asarray(view.corner)
    seen = tools["observe"](state, jnp.int32(0), view)["board"]
    everything = jax.jit(game.observe)(state, jnp.int32(0))["board"]
    np.testing.assert_array_equal(seen, everything[row : row + 21, col : col + 21])


def plain_coarse(plane, rows, cols):
    bounds = [
        [min(i, n) if n <= 21 else int(np.floor(i * n / 21 + 0.5)) for i in range(22)]
        for n in (rows, cols)
    ]
    out = np.zeros((21, 21), np.int8)
    for i in range(21):
        for j in range(21):
            part = plane[bounds[0][i] : bounds[0][i + 1], bounds[1][j] : bounds[1][j + 1]]
            if part.size:
                out[i, j] = np.floor(127 * part.mean() + 0.5)
    return out


@pytest.mark.parametrize("rows, cols, bucket", [(40, 40, 0), (50, 13, 50)])
def test_the_coarse_board_averages_areas(rows, cols, bucket):
    game, viewer, start, tools = setup(rows=rows, cols=cols, bucket=bucket)
    rng = np.random.default_rng(rows)
    cells = random_cells(rng, *start.cells.shape, rows, cols)
    state = pose(start, cells, 1)
    seen = tools["observe"](state, jnp.int32(2), tools["focus"](state))["whole"]
    for channel, stone in enumerate((3, 1, 2, 0)):
        np.testing.assert_array_equal(
            seen[..., channel], plain_coarse((cells == stone)[:rows, :cols], rows, cols)
        )


def test_coarse_rows_cover_the_board_and_are_symmetric():
    for side in range(1, 201):
        edge = np.asarray(observe.edges(side))
        assert edge[0] == 0 and edge[-1] == side and (np.diff(edge) >= 0).all()
        if side >= 21:
            np.testing.assert_array_equal(edge, side - edge[::-1])
            assert np.ptp(np.diff(edge)) <= 1
            assert np.abs(edge - np.linspace(0, side, 22)).max() < 0.5


# ---- the crop and the far cells ----


def test_sizes_and_bad_sizes():
    game, viewer, *_ = setup(**LARGE)
    assert (viewer.num_actions, viewer.board_shape, viewer.slots) == (457, (21, 21), 16)
    small = jaxgames.make("eight_in_a_row")
    assert (small.viewer().num_actions, small.viewer().symmetries) == (225, 8)
    wide = jaxgames.make("eight_in_a_row", rows=4, cols=9, win_length=4).viewer()
    assert (wide.num_actions, wide.symmetries) == (36, 4)
    assert small.viewer(21).num_actions == 457
    assert hash(small.viewer(21)) == hash(jaxgames.make("eight_in_a_row").viewer(21))
    with pytest.raises(ValueError, match="size: side of the crop"):
        small.viewer(22)


CASES = [
    dict(LARGE),
    dict(rows=30, cols=25, win_length=6, bucket=50),
    dict(size=21, rows=9, cols=34, win_length=5),
    dict(size=5, rows=9, cols=7, win_length=4, bucket=12),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ids_name_cells_and_the_mask_is_that_of_the_cells(case):
    game, viewer, start, tools = setup(**case)
    rows, cols = case["rows"], case["cols"]
    rng = np.random.default_rng(1)
    for trial in range(6):
        cells = random_cells(rng, *start.cells.shape, rows, cols)
        state = pose(start, cells, trial % 3)
        heat = None if trial % 2 else jnp.asarray(rng.normal(size=441), jnp.float32)
        view = tools["focus"](state, heat)
        ids = np.arange(viewer.num_actions)
        named = np.asarray(tools["to_game"](view, ids))
        back = np.asarray(tools["from_all"](view, np.arange(game.num_actions)))
        legal = np.asarray(tools["legal"](state, view))

        seen = back >= 0
        np.testing.assert_array_equal(named[back[seen]], np.flatnonzero(seen))
        np.testing.assert_array_equal(back[named[legal]], ids[legal])
        np.testing.assert_array_equal(legal[back[seen]], cells.ravel()[seen] == 0)
        # no cell has two ids, and nothing but empty cells is legal
        assert len(set(named[legal])) == legal.sum() == (seen & (cells.ravel() == 0)).sum()
        assert (cells.ravel()[named[legal]] == 0).all() and legal.any()
        # the crop holds as much of the board as it can
        size = viewer.size
        assert seen.sum() >= min(size, rows) * min(size, cols)
        row, col = np.asarray(view.corner)
        assert 0 <= row <= max(rows - size, 0) and 0 <= col <= max(cols - size, 0)


def test_a_small_board_lies_in_the_corner_of_a_crop():
    _, _, start, tools = setup(size=21, rows=9, cols=9, win_length=5)
    state = pose(start, random_cells(np.random.default_rng(0), 9, 9), 0)
    seen = tools["observe"](state, jnp.int32(0), tools["focus"](state))
    assert seen["board"][:9, :9, :4].sum() == 81
    assert seen["board"][9:].sum() == 0 == seen["board"][:, 9:].sum()
    np.testing.assert_array_equal(
        seen["whole"][:9, :9, :4], 127 * seen["board"][:9, :9, :4].astype(int)
    )
    assert seen["whole"][9:].sum() == 0


def slot_order(cells, corner, size, turn, k):
    """The cells of the slots by the rule book, plainly."""
    far = [
        (r, c)
        for r, c in np.argwhere(cells == 0)
        if not (0 <= r - corner[0] < size and 0 <= c - corner[1] < size)
    ]
    runs = {cell: [longest_run(cells, *cell, stone) for stone in turn] for cell in far}
    found = []
    tests = [lambda run, i=i: run[i] >= k for i in range(len(turn))]
    for side in (lambda run: run[0], lambda run: max(run[1:])):
        tests += [lambda run, s=side, j=j: s(run) >= max(k - j, 2) for j in (1, 2)]
    for test in tests:
        found += [cell for cell in far if test(runs[cell]) and cell not in found]
    return [r * cells.shape[1] + c for r, c in found[:16]]


def test_slots_hold_far_cells_in_the_order_of_the_rule_book():
    _, viewer, start, tools = setup(**LARGE)
    rng = np.random.default_rng(2)
    for trial, fill in enumerate((0.02, 0.1, 0.3, 0.5, 0.7, 0.9)):
        cells = random_cells(rng, 40, 40, fill=fill)
        mover = trial % 3
        state = pose(start, cells, mover)
        view = tools["focus"](state)
        turn = [(mover + i) % 3 + 1 for i in range(3)]
        want = slot_order(cells, np.asarray(view.corner), 21, turn, 5)
        got = [int(cell) for cell in view.cells if cell >= 0]
        assert got == want
        for cell, runs in zip(got, np.asarray(view.runs), strict=False):
            here = divmod(cell, 40)
            assert list(runs) == [min(longest_run(cells, *here, s), 5) for s in (1, 2, 3)]


def test_wins_and_duties_are_always_in_view():
    """Up to 16 of them; three fronts far apart, where the crop is drawn to one."""
    game, viewer, start, tools = setup(**LARGE)
    rng = np.random.default_rng(3)
    far = 0
    for trial in range(12):
        cells = random_cells(rng, 40, 40, fill=0.05)
        for stone in (1, 2, 3):
            row, col = rng.integers(0, 36, 2)
            cells[row, col : col + 4] = stone
        mover = trial % 3
        state = pose(start, cells, mover)
        heat = jnp.asarray(rng.normal(size=441), jnp.float32) if trial % 2 else None
        view = tools["focus"](state, heat)
        legal = np.asarray(tools["legal"](state, view))
        for ahead in (0, 1):
            for cell in winning_cells(cells, (mover + ahead) % 3 + 1, 5):
                action = int(tools["from_game"](view, cell))
                far += action >= 441
                assert action >= 0 and legal[action]
    assert far >= 5


def test_heat_moves_the_crop_to_the_hottest_coarse_cell_with_room():
    _, _, start, tools = setup(**LARGE)
    cells = np.zeros((40, 40), np.int8)
    edge = np.asarray(observe.edges(40))
    heat = np.zeros(441, np.float32)
    heat[15 * 21 + 4], heat[2 * 21 + 18] = 2, 1
    view = tools["focus"](pose(start, cells, 0), jnp.asarray(heat))
    middle = [(edge[i] + edge[i + 1]) // 2 for i in (15, 4)]
    np.testing.assert_array_equal(view.corner, np.clip(np.array(middle) - 10, 0, 19))
    cells[edge[15] : edge[16], edge[4] : edge[5]] = 1  # full: the second best
    view = tools["focus"](pose(start, cells, 0), jnp.asarray(heat))
    middle = [(edge[i] + edge[i + 1]) // 2 for i in (2, 18)]
    np.testing.assert_array_equal(view.corner, np.clip(np.array(middle) - 10, 0, 19))
    for cell in (0, 5, 777, 1599):
        row, col = divmod(cell, 40)
        place = int(tools["locate"](start, cell))
        assert edge[place // 21] <= row < edge[place // 21 + 1]
        assert edge[place % 21] <= col < edge[place % 21 + 1]


def test_without_heat_the_crop_holds_the_most_worthy_cell():
    _, _, start, tools = setup(**LARGE)
    np.testing.assert_array_equal(tools["focus"](start).corner, [9, 9])
    cells = np.zeros((40, 40), np.int8)
    cells[2, 30:33] = 2
    np.testing.assert_array_equal(tools["focus"](pose(start, cells, 0)).corner, [0, 19])


def test_a_full_crop_still_leaves_something_to_do():
    _, _, start, tools = setup(**LARGE)
    cells = random_cells(np.random.default_rng(4), 40, 40, fill=1.0)
    cells[20, 20] = cells[0, 0] = cells[39, 39] = 0
    state = pose(start, cells, 0)
    view = tools["focus"](state)
    for _ in range(3):
        legal = np.asarray(tools["legal"](state, view))
        cell = int(tools["to_game"](view, np.flatnonzero(legal)[:1])[0])
        assert cells.ravel()[cell] == 0
        cells.ravel()[cell] = 1
        state = pose(start, cells, 0)
    assert not tools["legal"](state, view).any()
    assert tools["legal"](state.replace(terminated=jnp.bool_(True)), view).all()


def test_a_view_held_over_plies_keeps_the_meaning_of_ids():
    game, viewer, start, tools = setup(**LARGE)
    step = jax.jit(game.step)
    rng = np.random.default_rng(5)
    state = pose(start, random_cells(rng, 40, 40, fill=0.2), 0)
    view = tools["focus"](state)
    named = np.asarray(tools["to_game"](view, np.arange(457)))
    board = np.asarray(tools["observe"](state, jnp.int32(0), view)["board"])
    for _ in range(8):
        legal = np.flatnonzero(tools["legal"](state, view))
        action = int(rng.choice(np.append(legal, legal[legal >= 441])))
        mover = int(state.current_player)
        state = step(state, named[action], jax.random.key(0))
        if state.done:
            break
        assert state.cells.ravel()[named[action]] == mover + 1
        assert not tools["legal"](state, view)[action]
        seen = np.asarray(tools["observe"](state, jnp.int32(0), view)["board"])
        if action < 441:
            changed = np.argwhere((seen != board)[..., :4].any(-1))
            assert [divmod(action, 21)] == [tuple(c) for c in changed]
        board = seen


# ---- symmetries ----


def turned_cells(cells, i):
    cells = cells.T if i & 4 else cells
    cells = cells[::-1] if i & 2 else cells
    return cells[:, ::-1] if i & 1 else cells


def turn_place(place, side, i):
    row, col = divmod(int(place), side)
    row, col = (col, row) if i & 4 else (row, col)
    row = side - 1 - row if i & 2 else row
    col = side - 1 - col if i & 1 else col
    return row * side + col


def turned_view(view, i, side, size):
    corner = np.asarray(view.corner)
    far = turn_place(corner[0] * side + corner[1], side, i)
    near = turn_place((corner[0] + size - 1) * side + corner[1] + size - 1, side, i)
    row = min(far // side, near // side)
    col = min(far % side, near % side)
    cells = [turn_place(c, side, i) if c >= 0 else -1 for c in np.asarray(view.cells)]
    return View(jnp.array([row, col], jnp.int16), jnp.array(cells, jnp.int32), view.runs)


@pytest.mark.parametrize("case", [dict(LARGE), dict(rows=11, cols=11)], ids=str)
def test_observing_the_turned_position_is_turning_the_observation(case):
    game, viewer, start, tools = setup(**case)
    side = case["rows"]
    cells = random_cells(np.random.default_rng(6), side, side, fill=0.4)
    state = pose(start, cells, 1)
    view = tools["focus"](state)
    seen = tools["observe"](state, jnp.int32(1), view)
    legal = np.asarray(tools["legal"](state, view))
    named = np.asarray(tools["to_game"](view, np.arange(viewer.num_actions)))
    assert viewer.symmetries == 8
    for i in range(8):
        last = [turn_place(c, side, i) for c in np.asarray(state.last)]
        other = pose(start, turned_cells(cells, i), 1, last)
        there = turned_view(view, i, side, viewer.size) if viewer.slots else view
        jax.tree.map(
            functools.partial(np.testing.assert_allclose, atol=1e-6),
            tools["turn"](seen, i),
            tools["observe"](other, jnp.int32(1), there),
        )
        moved = np.asarray(tools["turn_action"](i))
        assert sorted(moved) == list(range(viewer.num_actions))
        np.testing.assert_array_equal(tools["legal"](other, there)[moved], legal)
        again = np.asarray(tools["to_game"](there, moved))
        for action in np.flatnonzero(legal):
            assert again[action] == turn_place(named[action], side, i)


def test_a_rectangle_has_four_symmetries():
    game, viewer, start, tools = setup(rows=4, cols=7, win_length=4)
    cells = random_cells(np.random.default_rng(7), 4, 7, fill=0.5)
    state = pose(start, cells, 2)
    seen = tools["observe"](state, jnp.int32(2), ())["board"]
    for i in range(4):
        turned = tools["turn"](tools["observe"](state, jnp.int32(2), ()), i)
        np.testing.assert_array_equal(turned["board"], turned_cells(np.asarray(seen), i))
        moved = np.asarray(tools["turn_action"](i))
        other = turned_cells(cells, i).ravel()
        np.testing.assert_array_equal(other[moved], cells.ravel())


def test_transposing_exchanges_the_sides():
    _, viewer, start, tools = setup(rows=30, cols=25, win_length=6, bucket=50)
    seen = tools["observe"](start, jnp.int32(0), tools["focus"](start))
    turned = tools["turn"](seen, 4)["features"]
    np.testing.assert_array_equal(turned[:2], seen["features"][1::-1])
    np.testing.assert_array_equal(turned[2:8], seen["features"][2:8])


# ---- any game ----


def test_any_game_can_be_seen_whole():
    game = jaxgames.make("mnk")
    viewer = game.viewer()
    assert isinstance(viewer, views.Whole) and viewer.symmetries == 1
    state = game.step(game.init(jax.random.key(0)), jnp.int32(4), jax.random.key(0))
    view = viewer.focus(state)
    equal(viewer.observe(state, jnp.int32(1), view), game.observe(state, jnp.int32(1)))
    equal(viewer.legal(state, view), state.legal_action_mask)
    assert viewer.to_game(view, 3) == 3 == viewer.from_game(view, 3)
    np.testing.assert_array_equal(viewer.turn_action(0), np.arange(9))
    assert viewer.heat_shape is None and viewer.slots == 0
