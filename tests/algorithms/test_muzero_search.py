"""What the tree sees: real rules or learned ones, one view, vectors in absolute order."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import frames
from algorithms.muzero import model_search, play
from algorithms.networks.muzero import Prediction, expected, two_hot
from algorithms.search.base import MASKED_LOGIT
from algorithms.search.config import SearchConfig
from jaxgames import core
from tests.algorithms.learners import keys_are_used_once  # noqa: F401  (for every test here)
from tests.toys.latent import Dense

SEARCH = SearchConfig(
    num_simulations=24, max_num_considered_actions=9, gumbel_scale=0.0, q_scale="outcome"
)


@dataclasses.dataclass(frozen=True)
class Told:
    """A network that says what its parameters hold: "values" and "rewards" float32[D, T] (mover
    first) by how many plies after the root, the last row for all later ones."""

    game: core.Game
    viewer: Any
    reads_bank: bool = False

    @property
    def atoms(self):
        return self.game.outcomes

    def represent(self, params, observation, bank=None):
        return jnp.zeros(observation["board"].shape[0], jnp.int32)

    def predict(self, params, latent):
        logits = jnp.zeros((latent.shape[0], self.viewer.num_actions))
        value = _at(params["values"], latent)
        outcome = jnp.log(jnp.maximum(two_hot(value, self.atoms), 1e-30))
        return Prediction(logits, outcome, value, None)

    def dynamics(self, params, latent, action):
        return latent + 1, _at(params["rewards"], latent)

    def heat(self, params, observation):
        return None


def _at(rows, latent):
    return rows[jnp.minimum(latent, len(rows) - 1)]


def told(view=0, **rules):
    game = core.make("eight_in_a_row", **{"rows": 3, "cols": 3, "win_length": 3, **rules})
    return game, Told(game, game.viewer(view))


def table(rows):
    """float32[4, 3] whose last row is repeated."""
    rows = list(rows) + [rows[-1]] * (4 - len(rows))
    return jnp.asarray(rows, jnp.float32)


CHAIN = dataclasses.replace(SEARCH, num_simulations=3, max_num_considered_actions=1)
NOTHING = ((0.0, 0.0, 0.0),)


def after(game, *actions):
    state = game.init(jax.random.key(0))
    for action in actions:
        state = _step(state, jnp.int32(action))
    assert not state.done and not state.illegal
    return jax.tree.map(lambda x: x[None], state)


@jax.jit
def _step(state, action):
    return state.game.step(state, action, jax.random.key(0))


@functools.cache
def _search(game, model, search, thinking):
    searcher = play.Searcher(game, model, search, thinking)
    return jax.jit(lambda params, states: searcher.search(params, jax.random.key(0), states))


def searched(game, model, states, search=SEARCH, values=NOTHING, rewards=NOTHING, **thinking):
    params = dict(values=table(values), rewards=table(rewards))
    return _search(game, model, search, play.Thinking(**thinking))(params, states)


def test_the_tree_knows_the_rules():
    """Values and priors say nothing: the win is found, other cells are never tried (defect 11),
    the tree's rewards and ends are those of the game."""
    game, model = told()
    # 0 . 0 / 1 1 2 / . . 2: seat 0 wins on cell 1, else seat 2 completes its column later.
    states = after(game, 0, 3, 5, 2, 4, 8)
    done = searched(game, model, states)
    assert int(done.action[0]) == 1
    np.testing.assert_allclose(done.out.q[0, 1], 1.0)
    taken = ~np.asarray(states.legal_action_mask[0])
    assert not np.asarray(done.out.visits)[0][taken].any()
    tree = done.out.tree
    used = int(tree.used)
    _, inner = tree.embedding
    for node in range(1, used):
        parent = int(tree.parent[0, node])
        if int(tree.visits[0, node]) == 0:
            continue
        before = jax.tree.map(lambda x, n=parent: x[0, n], inner)
        want = _step(before, tree.action[0, node])
        assert not bool(want.illegal)
        np.testing.assert_array_equal(inner.cells[0, node], want.cells)
        np.testing.assert_allclose(tree.reward[0, node], want.rewards)
        assert float(tree.discount[0, node]) == float(not want.done)
        masked = np.asarray(tree.prior[0, node]) <= MASKED_LOGIT
        np.testing.assert_array_equal(masked, ~np.asarray(want.legal_action_mask))


def test_values_turn_from_the_mover_to_absolute_order():
    game, model = told()
    for plies, want in enumerate([(0.5, 0.25, -0.75), (-0.75, 0.5, 0.25), (0.25, -0.75, 0.5)]):
        states = after(game, *range(0, 2 * plies, 2))
        done = searched(game, model, states, values=((0.5, 0.25, -0.75),))
        np.testing.assert_allclose(done.root.value[0], want)
        np.testing.assert_allclose(done.out.tree.value[0, 0].sum(), 0.0, atol=1e-6)


def test_rewards_and_discounts_along_the_path_are_backed_up():
    """Defect 5: learned dynamics with a reward on every edge, a chain without choices."""
    rewards = ((0.3, -0.1, 0.0), (0.2, 0.0, 0.1), (0.0, 0.4, -0.2))
    values = ((0.0, 0.0, 0.0), (0.1, 0.2, 0.3), (0.0, 0.0, 0.0), (-0.5, 0.25, 0.0))
    game, model = told()
    states = after(game)
    learned = dict(dynamics="learned", discount=0.5)
    done = searched(game, model, states, CHAIN, values, rewards, **learned)
    # Depths 1 to 3; movers are the seats 0, 1, 2 and at the leaf 0.
    turn = lambda v, seat: np.roll(v, seat)  # noqa: E731  (mover first to absolute)
    r = [turn(rewards[d], d % 3) for d in range(3)]
    v = [turn(values[d + 1], (d + 1) % 3) for d in range(3)]
    returns = [np.array(done.root.value[0])]
    for depth in (1, 2, 3):
        total, scale = 0.0, 1.0
        for d in range(depth):
            total = total + scale * r[d]
            scale *= 0.5
        returns.append(total + scale * v[depth - 1])
    depths = np.asarray(done.out.tree.visits[0])
    assert depths[0] == 4  # the root's own value and three simulations
    path = _depths(done.out.tree)
    expected = np.mean([returns[0], *(returns[d] for d in path)], axis=0)
    np.testing.assert_allclose(done.out.tree.value[0, 0], expected, atol=1e-6)


def _depths(tree):
    found = []
    for node in range(1, int(tree.used)):
        depth, at = 0, node
        while at:
            depth, at = depth + 1, int(tree.parent[0, at])
        found.append(depth)
    return found


def test_learned_dynamics_mask_the_root_alone():
    game, model = told()
    done = searched(game, model, after(game, 4), CHAIN, dynamics="learned", discount=0.5)
    assert float(done.out.visits[0, 4]) == 0.0
    assert np.all(np.asarray(done.out.tree.prior[0, 1 : int(done.out.tree.used)]) > MASKED_LOGIT)


def test_what_is_learnt_of_the_time_after_the_end_is_not_bound_to_a_games_sum():
    """There every seat's value is 0, not a third of -0.2: a win now is worth 1 in the tree too."""
    game, _ = told()
    model = Dense(game, game.viewer())
    params, latent = model.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (6, 32))
    seat = jnp.arange(6) % 3
    fn = model_search.learned_fn(game, model, 1.0)
    made, (latent, after) = fn(params, jax.random.key(2), jnp.arange(6), (latent, seat))
    free = expected(model.predict(params, latent).outcome_logits, model.atoms, None)
    np.testing.assert_allclose(made.value, frames.to_absolute(free, (seat + 1) % 3), atol=1e-6)
    assert np.abs(made.value.sum(-1) - game.reward_sum).max() > 0.05
    np.testing.assert_array_equal(after, (seat + 1) % 3)


BY_SIBLINGS = dataclasses.replace(SEARCH, q_scale="siblings")


@pytest.mark.parametrize("search", [SEARCH, BY_SIBLINGS])
def test_values_move_the_improved_policy_far(search):
    """Defect 4: a won move gets nearly everything, not a logit; the move is the halving's."""
    game, model = told()
    done = searched(game, model, after(game, 0, 3, 5, 2, 4, 8), search)
    weights = np.asarray(done.out.action_weights[0])
    assert int(done.action[0]) == 1 and weights[1] > 0.9
    assert done.out.visits[0, 1] == done.out.visits[0].max()


@pytest.mark.parametrize("scale, more", [(0.0, False), (0.2, True)])
def test_the_value_scale_weighs_values_against_priors(scale, more):
    """Twice the scale is twice the distance of the improved logits from the prior's."""
    game, model = told()
    state = after(game, 0, 3, 5, 2, 4, 8)

    def logits(value_scale):
        done = searched(game, model, state, dataclasses.replace(SEARCH, value_scale=value_scale))
        weights = np.asarray(done.out.action_weights[0])
        return np.log(weights[1]) - np.log(weights[7])

    plain, half = logits(0.0), logits(0.1)
    assert half > plain + 1
    np.testing.assert_allclose(logits(scale) - plain, 2 * (half - plain) * more, rtol=0.05)


def test_small_differences_stay_small_on_the_scale_of_outcomes():
    """Trait 4.2: min-max makes much of noise, the fixed scale does not."""
    game, model = told()
    entropy = []
    for search in (SEARCH, BY_SIBLINGS):
        noise = ((0.0, 0.0, 0.0), (0.01, -0.02, 0.01), (0.01, 0.0, -0.01), (-0.01, 0.02, -0.01))
        out = searched(game, model, after(game, 4), search, noise).out
        weights = np.asarray(out.action_weights[0])
        entropy.append(-np.sum(weights * np.log(np.maximum(weights, 1e-12))))
    assert entropy[0] > np.log(8) - 0.1 and entropy[0] > entropy[1] + 0.3


def test_one_view_for_the_whole_tree():
    """Defect 3: on 9x9 through 5x5 every node's stone lies where the root's view names it."""
    game, model = told(view=5, rows=9, cols=9)
    states = after(game, 10, 12, 40)
    search = dataclasses.replace(SEARCH, num_simulations=16, max_num_considered_actions=4)
    done = searched(game, model, states, search)
    viewer, tree = model.viewer, done.out.tree
    view = jax.tree.map(lambda x: x[0], done.view)
    _, inner = tree.embedding
    for node in range(1, int(tree.used)):
        cell = int(viewer.to_game(view, tree.action[0, node]))
        parent = np.asarray(inner.cells[0, int(tree.parent[0, node])]).ravel()
        child = np.asarray(inner.cells[0, node]).ravel()
        changed = np.flatnonzero(parent != child)
        np.testing.assert_array_equal(changed, [cell])
    assert int(done.action[0]) == int(viewer.to_game(view, done.out.action[0]))
    assert bool(states.legal_action_mask[0, int(done.action[0])])


def test_paranoid_sees_everybody_against_the_root():
    """The root's value is that of the two-sided tree, the others share the rest; united rivals
    hold the root to no more than selfish ones."""
    game, model = told()
    states = after(game, 0, 5, 8)
    alone = searched(game, model, states)
    united = searched(game, model, states, paranoid=True)
    assert united.out.tree.value.shape[-1] == 2 and united.out.value.shape == (1, 3)
    np.testing.assert_allclose(united.out.value[0, 0], united.out.tree.value[0, 0, 0])
    np.testing.assert_allclose(united.out.value.sum(), united.root.value.sum(), atol=1e-6)
    assert float(united.out.value[0, 0]) <= float(alone.out.value[0, 0])


def test_bad_thinking_is_named():
    with pytest.raises(ValueError, match="^dynamics: "):
        play.Thinking(dynamics="guessed")
    with pytest.raises(ValueError, match="^discount: "):
        play.Thinking(discount=0.0)
