"""The engine and the plain-Python rule book play the same games, move by move.

The engine plays batches under vmap and scan. Each game is then replayed in the twin, which
is told only the deal, the actions and the cards drawn; every position must agree in every
part: mask, chips, locks, scores, hands, deck, discards, known cards, counters, rewards.
"""

from __future__ import annotations

import numpy as np
import pytest

import jaxgames
from jaxgames.sequence import rules
from tests.jaxgames.sequence.games import BATCH, make, rollout
from tests.reference import sequence_twin as twin

# (preset, players, teams). Every player count of every preset; 6 and 12 also in two teams.
TABLE = [
    *(("official", p, t) for p, t in [(2, 2), (3, 3), (4, 2), (6, 3)]),
    *(("official", p, t) for p, t in [(8, 2), (9, 3), (10, 2), (12, 3)]),
    *(("official_five", p, t) for p, t in [(2, 2), (3, 3), (4, 2)]),
    *(("comp090054", p, 2) for p in (2, 4)),
]
MORE = [("official", 6, 2), ("official", 12, 2)]
# Of each kind one, and those that other tests compile anyway: two and three teams, one seat to
# a team and several, locks by run and by five, a draft.
FEW = [("official", 2, 2), ("official", 12, 3), ("official_five", 3, 3), ("comp090054", 4, 2)]


def planes(words):
    """uint16[..., 10] bit planes as uint8[..., 16]: six rows, then four, 10 bits a row."""
    shifts = 10 * np.array([0, 1, 2, 3, 4, 5, 0, 1, 2, 3], np.uint64)
    spread = words.astype(np.uint64) << shifts
    halves = np.stack([spread[..., :6].sum(-1), spread[..., 6:].sum(-1)], axis=-1)
    return halves.astype("<u8").view(np.uint8)


def engine_fields(records):
    """Name -> uint8[S, B, length], as `twin.fields` has them."""
    state = records["leaves"]
    lead = state.current_player.shape
    copies = np.array([2] * 48 + [4, 4], np.int8)
    draft = state.draft if isinstance(state, rules.DraftState) else np.zeros_like(state.deck)
    parts = {
        "legal_action_mask": records["legal_action_mask"],
        "chips": planes(state.chips),
        "locked": planes(state.locked),
        "scores": state.scores,
        "hands": state.hands,
        "deck": state.deck,
        "discards": copies - state.deck - draft - state.hands.sum(-2, dtype=np.int8),
        "draft": draft,
        "known": state.known,
        "seat": state.current_player.astype(np.int8),
        "swaps": state.swaps,
        "passes": state.passes,
        "reshuffles": state.reshuffles.astype(np.int8),
        "plies": state.plies[..., None].astype("<i2").view(np.uint8),
        "last_play": state.last_play[..., None].astype("<i2").view(np.uint8),
        "rewards": (2 * state.rewards).astype(np.int8),
        "flags": np.stack([state.terminated, state.truncated, state.illegal], -1).view(np.int8),
    }
    return {k: np.ascontiguousarray(v).view(np.uint8).reshape(*lead, -1) for k, v in parts.items()}


def cards_drawn(game, actions, state):
    """The card that left the deck at each step, -1 for none; int[S, B].

    Without a draft: what the hands gained, once the card played is put back.
    """
    if game.rules.draft:
        gained = state.deck[:-1] - state.deck[1:]
    else:
        gained = np.diff(state.hands.sum(-2, dtype=np.int8), axis=0)
        card_of = np.array([*twin.CARD_AT, *[48] * 100, *[49] * 100, *range(48)])
        acted = (actions >= 0) & (actions < 348) & ~state.illegal[1:]
        acted &= ~(state.terminated | state.truncated)[:-1]
        played = card_of[np.clip(actions, 0, 347)]
        gained += acted[..., None] & (np.arange(50) == played[..., None])
    assert gained.min() >= 0 and gained.sum(-1).max() <= 1
    return np.where(gained.any(-1), gained.argmax(-1), -1)


def options_of(game):
    """The game's options as the twin has them."""
    r = game.rules
    lock = "contest" if r.draft else r.lock_rule
    return twin.Options(
        r.players, r.teams, r.sequences_to_win, r.hand_size, lock, r.reshuffle,
        r.swaps_per_turn, r.draft, r.heart, r.ply_cap,
    )  # fmt: skip


def dealt(game, state, g):
    """A twin with the deal of game `g` of records `state`."""
    draft = state.draft[0, g].tobytes() if game.rules.draft else None
    return twin.Twin(options_of(game), [row.tobytes() for row in state.hands[0, g]], draft)


def moves(actions, drawn, g, count):
    """(action, card drawn or None) of the first moves of game `g`."""
    pairs = zip(actions[:count, g].tolist(), drawn[:count, g].tolist(), strict=True)
    return [(action, card if card >= 0 else None) for action, card in pairs]


def replay(game, actions, records):
    """Replays all games in the twin; raises AssertionError at the first difference."""
    state = records["leaves"]
    drawn = cards_drawn(game, actions, state)
    done = state.terminated | state.truncated
    assert done[-1].all()
    lengths = done.argmax(0)
    parts = engine_fields(records)
    layout = twin.fields(options_of(game))
    assert {name: part.shape[-1] for name, part in parts.items()} == layout
    ours = np.concatenate(list(parts.values()), -1)
    for g, length in enumerate(lengths.tolist()):
        game_twin = dealt(game, state, g)
        pages = [game_twin.snapshot()]
        for action, card in moves(actions, drawn, g, length + 1):  # one step past the end too
            game_twin.apply(action, card)
            pages.append(game_twin.snapshot())
        theirs = np.frombuffer(b"".join(pages), np.uint8).reshape(len(pages), -1)
        page = ours[: len(pages), g]
        if not np.array_equal(page, theirs):
            raise AssertionError(difference(layout, page, theirs, g, actions))
    public = ours[..., : -game.num_players - 3]  # all but rewards and flags, compared above
    last = public[lengths, np.arange(len(lengths))]
    assert np.array_equal(last, public[-1]), "a finished game moved"


def difference(layout, ours, theirs, g, actions):
    """The first difference of two games in words."""
    step, byte = np.argwhere(ours != theirs)[0]
    ends = np.cumsum(list(layout.values()))
    name = list(layout)[np.searchsorted(ends, byte, side="right")]
    part = slice(ends[list(layout).index(name)] - layout[name], ends[list(layout).index(name)])
    return (
        f"game {g}, after actions {actions[:step, g].tolist()}: {name} is "
        f"{ours[step, part].tolist()} in the engine, {theirs[step, part].tolist()} by the rules"
    )


def compare(game, games, first_seed=0):
    for seed in range(first_seed, first_seed + games // BATCH):
        replay(game, *rollout(game, seed))


@pytest.mark.parametrize("case", FEW, ids="{0[0]}-{0[1]}-{0[2]}".format)
def test_500_games(case):
    compare(make(*case), 500)


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLE + MORE, ids="{0[0]}-{0[1]}-{0[2]}".format)
def test_20_000_games(case):
    compare(make(*case), 20_000, first_seed=1)


# Options off the presets: rare ends, more and fewer swaps, long games.
VARIANTS = [
    dict(players=2, ply_cap=30),
    dict(players=2, swaps_per_turn=0, sequences_to_win=3),
    dict(players=3, swaps_per_turn=3, sequences_to_win=4, lock_rule="five"),
    dict(players=4, teams=2, heart=True, hand_size=3),
    dict(players=6, teams=3, heart=True, lock_rule="five", sequences_to_win=2),
    dict(players=2, reshuffle=False, hand_size=20),
]


@pytest.mark.slow
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_other_options(options):
    compare(jaxgames.make("sequence", **options), 2_000)
