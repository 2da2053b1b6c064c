"""The consoles of the command line, which make control characters visible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from nicbench.core.redaction import make_visible


class VisibleConsole(Console):
    """A console that shows control characters: titles, host names and file names may contain any.

    Text stays as it is otherwise: rich makes a picture of the ``:cd:`` of a MAC address.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders as rich does, with control characters in the text written as numbers; rich's own colours stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(make_visible(segment.text), segment.style)
