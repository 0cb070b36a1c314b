"""OpenSpiel: our games as `pyspiel.load_game` knows them.

    import jaxgames.adapters.open_spiel                  # registers all games
    game = pyspiel.load_game("jaxgames_sequence(players=3)")
    state = game.new_initial_state()

Parameters are `preset` and the options of the game's rules that are numbers, texts or switches;
0 for an option that is derived from the others unless set.

Chance. What a deal or a draw can come to has far too many outcomes to list, so chance nodes draw
a seed, a byte each: four for the first deal, two for each move that draws (`chance_to_text` tells
which do). All outcomes of a node are alike likely, and a history names everything that happened.

Knowledge. An observation is `game.observe` of that seat, and the information state is the chain of
all its observations, its own actions and the rewards: histories that a seat can not tell apart
have the same one, though their hidden cards differ. There is no tensor of the information state,
which would have to hold a whole game.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.adapters.chance import deal_has_chance, moves_have_chance
from jaxgames.match import IllegalAction

try:
    import pyspiel
except ImportError as error:
    raise ImportError(
        f"this adapter needs OpenSpiel ({error}): pip install 'jaxgames[adapters]'"
    ) from error

#: Outcomes of a chance node, and nodes of the deal and of a move.
OUTCOMES, DEAL_NODES, MOVE_NODES = 256, 4, 2
#: Most seats of any game, for `GameType`.
MOST_SEATS = 12


@dataclasses.dataclass(frozen=True)
class Draw:
    """Chance that is being drawn: for a move, or for the deal (None), the seed so far and how
    many nodes are left."""

    move: int | None
    seed: int
    left: int


@dataclasses.dataclass(frozen=True)
class Node:
    """Where a history stands; never changed.

    Attributes:
      position: ours; None before the deal.
      plies: moves made.
      views: per seat the bytes it sees.
      known: per seat the digest of all it has seen and done.
      rewards, returns: per seat, of the last move and of all.
      draw: None where a seat is to move.
    """

    position: core.State | None
    plies: int
    views: tuple[bytes, ...]
    known: tuple[str, ...]
    rewards: tuple[float, ...]
    returns: tuple[float, ...]
    draw: Draw | None

    def __deepcopy__(self, memo: dict) -> Node:
        return self  # pyspiel clones states by copying their attributes


class State(pyspiel.State):
    """A history of a game."""

    def __init__(self, game: Game):
        super().__init__(game)
        self.node = game.root

    @property
    def ours(self) -> core.Game:
        return self.get_game().ours

    def current_player(self) -> int:
        if self.node.draw is not None:
            return pyspiel.PlayerId.CHANCE
        if self.is_terminal():
            return pyspiel.PlayerId.TERMINAL
        return int(self.node.position.current_player)

    def is_terminal(self) -> bool:
        return self.node.draw is None and bool(self.node.position.done)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """256 bytes of a seed, alike likely."""
        return [(byte, 1.0 / OUTCOMES) for byte in range(OUTCOMES)]

    def returns(self) -> list[float]:
        return list(self.node.returns)

    def rewards(self) -> list[float]:
        return list(self.node.rewards)

    def _legal_actions(self, player: int) -> list[int]:
        """Rising; none for seats that are not to move."""
        if player != self.current_player():
            return []
        return np.flatnonzero(np.asarray(self.node.position.legal_action_mask)).tolist()

    def _apply_action(self, action: int) -> None:
        """Raises IllegalAction for a move that the rules forbid, ValueError for a chance outcome
        that is no byte."""
        node, game = self.node, self.get_game()
        if node.draw is None:
            self.node = game.move(node, int(action))
            return
        if not 0 <= action < OUTCOMES:
            raise ValueError(f"action: a chance outcome is 0 to {OUTCOMES - 1}, got {action}")
        draw = dataclasses.replace(
            node.draw, seed=node.draw.seed * OUTCOMES + int(action), left=node.draw.left - 1
        )
        self.node = game.drawn(node, draw)

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE or self.node.position is None:
            return f"chance {action}"
        return self.ours.action_to_text(self.node.position, int(action))

    def __str__(self) -> str:
        if self.node.position is None:
            return "before the deal"
        pending = "" if self.node.draw is None else f"\nchance: {self.node.draw}"
        return self.ours.draw_text(self.node.position) + pending


class Game(pyspiel.Game):
    """A game with its options; `register` derives a class for each of our registry.

    Attributes:
      name: its name in our registry.
      ours: the game.
    """

    name: str

    def __init__(self, params: dict[str, Any] | None = None):
        given = dict(params or {})
        self.ours = ours = _make(self.name, given)
        self._chancy = moves_have_chance(ours)
        low, high = _utilities(ours)
        info = pyspiel.GameInfo(
            num_distinct_actions=ours.num_actions,
            max_chance_outcomes=OUTCOMES if deal_has_chance(ours) or self._chancy else 0,
            num_players=ours.num_players,
            min_utility=low,
            max_utility=high,
            utility_sum=0.0 if _zero_sum(ours) else None,
            max_game_length=ours.max_steps,
        )
        super().__init__(_game_type(self.name, ours), info, given)

    def new_initial_state(self) -> State:
        return State(self)

    def max_chance_nodes_in_history(self) -> int:
        deal = DEAL_NODES * deal_has_chance(self.ours)
        return deal + MOVE_NODES * self.ours.max_steps * self._chancy

    def make_py_observer(self, iig_obs_type=None, params=None) -> Observer | None:
        """None for a part of an observation, such as the public one alone: our games tell what a
        seat sees as a whole."""
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        if not kind.public_info or kind.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            return None
        return Observer(self.ours, kind.perfect_recall, params)

    @functools.cached_property
    def root(self) -> Node:
        """The first node; without chance in the deal the first position."""
        seats = self.ours.num_players
        nothing = (0.0,) * seats
        known = tuple(_digest("", f"seat {seat}") for seat in range(seats))
        draw = Draw(None, 0, DEAL_NODES)
        node = Node(None, 0, (b"",) * seats, known, nothing, nothing, draw)
        if deal_has_chance(self.ours):
            return node
        return self._arrive(node, _init(self.ours)(jax.random.key(0)))

    def move(self, node: Node, action: int) -> Node:
        """After a seat's move; a chance node if the move draws."""
        state, ours = node.position, self.ours
        if not 0 <= action < ours.num_actions or not bool(state.legal_action_mask[action]):
            rule = ours.explain_illegal(state, action) or "the rules forbid it here"
            raise IllegalAction(int(state.current_player), str(action), rule)
        after = core.jit_step(ours)(state, np.int32(action), jax.random.key(0))
        if self._chancy and ours.chance_to_text(state, action, after) is not None:
            draw = Draw(action, 0, MOVE_NODES)
            return dataclasses.replace(node, rewards=(0.0,) * ours.num_players, draw=draw)
        return self._arrive(node, after, action)

    def drawn(self, node: Node, draw: Draw) -> Node:
        """After a chance outcome: the next chance node, or where the seed leads."""
        if draw.left:
            return dataclasses.replace(node, draw=draw)
        key = jax.random.fold_in(jax.random.key(draw.seed), node.plies)
        if draw.move is None:
            return self._arrive(node, _init(self.ours)(key))
        after = core.jit_step(self.ours)(node.position, np.int32(draw.move), key)
        return self._arrive(node, after, draw.move)

    def _arrive(self, node: Node, state: core.State, action: int | None = None) -> Node:
        """The node of `state`, reached by `action` or dealt."""
        look, seats = _look(self.ours), np.arange(self.ours.num_players, dtype=np.int32)
        seen, rewards, player = jax.device_get(
            ([look(state, seat) for seat in seats], state.rewards, state.current_player)
        )
        views = tuple(see["board"].tobytes() + see["features"].tobytes() for see in seen)
        mover = None if node.position is None else int(node.position.current_player)
        heard = f"to move {player}, rewards {rewards.tolist()}"
        known = tuple(
            _digest(before, heard, f"did {action}" if seat == mover else "", view)
            for seat, (before, view) in enumerate(zip(node.known, views, strict=True))
        )
        rewards = tuple(rewards.tolist())
        returns = tuple(a + b for a, b in zip(node.returns, rewards, strict=True))
        return Node(state, node.plies + (action is not None), views, known, rewards, returns, None)


class Observer:
    """What one seat sees, flat in `tensor` and by name in `dict`; with `recall` all it has seen,
    as a string alone."""

    def __init__(self, ours: core.Game, recall: bool, params: Any):
        if params:
            raise ValueError(f"params: observations have none, got {params}")
        self.recall = recall
        shapes = jax.eval_shape(lambda k: ours.observe(ours.init(k), 0), jax.random.key(0))
        board, features = shapes["board"], shapes["features"]
        self.tensor = np.zeros(board.size + features.size, np.float32)
        self.dict = {
            "board": self.tensor[: board.size].reshape(board.shape),
            "features": self.tensor[board.size :].reshape(features.shape),
        }

    def set_from(self, state: State, player: int) -> None:
        """Raises ValueError for a tensor of an information state."""
        if self.recall:
            raise ValueError("perfect_recall: there is no tensor of the information state")
        view, cells = state.node.views[player], self.dict["board"].size
        if not view:
            self.tensor.fill(0)
            return
        self.tensor[:cells] = np.frombuffer(view, np.int8, cells)
        self.tensor[cells:] = np.frombuffer(view, np.float32, offset=cells)

    def string_from(self, state: State, player: int) -> str:
        node = state.node
        if self.recall:
            return f"seat {player} knows {node.known[player]}"
        if node.position is None:
            return f"seat {player} sees nothing"
        to_move = int(node.position.current_player)
        view = hashlib.sha256(node.views[player]).hexdigest()
        return f"seat {player} sees {view}, to move {to_move}"


def register(name: str) -> str:
    """Make a game of our registry known to pyspiel; returns its name there, "jaxgames_NAME".

    The games of this package are registered when this module is imported.
    """
    kind = _game_type(name, core.make(name))
    # pyspiel lets go of it after the interpreter has ended: a class survives that, a closure or
    # partial does not.
    pyspiel.register_game(kind, type(f"Game_{name}", (Game,), {"name": name}))
    return kind.short_name


def _scalars(rules: type) -> dict[str, Any]:
    """Options that a parameter can hold, with their defaults; 0 where that is None."""
    found = {f.name: f.default for f in dataclasses.fields(rules)}
    found = {name: 0 if value is None else value for name, value in found.items()}
    return {k: v for k, v in found.items() if type(v) in (bool, int, float, str)}


def _make(name: str, params: dict[str, Any]) -> core.Game:
    known = {"preset": ""} | _scalars(core.game_type(name).rules_type)
    options = {k: v for k, v in params.items() if k not in known or v != known[k]}
    return core.make(name, options.pop("preset", None), **options)


def _game_type(name: str, ours: core.Game) -> pyspiel.GameType:
    kind = pyspiel.GameType
    chance = deal_has_chance(ours) or moves_have_chance(ours)
    return kind(
        short_name=f"jaxgames_{name}",
        long_name=f"{name.replace('_', ' ').title()} (jaxgames {ours.version})",
        dynamics=kind.Dynamics.SEQUENTIAL,
        chance_mode=(
            kind.ChanceMode.EXPLICIT_STOCHASTIC if chance else kind.ChanceMode.DETERMINISTIC
        ),
        information=(
            kind.Information.IMPERFECT_INFORMATION
            if _hides(ours)
            else kind.Information.PERFECT_INFORMATION
        ),
        utility=kind.Utility.ZERO_SUM if _zero_sum(ours) else kind.Utility.GENERAL_SUM,
        reward_model=kind.RewardModel.REWARDS,
        max_num_players=MOST_SEATS,
        min_num_players=1,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={"preset": ""} | _scalars(type(ours).rules_type),
    )


@functools.cache
def _init(ours: core.Game) -> Any:
    return jax.jit(ours.init)


@functools.cache
def _look(ours: core.Game) -> Any:
    return jax.jit(ours.observe)


def _zero_sum(ours: core.Game) -> bool:
    sizes = {ours.team_of.count(team) for team in range(ours.num_teams)}
    return ours.reward_sum == 0.0 and len(sizes) == 1


def _utilities(ours: core.Game) -> tuple[float, float]:
    found = ours.outcomes or (-1.0, 1.0)
    return float(min(found)), float(max(found))


def _hides(ours: core.Game) -> bool:
    """Whether another deal can look the same to a seat; traced, not run."""
    kept = []

    def again(key):
        state = ours.init(key)
        other = ours.resample(state, jnp.int32(0), key)
        kept.extend(a is b for a, b in zip(*map(jax.tree.leaves, (state, other)), strict=True))
        return other

    jax.eval_shape(again, jax.random.key(0))
    return not all(kept)


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


for _name in ("sequence", "guandan", "eight_in_a_row"):
    register(_name)
