"""Positions of Guandan for tests: random games, and positions given by their cards."""

import functools

import jax
import numpy as np

import jaxgames
from jaxgames.core import choose_uniform, jit_step, random_bot
from jaxgames.guandan import cards, text


@functools.cache
def make(**options):
    return jaxgames.make("guandan", **options)


def deal(hands: dict[int, str]) -> list[str]:
    """Four hands as text; named ones may be short, what lacks are the cards left, in order."""
    named = {seat: hands.get(seat, "").split() for seat in range(4)}
    left = np.full(cards.TYPES, cards.COPIES)
    for held in named.values():
        left -= cards.counts(held)
    rest = iter(cards.names(left))
    return [
        " ".join([*held, *(next(rest) for _ in range(cards.HAND - len(held)))])
        for held in named.values()
    ]


def opening(hands: dict[int, str]):
    """Seat 0 leads at level 2 in a round of the default game; seat 2, its partner, was last in
    the round before and refused its tribute with both big jokers."""
    game = make()
    lines = [
        f"guandan {text.options_text(game.rules)}",
        "levels: 2 2",
        "owner: 0",
        "level: 2",
        "fails: 0 0",
        "match: rounds=0 demotions=0",
        "stage: play",
        "anti: yes",
        *[f"hand {q}: {held}" for q, held in enumerate(deal({2: "HR HR"} | hands))],
        *[f"played {q}: -" for q in range(4)],
        "known 2: HR HR",
        "order: -",
        "table: -",
        "seat: 0",
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


def random_play(game, games: int, steps: int, key):
    """The positions [steps, games] of random games, traced: within a `jax.jit`."""
    deal_key, play_key = jax.random.split(key)
    start = jax.vmap(game.init)(jax.random.split(deal_key, games))

    def step(states, key):
        choose, move = jax.random.split(key)
        action = jax.vmap(random_bot)(states, jax.random.split(choose, games))
        after = jax.vmap(game.step)(states, action, jax.random.split(move, games))
        return after, states

    return jax.lax.scan(step, start, jax.random.split(play_key, steps))[1]
