"""OpenSpiel: its own random simulations, honest information states, and parameters."""

import collections

import jax
import numpy as np
import pytest

import jaxgames
import tests.toys.highcard  # noqa: F401  (registers "highcard")

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed (extra: adapters)")

from jaxgames.adapters import open_spiel  # noqa: E402

HIGHCARD = open_spiel.register("highcard")
SMALL = "jaxgames_eight_in_a_row(rows=4,cols=4,win_length=3)"


@pytest.mark.parametrize(
    "text, serialize",
    [
        (SMALL, True),
        ("jaxgames_highcard", True),
        pytest.param("jaxgames_highcard(players=4,copies=3)", True, marks=pytest.mark.slow),
        ("jaxgames_sequence(ply_cap=20)", True),
        pytest.param("jaxgames_sequence(players=3)", True, marks=pytest.mark.slow),
        pytest.param("jaxgames_guandan", False, marks=pytest.mark.slow),  # 25 s to compile
    ],
)
def test_their_own_simulation(text, serialize):
    game = pyspiel.load_game(text)
    pyspiel.random_sim_test(game, num_sims=2, serialize=serialize, verbose=False)


def play(state, choose):
    """Plays on with `choose(actions) -> action`; chance nodes too."""
    while not state.is_terminal():
        if state.is_chance_node():
            actions = [action for action, _ in state.chance_outcomes()]
        else:
            actions = state.legal_actions()
        state.apply_action(choose(actions))
    return state


def test_kinds():
    small, sequence = pyspiel.load_game(SMALL), pyspiel.load_game("jaxgames_sequence")
    kind = pyspiel.GameType
    assert small.get_type().chance_mode == kind.ChanceMode.DETERMINISTIC
    assert small.get_type().information == kind.Information.PERFECT_INFORMATION
    assert sequence.get_type().chance_mode == kind.ChanceMode.EXPLICIT_STOCHASTIC
    assert sequence.get_type().information == kind.Information.IMPERFECT_INFORMATION
    assert sequence.get_type().utility == kind.Utility.ZERO_SUM
    assert sequence.num_distinct_actions() == jaxgames.make("sequence").num_actions
    assert small.num_players() == 3 and small.max_game_length() == 16
    assert small.max_chance_nodes_in_history() == 0 < sequence.max_chance_nodes_in_history()


def test_parameters():
    game = pyspiel.load_game("jaxgames_sequence(preset=official_five,players=4)")
    assert game.ours == jaxgames.make("sequence", "official_five", players=4)
    assert pyspiel.load_game(str(game)).ours == game.ours
    with pytest.raises(jaxgames.RulesError, match="rows"):
        pyspiel.load_game("jaxgames_eight_in_a_row(rows=0)")
    with pytest.raises(jaxgames.RulesError, match="preset"):
        pyspiel.load_game("jaxgames_sequence(preset=oficial)")


def test_the_whole_game_is_in_the_history():
    draw = np.random.default_rng(0)
    game = pyspiel.load_game("jaxgames_highcard")
    state = play(game.new_initial_state(), draw.choice)
    again = game.new_initial_state()
    for action in state.history():
        again.apply_action(action)
    assert again.returns() == state.returns() and str(again) == str(state)
    assert sum(state.returns()) == 0.0 and max(state.returns()) == 1.0


def test_clones_are_independent():
    state = pyspiel.load_game(SMALL).new_initial_state()
    state.apply_action(5)
    clone = state.clone()
    clone.apply_action(6)
    assert state.legal_actions() != clone.legal_actions() and len(state.history()) == 1
    with pytest.raises(jaxgames.IllegalAction):
        state.clone().apply_action(5)


def test_information_states_hide_what_is_hidden():
    """Among many histories: a seat's information state changes with all that it sees, and with
    nothing else."""
    game = pyspiel.load_game("jaxgames_highcard(ranks=3,copies=2,rounds=1)")
    draw = np.random.default_rng(1)
    hands, strings = collections.defaultdict(set), collections.defaultdict(set)
    for _ in range(60):
        state = game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(int(draw.integers(256)))
        (mine, theirs) = np.asarray(state.node.position.hands).tolist()
        hands[state.information_state_string(0)].add((mine, theirs))
        strings[mine].add(state.information_state_string(0))
    assert all(len(found) == 1 for found in strings.values())  # their card changes nothing
    assert all(len({mine for mine, _ in found}) == 1 for found in hands.values())
    assert any(len({theirs for _, theirs in found}) > 1 for found in hands.values())


def test_information_states_remember():
    """Two ways to one position are two information states, even where it looks the same."""
    game = pyspiel.load_game(SMALL)
    ways = []
    for moves in ((0, 5, 2, 7, 15, 9), (7, 5, 2, 0, 15, 9)):
        state = game.new_initial_state()
        for move in moves:
            state.apply_action(move)
        ways.append(state)
    a, b = ways
    assert a.information_state_string(2) != b.information_state_string(2)


@pytest.mark.parametrize("text", ["jaxgames_sequence", "jaxgames_highcard"])
def test_a_redealt_position_looks_the_same(text):
    """Observations of a position and of a deal that the seat can not tell from it."""
    game = pyspiel.load_game(text)
    state = game.new_initial_state()
    draw = np.random.default_rng(4)
    while state.is_chance_node() or len(state.history()) < 8:
        actions = state.legal_actions()
        state.apply_action(int(draw.choice(actions)))
    node, ours, before = state.node, game.ours, game.root
    seat, other = 0, 1
    resample = jax.jit(ours.resample)
    for key in range(20):
        deal = resample(node.position, seat, jax.random.key(key))
        a, b = game._arrive(before, node.position), game._arrive(before, deal)
        assert a.views[seat] == b.views[seat] and a.known[seat] == b.known[seat]
        if a.views[other] != b.views[other]:
            assert a.known[other] != b.known[other]
            break
    else:
        raise AssertionError("no deal gave the other seat other cards")


def test_observers():
    game = pyspiel.load_game("jaxgames_sequence")
    state = game.new_initial_state()
    assert not np.any(state.observation_tensor(0))  # before the deal
    while state.is_chance_node():
        state.apply_action(7)
    seen = jax.jit(game.ours.observe)(state.node.position, np.int32(1))
    tensor = np.concatenate([np.ravel(seen["board"]), np.ravel(seen["features"])])
    np.testing.assert_allclose(state.observation_tensor(1), tensor)
    assert state.observation_string(0) != state.observation_string(1)
    part = pyspiel.IIGObservationType(True, False, pyspiel.PrivateInfoType.NONE)
    assert game.make_py_observer(part) is None
    assert state.legal_actions(1 - state.current_player()) == []
