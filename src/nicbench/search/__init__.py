"""Searches: they see ``measure(load, duration)`` and nothing else. Add one by adding a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nicbench.search._recording import share_sent
from nicbench.search._zones import bounds_so_far

if TYPE_CHECKING:
    from nicbench.search._critical_load import COVERAGE, Course, CriticalLoadSearch, Estimate

__all__ = ["COVERAGE", "Course", "CriticalLoadSearch", "Estimate", "bounds_so_far", "share_sent"]


def __getattr__(name: str) -> object:
    """Gives the search for the critical load, which loads NumPy, when it is first asked for."""
    if name in __all__:
        return getattr(import_module("nicbench.search._critical_load"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
