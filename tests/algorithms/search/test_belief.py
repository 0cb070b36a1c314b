"""Worlds by weight: Bayes' rule on a toy whose posterior is a sum over six cards."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import search
from algorithms.agents import search_agent
from algorithms.networks.model import NetworkConfig, build
from algorithms.search import belief
from jaxgames import core
from tests.toys.highcard import KEEP, SWAP, HighCard, Rules


@dataclasses.dataclass(frozen=True)
class Told(HighCard):
    """High card in one turn each, where the second seat remembers what the first one did."""

    id = "told"

    def rewind(self, state, player, count):
        old = jnp.argmax(state.thrown).astype(jnp.int8)  # what the first threw, if it did
        swapped = state.swaps[0] > 0
        first = np.arange(2) == 0
        ranks = np.arange(self.rules.ranks)
        before = state.replace(
            current_player=jnp.int32(0),
            hands=jnp.where(first & swapped, old, state.hands),
            deck=state.deck + (swapped & (ranks == state.hands[0])).astype(jnp.int8),
            thrown=jnp.zeros_like(state.thrown),
            swaps=jnp.zeros_like(state.swaps),
            turn=jnp.int8(0),
        )
        spread = lambda x: jnp.broadcast_to(x, (count, *jnp.shape(x)))  # noqa: E731
        return core.Past(
            states=jax.tree.map(spread, self._with_mask(before)),
            action=spread(jnp.where(swapped, SWAP, KEEP).astype(jnp.int32)),
            valid=(np.arange(count) == 0) & (state.turn == 1) & (player == 1),
        )


GAME = Told(Rules(rounds=1))
RANKS = GAME.rules.ranks
#: Probability to keep, by card; the top one can not be thrown.
KEEPS = np.array([0.02, 0.1, 0.3, 0.6, 0.9, 1.0])
ROWS = 12


def evaluate(params, states):
    card = jnp.take_along_axis(states.hands, states.current_player[:, None], axis=1)[:, 0]
    keep = jnp.clip(jnp.asarray(params)[card], 1e-6, 1 - 1e-6)
    value = jnp.zeros((card.shape[0], 2))
    return jnp.log(jnp.stack([keep, 1 - keep], axis=-1)), value


def after(action, seed=0):
    """[ROWS] positions of the second seat after the first one's `action`."""
    states = jax.jit(jax.vmap(GAME.init))(jax.random.split(jax.random.key(seed), 8 * ROWS))
    able = np.flatnonzero(np.asarray(states.legal_action_mask[:, action]))[:ROWS]
    states = jax.tree.map(lambda x: x[able], states)
    keys = jax.random.split(jax.random.key(seed + 1), ROWS)
    return jax.jit(jax.vmap(GAME.step))(states, jnp.full(ROWS, action), keys)


def beliefs(state, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """float64[RANKS] twice: what the second seat may believe of the first's card before and
    after it thinks about why."""
    unseen = np.full(RANKS, GAME.rules.copies, float) - np.asarray(state.thrown)
    unseen[int(state.hands[1])] -= 1
    prior = unseen / unseen.sum()
    if int(state.swaps[0]) > 0:
        return prior, prior
    policy = (1 - floor) * KEEPS + floor / 2
    policy[-1] = 1.0  # forced
    return prior, prior * policy / (prior * policy).sum()


@functools.cache
def searcher(candidates, worlds, simulations=1):
    policy = search.SearchConfig(num_simulations=simulations).build()

    @jax.jit
    def run(key, states):
        return search.search_worlds(
            GAME,
            evaluate,
            KEEPS,
            key,
            states,
            states.current_player,
            num_worlds=worlds,
            policy=policy,
            num_candidates=candidates,
        )

    return run


def searched(candidates, worlds, states):
    """The first seat's card in the worlds searched, int[ROWS, worlds]."""
    out = searcher(candidates, worlds)(jax.random.key(0), states)
    return np.asarray(out.tree.embedding.hands[:, 0, 0]).reshape(ROWS, worlds)


@pytest.mark.parametrize("action", [KEEP, SWAP])
def test_worlds_follow_the_posterior(action):
    states = after(action)
    cards = searched(512, 128, states)
    gap = plain_gap = 0.0
    for row in range(ROWS):
        plain, want = beliefs(jax.tree.map(lambda x, row=row: x[row], states), belief.FLOOR)
        share = np.bincount(cards[row], minlength=RANKS) / 128
        gap += np.abs(share - want).sum() / ROWS
        plain_gap += np.abs(plain - want).sum() / ROWS
    assert gap < 0.16, "128 of 512 candidates come this near"
    assert plain_gap > 0.5 if action == KEEP else plain_gap == 0.0


def test_likelihood_of_each_decision():
    """A forced decision has probability 1, any other the policy's with the floor."""
    states = after(KEEP)
    seats = states.current_player
    log = belief.log_likelihood(GAME, evaluate, KEEPS, states, seats, remembered=3, floor=0.2)
    want = 0.8 * KEEPS + 0.1
    want[-1] = 1.0
    np.testing.assert_allclose(np.exp(log), want[np.asarray(states.hands[:, 0])], rtol=1e-4)
    nothing = belief.log_likelihood(GAME, evaluate, KEEPS, states, 0 * seats)
    np.testing.assert_array_equal(nothing, 0.0)  # its own decisions do not speak to a seat


def test_hidden_cards_do_not_matter():
    states = after(KEEP)
    keys = jax.random.split(jax.random.key(5), ROWS)
    other = jax.vmap(GAME.resample)(states, states.current_player, keys)
    assert np.any(states.hands != other.hands)
    run = searcher(8, 3, simulations=6)
    for seed in range(3):
        first, second = run(jax.random.key(seed), states), run(jax.random.key(seed), other)
        for name in ("action", "action_weights", "value", "visits", "q"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)


def test_systematic_resampling():
    """Each candidate comes floor or ceil of number * weight times, on average exactly so."""
    rng = np.random.default_rng(0)
    log = rng.normal(0, 2, (3, 20)).astype(np.float32)
    weight = np.exp(log) / np.exp(log).sum(-1, keepdims=True)
    draw = jax.jit(jax.vmap(lambda key: belief.resample(log, key, 7)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 2000)))
    often = (drawn[..., None] == np.arange(20)).sum(2)  # [draws, row, candidate]
    assert (often >= np.floor(7 * weight - 1e-3)).all()
    assert (often <= np.ceil(7 * weight + 1e-3)).all()
    np.testing.assert_allclose(often.mean(0), 7 * weight, atol=0.05)


def test_all_but_one_impossible_candidate_still_draws_it():
    log = np.full((1, 5), -1e30, np.float32)
    log[0, 3] = 0.0
    np.testing.assert_array_equal(belief.resample(log, jax.random.key(0), 4), [[3, 3, 3, 3]])


def test_refusals():
    states = after(KEEP)
    with pytest.raises(ValueError, match="^num_candidates: 0 or at least 4, got 3"):
        searched(3, 4, states)
    with pytest.raises(ValueError, match="^num_candidates: must be 0 or at least 4"):
        search.SearchConfig(num_worlds=4, num_candidates=3)
    with pytest.raises(ValueError, match="^num_candidates: highcard does not tell"):
        belief.require(core.make("highcard"))
    belief.require(GAME)


@pytest.mark.slow
def test_hidden_cards_do_not_matter_in_guandan():
    """The same with whole rounds, tributes among them, and a net that has an opinion."""
    game = core.make("guandan")
    model = build(game, NetworkConfig(kind="cards", channels=4, blocks=0, hidden=8, q_head=False))
    params = model.init(jax.random.key(0))
    config = search.SearchConfig(num_simulations=6, num_worlds=2, num_candidates=6)
    act = jax.jit(search_agent(game, model, config).analyse)
    step, deal = jax.jit(jax.vmap(game.step)), jax.jit(jax.vmap(game.resample))
    greedy = jax.jit(jax.vmap(game.bots["greedy"]))
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(1), 4))
    differ = 0
    for ply in range(80):
        keys = jax.random.split(jax.random.key(ply), (3, 4))
        if ply in (0, 3, 20, 79):
            other = deal(states, states.current_player, keys[2])
            differ += int((np.asarray(states.hands) != np.asarray(other.hands)).any())
            first = act(params, keys[0, 0], states, states.current_player)
            second = act(params, keys[0, 0], other, states.current_player)
            for name in ("action", "weights", "value", "visits", "q"):
                np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
        states = step(states, greedy(states, keys[0]), keys[1])
    assert differ == 4
