"""Settings of the learner."""

from __future__ import annotations

import dataclasses

from algorithms import optim
from algorithms.king import KingConfig
from algorithms.league import LeagueConfig
from algorithms.learner import require
from algorithms.muzero.loss import Weights
from algorithms.muzero.play import Dynamics, Thinking
from algorithms.search.config import SearchConfig


def _default_search() -> SearchConfig:
    return SearchConfig(num_simulations=16, max_num_considered_actions=8, q_scale="outcome")


@dataclasses.dataclass(frozen=True)
class Config:
    """Attributes:
    games: games played side by side.
    steps: actions in every game per update.
    search: the numbers of the search (one world: what is hidden is drawn once).
    dynamics: "rules": legality, ends and rewards in the tree are those of the rules; "learned":
      nothing but the learned model below the root.
    paranoid: the search sees everybody against the root instead of everybody for himself.
    view: size of what the agent sees of a board, handed to `game.viewer`; 0: the game decides.
    phase_plies: plies at which the next phase of the game begins, rising; the phase of a step is
      that of the mean ply of its games.
    phase_simulations: simulations of each phase, one more than `phase_plies`; empty: those of
      `search` throughout.
    full_share: share of steps with the full search; the rest, with `fast_simulations`, train no
      policy (playout cap randomisation: Wu, "Accelerating Self-Play Learning in Go", section
      3.1). One draw decides for all games of a step.
    fast_simulations: simulations of a fast search.
    opening_plies: each game opens with 0 to this many random actions.
    sample_plies: so many first actions of a game are drawn from the improved policy; later ones,
      and all with 0, are the search's choice.
    replay_length: steps of all games that the replay holds.
    replay_bytes: what the replay may take; it is made shorter until it fits. 0: no limit.
    learn_after: positions that can be learned from before learning begins.
    batch_size: positions per optimiser step.
    batch_end: positions per optimiser step at the end of the schedule; 0: no schedule.
    batch_updates: updates over which the batch grows evenly, in whole micro-batches.
    micro_batch: at most so many positions' gradient is computed at once (`optim.gradients`).
    learn_steps: optimiser steps per update.
    unroll: K, actions that the model is unrolled over.
    td_steps: rewards before the value target falls back on searched values; 0: to the end.
    discount: of values per step; below 1 only with `td_steps`.
    root_share: share of the position's own searched value in its value target.
    priority_exponent: of priorities, the error of the root's value; 0: uniform sampling.
    priority_beta: exponent of the importance weights that undo it.
    heat_share: share of views in self-play that follow the network's heat, where it has a head for
      it; the others follow the viewer's own judgement, from which the head learns.
    memory_updates: updates between two makings of the episodic memory, where there is one.
    symmetries: turn every sample by a random symmetry of the view.
    reanalyse: positions per update whose policy and value in the replay a fresh search replaces.
    teacher: rule bot that plays first; empty for none.
    teacher_updates: updates of its phase, rounded up to whole chunks.
    teacher_steps: actions in every game per update of its phase.
    teacher_random: share of random moves in its games.
    rival, rival_share: a league of one rule bot, which holds all teams but one in this share of
      the games; empty and 0 for none.
    league: see `LeagueConfig`: former selves, by their bare networks, and bots in a share of the
      games. Their moves are no policy to learn.
    king: see `KingConfig`; instead of a league.
    weights: of the parts of the loss.
    chunk_updates: updates per call of `run_chunk`.
    optim: see `OptimConfig`.
    """

    games: int = 64
    steps: int = 16
    search: SearchConfig = dataclasses.field(default_factory=_default_search)
    dynamics: Dynamics = "rules"
    paranoid: bool = False
    view: int = 0
    phase_plies: tuple[int, ...] = ()
    phase_simulations: tuple[int, ...] = ()
    full_share: float = 1.0
    fast_simulations: int = 4
    opening_plies: int = 0
    sample_plies: int = 0
    replay_length: int = 256
    replay_bytes: int = 0
    learn_after: int = 1024
    batch_size: int = 256
    batch_end: int = 0
    batch_updates: int = 1000
    micro_batch: int = 64
    learn_steps: int = 4
    unroll: int = 5
    td_steps: int = 0
    discount: float = 1.0
    root_share: float = 0.0
    priority_exponent: float = 0.0
    priority_beta: float = 0.4
    heat_share: float = 0.5
    memory_updates: int = 16
    symmetries: bool = True
    reanalyse: int = 0
    teacher: str = ""
    teacher_updates: int = 0
    teacher_steps: int = 16
    teacher_random: float = 0.1
    rival: str = ""
    rival_share: float = 0.0
    league: LeagueConfig = LeagueConfig()
    king: KingConfig = KingConfig()
    weights: Weights = Weights()
    chunk_updates: int = 4
    optim: optim.OptimConfig = optim.OptimConfig()

    def __post_init__(self):
        for field in ("games", "steps", "fast_simulations", "learn_after", "batch_size",
                      "batch_updates", "micro_batch", "learn_steps", "unroll",
                      "memory_updates", "chunk_updates", "teacher_steps"):  # fmt: skip
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in (
            "view",
            "opening_plies",
            "sample_plies",
            "td_steps",
            "reanalyse",
            "teacher_updates",
        ):
            require(self, field, getattr(self, field) >= 0, "not negative")
        for field in ("full_share", "root_share", "heat_share", "priority_beta",
                      "priority_exponent"):  # fmt: skip
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        fit = self.fast_simulations < 2**24
        require(self, "fast_simulations", fit, "below 2**24")
        require(self, "dynamics", self.dynamics in ("rules", "learned"), "rules or learned")
        require(self, "full_share", self.full_share > 0.0, "above 0, or no policy is learned")
        require(self, "discount", 0.0 < self.discount <= 1.0, "above 0, at most 1")
        whole = self.discount == 1.0 or self.td_steps > 0
        require(self, "discount", whole, "1 where td_steps is 0")
        fit = self.batch_end == 0 or self.batch_end >= self.batch_size
        require(self, "batch_end", fit, f"0 or at least {self.batch_size}")
        plies, rising = self.phase_plies, sorted(set(self.phase_plies))
        fit = list(plies) == rising and all(ply > 0 for ply in plies)
        require(self, "phase_plies", fit, "rising numbers above 0")
        number = len(plies) + 1 if plies else 0
        fit = len(self.phase_simulations) == number
        fit &= all(1 <= n < 2**24 for n in self.phase_simulations)
        require(self, "phase_simulations", fit, f"{number} numbers from 1")
        one = self.search.num_worlds == 1 and self.search.num_candidates == 0
        require(self, "search", one, "one world and no candidates")
        taught = bool(self.teacher) or not self.teacher_updates
        require(self, "teacher", taught, "needed for teacher_updates above 0")
        fit = self.td_steps == 0 or not self.teacher_updates
        require(self, "td_steps", fit, "0 with a teacher, whose games hold no searched values")
        fit = bool(self.rival) or not self.rival_share
        require(self, "rival", fit, "needed for rival_share above 0")
        require(self, "rival_share", 0.0 <= self.rival_share <= 1.0, "0 to 1")
        alone = not (self.rival_share and self.league.share)
        require(self, "rival_share", alone, "0 with a league, where the rival is one of its bots")
        alone = not (self.king.enabled and self.met.share)
        require(self, "king", alone, "not together with a league or a rival")
        self.met.check(self.games)
        require(self, "replay_bytes", self.replay_bytes >= 0, "not negative")
        least = self.least_length
        require(self, "replay_length", self.replay_length >= least, f"at least {least}")
        room = self.replay_length * self.games
        require(self, "learn_after", self.learn_after <= room, f"at most {room}, the replay")

    @property
    def met(self) -> LeagueConfig:
        """The league, or that of the rival."""
        if not self.rival_share:
            return self.league
        return LeagueConfig(
            share=self.rival_share, groups=1, snapshots=0, bots=(self.rival,), bot_share=1.0
        )

    @property
    def thinking(self) -> Thinking:
        return Thinking(self.dynamics, self.paranoid, self.discount)

    @property
    def least_length(self) -> int:
        """Steps that the replay has to hold."""
        longest = max(self.steps, self.teacher_steps if self.teacher else 0)
        return max(longest, self.unroll + self.td_steps + 1)

    @property
    def largest_batch(self) -> int:
        return max(self.batch_size, self.batch_end)
