"""Sequence, the slow way: the rules of rules/sequence.md in plain Python.

Shares nothing with the engine. Chance is an input: whoever drives a `Twin` says which card
was drawn, so that it can follow another implementation move by move.

A set of cells is an int with bit 10 * row + col; a set of actions is an int with one bit per
action; a multiset of cards is a bytearray of 50 counts. Section numbers refer to the rules.
"""

from __future__ import annotations

import dataclasses
import random
from array import array
from collections.abc import Callable

# ---- section 2: the board; section 3: cards ----

LAYOUT = """
** 2S 3S 4S 5S 6S 7S 8S 9S **
6C 5C 4C 3C 2C AH KH QH TH TS
7C AS 2D 3D 4D 5D 6D 7D 9H QS
8C KS 6C 5C 4C 3C 2C 8D 8H KS
9C QS 7C 6H 5H 4H AH 9D 7H AS
TC TS 8C 7H 2H 3H KH TD 6H 2D
QC 9S 9C 8H 9H TH QH QD 5H 3D
KC 8S TC QC KC AC AD KD 4H 4D
AC 7S 6S 5S 4S 3S 2S 2H 3H 5D
** AD KD QD TD 9D 8D 7D 6D **
""".split()

CARDS = 50
TWO_EYED, ONE_EYED = 48, 49
NAMES = [rank + suit for suit in "CDHS" for rank in "A23456789TQK"] + ["J2", "J1"]
CARD_AT = [NAMES.index(name) if name != "**" else -1 for name in LAYOUT]
CORNERS = sum(1 << cell for cell in range(100) if CARD_AT[cell] < 0)
PLAYABLE = (1 << 100) - 1 - CORNERS
CELLS_OF = [sum(1 << cell for cell in range(100) if CARD_AT[cell] == c) for c in range(48)]

# ---- lines and five-windows ----

DOWN, RIGHT, DOWN_RIGHT, DOWN_LEFT = (1, 0), (0, 1), (1, 1), (1, -1)
DIRECTIONS = (DOWN, RIGHT, DOWN_RIGHT, DOWN_LEFT)


def on_board(row: int, col: int) -> bool:
    return 0 <= row < 10 and 0 <= col < 10


def ray(cell: int, step: tuple[int, int], reach: int) -> list[int]:
    """Cells from `cell` (not included) along `step`, at most `reach` of them."""
    row, col = divmod(cell, 10)
    cells = []
    for i in range(1, reach + 1):
        r, c = row + step[0] * i, col + step[1] * i
        if not on_board(r, c):
            break
        cells.append(10 * r + c)
    return cells


def line_through(cell: int, step: tuple[int, int], reach: int = 9) -> list[int]:
    """The line through `cell`, from its top (rows: left) end, at most `reach` to each side."""
    back = ray(cell, (-step[0], -step[1]), reach)
    return back[::-1] + [cell] + ray(cell, step, reach)


LINE = [[line_through(cell, step) for step in DIRECTIONS] for cell in range(100)]


def bits(cells) -> int:
    return sum(1 << cell for cell in cells)


def fives(line: list[int]) -> list[int]:
    """All windows of five neighbouring cells of a line, from its beginning."""
    return [bits(line[i : i + 5]) for i in range(len(line) - 4)]


WINDOWS = sorted({w for cell in range(100) for line in LINE[cell] for w in fives(line)})
# Windows through a cell, by direction, from the top.
THROUGH = [
    [[w for w in fives(line) if w >> cell & 1] for line in LINE[cell]] for cell in range(100)
]
NINE = [[line_through(cell, step, 4) for step in DIRECTIONS] for cell in range(100)]
HEART = bits([44, 45, 54, 55])


# ---- section 6: sequences ----


def largest_family(windows: list[int]) -> int:
    """The most windows that pairwise share at most one cell, by trying them all."""
    if not windows:
        return 0
    first, rest = windows[0], windows[1:]
    with_first = 1 + largest_family([w for w in rest if (w & first).bit_count() <= 1])
    return max(with_first, largest_family(rest)) if len(rest) >= with_first else with_first


def full_windows(own: int, windows=WINDOWS) -> list[int]:
    """Those of `windows` that one team's chips fill, corners being chips of every team."""
    own |= CORNERS
    return [w for w in windows if own & w == w]


def union(windows: list[int]) -> int:
    """All chips on some windows."""
    cells = 0
    for w in windows:
        cells |= w
    return cells & PLAYABLE


def name_fives(own: int, locked: int, cell: int) -> list[int]:
    """The windows that a new chip on `cell` completes under lock_rule=five (6.4)."""
    own |= CORNERS
    named = []
    for windows in THROUGH[cell]:
        full = [w for w in windows if own & w == w and (w & locked).bit_count() <= 1]
        if not full:
            continue
        full.sort(key=lambda w: (w & locked).bit_count())  # stable: from the top
        named.append(full[0])
        named += [w for w in full[1:] if (w & full[0]).bit_count() <= 1][:1]
    return named


def contest_count(own: int, locked: int, cell: int) -> tuple[int, int]:
    """(new sequences, their chips) of a placement in comp090054 (section 9)."""
    own |= CORNERS
    found, chips = 0, 0
    shared_one = False  # an earlier direction with a locked chip in view has scored
    for line in NINE[cell]:  # vertical, horizontal, down-right, down-left
        view = "".join("." if not own >> c & 1 else "L" if locked >> c & 1 else "o" for c in line)
        scored = 0
        if view == "o" * 9:
            found += 2
            scored += 2
            chips |= bits(line)
        patterns = ["ooooo"]
        if not (shared_one and "L" in view):
            patterns += ["ooooL", "oooLo", "ooLoo", "oLooo", "Loooo"]
        for pattern in patterns:
            at = view.find(pattern)
            if at >= 0:
                found += 1
                scored += 1
                chips |= bits(line[at : at + 5])
                break
        if scored and "L" in view:
            shared_one = True
    return found, chips & PLAYABLE


# ---- the game ----


@dataclasses.dataclass(frozen=True)
class Options:
    """Section 1."""

    players: int = 2
    teams: int = 2
    sequences_to_win: int = 2
    hand_size: int = 7
    lock_rule: str = "run"  # "run", "five" or, inside comp090054, "contest"
    reshuffle: bool = True
    swaps_per_turn: int = 1
    draft: int = 0
    heart: bool = False
    ply_cap: int = 400


HAND_SIZE = {2: 7, 3: 6, 4: 6, 6: 5, 8: 4, 9: 4, 10: 3, 12: 3}


def options(preset: str, players: int, teams: int | None = None, **changes) -> Options:
    """The options of a preset: section 3's tables and section 9."""
    if preset == "comp090054":
        made = Options(players, 2, 2, 6, lock_rule="contest", reshuffle=False, draft=5, heart=True)
    else:
        teams = teams or (2 if players % 2 == 0 else 3)
        made = Options(
            players,
            teams,
            {2: 2, 3: 1}[teams],
            HAND_SIZE[players],
            {"official": "run", "official_five": "five"}[preset],
        )
    return dataclasses.replace(made, **changes)


def plane(cells: int) -> bytes:
    """A set of cells as 16 bytes: rows 0 to 5, then rows 6 to 9, ten bits a row."""
    low, high = cells & (1 << 60) - 1, cells >> 60
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def fields(opts: Options) -> dict[str, int]:
    """Parts of a `Twin.snapshot` and their lengths in bytes.

    The mask is bits, lowest first; rewards are doubled; negatives are two's complement.
    """
    return {
        "legal_action_mask": (349 * (opts.draft or 1) + 7) // 8,
        "chips": 16 * opts.teams,
        "locked": 16,
        "scores": opts.teams,
        "hands": CARDS * opts.players,
        "deck": CARDS,
        "discards": CARDS,
        "draft": CARDS,
        "known": CARDS * opts.players,
        "seat": 1,
        "swaps": 1,
        "passes": 1,
        "reshuffles": 1,
        "plies": 2,
        "last_play": 2,
        "rewards": opts.players,
        "flags": 3,
    }


class RuleBreak(AssertionError):
    """The driver asks for something that the rules do not allow."""


def full_pack() -> bytearray:
    """Two packs: two of each natural card, four of each jack type."""
    return bytearray([2] * 48 + [4, 4])


class Twin:
    """One game in progress; mutable.

    Attributes:
      chips: per team, the set of its cells.
      hands: per seat, counts. deck, discards, draft: counts.
      known: per seat, cards that everybody knows of (section 10). Draft: cards taken from
        the draft and not played since. Otherwise: the hand at the last reshuffle, less every
        card played since; below zero where other cards of that type were played.
    """

    def __init__(self, opts: Options, hands, draft=None):
        self.opts = opts
        self.chips = [0] * opts.teams
        self.hands = [bytearray(h) for h in hands]
        self.draft = bytearray(draft if draft is not None else [0] * CARDS)
        self.deck = full_pack()
        for pile in (*self.hands, self.draft):
            for card, count in enumerate(pile):
                if count > self.deck[card]:
                    raise RuleBreak(f"too many copies of {NAMES[card]} dealt")
                self.deck[card] -= count
        if [sum(h) for h in self.hands] != [opts.hand_size] * opts.players:
            raise RuleBreak("hand size")
        if sum(self.draft) != opts.draft:
            raise RuleBreak("draft size")
        self.discards = bytearray(CARDS)
        self.deck_size = sum(self.deck)
        self.known = [array("b", bytes(CARDS)) for _ in range(opts.players)]
        self.locked = [0] * opts.teams
        self.full = [[] for _ in range(opts.teams)]  # full windows, under lock_rule=run
        self.scores = [0] * opts.teams
        self.seat = 0
        self.swaps_used = 0
        self.passes = 0
        self.plies = 0
        self.terminated = self.truncated = self.illegal = False
        self.rewards = [0.0] * opts.players
        self.reshuffles = 0
        self.last_play = -1  # of the head of 349; swaps are not plays

    # -- section 5 and 9: what may be done --

    @property
    def team(self) -> int:
        return self.seat % self.opts.teams

    @property
    def done(self) -> bool:
        return self.terminated or self.truncated

    def snapshot(self) -> bytes:
        """The whole position as bytes of `fields(opts)`."""
        head = 349 * (self.opts.draft or 1)
        mask = (1 << head) - 1 if self.done else self.actions()
        locked = 0
        for chips in self.locked:
            locked |= chips
        return b"".join(
            (
                mask.to_bytes((head + 7) // 8, "little"),
                *map(plane, self.chips),
                plane(locked),
                bytes(self.scores),
                *self.hands,
                self.deck,
                self.discards,
                self.draft,
                *self.known,
                bytes((self.seat, self.swaps_used, self.passes, self.reshuffles)),
                self.plies.to_bytes(2, "little"),
                self.last_play.to_bytes(2, "little", signed=True),
                bytes(int(2 * r) & 255 for r in self.rewards),
                bytes((self.terminated, self.truncated, self.illegal)),
            )
        )

    def base_actions(self) -> int:
        """The legal actions in the head of 349, as a set."""
        chips, team = self.chips, self.team
        covered, locked, rivals = 0, 0, 0
        for t, own in enumerate(chips):
            covered |= own
            locked |= self.locked[t]
            if t != team:
                rivals |= own
        empty = PLAYABLE & ~covered
        hand = self.hands[self.seat]
        plays = swaps = 0
        for card in range(48):
            if hand[card]:
                cells = CELLS_OF[card] & empty
                if cells:
                    plays |= cells
                else:
                    swaps |= 1 << 300 + card
        if hand[TWO_EYED]:
            plays |= empty << 100
        if hand[ONE_EYED]:
            plays |= (rivals & ~locked) << 200
        may_swap = self.swaps_used < self.opts.swaps_per_turn
        if self.opts.draft:
            if swaps and may_swap:
                return swaps | 1 << 348  # trade or keep, nothing else
            return plays or 1 << 348
        if may_swap:
            plays |= swaps
        return plays or 1 << 348

    def slots(self) -> list[int]:
        """The draft sorted by card, one entry per slot."""
        return [c for c in range(CARDS) for _ in range(self.draft[c])]

    def actions(self) -> int:
        """The legal actions in the game's own head (349, or 1,745 with a draft)."""
        base = self.base_actions()
        if not self.opts.draft:
            return base
        slots = self.slots()
        fresh = [i for i, c in enumerate(slots) if i == 0 or slots[i - 1] != c]
        picks = sum(1 << i for i in fresh)
        wide = 0
        while base:
            low = base & -base
            action = low.bit_length() - 1
            wide |= (1 if action == 348 else picks) << 5 * action
            base ^= low
        return wide

    # -- sections 4, 6, 7, 9: what it does --

    def apply(self, action: int, drawn: int | Callable[[bytearray], int] | None) -> None:
        """Play `action`. `drawn` is the card that came from the deck, None if none did; or a
        function that picks one from the deck, called where a card is drawn."""
        if self.done:
            self.rewards = [0.0] * self.opts.players
            if drawn is not None and not callable(drawn):
                raise RuleBreak("a draw after the end")
            return
        heads = 349 * (self.opts.draft or 1)
        if not (0 <= action < heads and self.actions() >> action & 1):
            self._forfeit()
            return
        self._drawn = drawn
        self.rewards = [0.0] * self.opts.players
        pick = None
        if self.opts.draft:
            action, slot = divmod(action, 5)
            if action != 348:
                pick = self.slots()[slot]
        if action == 348:
            self._pass_or_keep()
        elif action >= 300:
            self._swap(action - 300, pick)
        else:
            self._play(action, pick)
        if self._drawn is not None and not callable(drawn):
            raise RuleBreak(f"drew {NAMES[self._drawn]} where nothing is drawn")

    def _forfeit(self) -> None:
        team = self.team
        share = 1.0 / (self.opts.teams - 1)
        seats = range(self.opts.players)
        self.rewards = [-1.0 if s % self.opts.teams == team else share for s in seats]
        self.terminated = self.illegal = True

    def _pass_or_keep(self) -> None:
        if self.opts.draft and self.swaps_used < self.opts.swaps_per_turn and self._holds_dead():
            self.swaps_used = self.opts.swaps_per_turn  # the trade is declined
            return
        self.last_play = 348
        self.passes += 1
        if self.passes >= self.opts.players:
            self._finish(None)
        self._end_turn()

    def _holds_dead(self) -> bool:
        covered = 0
        for own in self.chips:
            covered |= own
        hand = self.hands[self.seat]
        return any(hand[c] and not CELLS_OF[c] & ~covered for c in range(48))

    def _swap(self, card: int, pick: int | None) -> None:
        self.swaps_used += 1
        self._discard(card)
        self._replace(pick)
        self._contest_end()

    def _play(self, action: int, pick: int | None) -> None:
        block, cell = divmod(action, 100)
        team, chip = self.team, 1 << cell
        self._discard((CARD_AT[cell], TWO_EYED, ONE_EYED)[block])
        self.last_play = action
        self.passes = 0
        if block == 2:
            for t in range(self.opts.teams):
                self.chips[t] &= ~chip
        else:
            self.chips[team] |= chip
            self._score(team, cell)
        if self.opts.draft:
            self._replace(pick)
        if self.scores[team] >= self.opts.sequences_to_win:
            self._finish(team)
        else:
            self._contest_end()
            if not self.opts.draft:
                self._replace(None)
        self._end_turn()

    def _score(self, team: int, cell: int) -> None:
        own, rule = self.chips[team], self.opts.lock_rule
        if rule == "run":
            # Full windows are locked, so they stay full: only those of the new chip are new.
            new = full_windows(own, [w for line in THROUGH[cell] for w in line])
            if new:
                self.full[team] += new
                self.scores[team] = largest_family(self.full[team])
                self.locked[team] = union(self.full[team])
        elif rule == "five":
            named = name_fives(own, self.locked[team], cell)
            self.scores[team] += len(named)
            self.locked[team] |= union(named)
        else:
            count, chips = contest_count(own, self.locked[team], cell)
            self.scores[team] += count
            self.locked[team] |= chips
        if self.opts.heart and own & HEART == HEART and HEART >> cell & 1:
            self.scores[team] += 2

    def _discard(self, card: int) -> None:
        hand, known = self.hands[self.seat], self.known[self.seat]
        hand[card] -= 1
        self.discards[card] += 1
        if known[card] > 0 or (self.reshuffles and not self.opts.draft):
            known[card] -= 1

    def _replace(self, pick: int | None) -> None:
        """One card into the hand of the seat to move: from the draft, or from the deck."""
        if pick is not None:
            self.draft[pick] -= 1
            self.hands[self.seat][pick] += 1
            self.known[self.seat][pick] += 1
            if self.deck_size:
                self.draft[self._draw()] += 1
            return
        if not self.deck_size:
            if not self.opts.reshuffle:
                return
            # With the deck empty every unseen card was in some hand.
            self.deck, self.discards = self.discards, bytearray(CARDS)
            self.deck_size = sum(self.deck)
            self.known = [array("b", hand) for hand in self.hands]
            self.reshuffles += 1
        self.hands[self.seat][self._draw()] += 1

    def _draw(self) -> int:
        card, self._drawn = self._drawn, None
        if callable(card):
            card = card(self.deck)
        if card is None:
            raise RuleBreak("a card must be drawn")
        if not self.deck[card]:
            raise RuleBreak(f"{NAMES[card]} is not in the deck")
        self.deck[card] -= 1
        self.deck_size -= 1
        return card

    def _contest_end(self) -> None:
        """Section 9: an empty draft ends the game, more sequences win."""
        if self.opts.draft and not any(self.draft):
            first, second = self.scores
            self._finish(None if first == second else int(second > first))

    def _finish(self, winner: int | None) -> None:
        teams = self.opts.teams
        self.terminated = True
        if winner is not None:
            lost = -1.0 / (teams - 1)
            seats = range(self.opts.players)
            self.rewards = [1.0 if s % teams == winner else lost for s in seats]

    def _end_turn(self) -> None:
        self.plies += 1
        if not self.terminated and self.plies >= self.opts.ply_cap:
            self.truncated = True
        self.seat = (self.seat + 1) % self.opts.players
        self.swaps_used = 0


def deal(opts: Options, rng: random.Random) -> Twin:
    """A game dealt at random."""
    pack = [c for c, n in enumerate(full_pack()) for _ in range(n)]
    rng.shuffle(pack)

    def take(count):
        pile = bytearray(CARDS)
        for _ in range(count):
            pile[pack.pop()] += 1
        return pile

    draft = take(opts.draft)
    return Twin(opts, [take(opts.hand_size) for _ in range(opts.players)], draft)
