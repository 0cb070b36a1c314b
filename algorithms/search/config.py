"""The search of an agent as data."""

from __future__ import annotations

import dataclasses
import functools
import math

import mctx

from algorithms.search.gumbel import gumbel
from algorithms.search.puct import puct
from algorithms.search.rounds import Policy


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Numbers of a search; `build` turns them into a `Policy`.

    Attributes:
      policy: "gumbel" or "puct".
      num_simulations: simulations in each world.
      num_worlds: deals of the hidden cards searched side by side.
      num_candidates: deals that those worlds are chosen from, by how well they explain the
        others' last moves (`belief.py`); 0: none, the worlds are drawn alike.
      max_depth: edges below which nothing is expanded; 0 for no limit.
      max_num_considered_actions: Gumbel, actions of the sequential halving.
      gumbel_scale: Gumbel, scale of the noise; 0 for a deterministic choice.
      dirichlet_fraction: PUCT, share of noise in the root's prior.
      dirichlet_alpha: PUCT, concentration of that noise.
      pb_c_init, pb_c_base: PUCT, exploration constants.
      temperature: PUCT, the action is drawn by visits ** (1 / temperature).
      q_scale: "siblings" compares q-values relative to the least and greatest among the
        actions, as mctx does; "outcome" on the fixed scale of outcomes in [-1, 1], as
        AlphaZero does.
      value_scale: Gumbel, weight of values against priors (c_scale of Danihelka et al., 2022,
        equation 8).
      early_stop: stop when the leader of every row can not be caught.
      leader_share: stop when an action of every row holds this share; 0 for never.
      prove: carry won and lost nodes up exactly; only right in games without chance.
    """

    policy: str = "gumbel"
    num_simulations: int = 32
    num_worlds: int = 1
    num_candidates: int = 0
    max_depth: int = 0
    max_num_considered_actions: int = 16
    gumbel_scale: float = 1.0
    dirichlet_fraction: float = 0.25
    dirichlet_alpha: float = 0.3
    pb_c_init: float = 1.25
    pb_c_base: float = 19652.0
    temperature: float = 1.0
    q_scale: str = "siblings"
    value_scale: float = 0.1
    early_stop: bool = False
    leader_share: float = 0.0
    prove: bool = False

    def __post_init__(self):
        if self.policy not in ("gumbel", "puct"):
            raise ValueError(f"policy: must be gumbel or puct, got {self.policy!r}")
        if self.q_scale not in ("siblings", "outcome"):
            raise ValueError(f"q_scale: must be siblings or outcome, got {self.q_scale!r}")
        for field in ("num_simulations", "num_worlds", "max_num_considered_actions"):
            _require(self, field, getattr(self, field) >= 1, "must be at least 1")
        _require(self, "num_simulations", self.num_simulations < 2**24, "must be below 2**24")
        fit = self.num_candidates == 0 or self.num_candidates >= self.num_worlds
        _require(self, "num_candidates", fit, f"must be 0 or at least {self.num_worlds}")
        _require(self, "max_depth", self.max_depth >= 0, "must not be negative")
        for field in ("gumbel_scale", "pb_c_init", "temperature", "value_scale"):
            _require(self, field, getattr(self, field) >= 0, "must not be negative")
        for field in ("dirichlet_alpha", "pb_c_base"):
            _require(self, field, getattr(self, field) > 0, "must be positive")
        for field in ("dirichlet_fraction", "leader_share"):
            _require(self, field, 0 <= getattr(self, field) <= 1, "must be between 0 and 1")

    def build(self) -> Policy:
        """The policy that these numbers describe."""
        common = dict(
            max_depth=self.max_depth or None,
            early_stop=self.early_stop,
            leader_share=self.leader_share or None,
            prove=self.prove,
        )
        if self.policy == "gumbel":
            return gumbel(
                self.num_simulations,
                max_num_considered_actions=self.max_num_considered_actions,
                gumbel_scale=self.gumbel_scale,
                qtransform=functools.partial(
                    mctx.qtransform_completed_by_mix_value,
                    value_scale=self.value_scale,
                    rescale_values=self.q_scale == "siblings",
                ),
                **common,
            )
        if self.q_scale == "outcome":
            common["qtransform"] = functools.partial(
                mctx.qtransform_by_min_max, min_value=-1.0, max_value=1.0
            )
        return puct(
            self.num_simulations,
            dirichlet_fraction=self.dirichlet_fraction,
            dirichlet_alpha=self.dirichlet_alpha,
            pb_c_init=self.pb_c_init,
            pb_c_base=self.pb_c_base,
            temperature=self.temperature,
            **common,
        )


def _require(config: SearchConfig, field: str, holds: bool, rule: str) -> None:
    value = getattr(config, field)
    if not (holds and math.isfinite(value)):
        raise ValueError(f"{field}: {rule}, got {value}")
