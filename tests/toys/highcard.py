"""High card: a tiny game with everything that hides, to test what MNK can not.

Each seat holds one hidden card of 1..ranks. In turn each seat keeps it, or throws it face
up and draws another from the deck, unseen by the rest; the top rank may not be thrown, so
even the mask depends on a hidden card. After everybody's turn, `rounds` times, the team
with the highest card takes 1 (ties share it) and the others share -1.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core

KEEP, SWAP = 0, 1


@dataclasses.dataclass(frozen=True)
class Rules:
    players: int = 2
    teams: int = 2
    ranks: int = 6
    copies: int = 2
    rounds: int = 2

    def __post_init__(self):
        if not 2 <= self.players <= 6:
            raise core.RulesError("players", f"2 to 6, got {self.players}")
        if self.teams < 2 or self.players % self.teams:
            raise core.RulesError("teams", f"{self.players} seats in {self.teams} teams")
        if not self.players < self.ranks * self.copies < 128:
            raise core.RulesError("ranks", "too few or too many cards")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(core.State):
    hands: jax.Array  # int8[P]: each seat's card, 0 the lowest
    deck: jax.Array  # int8[R]: count per rank
    thrown: jax.Array  # int8[R]: count per rank, public
    swaps: jax.Array  # int8[P]: cards drawn by each seat, public
    turn: jax.Array  # int8[]: turns taken


@dataclasses.dataclass(frozen=True)
class HighCard(core.Game):
    id = "highcard"
    version = "1"
    rules_type = Rules
    presets = {"duel": {}, "pairs": {"players": 4, "copies": 3}}

    @property
    def num_players(self) -> int:
        return self.rules.players

    @property
    def num_actions(self) -> int:
        return 2

    @property
    def team_of(self) -> tuple[int, ...]:
        return tuple(seat % self.rules.teams for seat in range(self.rules.players))

    @property
    def max_steps(self) -> int:
        return self.rules.players * self.rules.rounds

    def _init(self, key):
        p, r = self.num_players, self.rules.ranks
        order = jax.random.permutation(key, np.repeat(np.arange(r, dtype=np.int8), self._copies))
        return self._with_mask(
            State(
                game=self,
                current_player=jnp.int32(0),
                legal_action_mask=jnp.ones(2, bool),
                rewards=jnp.zeros(p, jnp.float32),
                terminated=jnp.bool_(False),
                truncated=jnp.bool_(False),
                illegal=jnp.bool_(False),
                hands=order[:p],
                deck=self._count(order[p:]),
                thrown=jnp.zeros(r, jnp.int8),
                swaps=jnp.zeros(p, jnp.int8),
                turn=jnp.int8(0),
            )
        )

    @property
    def _copies(self) -> int:
        return self.rules.copies

    def _count(self, cards):
        """int8[R]: how many of each rank are in `cards` int8[n]."""
        return jnp.sum(cards[:, None] == np.arange(self.rules.ranks), axis=0).astype(jnp.int8)

    def _with_mask(self, state):
        card = state.hands[state.current_player]
        swap = (card < self.rules.ranks - 1) & (jnp.sum(state.deck) > 0)
        mask = jnp.stack([jnp.bool_(True), swap]) | state.done
        return state.replace(legal_action_mask=mask)

    def _step(self, state, action, key):
        edges = jnp.cumsum(state.deck.astype(jnp.int32))
        number = jnp.minimum(jax.random.uniform(key) * edges[-1], edges[-1] - 1)
        return self._play(state, action, jnp.sum(edges <= number))

    def _play(self, state, action, card):
        """The position after `action`, a swap drawing rank `card`."""
        mover, p = state.current_player, self.num_players
        swap = (action == SWAP).astype(jnp.int8)
        seat, ranks = jnp.arange(p) == mover, np.arange(self.rules.ranks)
        old = state.hands[mover]
        hands = jnp.where(seat & (swap == 1), card.astype(jnp.int8), state.hands)
        turn = state.turn + jnp.int8(1)
        over = turn >= self.max_steps
        return self._with_mask(
            state.replace(
                current_player=(mover + 1) % p,
                rewards=jnp.where(over, self._showdown(hands), 0.0),
                terminated=over,
                hands=hands,
                deck=state.deck - swap * (ranks == card).astype(jnp.int8),
                thrown=state.thrown + swap * (ranks == old).astype(jnp.int8),
                swaps=state.swaps + swap * seat.astype(jnp.int8),
                turn=turn,
            )
        )

    def _showdown(self, hands):
        """float32[P]: 1 shared by the teams with the highest card, -1 by the rest."""
        teams = np.asarray(self.team_of)
        member = teams[None] == np.arange(self.num_teams)[:, None]
        best = jnp.max(jnp.where(member, hands, -1), axis=1)
        wins = best == jnp.max(best)
        winners = jnp.sum(wins)
        losers = self.num_teams - winners
        value = jnp.where(wins, 1.0 / winners, -1.0 / jnp.maximum(losers, 1))
        return jnp.where(losers == 0, 0.0, value)[teams].astype(jnp.float32)

    def _seats(self, player):
        return (player + jnp.arange(self.num_players)) % self.num_players

    def observe(self, state, player):
        r = self.rules.ranks
        one_hot = state.hands[player] == np.arange(r)
        swaps = state.swaps[self._seats(player)]
        to_move = (state.current_player - player) % self.num_players == np.arange(self.num_players)
        parts = [one_hot, state.thrown, swaps, state.turn[None], to_move]
        features = jnp.concatenate([part.astype(jnp.float32) for part in parts])
        return {"board": jnp.zeros((1, 1, 1), jnp.int8), "features": features}

    def observe_all(self, state, player):
        hands = state.hands[self._seats(player)]
        parts = [hands, state.deck, state.thrown, state.swaps, state.turn[None]]
        features = jnp.concatenate([part.astype(jnp.float32) for part in parts])
        return {"board": jnp.zeros((1, 1, 1), jnp.int8), "features": features}

    def resample(self, state, player, key):
        p, r = self.num_players, self.rules.ranks
        own = jnp.arange(p) == player
        hidden = jnp.where(own[:, None], 0, state.hands[:, None] == np.arange(r)).sum(0)
        unseen = jnp.cumsum(state.deck.astype(jnp.int32) + hidden)
        cards = jnp.sum(unseen[None] <= jnp.arange(r * self._copies)[:, None], axis=1)
        # Ranks in order, then `r` past the end of the unseen ones: shuffle by sorted noise.
        noise = jax.random.uniform(key, cards.shape)
        order = cards[jnp.argsort(jnp.where(cards < r, noise, 2.0))].astype(jnp.int8)
        hands = jnp.where(own, state.hands, order[:p])
        rest = self._count(order) - self._count(jnp.where(own, r, order[:p]))
        return self._with_mask(state.replace(hands=hands, deck=rest))

    def action_to_text(self, state, action):
        return ("keep", "swap")[int(action)]

    def action_from_text(self, state, text):
        if text not in ("keep", "swap"):
            raise ValueError(f"{text!r} is neither keep nor swap")
        return ("keep", "swap").index(text)

    def explain_illegal(self, state, action):
        reason = super().explain_illegal(state, action)
        if reason is None or not 0 <= int(action) < 2 or bool(state.done):
            return reason
        top = int(state.hands[state.current_player]) == self.rules.ranks - 1
        return "the top rank may not be thrown" if top else "the deck is empty"

    def chance_to_text(self, before, action, after):
        if int(action) != SWAP or int(after.turn) == int(before.turn):
            return None
        return str(int(after.hands[int(before.current_player)]) + 1)

    def step_with_chance(self, state, action, chance):
        swap = int(action) == SWAP and bool(state.legal_action_mask[SWAP]) and not bool(state.done)
        if swap != (chance is not None):
            raise ValueError(f"got {chance!r}: a card is drawn by a swap and by nothing else")
        known = [str(rank + 1) for rank in range(self.rules.ranks) if int(state.deck[rank])]
        if swap and chance not in known:
            raise ValueError(f"{chance!r} is not in the deck")
        card = np.int32(int(chance) - 1 if swap else 0)
        return _jit_play(self)(state, np.int32(action), card)

    def to_text(self, state):
        """Hands, thrown cards, swaps, turn, and how it ended; the deck is the rest."""

        def join(values):
            return ".".join(str(int(v)) for v in values)

        flags = "".join(
            letter
            for letter, flag in zip(
                "tci", (state.terminated, state.truncated, state.illegal), strict=True
            )
            if bool(flag)
        )
        rewards = ".".join(np.asarray(state.rewards).view(np.int32).astype(str))
        return (
            f"hands={join(state.hands + 1)} thrown={join(state.thrown)} swaps={join(state.swaps)} "
            f"turn={int(state.turn)} seat={int(state.current_player)} flags={flags} "
            f"rewards={rewards}"
        )

    def from_text(self, text):
        p, r = self.num_players, self.rules.ranks
        pairs = [part.partition("=")[::2] for part in text.split(" ")]
        names = ("hands", "thrown", "swaps", "turn", "seat", "flags", "rewards")
        for name, (found, _) in zip(names, pairs, strict=False):
            if name != found:
                raise core.PositionError(name, f"missing, got {found!r}")
        if len(pairs) != len(names):
            raise core.PositionError(names[min(len(pairs), 6)], "missing or too much text")
        value = dict(pairs)

        def numbers(name, count, low, high):
            parts = value[name].split(".")
            if len(parts) != count or not all(x.lstrip("-").isdecimal() for x in parts):
                raise core.PositionError(name, f"{count} numbers, got {value[name]!r}")
            if not all(low <= int(x) <= high for x in parts):
                raise core.PositionError(name, f"{low} to {high}, got {value[name]!r}")
            return np.array([int(x) for x in parts])

        hands = numbers("hands", p, 1, r).astype(np.int8) - np.int8(1)
        thrown = numbers("thrown", r, 0, self._copies).astype(np.int8)
        deck = self._copies - thrown - np.bincount(hands, minlength=r)
        if deck.min() < 0:
            raise core.PositionError("hands", "more cards of a rank than there are")
        if set(value["flags"]) - set("tci"):
            raise core.PositionError("flags", f"letters of 'tci', got {value['flags']!r}")
        flags = [jnp.bool_(letter in value["flags"]) for letter in "tci"]
        rewards = numbers("rewards", p, -(2**31), 2**31 - 1).astype(np.int32).view(np.float32)
        return self._with_mask(
            State(
                game=self,
                current_player=jnp.int32(numbers("seat", 1, 0, p - 1)[0]),
                legal_action_mask=jnp.ones(2, bool),
                rewards=jnp.asarray(rewards),
                terminated=flags[0],
                truncated=flags[1],
                illegal=flags[2],
                hands=jnp.asarray(hands),
                deck=jnp.asarray(deck, jnp.int8),
                thrown=jnp.asarray(thrown),
                swaps=jnp.asarray(numbers("swaps", p, 0, 127), jnp.int8),
                turn=jnp.int8(numbers("turn", 1, 0, self.max_steps)[0]),
            )
        )

    def draw(self, state, viewer=None):
        words = self.draw_text(state, viewer)
        return f'<svg xmlns="http://www.w3.org/2000/svg"><text y="1em">{words}</text></svg>'

    def draw_text(self, state, viewer=None):
        hands = [
            str(int(card) + 1) if viewer in (None, seat) else "?"
            for seat, card in enumerate(state.hands)
        ]
        thrown = np.asarray(state.thrown).tolist()
        return f"hands {' '.join(hands)}, thrown {thrown}, turn {int(state.turn)}"


@functools.lru_cache(maxsize=64)
def _jit_play(game):
    def play(state, action, card):
        return game._guard(state, action, lambda s, a: game._play(s, a, card))

    return jax.jit(play)


core.register("highcard", "tests.toys.highcard:HighCard")
