"""Searches: they see ``measure(load, duration)`` and nothing else. Add one by adding a file (CONTRIBUTING.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicbench.search._critical_load import COVERAGE, Course, CriticalLoadSearch, Estimate
    from nicbench.search._fitted import FittedLine, Span, fit_line

__all__ = ["COVERAGE", "Course", "CriticalLoadSearch", "Estimate", "FittedLine", "Span", "fit_line"]

_FITTED = ("FittedLine", "Span", "fit_line")


def __getattr__(name: str) -> object:
    """Gives what other packages use of the searches that compute much, loaded when it is first asked for."""
    if name in __all__:
        module = "_fitted" if name in _FITTED else "_critical_load"
        return getattr(import_module(f"nicbench.search.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
