"""Best moves on small games, against brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import search
from jaxgames import core
from tests.toys.mnk import _windows

TICTACTOE = core.make("mnk")
THREE = core.make("mnk", rows=3, cols=4, k=3, players=3)


class Solver:
    """What max^n play can lead to in an m,n,k game, in plain Python.

    Every outcome is kept that some choice among moves of equal worth leads to; with two
    players all of them are the minimax value.
    """

    def __init__(self, game):
        self.players = game.num_players
        self.lines = [np.flatnonzero(line) for line in _windows(game.rules)]
        self.cells = game.num_actions

    @functools.cache  # noqa: B019  (a solver lives as long as the test module)
    def outcomes(self, cells, mover):
        """Set of values per seat with `mover` to move."""
        after = [self.after(cells, mover, a) for a in range(self.cells) if cells[a] == 0]
        sure = max(min(value[mover] for value in values) for values in after)
        return {value for values in after for value in values if value[mover] >= sure}

    def after(self, cells, mover, action):
        """Set of values per seat once `mover` played `action`."""
        cells = cells[:action] + (mover + 1,) + cells[action + 1 :]
        if any(all(cells[i] == mover + 1 for i in line) for line in self.lines if action in line):
            share = -1.0 / (self.players - 1)
            return {tuple(1.0 if seat == mover else share for seat in range(self.players))}
        if 0 not in cells:
            return {(0.0,) * self.players}
        return self.outcomes(cells, (mover + 1) % self.players)

    def worths(self, cells, mover):
        """Least and greatest worth of each action to the mover; -inf where forbidden."""
        ranges = np.full((2, self.cells), -np.inf)
        for action in range(self.cells):
            if cells[action] == 0:
                worths = [value[mover] for value in self.after(cells, mover, action)]
                ranges[:, action] = min(worths), max(worths)
        return ranges


def evaluate_nothing(game):
    def evaluate(params, states):
        batch = states.current_player.shape[0]
        return jnp.zeros((batch, game.num_actions)), jnp.zeros((batch, game.num_teams))

    return evaluate


def random_positions(game, count, moves, seed):
    """Unfinished positions after `moves` random moves; fewer than `count` if games end."""
    key = jax.random.key(seed)
    states = jax.vmap(game.init)(jax.random.split(key, count))

    def step(turn, states):
        keys = jax.random.split(jax.random.fold_in(key, turn), (2, count))
        actions = jax.vmap(core.random_bot)(states, keys[0])
        return jax.vmap(game.step)(states, actions, keys[1])

    return jax.jit(lambda s: jax.lax.fori_loop(0, moves, step, s))(states)


def searcher(game, policy):
    @jax.jit
    def run(key, states):
        return search.search_worlds(
            game,
            evaluate_nothing(game),
            (),
            key,
            states,
            states.current_player,
            num_worlds=1,
            policy=policy,
        )

    return run


def policies(simulations):
    """Deterministic searches; values are compared on the scale of the outcomes."""
    config = functools.partial(
        search.SearchConfig, num_simulations=simulations, q_scale="outcome", gumbel_scale=0.0
    )
    puct = dict(policy="puct", dirichlet_fraction=0.0, temperature=0.0)
    return {"gumbel": config().build(), "puct": config(**puct).build()}


def unfinished(states):
    """(row, cells, mover) of the rows still going on."""
    for row in np.flatnonzero(~np.asarray(states.terminated)):
        cells = tuple(int(c) for c in np.asarray(states.cells[row]).ravel())
        yield row, cells, int(states.current_player[row])


PERFECT = {
    "puct": policies(4000)["puct"],
    "gumbel with proofs": search.gumbel(10000, gumbel_scale=0.0, prove=True),
}


@pytest.mark.parametrize("name", PERFECT)
def test_tictactoe_is_played_perfectly(name):
    """Values of 0 and flat priors: only the search can know."""
    solver, run = Solver(TICTACTOE), searcher(TICTACTOE, PERFECT[name])
    checked = 0
    for moves in range(8):
        states = random_positions(TICTACTOE, 12, moves, seed=moves)
        out = run(jax.random.key(moves), states)
        for row, cells, mover in unfinished(states):
            least, greatest = solver.worths(cells, mover)
            np.testing.assert_array_equal(least, greatest)
            assert least[int(out.action[row])] == least.max(), (cells, least, out.visits[row])
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("name", ["gumbel", "puct"])
def test_three_players_maximise_their_own_component(name):
    """Where one action is better than all others however equal moves are chosen."""
    solver, run = Solver(THREE), searcher(THREE, policies(3000)[name])
    checked = 0
    for moves in range(5, 9):
        states = random_positions(THREE, 12, moves, seed=moves)
        out = run(jax.random.key(moves), states)
        for row, cells, mover in unfinished(states):
            least, greatest = solver.worths(cells, mover)
            best = int(np.argmax(least))
            if least[best] > np.delete(greatest, best).max() > -np.inf:
                checked += 1
                assert int(out.action[row]) == best, (cells, least, greatest, out.visits[row])
    assert checked >= 8


def test_proofs_are_exact():
    """A solved root carries the brute-force value; the search stops once all are solved."""
    solver = Solver(TICTACTOE)
    config = search.SearchConfig(policy="puct", num_simulations=500, prove=True)
    run = searcher(TICTACTOE, config.build())
    for moves, enough in ((4, 8), (6, 12)):
        everything = random_positions(TICTACTOE, 40, moves, seed=moves)
        rows = np.flatnonzero(~np.asarray(everything.terminated))[:12]
        states = jax.tree.map(lambda leaf, rows=rows: leaf[rows], everything)
        out = run(jax.random.key(0), states)
        solved = np.asarray(out.tree.solved[:, 0])
        assert solved.sum() >= enough
        assert (int(out.tree.used) <= 500) == bool(solved.all())
        for row, cells, mover in unfinished(states):
            if solved[row]:
                (value,) = solver.outcomes(cells, mover)
                np.testing.assert_allclose(out.value[row], value, atol=1e-6)
                least, _ = solver.worths(cells, mover)
                assert least[int(out.action[row])] == least.max()
                assert float(out.action_weights[row, out.action[row]]) == 1.0
