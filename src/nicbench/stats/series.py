"""Values in the order of time: what is looked through for a drift. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.stats.sample import Values


@dataclass(frozen=True, slots=True)
class Series:
    """Values in the order in which they were measured. ``times`` (any unit) rise; without them runs count 0, 1, 2."""

    name: str
    values: Values
    times: Sequence[float] | None = None
