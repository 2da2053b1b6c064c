"""What a view is: some addresses, and an entry in the navigation. A view is added by adding its file and its script."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from starlette.routing import BaseRoute

from nicbench.web.site import Link, Site


class View(ABC):
    """One view. ``kind`` is the name of its script; ``link`` its entry in the navigation, with its place in it."""

    kind: ClassVar[str]
    link: ClassVar[Link | None] = None
    place: ClassVar[int] = 0

    def __init__(self, site: Site) -> None:
        self.site = site

    @abstractmethod
    def routes(self) -> Sequence[BaseRoute]:
        """Returns its addresses."""
