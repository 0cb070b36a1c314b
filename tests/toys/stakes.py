"""m,n,k games whose strength is reported in two forms: for three in a row, played for points,
and for two in a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from jaxgames import core
from tests.toys import mnk


@dataclasses.dataclass(frozen=True)
class Stakes(mnk.MNK):
    id = "stakes"
    presets = {"default": {}, "two": {"k": 2}}

    @property
    def forms(self) -> Mapping[str, Stakes]:
        ks = {"three": 3, "two": 2}
        return {n: dataclasses.replace(self, rules=dataclasses.replace(self.rules, k=k))
                for n, k in ks.items()}  # fmt: skip

    @property
    def bound_rules(self) -> tuple[str, ...]:
        return ("rows", "cols", "players")

    @property
    def return_unit(self) -> tuple[str, float] | None:
        return ("points", 3.0) if self.rules.k == 3 else None


core.register("stakes", "tests.toys.stakes:Stakes")
