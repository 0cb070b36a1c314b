"""Random matches for tests, made by the referee and the exact plays alone."""

import numpy as np

from jaxgames.guandan import cards
from jaxgames.guandan.exact import Play, legal_plays, return_plays, tribute_plays
from jaxgames.guandan.log import LogBuilder

NAMES = ("ann", "bo", "cy", "di")


def hands(rng: np.random.Generator) -> np.ndarray:
    """int8[4, 54], a deal."""
    pack = rng.permutation(np.repeat(np.arange(cards.TYPES), cards.COPIES)).reshape(4, cards.HAND)
    return np.stack([np.bincount(hand, minlength=cards.TYPES) for hand in pack]).astype(np.int8)


def choose(log: LogBuilder, rng: np.random.Generator) -> Play:
    """A random play: a random type first, so that matches do not consist of singles."""
    referee = log.referee
    hand = referee.hands[referee.seat]
    if referee.stage == "tribute":
        plays = tribute_plays(hand, referee.level)
    elif referee.stage == "return":
        plays = return_plays(hand, referee.level)
    else:
        plays = legal_plays(hand, referee.level, referee.table, log.header.profile)
        words = sorted({play.type for play in plays})
        word = words[rng.integers(len(words))]
        plays = [play for play in plays if play.type == word]
    return plays[rng.integers(len(plays))]


def match(seed: int, profile: str = "national", **options) -> LogBuilder:
    """A whole random match; by default it starts near its end."""
    rng = np.random.default_rng(seed)
    options = {"levels": ("Q", "K"), "owner": 1, "seed": seed} | options
    log = LogBuilder(profile, NAMES, **options)
    while not log.done:
        if log.referee.stage == "deal":
            leader = int(rng.integers(4)) if log.referee.previous is None else None
            log.deal(hands(rng), leader)
        else:
            log.move(log.seat, choose(log, rng))
    return log
