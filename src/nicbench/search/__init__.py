"""Searches: they see ``measure(load, duration)`` and nothing else. Add one by adding a file (CONTRIBUTING.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicbench.search._critical_load import COVERAGE, Course, CriticalLoadSearch, Estimate

__all__ = ["COVERAGE", "Course", "CriticalLoadSearch", "Estimate"]


def __getattr__(name: str) -> object:
    """Gives what methods use of the search for the critical load, loaded when it is first asked for."""
    if name in __all__:
        from nicbench.search import _critical_load

        return getattr(_critical_load, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
