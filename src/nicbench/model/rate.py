"""A measured rate: never a bare number, always with its interval and what limited it."""

from __future__ import annotations

from enum import StrEnum

from nicbench.model.base import Frozen


class LimitedBy(StrEnum):
    """What stopped a rate from being higher."""

    DUT = "dut"
    TESTER = "tester"
    LINE_RATE = "line_rate"


PASSES_NOTHING = "passes nothing"
"""How the reason begins where no frame came back at any load that was tried."""


class Bounded(Frozen):
    """A value with the interval known to hold it.

    ``lower`` is the highest load that passed, ``upper`` the lowest that failed; ``upper`` is ``None`` where the DUT
    passed the maximum load (then it has *at least* ``value``), ``lower`` and ``value`` are ``None`` where nothing
    passed (``reason_null`` says so). A bare value, without bounds and limit, is somebody else's: how exact it is, its
    source does not say.
    """

    value: float | None
    lower: float | None = None
    upper: float | None = None
    limited_by: LimitedBy | None = None
    n: int | None = None
    reason_null: str | None = None

    @property
    def at_least(self) -> bool:
        """Whether the true value may be higher than any load that was tried."""
        return self.value is not None and self.upper is None and not self.is_bare

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known beside the value."""
        return self.lower is None and self.upper is None and self.limited_by is None

    @property
    def is_line_rate(self) -> bool:
        """Whether the DUT passed the most that the line carries."""
        return self.at_least and self.limited_by is LimitedBy.LINE_RATE

    @property
    def passes_nothing(self) -> bool:
        """Whether no frame came back at any load that was tried."""
        return self.value is None and (self.reason_null or "").startswith(PASSES_NOTHING)
