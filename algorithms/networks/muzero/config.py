"""Sizes and switches of the MuZero network. Numbers in brackets are those of the rule book of
Eight-in-a-Row."""

from __future__ import annotations

import dataclasses
from typing import Literal

_RANGES = {
    "width": (4, 2048),
    "heads": (1, 64),
    "layers": (1, 64),
    "kv_latent": (1, 1024),
    "q_latent": (1, 2048),
    "rotary": (4, 256),
    "ffn": (1, 8192),
    "patch": (1, 9),
    "stem": (0, 512),
    "dynamics_layers": (1, 16),
    "bins": (2, 1001),
    "projection": (1, 4096),
    "prediction": (1, 4096),
    "line_length": (0, 64),
    "memory_size": (1, 1_000_000),
    "memory_top": (1, 256),
    "memory_heads": (1, 64),
    "pattern_heads": (1, 8),
    "pattern_table": (8, 2**24),
    "pattern_width": (1, 512),
    "focus_width": (1, 512),
}


@dataclasses.dataclass(frozen=True)
class MuZeroNetworkConfig:
    """Attributes:
    width: D, of a token, a multiple of `heads`.
    heads: attention heads, each of width / heads.
    layers: of the encoder, each attention and SwiGLU.
    attention: "mla": keys and values from a small latent, positions apart from it [3.2];
      "plain": full keys, queries and values with the same positions.
    merged: mla: scores are taken in the latent itself, keys and values are never built. The
      same function of the same weights.
    kv_latent, q_latent: mla: width of the latents that keys and values, and queries, come from.
    rotary: width of the part of queries and keys that knows positions, a multiple of 4.
    ffn: hidden width of SwiGLU.
    patch: side of the square of cells that is one token [3.1].
    stem: channels of a 3x3 convolution whose outputs stand beside the planes before patches
      are cut; 0: none.
    stones: the board's first channels are 0/1 planes of the seats' stones, from the viewer's
      on, and then of the empty cells; a cell with none of these is off the board. Tokens that
      are all off the board are then left out. False: any planes, all on the board.
    board_scale, whole_scale: what the int8 planes of "board" and "whole" are multiplied by.
    dynamics_layers: light layers from one latent to the next.
    reward: dynamics says the rewards of a move; for rules that are learnt.
    bins: places of the value distribution on [-1, 1], where `game.outcomes` does not give them.
    consistency: projector and predictor [3.4], hidden and output width `projection`, hidden
      width `prediction`.
    line_length: k, the (longest) winning line; what knows lines (pattern memory, auxiliary
      heads) needs it. 0: not told.
    auxiliary: heads for the next mover's action, parts of runs, and plies left [3.9].
    memory: episodic memory [3.5] of `memory_size` entries, the `memory_top` most alike read by
      attention of `memory_heads` heads.
    patterns: hashed line patterns [3.6]: `pattern_heads` tables of about `pattern_table`
      entries of `pattern_width` numbers. Needs `stones`.
    focus: logits over the coarse board for where to look [3.7], of `focus_width` channels;
      only where observations have "whole".
    """

    width: int = 64
    heads: int = 4
    layers: int = 3
    attention: Literal["mla", "plain"] = "mla"
    merged: bool = False
    kv_latent: int = 16
    q_latent: int = 32
    rotary: int = 8
    ffn: int = 128
    patch: int = 3
    stem: int = 0
    stones: bool = False
    board_scale: float = 1.0
    whole_scale: float = 1.0 / 127.0
    dynamics_layers: int = 2
    reward: bool = True
    bins: int = 21
    consistency: bool = True
    projection: int = 64
    prediction: int = 32
    line_length: int = 0
    auxiliary: bool = False
    memory: bool = False
    memory_size: int = 10_000
    memory_top: int = 8
    memory_heads: int = 4
    patterns: bool = False
    pattern_heads: int = 2
    pattern_table: int = 4096
    pattern_width: int = 8
    focus: bool = False
    focus_width: int = 16

    def __post_init__(self):
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}: {low} to {high}, got {getattr(self, name)}")
        if self.attention not in ("mla", "plain"):
            raise ValueError(f"attention: mla or plain, got {self.attention!r}")
        if self.merged and self.attention != "mla":
            raise ValueError("merged: is a form of attention mla only")
        if self.width % self.heads:
            raise ValueError(f"width: a multiple of heads ({self.heads}), got {self.width}")
        if self.rotary % 4:
            raise ValueError(f"rotary: a multiple of 4, got {self.rotary}")
        for name in ("board_scale", "whole_scale"):
            if not 0.0 < getattr(self, name) < 1000.0:
                raise ValueError(f"{name}: above 0, below 1000, got {getattr(self, name)}")
        if self.memory and self.memory_top > self.memory_size:
            raise ValueError(f"memory_top: at most memory_size ({self.memory_size})")
        if self.memory and self.width % self.memory_heads:
            raise ValueError(f"memory_heads: must divide width ({self.width})")
        if self.patterns and not self.stones:
            raise ValueError("patterns: needs stones, line patterns are made of them")
        for name in ("patterns", "auxiliary"):
            if getattr(self, name) and self.line_length < 2:
                raise ValueError(f"line_length: at least 2 with {name}, got {self.line_length}")


#: Sizes by name. tiny: for tests. small: 15x15 on a CPU. full: the rule book's, section 3.
PRESETS = {
    "tiny": MuZeroNetworkConfig(
        width=16, heads=2, layers=1, kv_latent=8, q_latent=8, rotary=4, ffn=16, dynamics_layers=1,
        projection=16, prediction=8,
    ),
    "small": MuZeroNetworkConfig(),
    "full": MuZeroNetworkConfig(
        width=256, heads=8, layers=12, kv_latent=64, q_latent=128, rotary=16, ffn=512,
        projection=256, prediction=128, bins=51, pattern_table=65536, pattern_width=32,
        focus_width=64,
    ),
}  # fmt: skip
