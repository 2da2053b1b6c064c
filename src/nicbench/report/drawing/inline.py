"""The numbers of a chart as the charting library takes them, at a fraction of what it does with them by itself.

It checks each piece of a chart against its schema as soon as the piece exists, numbers and all, and copies what is in
lists each time charts are laid over each other. Pieces are not checked here: drawings are tested as they come out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
from altair.utils import schemapi

schemapi.disable_debug_mode()


def inline(points: Iterable[dict[str, Any]]) -> alt.InlineData:
    """The data of a chart, a mapping for each point."""
    return alt.InlineData(values=tuple(points))
