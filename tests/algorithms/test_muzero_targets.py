"""Targets of unrolled steps beside plain Python on games made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.muzero.targets import Window, unrolled


def row_of_games(rng, order, team_of, length, games_of):
    """A row of play: per step its game, its mover's team, rewards, ends, searched values."""
    teams = max(team_of) + 1
    steps, game = [], 0
    while len(steps) < length:
        plies = int(rng.integers(*games_of))
        for ply in range(plies):
            end = ply == plies - 1
            steps.append(
                dict(
                    game=game,
                    team=team_of[order[ply % len(order)]],
                    reward=rng.integers(-4, 5, teams) / 4 * (end or rng.random() < 0.3),
                    done=end,
                    root=rng.integers(-8, 9, teams) / 8,
                )
            )
        game += 1
    return steps[:length]


def by_hand(steps, at, k, td_steps, discount, root_share):
    """(value, alive) of the step k after `at`, relative to its mover, by loops."""
    teams = len(steps[0]["root"])
    here = steps[at + k]
    if here["game"] != steps[at]["game"]:
        return np.zeros(teams), False
    total, scale, i = np.zeros(teams), 1.0, at + k
    while True:
        total = total + scale * steps[i]["reward"]
        scale *= discount
        if steps[i]["done"]:
            break
        i += 1
        if td_steps and i == at + k + td_steps:
            total = total + scale * steps[i]["root"]
            break
    mixed = (1 - root_share) * total + root_share * here["root"]
    return np.array([mixed[(here["team"] + i) % teams] for i in range(teams)]), True


ORDERS = (  # who moves, over and over, and the seats' teams
    ((0, 1), (0, 1)),
    ((0, 1, 2), (0, 1, 2)),
    ((0, 1, 2, 3), (0, 1, 2, 3)),
    ((0, 1, 2, 3), (0, 1, 0, 1)),  # two teams of two seats
    ((0, 0, 1, 2, 2), (0, 1, 2)),  # seats that move twice
    ((0, 1, 2), (0, 0, 1)),  # two against one: the team of two moves twice
)
UNROLL, STARTS = 4, 40
targets = jax.jit(unrolled, static_argnums=(1, 2, 3, 4))


@pytest.mark.parametrize(
    ("td_steps", "discount", "root_share"), [(0, 1.0, 0.25), (1, 0.5, 0.0), (3, 1.0, 0.5)]
)
def test_every_step_has_its_own_target(td_steps, discount, root_share):
    for number, (order, team_of) in enumerate(ORDERS):
        rng = np.random.default_rng(number)
        steps = row_of_games(rng, order, team_of, 80, (2, 9))
        check(steps, td_steps, discount, root_share)


def check(steps, td_steps, discount, root_share):
    size = UNROLL + 1 + td_steps
    assert any(s["done"] for s in steps[STARTS + UNROLL :])  # all that is read of is over
    to_go = [by_hand_to_go(steps, i) for i in range(len(steps))]

    def windows(read, kind=np.float32):
        rows = [[read(i, i + j) for j in range(size)] for i in range(STARTS)]
        return jnp.asarray(np.array(rows, kind))

    window = Window(
        reward=windows(lambda _, i: steps[i]["reward"]),
        done=windows(lambda _, i: steps[i]["done"], bool),
        same_game=windows(lambda start, i: steps[i]["game"] == steps[start]["game"], bool),
        to_go=windows(lambda _, i: to_go[i]),
        root_value=windows(lambda _, i: steps[i]["root"]),
        team=windows(lambda _, i: steps[i]["team"], np.int32),
    )
    found = jax.tree.map(np.asarray, targets(window, UNROLL, td_steps, discount, root_share))
    teams, absorbing = found.value.shape[-1], 0
    for start in range(STARTS):
        for k in range(UNROLL + 1):
            value, alive = by_hand(steps, start, k, td_steps, discount, root_share)
            np.testing.assert_allclose(found.value[start, k], value, atol=1e-6)
            assert found.alive[start, k] == alive
            absorbing += not alive
            if k < UNROLL:
                mover, reward = steps[start + k]["team"], steps[start + k]["reward"]
                rotated = [reward[(mover + i) % teams] for i in range(teams)]
                np.testing.assert_allclose(found.reward[start, k], alive * np.array(rotated))
    assert absorbing > 20


def by_hand_to_go(steps, at):
    total = np.zeros(len(steps[0]["root"]))
    for step in steps[at:]:
        total = total + step["reward"]
        if step["done"]:
            return total
    return total


def test_the_winning_move_is_a_step_like_any_other():
    """Two plies before the end of a three-seat game: the reward sits on the last action, in the
    frame of who made it, and the value of the position before it is that reward."""
    reward = np.zeros((1, 4, 3), np.float32)
    reward[0, 1] = (-0.2, 1.0, -1.0)  # seat 1 wins with the second action
    window = Window(
        reward=jnp.asarray(reward),
        done=jnp.array([[False, True, False, False]]),
        same_game=jnp.array([[True, True, False, False]]),
        to_go=jnp.asarray(np.stack([reward[:, 1]] * 4, 1)),
        root_value=jnp.zeros((1, 4, 3)),
        team=jnp.array([[0, 1, 0, 1]]),  # then the next game begins
    )
    found = targets(window, 3, 0, 1.0, 0.0)
    np.testing.assert_allclose(found.value[0, 0], (-0.2, 1.0, -1.0))
    np.testing.assert_allclose(found.value[0, 1], (1.0, -1.0, -0.2))
    np.testing.assert_allclose(found.reward[0, 0], 0.0)
    np.testing.assert_allclose(found.reward[0, 1], (1.0, -1.0, -0.2))
    assert not np.any(found.value[0, 2:]) and not np.any(found.reward[0, 2:])
    np.testing.assert_array_equal(found.alive[0], [True, True, False, False])
