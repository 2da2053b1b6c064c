"""The store: run folders, their journal, and the files derived from it. It never touches a host."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicbench.store.folder import RunFolder
    from nicbench.store.journal import Journal
    from nicbench.store.listing import RunHeadline, list_runs

__all__ = ["Journal", "RunFolder", "RunHeadline", "list_runs"]

_FILES = {"Journal": "journal", "RunFolder": "folder", "RunHeadline": "listing", "list_runs": "listing"}


def __getattr__(name: str) -> object:
    """Imports a name on first use, because listing runs needs little of what reads and writes them."""
    if name in _FILES:
        return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
