"""Writes a placed diagram as inline SVG that uses the colours of the page: light screen, dark screen or paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import escape

from nicbench.report.document.blocks import Figure, Panel
from nicbench.report.document.inlines import inlines
from nicbench.report.document.paper import drawing
from nicbench.report.testbed.placing import Box, Cable, Scene, Text, place_diagram
from nicbench.report.testbed.wiring import Direction, Wiring

WIDE, NARROW = 760.0, 360.0
"""Width of a diagram on a page and on a phone."""
_INK, _MUTED = "var(--ink, #1a1f26)", "var(--muted, #68717d)"
_RULE, _RAISED, _PAPER = "var(--rule, #cfd5dc)", "var(--raised, #f5f7f9)", "var(--paper, #ffffff)"
_SERIES = "var(--series-1, #0072b2)"
_FONT = 'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"'
_HEAD_LENGTH, _HEAD_HALF = 8.0, 4.0


def pictures(of_configurations: Iterable[tuple[str, Wiring]]) -> Iterator[Figure]:
    """Yields a diagram of each different testbed in a wide and a narrow form, with the names of its configurations."""
    for name, wiring in of_configurations:
        wide, narrow = (drawing(svg(place_diagram(wiring, width), wiring.words)) for width in (WIDE, NARROW))
        whose = f" of {name}" if name else ""
        is_directed = any(link.direction is not Direction.NONE for link in wiring.links)
        arrows = " Arrows show the direction of the measured traffic." if is_directed else ""
        below = f"The testbed{whose}. {wiring.words}{arrows}"
        yield Figure((Panel(wide, narrow=narrow),), inlines(below), "testbed-picture")


def svg(scene: Scene, words: str) -> str:
    """Returns the diagram as SVG; ``words`` describe it for readers who cannot see it."""
    size = f'viewBox="0 0 {scene.width:g} {scene.height:.1f}" width="{scene.width:g}" height="{scene.height:.1f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(words)}" {size} {_FONT}>'
        f"{''.join(_shapes(scene))}</svg>"
    )


def _shapes(scene: Scene) -> Iterator[str]:
    if scene.around:
        yield _rectangle(scene.around, "none", _RULE, ' stroke-dasharray="5 4"')
    for machine in scene.machines:
        yield _rectangle(machine, _RAISED, _RULE)
    for cable in scene.cables:
        yield from _cable(cable)
    for port in scene.ports:
        yield _rectangle(port, _PAPER, _MUTED)
    for text in scene.texts:
        yield _text(text)


def _rectangle(box: Box, fill: str, stroke: str, more: str = "") -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<rect {place} rx="4" fill="{fill}" stroke="{stroke}"{more}/>'


def _cable(cable: Cable) -> Iterator[str]:
    yield (
        f'<line x1="{cable.x1:.1f}" x2="{cable.x2:.1f}" y1="{cable.y:.1f}" y2="{cable.y:.1f}" '
        f'stroke="{_SERIES}" stroke-width="1.6"/>'
    )
    if cable.direction in (Direction.RIGHT, Direction.BOTH):
        yield _arrow(cable.x2, cable.x2 - _HEAD_LENGTH, cable.y)
    if cable.direction in (Direction.LEFT, Direction.BOTH):
        yield _arrow(cable.x1, cable.x1 + _HEAD_LENGTH, cable.y)


def _arrow(tip: float, back: float, y: float) -> str:
    points = f"{tip:.1f},{y:.1f} {back:.1f},{y - _HEAD_HALF:.1f} {back:.1f},{y + _HEAD_HALF:.1f}"
    return f'<polygon points="{points}" fill="{_SERIES}"/>'


def _text(text: Text) -> str:
    anchor = ' text-anchor="middle"' if text.centred else ""
    weight = ' font-weight="600"' if text.bold else ""
    title = f"<title>{escape(text.whole)}</title>" if text.whole else ""
    return (
        f'<text x="{text.x:.1f}" y="{text.y:.1f}" font-size="{text.size:g}" fill="{_MUTED if text.muted else _INK}"'
        f"{anchor}{weight}>{title}{escape(text.words)}</text>"
    )
