"""The sections of a view that tests look at most."""

from __future__ import annotations

from nicbench.core.result import Bounded
from nicbench.report.model import Report
from nicbench.report.section import Row, Section


def searched(view: Report) -> Section:
    """The first section with searched rates."""
    return next(section for section in view.sections if section.table.rates is not None)


def timed(view: Report) -> tuple[Section, ...]:
    """The sections of timed frames, one for each load."""
    return tuple(section for section in view.sections if section.timing is not None)


def rate_of(row: Row, value: str = "ndr_frames_per_s") -> Bounded:
    """A rate with its interval."""
    rate = row.result.values[value]
    assert isinstance(rate, Bounded)
    return rate
