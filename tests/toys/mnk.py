"""m,n,k games for one to four players: small enough to solve, a stranger's game to us.

Two players on 3x3 with k=3 is tic-tac-toe. Three or more players are free for all: the
first with k in a row gets 1 and the others share -1; a full board gives 0 to all.
"""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core


@dataclasses.dataclass(frozen=True)
class Rules:
    rows: int = 3
    cols: int = 3
    k: int = 3
    players: int = 2

    def __post_init__(self):
        if not 1 <= self.players <= 4:
            raise core.RulesError("players", f"1 to 4, got {self.players}")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(core.State):
    cells: jax.Array  # int8[rows, cols]: 0 empty, seat + 1


def _windows(rules: Rules) -> np.ndarray:
    """bool[W, rows * cols]: every line of k cells."""
    rows, cols, k = rules.rows, rules.cols, rules.k
    found = []
    for r in range(rows):
        for c in range(cols):
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
                end_r, end_c = r + dr * (k - 1), c + dc * (k - 1)
                if 0 <= end_r < rows and 0 <= end_c < cols:
                    line = np.zeros((rows, cols), bool)
                    for i in range(k):
                        line[r + dr * i, c + dc * i] = True
                    found.append(line.ravel())
    return np.unique(np.array(found).reshape(-1, rows * cols), axis=0)


@dataclasses.dataclass(frozen=True)
class MNK(core.Game):
    id = "mnk"
    version = "1"
    rules_type = Rules
    presets = {"tictactoe": {}}

    @property
    def num_players(self) -> int:
        return self.rules.players

    @property
    def num_actions(self) -> int:
        return self.rules.rows * self.rules.cols

    @property
    def team_of(self) -> tuple[int, ...]:
        return tuple(range(self.rules.players))

    @property
    def max_steps(self) -> int:
        return self.num_actions

    @property
    def reward_sum(self) -> float | None:
        return 0.0 if self.rules.players > 1 else None

    @property
    def board_shape(self) -> tuple[int, int]:
        return (self.rules.rows, self.rules.cols)

    @property
    def board_actions(self) -> int:
        return 1

    def _init(self, key):
        del key
        p = self.num_players
        return State(
            game=self,
            current_player=jnp.int32(0),
            legal_action_mask=jnp.ones(self.num_actions, bool),
            rewards=jnp.zeros(p, jnp.float32),
            terminated=jnp.bool_(False),
            truncated=jnp.bool_(False),
            illegal=jnp.bool_(False),
            cells=jnp.zeros(self.board_shape, jnp.int8),
        )

    def _step(self, state, action, key):
        del key
        mover, p = state.current_player, self.num_players
        stone = (mover + 1).astype(jnp.int8)
        cells = state.cells.ravel()
        cells = jnp.where(jnp.arange(cells.size) == action, stone, cells)
        own = cells == stone
        lines = _windows(self.rules)
        won = jnp.any(jnp.all(own | ~lines, axis=1)) if len(lines) else jnp.bool_(False)
        share = -1.0 / max(p - 1, 1)
        rewards = jnp.where(jnp.arange(p) == mover, 1.0, share).astype(jnp.float32)
        return state.replace(
            current_player=(mover + 1) % p,
            legal_action_mask=cells == 0,
            rewards=jnp.where(won, rewards, 0.0),
            terminated=won | jnp.all(cells != 0),
            cells=cells.reshape(self.board_shape),
        )

    def observe(self, state, player):
        p = self.num_players
        seats = (player + jnp.arange(p)) % p
        planes = state.cells[..., None] == (seats + 1).astype(jnp.int8)
        return {"board": planes.astype(jnp.int8), "features": jnp.zeros(1, jnp.float32)}

    def observe_all(self, state, player):
        return self.observe(state, player)

    def resample(self, state, player, key):
        del player, key
        return state

    def action_to_text(self, state, action):
        return f"{int(action) // self.rules.cols},{int(action) % self.rules.cols}"

    def action_from_text(self, state, text):
        row, _, col = text.partition(",")
        if not (row.isdigit() and col.isdigit()):
            raise ValueError(f"{text!r} is not ROW,COL")
        if int(row) >= self.rules.rows or int(col) >= self.rules.cols:
            raise ValueError(f"{text!r} is off the board")
        return int(row) * self.rules.cols + int(col)

    def to_text(self, state):
        leaves = {
            f.name: np.asarray(getattr(state, f.name)).tolist()
            for f in dataclasses.fields(state)
            if f.name != "game"
        }
        return json.dumps(leaves)

    def from_text(self, text):
        try:
            leaves = json.loads(text)
        except json.JSONDecodeError as error:
            raise core.PositionError("text", f"not JSON ({error})") from None
        if not isinstance(leaves, dict):
            raise core.PositionError("text", "not a JSON object")
        blank = self._init(jax.random.key(0))
        values = {}
        for f in dataclasses.fields(blank):
            if f.name == "game":
                continue
            like = getattr(blank, f.name)
            if f.name not in leaves:
                raise core.PositionError(f.name, "missing")
            try:
                value = np.asarray(leaves[f.name], like.dtype)
            except (TypeError, ValueError, OverflowError):
                raise core.PositionError(f.name, f"not of dtype {like.dtype}") from None
            if value.shape != like.shape:
                raise core.PositionError(f.name, f"shape {value.shape}, want {like.shape}")
            values[f.name] = jnp.asarray(value)
        return blank.replace(**values)

    def draw(self, state, viewer=None):
        return f'<svg xmlns="http://www.w3.org/2000/svg"><text>{self.to_text(state)}</text></svg>'


core.register("mnk", "tests.toys.mnk:MNK")
