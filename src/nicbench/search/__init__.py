"""Searches: they see ``measure(load, duration)`` and nothing else. Add one by adding a file (CONTRIBUTING.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicbench.search._critical_load import COVERAGE, Course, CriticalLoadSearch, Estimate
    from nicbench.search._fitted import FittedLine, Span, fit_line
    from nicbench.search._interval import bounds_so_far

__all__ = ["COVERAGE", "Course", "CriticalLoadSearch", "Estimate", "FittedLine", "Span", "bounds_so_far", "fit_line"]

_MODULES = {"FittedLine": "_fitted", "Span": "_fitted", "fit_line": "_fitted", "bounds_so_far": "_interval"}


def __getattr__(name: str) -> object:
    """Gives what other packages use of the searches, loaded when it is first asked for."""
    if name in __all__:
        module = _MODULES.get(name, "_critical_load")
        return getattr(import_module(f"nicbench.search.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
