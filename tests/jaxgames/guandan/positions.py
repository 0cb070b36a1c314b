"""Positions of Guandan for tests: random games, and positions given by their cards."""

import functools

import jax
import numpy as np

import jaxgames
from jaxgames.core import choose_uniform, jit_step
from jaxgames.guandan import cards, text


@functools.cache
def make(**options):
    return jaxgames.make("guandan", **options)


def deal(hands: dict[int, str]) -> list[str]:
    """Four hands as text; seats not named get the cards that are left, in card order."""
    named = {seat: held.split() for seat, held in hands.items()}
    left = np.full(cards.TYPES, cards.COPIES)
    for held in named.values():
        left -= cards.counts(held)
    rest = iter(cards.names(left))
    return [
        " ".join(named[q]) if q in named else " ".join(next(rest) for _ in range(cards.HAND))
        for q in range(4)
    ]


def opening(game, hands: dict[int, str], seat: int = 0, levels: str = "2 2"):
    """The first lead of a round without tribute (rules: tribute=False); hands of 27 cards."""
    owner = "-" if game.rules.given_levels is not None else "0"
    lines = [
        f"guandan {text.options_text(game.rules)}",
        f"levels: {levels}",
        f"owner: {owner}",
        f"level: {levels[0]}",
        "fails: 0 0",
        "match: rounds=0 demotions=0",
        "stage: play",
        "anti: no",
        *[f"hand {q}: {held}" for q, held in enumerate(deal(hands))],
        *[f"played {q}: -" for q in range(4)],
        "order: -",
        "table: -",
        f"seat: {seat}",
        "status: playing",
        "rewards: 0 0 0 0",
    ]
    return game.from_text("\n".join(lines))


@jax.jit
def _choose(mask, key):
    return choose_uniform(mask, jax.random.uniform(key))


@functools.cache
def _init(game):
    return jax.jit(game.init)


def steps(game, seed: int, most: int = 100_000):
    """(before, action, after) of a random game."""
    key = jax.random.key(seed)
    state = _init(game)(key)
    for ply in range(most):
        if bool(state.done):
            return
        choice, chance = jax.random.split(jax.random.fold_in(key, ply + 1))
        action = _choose(state.legal_action_mask, choice)
        after = jit_step(game)(state, action, chance)
        yield state, int(action), after
        state = after


def step(state, action: int, seed: int = 0):
    return jit_step(state.game)(state, np.int32(action), jax.random.key(seed))
