"""The runs of a lake beside those of the folder, as the catalogue asks for them: read again where the lake changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nicbench.lake.place import HEADLINE, Lake
from nicbench.lake.searching import Found, find_together
from nicbench.store.index import IndexedRuns, Search
from nicbench.store.listing import RunHeadline
from nicbench.web.catalogue import ReadRuns

MOST: Final = 100_000
"""The most runs of one list, the newest: a search finds those that are older."""


class LakeRuns:
    """The runs of a folder and of its lake."""

    def __init__(self, lake: Lake, read_own: ReadRuns) -> None:
        self._lake = lake
        self._read_own = read_own
        self._own: Sequence[RunHeadline] = ()
        self._state: Any = None
        self._newest = Found((), 0, 0)

    def read(self) -> IndexedRuns:
        """Returns the newest runs of both, oldest first."""
        own = self._read_own()
        state = (own.runs, *(self._lake.stamp(month, HEADLINE) for month in self._lake.months()))
        if state != self._state:
            self._own = own.runs
            self._newest = self._find(Search())
            self._state = state
        return IndexedRuns(self._newest.runs, own.read, own.notes, self._newest.every)

    def look(self, search: Search) -> tuple[RunHeadline, ...]:
        """Returns the newest runs of both that meet a search, oldest first."""
        return self._find(search).runs

    def _find(self, search: Search) -> Found:
        return find_together(self._own, self._lake, search, MOST)
