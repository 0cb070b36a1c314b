"""What people at a table say and hear: cards by name, readings of wilds, news. On the host."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np

from jaxgames.guandan import actions, cards, resolve
from jaxgames.guandan.actions import KEY, KIND, NAMES, SIZE, Kind
from jaxgames.guandan.cards import RANK, RANKS
from jaxgames.guandan.notation import (
    action_from_text,
    cards_from_text,
    counts_of,
    deal_began,
    detail_cards,
    explain_illegal,
    hand_of,
    leads,
    level_of,
)
from jaxgames.guandan.reading import SEQUENCES, Play, exact_play, wild_of, window
from jaxgames.guandan.round_check import payers_of
from jaxgames.guandan.rules import PLAY, SEATS, TRIBUTE

_WILD_WORDS = ("*", "W")
_RANK_WORDS = {name: rank for rank, name in enumerate(actions.RANK_NAMES)} | {"10": 8}
_GIVING = {Kind.TRIBUTE: "pay", Kind.RETURN: "return"}

# ---- what a person says ----


def move_from_text(state, text: str) -> tuple[int, str | None]:
    """(action, its cards or None) of "pair 9+*" or "pair 9+*: S9 H2"; ValueError."""
    name, colon, detail = str(text).partition(":")
    action = action_from_text(name)
    if not colon:
        return action, None
    rule = explain_illegal(state, action)
    if rule:
        raise ValueError(rule)
    return action, " ".join(cards.names(detail_cards(state, action, detail[:200])))


def readings(state, text: str) -> list[str]:
    """Moves that a person may mean by cards, "S5 H5", or ranks, "5 5" with "*" for a wild.

    Raises ValueError when they are cards, but nothing that may be played now.
    """
    words = str(text)[:200].upper().replace(",", " ").split()
    if words == ["P"]:
        return [NAMES[actions.PASS]] if bool(state.legal_action_mask[actions.PASS]) else []
    if not words or len(words) > 10:
        return []
    if all(word.replace("10", "T") in cards.NUMBER for word in words):
        found = _of_cards(state, cards_from_text(" ".join(words)))
    elif all(word in _RANK_WORDS or word in _WILD_WORDS for word in words):
        found = _of_ranks(state, words)
    else:
        return []
    if not found:
        raise ValueError(_why_none(state, words))
    return found


def _candidates(state, size: int) -> list[int]:
    """Legal actions of so many cards; a tribute or return is one."""
    sizes = np.where(np.isin(KIND, list(_GIVING)), 1, SIZE)
    legal = np.asarray(state.legal_action_mask) & (sizes == size)
    return np.flatnonzero(legal).tolist()


def _of_cards(state, counts: np.ndarray) -> list[str]:
    found = []
    for action in _candidates(state, int(counts.sum())):
        named = " ".join(cards.names(counts))
        try:
            detail_cards(state, action, named)
        except ValueError:
            continue
        if KIND[action] not in _GIVING or RANK[np.argmax(counts)] == KEY[action]:
            found.append(f"{NAMES[action]}: {named}")
    return found


def _of_ranks(state, words: list[str]) -> list[str]:
    """Actions whose resolved cards show these ranks; a wild may be named by its own."""
    level = level_of(state)
    wilds = sum(word in _WILD_WORDS for word in words)
    wanted = np.bincount([_RANK_WORDS[w] for w in words if w not in _WILD_WORDS], minlength=15)
    candidates = _candidates(state, len(words))
    found = []
    for action, counts in zip(candidates, _resolved(state)[candidates], strict=True):
        shown = np.bincount(RANK, weights=counts, minlength=15)
        held = counts[wild_of(level)]
        shown[level] -= wilds
        if held >= wilds and (shown == wanted).all():
            found.append(NAMES[action])
    return found


def _why_none(state, words: list[str]) -> str:
    text = " ".join(words)
    if int(state.stage) != PLAY:
        return f"{text} is not what may be given now: " + _rule_now(state)
    if all(word.replace("10", "T") in cards.NUMBER for word in words):
        counts, held = cards_from_text(text), hand_of(state)
        for t in np.flatnonzero(counts > held)[:1].tolist():
            return f"the hand does not hold {text}: {held[t]} of {cards.NAMES[t]}"
        free = state.replace(legal_action_mask=leads(state))
        others = _of_cards(free, counts)
    else:
        others = _of_ranks(state.replace(legal_action_mask=leads(state)), words)
    if others and int(state.table) >= 0:
        named = " or ".join(other.partition(":")[0] for other in others[:3])
        return f"{named} does not beat {NAMES[int(state.table)]}"
    return f"{text} is no play that the hand can make"


def _rule_now(state) -> str:
    legal = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
    return " or ".join(NAMES[action] for action in legal[:6])


# ---- which cards an action takes ----


@functools.lru_cache(maxsize=16)
def _resolver(book):
    def cards_of(hand, level):
        return resolve.resolve(hand, level, np.arange(actions.NUM_ACTIONS), book)

    return jax.jit(cards_of)


def _resolved(state) -> np.ndarray:
    """int8[768, 54], the cards that each action takes from the mover's hand, if it is legal."""
    hand = np.asarray(state.hands)[int(state.current_player)]
    many = np.broadcast_to(hand[:, None], (8, actions.NUM_ACTIONS))
    level = np.full(actions.NUM_ACTIONS, level_of(state))
    return counts_of(np.asarray(_resolver(state.game.rules.book)(many, level)).T)


def action_notes(state, chosen: Sequence[int]) -> list[str]:
    """The cards of legal actions, wilds with what they stand for: "S9 H2 as 9"."""
    found = _resolved(state)
    return [spelt(action, found[action], level_of(state)) for action in chosen]


def spelt(action: int, counts: np.ndarray, level: int) -> str:
    """The cards int8[54] of an action in their roles, wilds with what they stand for."""
    if KIND[action] == Kind.PASS:
        return ""
    if KIND[action] in _GIVING:
        return " ".join(cards.names(counts))
    play = exact_play(action, counts, level)
    wild = cards.NAMES[wild_of(level)]
    played_as = roles(action, play)
    words = []
    for card, role in zip(play.cards, played_as, strict=True):
        own = role in (wild, RANKS[level])
        words.append(card if card != wild or own else f"{card} as {role}")
    return " ".join(words)


def roles(action: int, play: Play) -> list[str]:
    """What each card of a play stands for: a rank, in a straight flush a card."""
    if play.type in SEQUENCES:
        size, length, _ = SEQUENCES[play.type]
        suit = cards.SUITS[int(actions.EXTRA[action])] if play.type == "StraightFlush" else ""
        ranks = window(int(KEY[action]), length)
        return [suit + RANKS[rank] for rank in ranks for _ in range(size)]
    if play.type == "ThreeWithTwo":
        pair = int(KEY[action])
        two = "any" if pair == actions.EXTRA[action] else actions.RANK_NAMES[pair]
        return [play.rank] * 3 + [two] * 2
    return [play.rank] * len(play.cards)


# ---- what everybody hears ----


def announce(before, action: int, after) -> list[str]:
    """The move with its cards, then tributes that were shown, ends of rounds, new deals.

    A card chosen to be paid or returned stays face down until all are chosen.
    """
    action, kind = int(action), Kind(KIND[int(action)])
    seat = int(before.current_player)
    if kind in _GIVING:
        return [f"a card to {_GIVING[kind]}, face down", *_shown_cards(before, after)]
    if kind is Kind.PASS or bool(after.illegal):
        return [NAMES[action]]
    ended = int(after.rounds) > int(before.rounds)
    left = np.zeros(cards.TYPES, np.int8) if ended else counts_of(np.asarray(after.hands)[seat])
    played = counts_of(np.asarray(before.hands)[seat]) - left
    lines = [f"{NAMES[action]}: {spelt(action, played, level_of(before))}"]
    if not left.any() and not ended:
        lines.append(f"seat {seat} is out")
    if ended:
        lines += _round_news(before, after)
    return lines


def _shown_cards(before, after) -> list[str]:
    """Tributes or returns, once all have been chosen."""
    if int(after.stage) == int(before.stage):
        return []
    tribute, to, back = (np.asarray(x) for x in (after.tribute, after.to, after.back))
    payers = np.flatnonzero(tribute >= 0).tolist()
    if int(before.stage) == TRIBUTE:
        return [f"seat {p} pays {cards.NAMES[tribute[p]]} to seat {to[p]}" for p in payers]
    lines = [f"seat {to[p]} returns {cards.NAMES[back[to[p]]]} to seat {p}" for p in payers]
    return [*lines, f"seat {int(after.current_player)} leads"]


def order_after(before) -> list[int]:
    """The seats in the order of a round that the mover of `before` ends by going out."""
    order = [int(q) for q in np.asarray(before.order) if q >= 0] + [int(before.current_player)]
    return order + [q for q in range(SEATS) if q not in order]


def _round_news(before, after) -> list[str]:
    order = order_after(before)
    lines = [f"the round is over: {', '.join(f'seat {q}' for q in order)}"]
    levels = zip(np.asarray(before.levels).tolist(), np.asarray(after.levels).tolist(), strict=True)
    for side, (old, new) in enumerate(levels):
        if new > old:
            lines.append(f"team {side} rises from level {RANKS[old]} to {RANKS[new]}")
        elif new < old:
            lines.append(f"team {side} goes back to level {RANKS[new]}")
    if not deal_began(before, after):
        return lines
    lines.append(f"new cards, level {RANKS[level_of(after)]}, round of team {int(after.owner)}")
    payers = payers_of(order)
    if bool(after.anti):
        holders = [p for p in payers if counts_of(np.asarray(after.hands)[p])[cards.HR]]
        shown = " and ".join(f"seat {p}" for p in sorted(holders))
        verb = "holds" if len(holders) == 1 else "hold"
        lines.append(f"{shown} {verb} both big jokers: no tribute; seat {order[0]} leads")
    else:
        who = " and ".join(f"seat {p}" for p in sorted(payers))
        lines.append(f"{who} pay{'s' * (len(payers) == 1)} tribute")
    return lines
