"""The rules in play: the tricky cases of rules/sequence.md section 16, and invariants."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxgames
from jaxgames import core
from jaxgames.sequence import board, rules
from tests.jaxgames.sequence import games
from tests.jaxgames.sequence.pose import EMPTY, cards, legal, play, pose, row, score, tools


@pytest.fixture(scope="module")
def game():
    return jaxgames.make("sequence")


@pytest.fixture(scope="module")
def five():
    return jaxgames.make("sequence", "official_five")


def held(state, seat):
    return np.asarray(state.hands[seat])


# ---- section 16, in order ----


def test_1_a_chip_of_a_finished_sequence_can_not_be_removed(game):
    state = pose(game, row(range(5), "2"), ["J1 2S"])
    assert not {a for a in legal(state) if a.startswith("R")}


def test_2_only_a_rivals_chip_can_be_removed():
    game = jaxgames.make("sequence", players=4)
    rows = row({2}, "1", at=4)
    rows[5] = "..2......."
    state = pose(game, rows, ["J1 2S"] * 4, seat=2)  # seat 2 plays with seat 0
    assert {a for a in legal(state) if a.startswith("R")} == {"R 5 2"}


def test_3_a_removal_is_the_whole_turn_and_draws(game):
    state = pose(game, row({2}, "2"), ["J1 8C", "2S"])
    after = play(state, "R 5 2")
    assert not np.asarray(after.chips).any()
    assert after.current_player == 1
    assert held(after, 0).sum() == 2 and held(after, 0)[board.ONE_EYED] <= 1
    assert after.deck.sum() == state.deck.sum() - 1


def test_4_a_removal_revives_a_dead_card(game):
    covered = [*EMPTY]
    covered[5], covered[3] = "..2.......", "2........."  # both cells of 8C
    state = pose(game, covered, ["J1 8C 2S"])
    assert {"S 8C", "R 5 2"} <= legal(state)
    after = play(state, "R 5 2").replace(current_player=jnp.int32(0))
    now = pose(game, row({0}, "2", at=3), ["8C 2S"])
    assert after.chips.tolist() == now.chips.tolist()
    assert legal(now) >= {"N 5 2"} and "S 8C" not in legal(now)


def test_5_corners_are_never_played(game):
    moves = legal(pose(game, hands=["J2"]))
    assert len(moves) == 96
    assert not moves & {"W 0 0", "W 0 9", "W 9 0", "W 9 9"}


def test_6_a_jack_without_use_is_held_and_the_turn_passed(game):
    state = pose(game, hands=["J1 J1", "2S"])
    assert legal(state) == {"P"}
    after = play(state, "P")
    assert held(after, 0)[board.ONE_EYED] == 2 and after.deck.sum() == state.deck.sum()
    assert (int(after.passes), int(after.plies), int(after.current_player)) == (1, 1, 1)


@pytest.mark.parametrize("chip", "12")
def test_7_a_card_is_dead_whoever_covers_its_cells(game, chip):
    rows = row({2}, chip)
    rows[3] = "1........."
    assert legal(pose(game, rows, ["8C"])) == {"S 8C"}


def test_8_one_open_cell_is_enough(game):
    assert legal(pose(game, row({2}), ["8C"])) == {"N 3 0"}


def test_9_both_copies_held_and_one_cell_open(game):
    state = pose(game, row({2}), ["8C 8C", "2S"])
    assert legal(state) == {"N 3 0"}
    after = play(state, "N 3 0")
    again = play(after, "N 0 1")
    assert "S 8C" in legal(again)


def test_10_to_13_swaps(game):
    rows = row({2, 3}, "2")  # 8C and 7H
    rows[3], rows[4] = "1.........", "........1."
    state = pose(game, rows, ["8C 7H 2S", "3S"])
    # 13: a dead card may be kept
    assert legal(state) == {"S 8C", "S 7H", "N 0 1", "N 8 6"}
    for seed in range(4):
        after = play(state, "S 8C", seed)
        # 12: the same seat goes on, and it was no ply
        assert (int(after.current_player), int(after.plies), int(after.swaps)) == (0, 0, 1)
        # 11: no second swap, though 7H is dead too
        assert not {a for a in legal(after) if a.startswith("S")}
        drawn = np.flatnonzero(held(after, 0) - held(state, 0) == 1)
        assert held(after, 0).sum() == 3 and len(drawn) == 1
        # 10: the replacement can be played at once
        if drawn[0] < board.NATURALS:
            open_cells = [c for c in board.CELLS_OF_CARD[drawn[0]] if rows[c // 10][c % 10] == "."]
            assert {f"N {c // 10} {c % 10}" for c in open_cells} <= legal(after)
    nxt = play(play(state, "S 8C"), "N 0 1")
    assert (int(nxt.swaps), int(nxt.current_player)) == (0, 1)


def test_12_after_a_swap_the_turn_may_have_to_be_passed(game):
    rows = row({2}, "2")
    rows[3] = "1........."
    hand = ["8C", "2S"]
    dead = play(pose(game, rows, hand, deck=jnp.asarray(cards("8C"))), "S 8C")
    assert held(dead, 0).tolist() == cards("8C").tolist()
    assert legal(dead) == {"P"}


@pytest.mark.parametrize(("length", "count"), [(5, 1), (6, 1), (7, 1), (8, 1), (9, 2), (10, 2)])
def test_14_and_15_long_runs(game, length, count):
    state = pose(game, row(range(length - 1)), ["J2", "J1"])
    after = play(state, f"W 5 {length - 1}")
    assert after.scores.tolist() == [count, 0]
    assert bool(after.terminated) == (count == 2)
    locked = np.asarray(board.to_cells(after.locked))
    assert locked.sum() == length and locked[5, :length].all()


def test_15_a_second_five_may_share_one_cell_only(five):
    state = pose(five, row(range(4)), ["J2", "2S"])
    locked = {0, 1, 2, 3, 4}
    for column, count in ((4, 1), (5, 1), (6, 1), (7, 1), (8, 2)):
        state = play(state.replace(current_player=jnp.int32(0)), f"W 5 {column}")
        if column == 8:
            locked |= {5, 6, 7, 8}
        assert state.scores.tolist() == [count, 0]
        assert set(np.flatnonzero(board.to_cells(state.locked)[5])) == locked
        state = state.replace(hands=jnp.asarray([cards("J2"), cards("2S")]))
        state = pose(
            five, row(range(column + 1)), ["J2", "J1"], scores=state.scores, locked=state.locked
        )
        # 14: the sixth chip stays removable, the named five do not
        rival = pose(
            five, row(range(column + 1)), ["J2", "J1"], seat=1, scores=state.scores,
            locked=state.locked,
        )  # fmt: skip
        taken = {int(a[-1]) for a in legal(rival) if a.startswith("R")}
        assert taken == set(range(column + 1)) - locked


def test_five_names_unlocked_windows_first(five):
    # the five 0-4 is locked; a chip on 6 joins 5, 7, 8, 9: 5-9 has no locked chip
    locked = board.to_rows(jnp.asarray([[r == 5 and c < 5 for c in range(10)] for r in range(10)]))
    rows = row({0, 1, 2, 3, 4, 5, 7, 8, 9})
    state = pose(five, rows, ["J2"], scores=jnp.array([1, 0], jnp.int8), locked=locked)
    after = play(state, "W 5 6")
    assert after.scores.tolist() == [2, 0]
    assert np.asarray(board.to_cells(after.locked))[5].all()


# ---- scoring ----


def test_a_chip_may_finish_two_lines_and_wins_before_any_draw(game):
    rows = row({0, 1, 2, 3})
    for r in (1, 2, 3, 4):
        rows[r] = "....1....."
    state = pose(game, rows, ["J2 2S", "3S"])
    after = play(state, "W 5 4")
    assert after.scores.tolist() == [2, 0]
    assert after.rewards.tolist() == [1, -1] and after.terminated
    assert held(after, 0).sum() == 1 and (after.deck == state.deck).all()


def test_corners_belong_to_every_team(game):
    for chip, seat in (("1", 0), ("2", 1)):
        rows = ["*" + "".join(chip if c in (1, 2, 3) else "." for c in range(1, 9)) + "*"]
        state = pose(game, rows + EMPTY[1:], ["5S", "5S"], seat=seat)
        after = play(state, "N 0 4")
        assert after.scores[seat] == 1
        locked = np.asarray(board.to_cells(after.locked))
        assert np.argwhere(locked).tolist() == [[0, 1], [0, 2], [0, 3], [0, 4]]


def test_diagonals_count(game):
    for slope, text in ((1, "W 5 5"), (-1, "W 5 4")):
        rows = [*EMPTY]
        for r in (3, 4, 6, 7):
            column = r if slope > 0 else 9 - r
            rows[r] = "".join("1" if c == column else "." for c in range(10))
        after = play(pose(game, rows, ["J2", "2S"]), text)
        assert after.scores.tolist() == [1, 0]
        assert np.asarray(board.to_cells(after.locked)).sum() == 5


def test_heart_wins():
    game = jaxgames.make("sequence", "comp090054")
    rows = [*EMPTY]
    rows[4], rows[5] = "....1.....", "....11...."
    draft = cards("2S 3S 4S 5S 6S")
    state = pose(game, rows, ["4H", "9S"], draft=jnp.asarray(draft))
    after = play(state, "N 4 5 +2S")
    assert after.scores.tolist() == [2, 0] and after.rewards.tolist() == [1, -1]


# ---- the deck, passes and ends ----


def test_an_empty_deck_is_renewed_when_a_card_is_drawn(game):
    hands = ["2S 3S", "4S 5S"]
    state = pose(game, hands=hands, deck=jnp.zeros(50, jnp.int8))
    before = np.asarray(rules.discards(state))
    after = play(state, "N 0 1")
    assert after.reshuffles == 1
    drawn = held(after, 0) - cards("3S")
    assert drawn.sum() == 1 and drawn.min() == 0
    assert (np.asarray(after.deck) + drawn == before + cards("2S")).all()
    assert np.asarray(rules.discards(after)).sum() == 0
    assert np.asarray(after.known).tolist() == [cards("3S").tolist(), cards("4S 5S").tolist()]
    later = play(after, "N 0 3")
    assert later.known[1].tolist() == cards("5S").tolist()


def test_no_new_deck_without_reshuffle():
    game = jaxgames.make("sequence", reshuffle=False, hand_size=2)
    state = pose(game, hands=["2S 3S", "4S"], deck=jnp.zeros(50, jnp.int8))
    after = play(play(state, "N 0 1"), "N 0 3")
    assert after.hands.sum() == 1 and after.reshuffles == 0
    over = play(play(play(after, "N 0 2"), "P"), "P")
    assert over.terminated and not over.truncated and over.rewards.tolist() == [0, 0]


def test_a_round_of_passes_is_a_draw_and_a_play_breaks_it(game):
    state = pose(game, hands=["J1", "J1"])
    once = play(state, "P")
    assert not once.terminated
    assert play(once, "P").terminated
    broken = pose(game, hands=["J1", "2S"], seat=1, passes=jnp.int8(1))
    assert play(broken, "N 0 1").passes == 0


def test_the_cap_truncates_unless_the_game_is_won(game):
    late = dict(plies=jnp.int16(game.rules.ply_cap - 1))
    after = play(pose(game, hands=["2S", "3S"], **late), "N 0 1")
    assert after.truncated and not after.terminated and after.rewards.tolist() == [0, 0]
    won = play(pose(game, row(range(8)), ["J2", "3S"], **late), "W 5 8")
    assert won.terminated and not won.truncated and won.rewards.tolist() == [1, -1]


def test_three_teams_share_the_loss():
    game = jaxgames.make("sequence", players=6, teams=3)
    after = play(pose(game, row(range(4), "2"), ["2S", "J2"] + ["2S"] * 4, seat=4), "N 0 1")
    assert after.rewards.tolist() == [0] * 6
    won = play(pose(game, row(range(4), "2"), ["2S"] * 4 + ["J2"], seat=4), "W 5 4")
    assert won.rewards.tolist() == [-0.5, 1, -0.5] * 2


def test_illegal_actions_forfeit(game):
    state = pose(game, hands=["2S", "3S"])
    step = core.jit_step(game)
    for action in (0, 50, 348, 349, -1, 10**6):
        after = step(state, jnp.int32(action), jax.random.key(0))
        assert after.illegal and after.terminated and after.rewards.tolist() == [-1, 1]
        assert after.legal_action_mask.all()
        again = step(after, jnp.int32(1), jax.random.key(0))
        assert again.rewards.tolist() == [0, 0]
        same = again.replace(rewards=after.rewards)
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), same, after))


# ---- the contest ----


@pytest.fixture(scope="module")
def contest():
    return jaxgames.make("sequence", "comp090054")


def test_a_trade_is_offered_before_the_play(contest):
    rows = row({2}, "2")
    rows[3] = "1........."
    draft = jnp.asarray(cards("2S 2S 3S 4S J2"))
    state = pose(contest, rows, ["8C 9S", "9S"], draft=draft)
    assert legal(state) == {"S 8C +2S", "S 8C +3S", "S 8C +4S", "S 8C +J2", "K"}
    kept = play(state, "K")
    assert (int(kept.current_player), int(kept.swaps), int(kept.plies)) == (0, 1, 0)
    assert legal(kept) == {
        f"N {cell} +{card}" for cell in ("0 8", "6 1") for card in ("2S", "3S", "4S", "J2")
    }
    traded = play(state, "S 8C +J2")
    assert held(traded, 0).tolist() == cards("9S J2").tolist()
    assert traded.known[0].tolist() == cards("J2").tolist()
    assert traded.draft.sum() == 5 and traded.current_player == 0
    assert not {a for a in legal(traded) if a[0] in "SK"}


def test_an_empty_draft_ends_the_game(contest):
    none = jnp.zeros(50, jnp.int8)
    last = dict(deck=none, draft=jnp.asarray(cards("7H")))
    for scores, rewards in (([0, 0], [0, 0]), ([1, 0], [1, -1]), ([0, 1], [-1, 1])):
        leaves = dict(last, scores=jnp.asarray(scores, jnp.int8))
        after = play(pose(contest, hands=["9S", "9S"], **leaves), "N 0 8 +7H")
        assert after.terminated and after.rewards.tolist() == rewards
        assert held(after, 0).tolist() == cards("7H").tolist()


def test_nine_by_the_centre_chip_count_three(contest):
    draft = jnp.asarray(cards("2S 3S 4S 5S 6S"))
    after = play(pose(contest, row({0, 1, 2, 3, 5, 6, 7, 8}), ["J2"], draft=draft,
                      scores=jnp.zeros(2, jnp.int8), locked=jnp.zeros(10, jnp.uint16)),
                 "W 5 4 +2S")  # fmt: skip
    assert after.scores.tolist() == [3, 0]


# ---- batches, and whole random games ----


def test_single_batch_first_and_batch_last_agree(game):
    keys = jax.random.split(jax.random.key(0), 6)
    states = jax.jit(jax.vmap(game.init))(keys)
    actions = jnp.argmax(states.legal_action_mask, -1).astype(jnp.int32).at[0].set(-5)
    first = jax.jit(jax.vmap(game.step))(states, actions, keys)
    moved = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), states)
    last = jax.jit(jax.vmap(game.step, (-1, 0, 0), -1))(moved, actions, keys)
    one_state = jax.jit(jax.vmap(game.step, (None, 0, None)))
    many = one_state(jax.tree.map(lambda x: x[1], states), actions, keys[1])
    for i in range(6):
        state = jax.tree.map(lambda x, i=i: x[i], states)
        single = core.jit_step(game)(state, actions[i], keys[i])
        checks = [(first, 0), (last, -1)] + ([(many, 0)] if i == 1 else [])
        for batch, axis in checks:
            at = jax.tree.map(lambda x, i=i, axis=axis: jnp.take(x, i, axis), batch)
            assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), at, single))


def test_vmap_of_vmap(game):
    keys = jax.random.split(jax.random.key(1), (2, 3))
    states = jax.jit(jax.vmap(jax.vmap(game.init)))(keys)
    actions = jnp.argmax(states.legal_action_mask, -1)
    both = jax.jit(jax.vmap(jax.vmap(game.step)))(states, actions, keys)
    flat = jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), (states, actions, keys))
    once = jax.jit(jax.vmap(game.step))(*flat)
    same = jax.tree.map(lambda a, b: bool((a.reshape(b.shape) == b).all()), both, once)
    assert jax.tree.all(same)


@pytest.mark.parametrize("case", [("official", 2, 2), ("official", 3, 3), ("comp090054", 4, 2)])
def test_random_games_conserve_cards_and_scores_never_fall(case):
    game = games.make(*case)
    _, records = games.rollout(game, 7)
    state = records["leaves"]
    out = np.asarray(jax.vmap(jax.vmap(rules.discards))(state))
    every = [state.hands, state.deck, *([state.draft] if game.rules.draft else [])]
    assert min(int(pile.min()) for pile in every) >= 0 and out.min() >= 0
    total = out + sum(p.sum(2) if p.ndim == 4 else p for p in every)
    assert (total == board.COPIES).all()
    assert (np.diff(state.scores, axis=0) >= 0).all()
    if game.rules.reshuffle:
        over = state.terminated[..., None]  # the winner of a game does not draw
        assert ((state.hands.sum(-1) == game.rules.hand_size) | over).all()
    if case[0] == "official":
        rng = np.random.default_rng(0)
        for _ in range(40):
            at = rng.integers(state.plies.shape[0]), rng.integers(games.BATCH)
            found = [score(np.asarray(board.to_cells(t))) for t in state.chips[at]]
            assert state.scores[at].tolist() == [count for count, _ in found]
            locked = functools.reduce(np.logical_or, [locks for _, locks in found])
            assert (np.asarray(board.to_cells(state.locked[at])) == locked).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), picks=st.lists(st.integers(0, 10**6), max_size=30))
def test_a_seat_plays_what_it_holds(seed, picks):
    game = jaxgames.make("sequence", players=4)
    state = tools(game)[0](jax.random.key(seed % 97))
    for i, pick in enumerate(picks):
        options = np.flatnonzero(np.asarray(state.legal_action_mask))
        action = int(options[pick % len(options)])
        after = core.jit_step(game)(state, jnp.int32(action), jax.random.key(seed + i))
        mover = int(state.current_player)
        left = held(state, mover) - held(after, mover)
        assert left.sum() in (0, 1) and (left <= 1).all()
        others = [q for q in range(4) if q != mover]
        assert (state.hands[jnp.array(others)] == after.hands[jnp.array(others)]).all()
        state = after
        if state.done:
            break


def test_draws_are_uniform_over_the_deck(game):
    deck = cards("2S 2S 3S J1 J1 J1")
    state = pose(game, hands=["8C", "7H"], deck=jnp.asarray(deck))
    step = jax.jit(jax.vmap(game.step, (None, None, 0)))
    n = 6000
    after = step(state, jnp.int32(52), jax.random.split(jax.random.key(0), n))
    drawn = np.asarray(after.hands[:, 0]).sum(0)
    assert drawn.sum() == n
    for card, copies in enumerate(deck):
        p = copies / 6
        assert abs(drawn[card] - n * p) <= 4 * (n * p * (1 - p)) ** 0.5
