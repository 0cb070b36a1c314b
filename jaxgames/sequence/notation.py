"""Cards and actions as text, and why an action is illegal. On the host.

Cards: rank and suit, "7H"; "J2" is a two-eyed jack (places a chip anywhere), "J1" a one-eyed
jack (removes one). Real names of jacks, "JD", are read too and mean what `jack_map` says.

Actions: "N r c" the natural card printed on row r, column c; "W r c" a two-eyed jack there;
"R r c" a one-eyed jack takes the chip there; "S 7H" turns in a dead card; "P" pass. The draft
game adds the slot to pick from, "N 3 4 +2", and reads a card for it too, "N 3 4 +7H"; there
"K" is "keep the dead card".
"""

from __future__ import annotations

import functools
import re

import jax
import numpy as np

from jaxgames.sequence import board, play, rules

KINDS = "NWR"
TEAM_CHIPS = "123"
_ACTION = re.compile(
    r"(?:(?P<kind>[NWR]) ?(?P<row>[0-9]) ?,? ?(?P<col>[0-9])"
    r"|S ?(?P<card>[0-9A-Z]{2,3})|(?P<rest>[PK]))"
    r"(?: ?\+ ?(?P<pick>[0-9A-Z]{1,3}))?"
)

# ---- cards ----


def card_text(card: int) -> str:
    """Name of a card type 0..49."""
    return {board.TWO_EYED: "J2", board.ONE_EYED: "J1"}.get(card) or board.card_name(card)


def card_from_text(game, text: str) -> int:
    """Inverse of `card_text`, lenient about case, "10" for "T" and real jacks; ValueError."""
    name = text.strip().upper().replace("10", "T")
    if len(name) == 2 and name.isascii():
        if name[0] == "J":
            placing = rules.JACK_MAPS[game.rules.jack_map]
            if name[1] in "12":
                return board.TWO_EYED if name[1] == "2" else board.ONE_EYED
            if name[1] in board.SUITS:
                return board.TWO_EYED if name[1] in placing else board.ONE_EYED
        elif name[0] in board.RANKS and name[1] in board.SUITS:
            return board.card_id(name)
    raise ValueError(f"{text.strip()[:20]!r} is not a card such as 7H, TC, J2 or J1")


def cards_text(counts) -> str:
    """A multiset int[50] as names in card order, "-" when empty; negative counts as "-7H"."""
    names = []
    for card, count in enumerate(np.asarray(counts).tolist()):
        names += [("-" if count < 0 else "") + card_text(card)] * abs(count)
    return " ".join(names) or "-"


# ---- actions ----


def slots(state) -> list[int]:
    """The cards open in the draft, sorted, one entry per slot; empty without a draft."""
    draft = np.asarray(getattr(state, "draft", np.zeros(board.CARDS, np.int8)))
    return np.repeat(np.arange(board.CARDS), draft).tolist()


def _trading(state) -> bool:
    """The draft game's choice between trading a dead card and keeping it is due."""
    mask = np.asarray(state.legal_action_mask)
    first = rules.SWAP * state.game.action_slots
    last = rules.PASS * state.game.action_slots
    return bool(state.game.rules.draft and not state.done and mask[first:last].any())


def base_text(base: int) -> str:
    """Notation of an action of the 349 block."""
    if base == rules.PASS:
        return "P"
    if base >= rules.SWAP:
        return f"S {card_text(base - rules.SWAP)}"
    kind, cell = divmod(base, board.CELLS)
    return f"{KINDS[kind]} {cell // board.SIZE} {cell % board.SIZE}"


def action_to_text(game, action: int, state=None) -> str:
    """Notation of an action of the head, unique within it.

    With a `state` of the draft game, the pick is the card itself, "+7H", and a pass that keeps
    a dead card reads "K". A slot that is never legal (empty, or equal to the one before)
    stays a number.
    """
    action = int(action)
    if not 0 <= action < game.num_actions:
        raise ValueError(f"action {action} is outside 0..{game.num_actions - 1}")
    base, slot = divmod(action, game.action_slots)
    if base == rules.PASS:
        text = "K" if state is not None and _trading(state) else "P"
        return f"{text} +{slot}" if slot else text
    if not game.rules.draft:
        return base_text(base)
    open_cards = slots(state) if state is not None else []
    first = slot < len(open_cards) and open_cards.index(open_cards[slot]) == slot
    return f"{base_text(base)} +{card_text(open_cards[slot]) if first else slot}"


def action_from_text(game, text: str, state=None) -> int:
    """Inverse of `action_to_text`, lenient about case and spaces; ValueError.

    With a `state` of the draft game, the pick may be a card, "+7H", and may be left out when
    all open cards are equal.
    """
    shape = "N 3 4, W 3 4, R 3 4, S 7H or P" + (" with +SLOT; K" if game.rules.draft else "")
    text = str(text)
    line = " ".join(text.upper().split())
    match = _ACTION.fullmatch(line) if line.isascii() and len(text) <= 60 else None
    if match is None or (match["rest"] == "K" and not game.rules.draft):
        raise ValueError(f"{text.strip()[:40]!r} is not an action: {shape}")
    if match["kind"]:
        base = board.CELLS * KINDS.index(match["kind"]) + 10 * int(match["row"]) + int(match["col"])
    elif match["card"]:
        card = card_from_text(game, match["card"])
        if card >= board.NATURALS:
            raise ValueError("a jack is never dead and can not be turned in")
        base = rules.SWAP + card
    else:
        base = rules.PASS
    return base * game.action_slots + _slot(game, match["pick"], base, state)


def _slot(game, pick: str | None, base: int, state) -> int:
    if not game.rules.draft:
        if pick is not None:
            raise ValueError(f"'+{pick}': there is no draft to pick from in this game")
        return 0
    open_cards = slots(state) if state is not None else []
    if pick is None:
        if base == rules.PASS:
            return 0
        if len(set(open_cards)) == 1:
            return 0
        raise ValueError("name the card to pick from the draft, +0 to +4 or +7H")
    if len(pick) == 1:
        if not pick.isdigit() or int(pick) >= game.action_slots:
            raise ValueError(f"'+{pick}': draft slots are +0 to +{game.action_slots - 1}")
        return int(pick)
    card = card_from_text(game, pick)
    if card not in open_cards:
        raise ValueError(f"{card_text(card)} does not lie in the draft")
    return open_cards.index(card)


# ---- why not ----


def explain_illegal(state, action: int) -> str | None:
    """The rule that forbids `action` in one sentence, or None when it is legal."""
    game, action = state.game, int(action)
    if not 0 <= action < game.num_actions:
        return f"action {action} is outside 0..{game.num_actions - 1}"
    if bool(state.done):
        return "the game is over"
    if bool(state.legal_action_mask[action]):
        return None
    base, slot = divmod(action, game.action_slots)
    trading = _trading(state)
    if base == rules.PASS:
        if slot:
            return "a pass picks no card from the draft"
        return "a pass is allowed only when no play and no swap is possible"
    if trading and base < rules.SWAP:
        return "a dead card is held: trade it or keep it (K) before playing"
    why = _why_not_swap(state, base - rules.SWAP) if base >= rules.SWAP else _why_not(state, base)
    return why or _why_not_pick(state, slot)


def _why_not_pick(state, slot: int) -> str:
    open_cards = slots(state)
    if slot >= len(open_cards):
        return f"the draft holds {len(open_cards)} cards: there is no slot +{slot}"
    first = open_cards.index(open_cards[slot])
    return f"slot +{slot} holds the same card as +{first}: pick +{first}"


def _hand(state) -> np.ndarray:
    return np.asarray(state.hands)[int(state.current_player)]


def chips_of(state) -> np.ndarray:
    """int[100]: 0 for no chip, team + 1 for a chip."""
    chips = np.asarray(board.to_cells(np.asarray(state.chips))).reshape(-1, board.CELLS)
    return (chips * np.arange(1, len(chips) + 1)[:, None]).sum(0)


def locked_of(state) -> np.ndarray:
    """bool[100], chips that can not be removed."""
    return np.asarray(board.to_cells(np.asarray(state.locked))).reshape(board.CELLS)


def place(cell: int) -> str:
    """A cell for a sentence."""
    return f"row {cell // board.SIZE} column {cell % board.SIZE}"


def _why_not(state, base: int) -> str | None:
    kind, cell = divmod(base, board.CELLS)
    chip, where = chips_of(state)[cell], place(cell)
    if board.IS_CORNER[cell]:
        if kind == 2:
            return f"{where} is a free corner: there is no chip to remove"
        return f"{where} is a free corner: no chip is ever placed there"
    card = (int(board.CARD_OF_CELL[cell]), board.TWO_EYED, board.ONE_EYED)[kind]
    if not _hand(state)[card]:
        names = (board.card_name(card) if kind == 0 else "", "a two-eyed jack", "a one-eyed jack")
        return f"the hand does not hold {names[kind]}"
    if kind < 2:
        return f"{where} is covered by a chip of team {chip}" if chip else None
    if not chip:
        return f"{where} is empty: there is no chip to remove"
    if chip - 1 == int(state.current_player) % state.game.rules.teams:
        return f"the chip on {where} belongs to the own team"
    if locked_of(state)[cell]:
        return f"the chip on {where} is part of a completed sequence"
    return None


def _why_not_swap(state, card: int) -> str | None:
    name, options = board.card_name(card), state.game.rules
    if not _hand(state)[card]:
        return f"the hand does not hold {name}"
    free = [cell for cell in board.CELLS_OF_CARD[card].tolist() if not chips_of(state)[cell]]
    if free:
        return f"{name} is not dead: {place(free[0])} is open"
    if int(state.swaps) >= options.swaps_per_turn:
        if options.draft:
            return "a dead card was already traded or kept this turn"
        if options.swaps_per_turn == 0:
            return "this game has no swaps of dead cards"
        return f"only {options.swaps_per_turn} dead card may be turned in per turn"
    return None


# ---- chance ----


def chance_to_text(before, action: int, after) -> str | None:
    """The card that came from the deck between two positions; None if none did."""
    if bool(before.done) or bool(after.illegal):
        return None
    base = int(action) // before.game.action_slots
    pool = np.asarray(before.deck).astype(int)
    if int(after.reshuffles) > int(before.reshuffles):
        pool = np.asarray(rules.discards(before)) + _card_played(base)
    drawn = np.flatnonzero(pool - np.asarray(after.deck))
    return card_text(int(drawn[0])) if len(drawn) else None


def step_with_chance(state, action: int, chance: str | None):
    """`game.step` with the drawn card named instead of a key; ValueError if it can not be."""
    game, action = state.game, int(action)
    bits = np.uint32(0)
    if chance is not None:
        card = card_from_text(game, chance)
        bits = _bits_for(state, action // game.action_slots, card)
    after = _step_bits(game)(state, np.int32(action), bits)
    drawn = chance_to_text(state, action, after)
    if drawn is None and chance is not None:
        raise ValueError(f"drew {chance!r}, but nothing is drawn here")
    if drawn is not None and chance is None:
        raise ValueError("the card drawn is missing")
    return after


@functools.lru_cache(maxsize=64)
def _step_bits(game):
    return jax.jit(game.step_with_bits)


def _card_played(base: int) -> np.ndarray:
    """int[50], the card that leaves the hand with an action of the 349 block."""
    return np.asarray(play.card_played(np.array([base], np.int32)))[:, 0].astype(int)


def _bits_for(state, base: int, card: int) -> np.uint32:
    """Random bits for which `play.draw_one` draws `card` after the base action."""
    pool = np.asarray(state.deck).astype(int)
    if not pool.sum() and state.game.rules.reshuffle:
        pool = np.asarray(rules.discards(state)) + _card_played(base)
    if not pool[card]:
        raise ValueError(f"{card_text(card)} is not in the deck")
    rank, count = int(pool[:card].sum()), int(pool.sum())
    return np.uint32((-(-(rank << 24) // count)) << 8)
