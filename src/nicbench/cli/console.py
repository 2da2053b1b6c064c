"""The consoles of the command line: they show text from others and do not obey it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from nicbench.visible import visible


class VisibleConsole(Console):
    """One on which control characters are seen: titles, host names and file names may hold anything."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with control characters in the text written as numbers; its own colours are no text yet."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
