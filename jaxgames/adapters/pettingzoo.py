"""PettingZoo: a game as an AEC environment (agents act one after the other).

    env = jaxgames.adapters.pettingzoo.env("sequence", players=2)
    env.reset(seed=7)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        mask = observation["action_mask"]
        env.step(None if termination or truncation else env.action_space(agent).sample(mask))

An observation is what that seat may know: "observation" int8[H, W, C] and "features"
float32[F] of `game.observe`, and "action_mask" int8[A], all zero for seats that are not to move
(what the mover may do would tell its hand). An illegal action raises `IllegalAction` and changes
nothing; in training code that prefers a forfeit, wrap it in TerminateIllegalWrapper.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxgames.core import Game, make
from jaxgames.match import Match

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv
except ImportError as error:
    raise ImportError(
        f"this adapter needs PettingZoo ({error}): pip install 'jaxgames[adapters]'"
    ) from error

RENDER_MODES = ("ansi", "svg")


class Env(AECEnv):
    """An AEC environment over a `Match`.

    Args:
      game: the game.
      render_mode: "ansi" (text) or "svg": what `render` returns; None: nothing.

    Seat 0 is "player_0" and so on. `reset(seed)` with a seed fixes this game and those of the
    resets without one that follow.
    """

    def __init__(self, game: Game, render_mode: str | None = None):
        super().__init__()
        if render_mode not in (None, *RENDER_MODES):
            known = ", ".join(RENDER_MODES)
            raise ValueError(f"render_mode: one of {known} or None, got {render_mode!r}")
        self.game, self.render_mode = game, render_mode
        self.metadata = {
            "name": f"{game.id}_v{game.version}",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": False,
        }
        self.possible_agents = [f"player_{seat}" for seat in range(game.num_players)]
        self.agents: list[str] = []
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._look = jax.jit(game.observe)
        self._seeds = np.random.default_rng()
        self._match: Match | None = None
        shapes = jax.eval_shape(lambda k: game.observe(game.init(k), 0), jax.random.key(0))
        self.observation_spaces = {a: _space(shapes, game.num_actions) for a in self._seats}
        self.action_spaces = {a: spaces.Discrete(game.num_actions) for a in self._seats}

    def observation_space(self, agent: str) -> spaces.Space:
        """The same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """The same object at each call."""
        return self.action_spaces[agent]

    @property
    def match(self) -> Match:
        """The game so far; RuntimeError before the first reset."""
        if self._match is None:
            raise RuntimeError("reset: call it before anything else")
        return self._match

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """A fresh deal. `options` are not used."""
        del options
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        self._match = Match(self.game, int(self._seeds.integers(2**32)))
        self.agents = list(self.possible_agents)
        self.rewards = {agent: 0.0 for agent in self.agents}
        self._cumulative_rewards = {agent: 0.0 for agent in self.agents}
        self.terminations = {agent: False for agent in self.agents}
        self.truncations = {agent: False for agent in self.agents}
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.possible_agents[self.match.seat]

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """What that seat may know now."""
        seat, state = self._seats[agent], self.match.state
        seen = jax.device_get(self._look(state, np.int32(seat)))
        to_move = not self.match.done and self.match.seat == seat
        mask = np.asarray(state.legal_action_mask) if to_move else np.zeros(self.game.num_actions)
        return {
            "observation": seen["board"],
            "features": seen["features"],
            "action_mask": mask.astype(np.int8),
        }

    def step(self, action: int | None) -> None:
        """The selected agent's move; None once it is out.

        Raises:
          IllegalAction: not legal here; nothing changes.
          ValueError: no action although the agent is to move.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError(f"action: {agent} is to move and needs one")
        state = self.match.play(int(action))
        self._cumulative_rewards[agent] = 0.0
        for name, seat in self._seats.items():
            self.rewards[name] = float(state.rewards[seat])
            self.terminations[name] = bool(state.terminated)
            self.truncations[name] = bool(state.truncated)
        self._accumulate_rewards()
        if not self.match.done:
            self.agent_selection = self.possible_agents[self.match.seat]

    def render(self) -> str | None:
        """All hands open: the picture of a spectator."""
        if self.render_mode is None:
            return None
        draw = self.game.draw if self.render_mode == "svg" else self.game.draw_text
        return draw(self.match.state)

    def close(self) -> None:
        """Nothing is held open."""


def env(name: str, preset: str | None = None, render_mode: str | None = None, **options) -> Env:
    """The environment of `jaxgames.make(name, preset, **options)`."""
    return Env(make(name, preset, **options), render_mode)


def _space(shapes: dict[str, Any], actions: int) -> spaces.Dict:
    board, features = shapes["board"], shapes["features"]
    info = np.iinfo(np.int8)
    return spaces.Dict(
        {
            "observation": spaces.Box(info.min, info.max, board.shape, np.int8),
            "features": spaces.Box(-np.inf, np.inf, features.shape, np.float32),
            "action_mask": spaces.Box(0, 1, (actions,), np.int8),
        }
    )
