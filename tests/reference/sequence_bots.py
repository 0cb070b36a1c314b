"""The bots of section 14 of rules/sequence.md in plain Python, on the twin."""

from __future__ import annotations

import random

from tests.reference.sequence_twin import CARDS, CORNERS, DIRECTIONS, Options, Twin, deal, ray


def members(actions: int) -> list[int]:
    """The actions of a set, ascending."""
    found = []
    while actions:
        low = actions & -actions
        found.append(low.bit_length() - 1)
        actions ^= low
    return found


def random_choices(game: Twin) -> list[int]:
    """Among these the random bot draws uniformly (head of 349)."""
    actions = members(game.actions())
    return [a for a in actions if 300 <= a < 348] or actions


RAYS = [
    [(ray(cell, (-dr, -dc), 9), ray(cell, (dr, dc), 9)) for dr, dc in DIRECTIONS]
    for cell in range(100)
]


def runs(own: int, cell: int) -> list[int]:
    """Per direction, the length of a team's run through `cell`, the cell itself included."""
    own |= CORNERS
    lengths = []
    for rays in RAYS[cell]:
        length = 1
        for side in rays:
            for c in side:
                if not own >> c & 1:
                    break
                length += 1
        lengths.append(length)
    return lengths


def greedy_scores(game: Twin) -> dict[int, int]:
    """60 times the greedy bot's score of every legal action but swaps (head of 349)."""
    scores, placed = {}, {}
    for action in members(game.actions()):
        block, cell = divmod(action, 100)
        if block == 3:
            scores[action] = 0
        elif block == 2:
            owner = next(t for t, own in enumerate(game.chips) if own >> cell & 1)
            longest = max(runs(game.chips[owner], cell))
            value = 60 * longest - 30
            scores[action] = value if value >= 180 else 6
        else:
            if cell not in placed:
                total = 0
                for team, own in enumerate(game.chips):
                    lengths = runs(own, cell)
                    squares = sum(n * n for n in lengths)
                    if team == game.team:
                        total += 15 * squares + 3000 * (max(lengths) >= 5)
                    else:
                        total += 10 * squares + 1200 * (max(lengths) >= 5)
                placed[cell] = total
            scores[action] = placed[cell] - 720 * block
    return scores


def greedy_choices(game: Twin) -> list[int]:
    """Among these the greedy bot draws uniformly (head of 349)."""
    swaps = [a for a in members(game.actions()) if 300 <= a < 348]
    if swaps:
        return swaps[:1]
    scores = greedy_scores(game)
    best = max(scores.values())
    return [a for a, s in scores.items() if s == best]


# ---- statistics of section 14 ----


def play(opts: Options, choices, rng: random.Random) -> dict[str, float]:
    """One game by `choices` (ties drawn by `rng`), as the columns of section 14's tables."""

    def draw(deck: bytearray) -> int:
        return rng.choices(range(CARDS), deck)[0]

    game = deal(opts, rng)
    seen = dict.fromkeys(("legal", "decisions", "turns", "dead", "swaps", "removals"), 0)
    seen |= dict.fromkeys(("passed", "double"), 0)
    while not game.done:
        legal = game.actions()
        seen["legal"] += legal.bit_count()
        seen["decisions"] += 1
        if not game.swaps_used:
            seen["turns"] += 1
            seen["dead"] += legal >> 300 & (1 << 48) - 1 > 0
        action = rng.choice(choices(game))
        seen["swaps"] += 300 <= action < 348
        seen["removals"] += 200 <= action < 300
        seen["passed"] |= action == 348
        before = sum(game.scores)
        game.apply(action, draw)
        seen["double"] |= sum(game.scores) - before >= 2
    return {
        "plies": game.plies,
        "legal": seen["legal"] / seen["decisions"],
        "swaps": seen["swaps"],
        "removals": seen["removals"],
        "reshuffle": game.reshuffles > 0,
        "pass": seen["passed"],
        "double": seen["double"],
        "dead turns": seen["dead"] / seen["turns"],
        "seat 0": game.rewards[0] > 0,
        "seat 1": game.rewards[1] > 0,
    }
