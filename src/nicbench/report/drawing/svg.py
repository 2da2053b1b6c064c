"""From a chart's definition to inline SVG that takes its colours from the page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import vl_convert
from markupsafe import escape

from nicbench.report.drawing.telling import telling

# Stand-ins: colours that occur nowhere else, replaced by variables of style.css. The second value serves where a
# drawing is copied out of its page. Series: Okabe and Ito's palette for colour-blind readers, its yellow darkened.
INK = "#010203"
MUTED = "#040506"
GRID = "#070809"
SERIES = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05", "#0a0b06", "#0a0b07")
_VARIABLES = {
    INK: "var(--ink, #1a1f26)",
    MUTED: "var(--muted, #68717d)",
    GRID: "var(--grid, #e3e6ea)",
    **{stand_in: f"var(--series-{number}, #0072b2)" for number, stand_in in enumerate(SERIES, start=1)},
}


_FONT = "Helvetica, Arial, sans-serif"
_NOTHING = re.compile(
    r'<path class="background" aria-hidden="true" d="[^"]*"(?: pointer-events="none")?/>'
    r'|<path class="foreground" aria-hidden="true" d="[^"]*"(?: pointer-events="none")? display="none"/>'
    rf'| opacity="1"| pointer-events="none"| font-family="{_FONT}"'
)
_PLACES = re.compile(r"translate\((-?[0-9.]+),(-?[0-9.]+)\)")


def identifiers() -> Iterator[int]:
    """Numbers that keep the ids of several drawings in one page apart."""
    return itertools.count(1)


def svg(specification: dict[str, Any], number: int, label: str) -> str:
    """The drawing as inline SVG; ``number`` makes its ids unique in the page, ``label`` (escaped) is what it shows."""
    chart, told = telling(specification)
    drawing: str = vl_convert.vegalite_to_svg(chart, vl_version="6.4")
    for stand_in, variable in _VARIABLES.items():
        drawing = drawing.replace(stand_in, variable).replace(_as_rgb(stand_in), variable)
    drawing = _PLACES.sub(_rounded, _renamed(drawing, number))
    # Marks carry roles of their own for screen readers; until the page's script runs, the drawing is one image.
    drawing = re.sub(r' (aria-[a-z]+|role)="[^"]*"', "", told.said(_light(drawing)))
    series = f' data-series="{escape("|".join(told.series))}"' if len(told.series) > 1 else ""
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{label}"{series} font-family="{_FONT}" ', 1)


def _light(drawing: str) -> str:
    """Without what shows nothing: grounds that have no colour, and what is so by itself."""
    return _NOTHING.sub("", drawing)


def _renamed(drawing: str, number: int) -> str:
    """The library counts its ids over the whole process; here they depend on the page alone."""
    names = dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawing))
    ours = {name: f"d{number}-{place}" for place, name in enumerate(names, start=1)}
    drawing = re.sub(r'\bid="([^"]+)"', lambda found: f'id="{ours[found[1]]}"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{ours[found[1]]})", drawing)
    return re.sub(r'href="#([^"]+)"', lambda found: f'href="#{ours[found[1]]}"', drawing)


def _rounded(found: re.Match[str]) -> str:
    """To hundredths of a pixel: thousands of points are a file of half the size."""
    x, y = (f"{float(text):.2f}".rstrip("0").rstrip(".") for text in found.groups())
    return f"translate({x},{y})"


def _as_rgb(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"
