"""The store: run folders, their journal, and what is derived from it. It never touches a host."""

from nicbench.store.folder import RunFolder
from nicbench.store.journal import Journal
from nicbench.store.listing import RunHeadline, list_runs

__all__ = ["Journal", "RunFolder", "RunHeadline", "list_runs"]
