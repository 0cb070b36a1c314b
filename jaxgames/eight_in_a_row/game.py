"""Eight-in-a-Row as a `core.Game`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.eight_in_a_row import bots, lines, observe, session, standing
from jaxgames.eight_in_a_row.rules import PRESETS, Rules, SessionState, State, counting

#: The options that are data of a state in a bucket, in the order of `State.dims`.
_SIZES = ("rows", "cols", "win_length", "max_plies")


@dataclasses.dataclass(frozen=True)
class EightInARow(core.Game):
    """m,n,k for one to four seats with chain profiles, caps and sessions.

    An action is the cell a stone is put on, row * W + col.
    """

    rules: Rules

    id: ClassVar[str] = "eight_in_a_row"
    version: ClassVar[str] = "1"
    rules_type: ClassVar[type] = Rules
    presets: ClassVar = PRESETS

    # ---- sizes ----

    @property
    def num_players(self) -> int:
        return self.rules.players

    @property
    def num_actions(self) -> int:
        return self.rules.cells

    @property
    def team_of(self) -> tuple[int, ...]:
        return tuple(range(self.rules.players))

    @property
    def max_steps(self) -> int:
        games = self.rules.session_games if self.rules.unit == "session" else 1
        cap = self.rules.max_plies
        # with a bucket the cap is the default of `start`, not a bound
        plies = min(cap, self.rules.cells) if cap and not self.rules.bucket else self.rules.cells
        return games * plies

    @property
    def reward_sum(self) -> float | None:
        values = self.rules.place_payoffs
        if len(values) == 1:
            return None
        return None if self.rules.profile == "wdl" and sum(values) else float(sum(values))

    @property
    def outcomes(self) -> tuple[float, ...]:
        """The payoffs of places, shared ones too where the profile shares; without forfeits."""
        values = self.rules.place_payoffs
        if self.rules.profile == "wdl" or len(values) == 1:
            return tuple(sorted({0.0, *values}))
        table = self._payoff_table
        together = range(1, len(values) + 1 if self.rules.profile == "fair" else 2)
        found = {float(table[a, n - 1]) for n in together for a in range(len(values) + 1 - n)}
        return tuple(sorted(found))

    @property
    def bound_rules(self) -> tuple[str, ...]:
        """Those of the game's own view; a crop is bound to no board."""
        return self.viewer().bound_rules

    @property
    def forms(self):
        return {self.rules.unit: self}

    @property
    def board_shape(self) -> tuple[int, int]:
        return self.rules.shape

    @property
    def board_actions(self) -> int:
        return 1

    # ---- dynamics ----

    def _init(self, key):
        del key
        return self.start()

    def start(self, rows=None, cols=None, win_length=None, max_plies=None) -> State:
        """A first position, with a bucket on a board of its own (each int or int32[], traced).

        Args:
          rows, cols: at most the bucket's side; None: the options' own, as for the others.
          win_length: 2 to K and to the longer side.
          max_plies: 0: no cap.

        Raises ValueError for sizes given without a bucket, and for ones that do not fit where
        they are no traced values.
        """
        rules = self.rules
        given = dict(rows=rows, cols=cols, win_length=win_length, max_plies=max_plies)
        given = {name: value for name, value in given.items() if value is not None}
        self._check_start(given)
        sizes = {name: given.get(name, getattr(rules, name)) for name in _SIZES}
        height, width = rules.shape
        on_board = (np.arange(height)[:, None] < sizes["rows"]) & (
            np.arange(width)[None, :] < sizes["cols"]
        )
        on_board = jnp.asarray(on_board)
        p, c = rules.players, rules.cells
        place, runs = counting(c), counting(4 * -(-c // p))
        fields = dict(
            game=self,
            current_player=jnp.int32(0),
            legal_action_mask=on_board.reshape(-1),
            rewards=jnp.zeros(p, jnp.float32),
            terminated=jnp.bool_(False),
            truncated=jnp.bool_(False),
            illegal=jnp.bool_(False),
            cells=jnp.where(on_board, jnp.int8(0), jnp.int8(-1)),
            ply=jnp.zeros((), place),
            last=jnp.full(p, -1, place),
            runs=jnp.zeros((p, rules.longest - 1), runs),
            dims=jnp.stack([jnp.asarray(v, jnp.int16) for v in sizes.values()]),
        )
        if rules.unit == "session":
            return SessionState(**fields, **session.fresh(p))
        return State(**fields)

    def _check_start(self, given: dict) -> None:
        rules = self.rules
        if given and not rules.bucket:
            raise ValueError(f"{min(given)}: only a game with a bucket takes sizes at its start")
        if any(isinstance(size, jax.core.Tracer) for size in given.values()):
            return
        dataclasses.replace(rules, **{name: int(size) for name, size in given.items()})
        if int(given.get("win_length", 2)) > rules.longest:
            raise core.RulesError("win_length", f"at most {rules.longest} in this bucket")

    def holds(self, other):
        """With a bucket, all games of the same payoffs on boards that fit into it."""
        if not self.rules.bucket or type(other) is not type(self):
            return other == self
        theirs = other.rules
        fits = max(theirs.rows, theirs.cols) <= self.rules.bucket
        own = {name: getattr(self.rules, name) for name in (*_SIZES, "bucket")}
        alike = dataclasses.replace(theirs, **own) == self.rules
        return fits and alike and theirs.win_length <= self.rules.longest

    def start_as(self, games, which, key):
        if not self.rules.bucket:
            return self.init(key)
        table = np.array([[getattr(g.rules, name) for name in _SIZES] for g in games], np.int32)
        return self.start(*jnp.asarray(table)[which])

    def step(self, state, action, key):
        """As in `core.Game`, and fastest with the batch first: a stone is written in place, and
        a move that is none writes out of bounds, which drops it. `core.Game.step` would select
        between whole boards instead.
        """
        del key
        rules, mover = self.rules, state.current_player
        inside = (action >= 0) & (action < rules.cells)
        legal = inside & state.legal_action_mask[jnp.where(inside, action, 0)]
        played, forfeit = legal & ~state.done, ~legal & ~state.done
        nxt, over, place, won = self._put(state, action, played)
        nxt = nxt.replace(
            current_player=jnp.where(played, (mover + 1) % rules.players, mover),
            rewards=jnp.where(over, self._payoffs(place, won, mover), 0.0),
            illegal=state.illegal | forfeit,
        )
        if rules.unit == "session":
            nxt = session.after_game(nxt, over, place)
        terminated = nxt.terminated | forfeit
        return nxt.replace(
            rewards=jnp.where(forfeit, self.forfeit_rewards(mover), nxt.rewards),
            terminated=terminated,
            legal_action_mask=nxt.legal_action_mask | terminated | nxt.truncated,
        )

    _step = step

    def _put(self, state, action, played):
        """(state with the mover's stone on `action` where `played`, whether that ends the game,
        the places then, whether the stone won)."""
        rules, mover = self.rules, state.current_player
        stone = (mover + 1).astype(jnp.int8)
        rows, cols, win_length, cap = state.sizes
        ply = state.ply + played.astype(state.ply.dtype)

        at = jnp.where(played, action, rules.cells)
        cells = state.cells.reshape(-1).at[at].set(stone, mode="drop").reshape(rules.shape)
        # of the new board, as the old one would have to be kept for it beside the new one
        beside = lines.reach(cells, action, stone, rules.longest)
        won = played & jnp.any(beside.sum(axis=1) + 1 >= win_length)
        capped = played & ~won & (cap > 0) & (ply >= cap)
        full = played & (ply >= rows * cols)

        mine = (np.arange(rules.players) == mover) & played
        runs = state.runs + jnp.where(mine[:, None], _new_runs(beside, win_length, state.runs), 0)
        nxt = state.replace(
            legal_action_mask=state.legal_action_mask.at[at].set(False, mode="drop"),
            terminated=state.terminated | won | (full & ~capped),
            truncated=state.truncated | capped,
            cells=cells,
            ply=ply,
            last=jnp.where(mine, action, state.last).astype(state.last.dtype),
            runs=runs,
        )
        order = standing.winner_first(standing.by_values(runs), jnp.where(won, mover, -1))
        place = standing.places(order, rules.players, shared=rules.profile == "fair")
        return nxt, won | capped | full, place, won

    @property
    def _payoff_table(self) -> np.ndarray:
        return standing.shares(self.rules.place_payoffs).astype(np.float32)

    def _payoffs(self, place, won, mover):
        """float32[P], what a finished game pays."""
        values = self.rules.place_payoffs
        if self.rules.profile == "wdl" or len(values) == 1:
            mine = np.arange(len(values)) == mover
            decided = jnp.where(mine, jnp.float32(values[0]), jnp.float32(values[-1]))
            return jnp.where(won, decided, 0.0)
        return standing.paid(place, self._payoff_table)

    def forfeit_rewards(self, team):
        """float32[P]: the last place's payoff, the others share the other places' payoffs.

        Under wdl, of more than two seats, nobody wins by it.
        """
        values = self.rules.place_payoffs
        if len(values) == 1:
            return jnp.full(1, -1, jnp.float32)
        rest = float(np.mean(values[:-1]))
        if self.rules.profile == "wdl" and len(values) > 2:
            rest = 0.0
        mine = np.arange(len(values)) == team
        return jnp.where(mine, jnp.float32(values[-1]), jnp.float32(rest))

    # ---- knowledge ----

    def observe(self, state, player):
        return observe.observe(state, player)

    def observe_all(self, state, player):
        return observe.observe(state, player)

    def resample(self, state, player, key):
        del player, key
        return state

    def viewer(self, size: int = 0):
        from jaxgames.eight_in_a_row import view

        return view.viewer(self, size)

    @property
    def bots(self):
        return bots.bots(self.num_players)

    # ---- text and pictures ----

    def action_to_text(self, state, action):
        from jaxgames.eight_in_a_row import text

        return text.action_to_text(self, action, state)

    def action_from_text(self, state, string):
        from jaxgames.eight_in_a_row import text

        return text.action_from_text(self, string, state)

    def to_text(self, state):
        from jaxgames.eight_in_a_row import text

        return text.to_text(state)

    def from_text(self, string):
        from jaxgames.eight_in_a_row import text

        return text.from_text(self, string)

    def from_parts(self, parts):
        from jaxgames.eight_in_a_row import parts as reader

        return reader.from_parts(self, parts)

    def explain_illegal(self, state, action):
        from jaxgames.eight_in_a_row import text

        return text.explain_illegal(state, action)

    def draw(self, state, viewer=None):
        from jaxgames.eight_in_a_row import draw

        return draw.svg(state, viewer)

    def draw_cell(self, state, row, col):
        from jaxgames.eight_in_a_row import draw

        return draw.cell(state, row, col)

    def draw_text(self, state, viewer=None, view=None):
        from jaxgames.eight_in_a_row import terminal

        return terminal.terminal(state, viewer, view)

    def scene_json(self, state, viewer=None):
        from jaxgames.eight_in_a_row import page

        return page.scene_json(state, viewer)

    def move_view(self, state, view, words):
        from jaxgames.eight_in_a_row import terminal

        return terminal.move(state, view, words)

    def announce(self, before, action, after):
        from jaxgames.eight_in_a_row import scene

        return scene.announce(before, action, after)


def _new_runs(beside, win_length, like):
    """[K-1]: how a stone changes its seat's counts of runs, given the runs beside it.

    In each direction the runs on both sides and the stone become one run.
    """
    length = np.arange(1, like.shape[-1] + 1)
    merged = beside.sum(axis=1) + 1
    made = (merged[:, None] == length) & (length < win_length)
    gone = beside.reshape(-1)[:, None] == length
    change = made.sum(axis=0, dtype=jnp.int32) - gone.sum(axis=0, dtype=jnp.int32)
    return change.astype(like.dtype)
