"""Cards, actions and deals as text, and why an action is illegal. On the host.

An action's text is its name in actions.py, "pair 9+*". A move may name its cards after a colon,
"pair 9+*: S9 H2"; without them the resolver chooses (resolve.py). Wilds are written by their
face. What chance decides is a deal: four hands, "S2 H7 ... | ... | ... | ...".
"""

from __future__ import annotations

import functools

import jax
import numpy as np

from jaxgames import batch, core
from jaxgames.guandan import actions, cards, deal, play
from jaxgames.guandan.actions import KEY, KIND, NAMES, Kind
from jaxgames.guandan.cards import BIT, PLANE, RANK, RANKS
from jaxgames.guandan.reading import exact_play, wild_of
from jaxgames.guandan.rules import PLAY, SEATS, TRIBUTE

#: What a kind of action is called in a sentence.
KIND_WORDS = {
    Kind.SINGLE: "a single card",
    Kind.PAIR: "a pair",
    Kind.TRIPLE: "a triple",
    Kind.FULL_HOUSE: "a full house",
    Kind.STRAIGHT: "a straight",
    Kind.TUBE: "a tube",
    Kind.PLATE: "a plate",
    Kind.BOMB: "a bomb",
    Kind.STRAIGHT_FLUSH: "a straight flush",
    Kind.JOKER_BOMB: "the joker bomb",
}
DEAL_SEPARATOR = " | "

# ---- cards ----


def counts_of(planes) -> np.ndarray:
    """int8[..., 54] of planes uint16[..., 8]."""
    planes = np.asarray(planes)
    bits = (planes[..., PLANE] >> BIT.astype(np.uint16)) & 1
    return (bits + ((planes[..., PLANE + 4] >> BIT.astype(np.uint16)) & 1)).astype(np.int8)


def planes_of(counts) -> np.ndarray:
    """uint16[..., 8] of counts int[..., 54]."""
    counts = np.asarray(counts)
    planes = np.zeros((*counts.shape[:-1], 8), np.uint16)
    for t in range(cards.TYPES):
        for copies in (1, 2):
            bit = np.where(counts[..., t] >= copies, 1 << BIT[t], 0).astype(np.uint16)
            planes[..., PLANE[t] + 4 * (copies - 1)] |= bit
    return planes


def cards_text(counts, level: int) -> str:
    """Card names of int[54] as a player sorts them, "-" when there are none."""
    return " ".join(cards.by_power(counts, level)) or "-"


def cards_from_text(text: str) -> np.ndarray:
    """int8[54] of card names, "-" for none; lenient about case, commas and "10"."""
    words = text.upper().replace(",", " ").replace("10", "T").split()
    return cards.counts(words if words != ["-"] else [])


def hand_of(state) -> np.ndarray:
    """int8[54], the hand of the seat to move."""
    return counts_of(np.asarray(state.hands)[int(state.current_player)])


def level_of(state) -> int:
    return int(state.level)


def return_allowed(rank: int, level: int) -> bool:
    """Whether a card of this rank may be returned while there is a choice (A10)."""
    return rank <= RANKS.index("T") and rank != level


# ---- actions and moves ----


def action_from_text(text: str) -> int:
    """The action of a name, whatever its case and spaces; ValueError with the nearest names."""
    line = " ".join(str(text).upper().split())[:40]
    if line not in actions.NUMBER:
        near = core.nearest(line.lower(), [name.lower() for name in NAMES]) if line else ""
        near = near if near.startswith("; did") else ", such as 'pair 9+*', 'flush H 4-8' or 'pass'"
        raise ValueError(f"{str(text).strip()[:40]!r} is not an action{near}")
    return actions.NUMBER[line]


def detail_cards(state, action: int, detail: str) -> np.ndarray:
    """int8[54], the cards that a move names; ValueError says what is wrong with them."""
    counts = cards_from_text(detail)
    held, level = hand_of(state), level_of(state)
    for t in np.flatnonzero(counts > held)[:1].tolist():
        many = f"{held[t]} of " if held[t] else "no "
        raise ValueError(f"the hand holds {many}{cards.NAMES[t]}")
    kind = Kind(KIND[action])
    if kind is Kind.PASS:
        if counts.any():
            raise ValueError("a pass plays no cards")
    elif kind in (Kind.TRIBUTE, Kind.RETURN) and counts[wild_of(level)]:
        raise ValueError(f"{cards.NAMES[wild_of(level)]} is wild and is never paid or returned")
    else:
        exact_play(action, counts, level, state.game.rules.profile)
    return counts


# ---- why not ----


def explain_illegal(state, action: int) -> str | None:
    """The rule that forbids `action` in one sentence, or None when it is legal."""
    action = int(action)
    if not 0 <= action < actions.NUM_ACTIONS:
        return f"action {action} is outside 0..{actions.NUM_ACTIONS - 1}"
    if bool(state.done):
        return "the game is over"
    if bool(state.legal_action_mask[action]):
        return None
    kind, stage = Kind(KIND[action]), int(state.stage)
    if stage != PLAY:
        due = Kind.TRIBUTE if stage == TRIBUTE else Kind.RETURN
        if kind is not due:
            return f"a {due.name.lower()} is due: name one card, such as {_first_legal(state)!r}"
        return _why_not_given(state, int(KEY[action]), due)
    if kind in (Kind.TRIBUTE, Kind.RETURN):
        return f"no {kind.name.lower()} is due: the cards are being played"
    if kind is Kind.PASS:
        return "the leader must play: a pass is allowed only when there is a play to beat"
    return _why_not_held(state, action) or _why_not_beaten(state, action)


def _first_legal(state) -> str:
    return NAMES[int(np.argmax(np.asarray(state.legal_action_mask)))]


def _why_not_given(state, rank: int, due: Kind) -> str:
    held, level = hand_of(state), level_of(state)
    name = actions.RANK_NAMES[rank]
    naturals = [t for t in np.flatnonzero(held) if t != wild_of(level)]
    if not any(RANK[t] == rank for t in naturals):
        wild = " but the wild" if rank == level and held[wild_of(level)] else ""
        return f"the hand holds no {name}{wild}"
    only = _first_legal(state).split()[1]
    if due is Kind.TRIBUTE:
        return f"only the highest card may be paid, here {only}"
    if not any(return_allowed(int(RANK[t]), level) for t in naturals):
        return f"no card from 2 to 10 is held: the lowest one is returned, here {only}"
    if rank == level:
        return f"a level card, here {name}, may not be returned"
    return f"only a card from 2 to 10 may be returned, not {name}"


def _why_not_held(state, action: int) -> str | None:
    if bool(leads(state)[action]):
        return None
    needed, held = int(actions.WILDS[action]), int(hand_of(state)[wild_of(level_of(state))])
    if KIND[action] == Kind.FULL_HOUSE and KEY[action] == actions.EXTRA[action]:
        needed = 2
    if needed > held:
        return f"{NAMES[action]} needs {needed} wild{'s' * (needed > 1)}, the hand has {held}"
    return f"the hand can not make {NAMES[action]}"


def _why_not_beaten(state, action: int) -> str:
    table = int(state.table)
    kind, other = Kind(KIND[action]), Kind(KIND[table])
    bombs = (Kind.BOMB, Kind.STRAIGHT_FLUSH, Kind.JOKER_BOMB)
    if kind != other and kind not in bombs:
        rule = f"only a higher one of {KIND_WORDS[other]} or a bomb does"
        if other in bombs:
            rule = "only a higher bomb does"
        return f"{KIND_WORDS[kind]} does not beat {NAMES[table]}: {rule}"
    return f"{NAMES[action]} is not higher than {NAMES[table]}"


@functools.lru_cache(maxsize=64)
def legal_fn(game):
    """`state -> bool[768]` for the seat to move, jitted."""
    return jax.jit(batch.one_game(play.legal))


def leads(state) -> np.ndarray:
    """bool[768], what the seat to move could lead with."""
    free = state.replace(table=np.int16(actions.NONE))
    return np.asarray(legal_fn(state.game)(free))


# ---- chance: the next deal of a match ----


def deal_began(before, after) -> bool:
    """Whether the step from `before` to `after` ended a round and began another."""
    return int(after.rounds) > int(before.rounds) and not bool(after.done)


def chance_to_text(before, action: int, after) -> str | None:
    """The four hands of a new deal; None when none began."""
    if bool(before.done) or not deal_began(before, after):
        return None
    hands = counts_of(np.asarray(after.hands))
    return DEAL_SEPARATOR.join(" ".join(cards.names(hand)) for hand in hands)


def hands_from_text(text: str) -> np.ndarray:
    """int8[4, 54], a deal; ValueError for anything else than 108 cards in hands of 27."""
    parts = str(text)[:1_000].split(DEAL_SEPARATOR.strip())
    if len(parts) != SEATS:
        raise ValueError(f"a deal is four hands apart by '|', got {len(parts)}")
    hands = np.stack([cards_from_text(part) for part in parts])
    for seat, size in enumerate(hands.sum(1).tolist()):
        if size != cards.HAND:
            raise ValueError(f"the hand of seat {seat} has {size} cards, not {cards.HAND}")
    total = hands.sum(0)
    for t in np.flatnonzero(total != cards.COPIES)[:1].tolist():
        raise ValueError(f"{cards.NAMES[t]} is dealt {total[t]} times; there are two")
    return hands


def step_with_chance(state, action: int, chance: str | None, detail: str | None = None):
    """`game.step` with the next deal named instead of a key, and with the cards of `detail`.

    Raises:
      ValueError: chance can not have dealt that here, or the cards are not such a play.
    """
    game, action = state.game, int(action)
    hands = None if chance is None else hands_from_text(chance)
    key = jax.random.key(0)
    if detail is None:
        after = core.jit_step(game)(state, np.int32(action), key)
    else:
        counts = detail_cards(state, action, detail)
        after = _step_cards(game)(state, counts, np.int32(action), key)
        if bool(after.illegal) and not bool(state.illegal):
            raise ValueError(f"the rules forbid {NAMES[action]} with {detail}")
    began = not bool(state.done) and deal_began(state, after)
    if began != (hands is not None):
        raise ValueError("the new deal is missing" if began else "nothing is dealt here")
    return _redealt(state, after, hands) if began else after


def _redealt(before, after, hands: np.ndarray):
    """`after` with its new round begun from these hands."""
    order = [int(seat) for seat in before.order if seat >= 0]
    order += [int(before.current_player)]
    order += [seat for seat in range(SEATS) if seat not in order]
    dealt = after.replace(hands=planes_of(hands), order=np.array(order, np.int8))
    begun = _begin(after.game)(dealt)
    return begun.replace(legal_action_mask=legal_fn(after.game)(begun))


@functools.lru_cache(maxsize=64)
def _begin(game):
    return jax.jit(batch.one_game(deal.begin))


@functools.lru_cache(maxsize=64)
def _step_cards(game):
    return jax.jit(game.step_cards)
