"""The bots: the printed statistics of the engine's own games, and who beats whom."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames.sequence import rules
from tests.jaxgames.sequence import games

# Section 14: games behind each row, then mean (sd) and the quantiles .05, .5, .95 of plies,
# mean of legal actions, and per game: swaps, removals, with a reshuffle, with a pass, a chip
# that scores twice; share of turns that start with a dead card; shares of seat 0, 1, draws.
REFERENCE = {
    "random": (20_000, (80.4, 11.7, 60, 81, 99), 14.2,
               (3.56, 3.63, 0.249, 0.015, 0.081), 0.044, (0.517, 0.474, 0.009)),
    "greedy": (6_000, (60.9, 14.2, 38, 61, 83), 36.3,
               (1.02, 1.04, 0.022, 0.009, 0.027), 0.017, (0.519, 0.474, 0.008)),
}  # fmt: skip
STEPS = 40


@functools.cache
def player(game, names: tuple[str, ...]):
    """Compiled play of 40 steps with these bots, `seats` says which; records what was done."""

    def act(state, key, seats):
        actions = jnp.stack([game.bots[name](state, key) for name in names])
        return actions[seats[state.current_player]]

    def step(states, key, seats):
        n = states.current_player.shape[0]
        choice, chance = jax.random.split(key)
        actions = jax.vmap(act, (0, 0, None))(states, jax.random.split(choice, n), seats)
        after = jax.vmap(game.step)(states, actions, jax.random.split(chance, n))
        mask = states.legal_action_mask
        base = actions // game.action_slots
        swapping = (base >= rules.SWAP) & (base < rules.PASS)
        live = ~states.done
        swaps = mask[:, rules.SWAP * game.action_slots : rules.PASS * game.action_slots]
        seen = {
            "decisions": live,
            "legal": jnp.where(live, mask.sum(-1), 0),
            "plies": live & ~swapping,
            "swaps": live & swapping,
            "removals": live & (base >= rules.REMOVE) & (base < rules.SWAP),
            "reshuffle": after.reshuffles != states.reshuffles,
            "pass": live & (base == rules.PASS),
            "double": (after.scores - states.scores).max(-1) >= 2,
            "dead": live & swaps.any(-1) & (states.swaps == 0),
            "illegal": after.illegal,
            "rewards": after.rewards,
        }
        return after, seen

    def play(states, totals, key, seats):
        body = functools.partial(step, seats=seats)
        states, seen = jax.lax.scan(body, states, jax.random.split(key, STEPS))
        totals = jax.tree.map(lambda t, s: t + s.astype(t.dtype).sum(0), totals, seen)
        return states, totals

    deal = jax.jit(lambda key, n=500: jax.vmap(game.init)(jax.random.split(key, n)))
    return deal, jax.jit(play)


def play_games(game, seats, count, seed=0):
    """Totals per game, each [count] (rewards [count, P])."""
    bots = ("random",) if set(seats) == {"random"} else tuple(sorted({"random", *seats}))
    deal, play = player(game, bots)
    which = jnp.array([bots.index(name) for name in seats])
    parts = []
    for batch in range(count // 500):
        key = jax.random.fold_in(jax.random.key(seed), batch)
        states = deal(key)
        zero = jnp.zeros(500, jnp.int32)
        names = "decisions legal plies swaps removals reshuffle pass double dead illegal".split()
        totals = {**dict.fromkeys(names, zero), "rewards": jnp.zeros((500, game.num_players))}
        chunk = 0
        while not bool(states.done.all()):
            chunk += 1
            states, totals = play(states, totals, jax.random.fold_in(key, chunk), which)
        parts.append(jax.tree.map(np.asarray, totals))
    return jax.tree.map(lambda *xs: np.concatenate(xs), *parts)


def check_statistics(name, count):
    reference, plies, legal, per_game, dead, shares = REFERENCE[name]
    seen = play_games(jaxgames.make("sequence"), (name, name), count)
    assert not seen["illegal"].any()
    spread = (1 / count + 1 / reference) ** 0.5

    def close(got, values, want):
        """Within three standard errors of both samples, and the rounding of the page."""
        digits = len(str(want).partition(".")[2])
        assert abs(got - want) <= 3 * values.std() * spread + 0.51 * 10**-digits, (got, want)

    close(seen["plies"].mean(), seen["plies"], plies[0])
    assert abs(seen["plies"].std() - plies[1]) <= 3 * plies[1] * spread
    ranked = np.sort(seen["plies"])
    for p, want in zip((0.05, 0.5, 0.95), plies[2:], strict=True):
        assert abs(ranked[int(p * (count - 1))] - want) <= 2
    decisions = seen["decisions"].mean()
    close(seen["legal"].sum() / seen["decisions"].sum(),
          (seen["legal"] - legal * seen["decisions"]) / decisions, legal)  # fmt: skip
    swaps, removals, *events = per_game
    close(seen["swaps"].mean(), seen["swaps"], swaps)
    close(seen["removals"].mean(), seen["removals"], removals)
    for key, want in zip(("reshuffle", "pass", "double"), events, strict=True):
        close((seen[key] > 0).mean(), seen[key] > 0, want)
    close(seen["dead"].sum() / seen["plies"].sum(),
          (seen["dead"] - dead * seen["plies"]) / seen["plies"].mean(), dead)  # fmt: skip
    won = seen["rewards"][:, 0]
    for value, want in zip((1, -1, 0), shares, strict=True):
        close((won == value).mean(), won == value, want)
    assert (seen["rewards"].sum(1) == 0).all()


@pytest.mark.parametrize(("name", "count"), [("random", 2000), ("greedy", 1000)])
def test_statistics_of_the_engine(name, count):
    check_statistics(name, count)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("random", 20_000), ("greedy", 6_000)])
def test_statistics_of_many_games(name, count):
    check_statistics(name, count)


def wins(game, first, second, count):
    """Share of points of `first`, seats swapped for half of the games."""
    points = 0.0
    for seats in ((first, second), (second, first)):
        seen = play_games(game, seats, count // 2)
        own = seats.index(first)
        points += (seen["rewards"][:, own] + 1).sum() / 2
    return points / count


def test_greedy_beats_random():
    assert wins(jaxgames.make("sequence"), "greedy", "random", 1000) > 0.85


@pytest.mark.slow
def test_two_step_beats_greedy():
    assert wins(jaxgames.make("sequence"), "two_step", "greedy", 2000) > 0.6


@pytest.mark.slow
def test_two_step_beats_greedy_in_the_contest():
    assert wins(jaxgames.make("sequence", "comp090054"), "two_step", "greedy", 2000) > 0.55


@functools.cache
def batch(case):
    """(game, 40 of its positions)."""
    game = games.make(*case)
    return game, jax.tree.map(lambda *xs: jnp.stack(xs), *games.positions(game, 5, 40))


@functools.cache
def chooser(game, name):
    return jax.jit(jax.vmap(game.bots[name]))


CASES = [("official", 3, 3), ("comp090054", 4, 2)]
MORE = [("official", p, None) for p in (4, 6, 8, 9, 10, 12)] + [("official_five", 2, 2)]


@pytest.mark.parametrize(
    "case", CASES + [pytest.param(c, marks=pytest.mark.slow) for c in MORE], ids=str
)
def test_bots_choose_legal_actions_in_every_game(case):
    game, states = batch(case)
    keys = jax.random.split(jax.random.key(0), 40)
    for name in game.bots:
        chosen = np.asarray(chooser(game, name)(states, keys))
        assert np.asarray(states.legal_action_mask)[np.arange(40), chosen].all(), name
        assert chosen.dtype == np.int32


def test_bots_use_only_what_the_seat_knows():
    game, states = batch(CASES[0])
    keys = jax.random.split(jax.random.key(1), 40)
    worlds = jax.jit(jax.vmap(game.resample))(states, states.current_player, keys)
    for name in game.bots:
        act = chooser(game, name)
        assert (act(states, keys) == act(worlds, keys)).all(), name
