"""Rule bots of Eight-in-a-Row: duties, strength, and the double pairing of the rule book."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames.eight_in_a_row import bots, lines
from tests.jaxgames.eight_in_a_row.poses import longest_run, pose, random_cells, winning_cells

#: One of a kind against two of another, in every seat.
SEATINGS = ((0, 1, 1), (1, 0, 1), (1, 1, 0))


def play(game, cast, seating, games=1, seed=0):
    """Final states, [len(seating) * games, ...].

    Args:
      cast: bots; the pairing bots among them block the seat of the bot that comes first in it.
      seating: for each way to sit, the place in `cast` of every seat's bot.
    """

    def one(seats, key):
        chief = jnp.argmin(seats)
        bots_now = [
            functools.partial(bot, target=chief) if bot is bots.pairing else bot for bot in cast
        ]

        def turn(carry):
            state, key = carry
            key, now = jax.random.split(key)
            actions = jnp.stack([bot(state, now) for bot in bots_now])
            return game.step(state, actions[seats[state.current_player]], now), key

        first = (game.init(key), key)
        return jax.lax.while_loop(lambda c: ~c[0].done, turn, first)[0]

    seating = np.repeat(np.asarray(seating), games, axis=0)
    keys = jax.random.split(jax.random.key(seed), len(seating))
    return jax.jit(jax.vmap(one))(seating, keys)


# ---- threat ----


@pytest.mark.parametrize(
    "options",
    [dict(), dict(rows=9, cols=12, win_length=4, players=2), dict(win_length=6, bucket=16)],
    ids=str,
)
def test_threat_wins_and_blocks(options):
    game = jaxgames.make("eight_in_a_row", **options)
    start, bot = game.init(jax.random.key(0)), jax.jit(game.bots["threat"])
    rng = np.random.default_rng(8)
    seats, k = game.num_players, game.rules.win_length
    seen = np.zeros(seats + 1, int)
    for trial in range(60):
        fill = rng.uniform(0.1, 0.7)
        cells = random_cells(
            rng, *start.cells.shape, game.rules.rows, game.rules.cols, seats=seats, fill=fill
        )
        mover = trial % seats
        action = int(bot(pose(start, cells, mover), jax.random.key(trial)))
        assert cells.ravel()[action] == 0
        duties = [winning_cells(cells, (mover + i) % seats + 1, k) for i in range(seats)]
        first = next((i for i, duty in enumerate(duties) if duty), seats)
        seen[first] += 1
        assert first == seats or action in duties[first]
    assert (seen >= 2).all(), seen


def test_threat_opens_in_the_middle_and_stays_near_stones():
    game = jaxgames.make("eight_in_a_row", rows=60, cols=60, win_length=8)
    step, bot = jax.jit(game.step), jax.jit(game.bots["threat"])
    state = game.init(jax.random.key(0))
    for ply in range(24):
        action = bot(state, jax.random.key(ply))
        row, col = divmod(int(action), 60)
        stones = np.argwhere(np.asarray(state.cells) > 0)
        if ply == 0:
            assert {row, col} <= {29, 30}
        else:
            assert np.abs(stones - [row, col]).max(axis=1).min() <= 7
        state = step(state, action, jax.random.key(0))


def test_threat_extends_its_best_open_line():
    game = jaxgames.make("eight_in_a_row", rows=15, cols=15, win_length=5)
    cells = np.zeros((15, 15), np.int8)
    cells[7, 5:8] = 1  # open on both ends
    cells[12, 0:2] = cells[1, 0:2] = 2
    cells[12, 13] = cells[1, 13] = 3
    bot = jax.jit(game.bots["threat"])
    state = pose(game.init(jax.random.key(0)), cells, 0)
    for seed in range(5):
        assert divmod(int(bot(state, jax.random.key(seed))), 15) in ((7, 4), (7, 8))


def test_threat_beats_random_alone_and_in_pairs():
    game = jaxgames.make("eight_in_a_row", max_plies=150)
    one = np.array(SEATINGS)  # a threat bot and two random ones; then the other way round
    cast = [game.bots["threat"], game.bots["random"]]
    rewards = np.asarray(play(game, cast, [*one, *(1 - one)], games=20).rewards)
    lone = np.repeat([0, 1, 2, 0, 1, 2], 20)
    first = rewards[np.arange(120), lone] == 1
    assert first[:60].mean() >= 0.9
    assert first[60:].mean() <= 0.05


# ---- pairing ----


def test_partners_are_those_of_the_rule_book():
    by_col = {0: (0, 1), 1: (0, -1), 2: (1, 1), 3: (-1, -1)}
    by_row = {0: (1, 0), 1: (-1, 0), 2: (1, -1), 3: (-1, 1)}
    side = 9
    for row in range(side):
        for col in range(side):
            stone = np.zeros((side, side), bool)
            stone[row, col] = True
            steps = (by_col[col % 4], by_row[row % 4])
            want = {(row + d, col + r) for d, r in steps}
            want = {c for c in want if 0 <= c[0] < side and 0 <= c[1] < side}
            got = np.argwhere(np.asarray(bots._partners(jnp.asarray(stone))))
            assert {tuple(cell) for cell in got} == want


def greedy(state, key, length=5):
    """Builds the longest run it can, then the most open line of five."""
    stone = (state.current_player + 1).astype(jnp.int8)
    runs = lines.potential(state.cells, stone, state.game.rules.longest).astype(jnp.int32)
    value = lines.worth(state.cells, stone, length, length)
    return bots._best(state.cells == 0, (runs << 20) + value, key)


def own_line(state, key):
    """Goes where most open lines of five lie for it."""
    stone = (state.current_player + 1).astype(jnp.int8)
    return bots._best(state.cells == 0, lines.worth(state.cells, stone, 5, 5), key)


def longest_of(cells, stone):
    return max([longest_run(cells, r, c, stone) for r, c in np.argwhere(cells == stone)], default=0)


@pytest.mark.parametrize(
    "rows, cols",
    [(9, 12)]
    + [pytest.param(*side, marks=pytest.mark.slow) for side in ((6, 17), (15, 15), (5, 8))],
)
def test_two_pairing_bots_hold_any_player_to_runs_of_four(rows, cols):
    """Until the board is full: no run of the win length fits a blocker's hands either. One
    alone, with a random bot, does not hold the greedy player where there is room."""
    game = jaxgames.make("eight_in_a_row", rows=rows, cols=cols, win_length=max(rows, cols))
    cast = [greedy, own_line, game.bots["random"], bots.pairing]
    seatings = [np.where(np.array(s) == 0, builder, 3) for builder in range(3) for s in SEATINGS]
    final = play(game, cast, [*seatings, (0, 3, 2), (2, 0, 3)], games=4)
    boards = np.asarray(final.cells)
    assert (boards > 0).all()
    seats = np.repeat([*range(3)] * 3 + [0, 1], 4)
    reached = [longest_of(cells, seat + 1) for seat, cells in zip(seats, boards, strict=True)]
    assert max(reached[:36]) <= 4, reached
    if min(rows, cols) > 8:
        assert min(reached[36:]) >= 5, reached


@pytest.mark.slow
def test_threat_does_not_get_past_two_pairing_bots():
    game = jaxgames.make("eight_in_a_row", rows=11, cols=11, win_length=5, profile="wdl")
    rewards = play(game, [game.bots["threat"], bots.pairing], SEATINGS, games=3).rewards
    seat = np.repeat(np.arange(3), 3)
    assert (np.asarray(rewards)[np.arange(9), seat] < 1).all()


@pytest.mark.parametrize(
    "options",
    [
        dict(rows=1, cols=6, win_length=3, players=1),
        dict(rows=3, cols=4, win_length=2, players=4, profile="wdl", bucket=5),
        pytest.param(dict(rows=3, cols=3, win_length=3, unit="session"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_every_bot_plays_any_game_to_the_end(options):
    game = jaxgames.make("eight_in_a_row", **options)
    seats = game.num_players
    assert {f"pairing_{seat}" for seat in range(seats)} <= set(game.bots)
    cast = [*game.bots.values()]
    seating = [[(first + i) % len(cast) for i in range(seats)] for first in range(len(cast))]
    final = play(game, cast, seating)
    assert np.asarray(final.done).all() and not np.asarray(final.illegal).any()
