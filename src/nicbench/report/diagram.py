"""The diagram of a testbed: places boxes, lines and texts so that no text overlaps another or leaves its box, and
writes it as inline SVG that uses the colours of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from markupsafe import escape

from nicbench.report.document.blocks import Figure, Panel
from nicbench.report.document.finishing import drawing
from nicbench.report.document.making import inlines
from nicbench.report.glyphs import width, wrap
from nicbench.report.wiring import Direction, LinkPart, MachinePart, PortPart, Wiring

TITLE, SMALL = 13.0, 11.0
"""Font sizes of titles and of other text."""
_LINE = 1.32
_PAD, _GAP = 8.0, 12.0
_MOST_LINES = 3
_LEAST_LINK = 56.0


class Text(NamedTuple):
    """A line of text: left end or middle at ``x``, base line at ``y``; ``whole`` is the full text if shortened."""

    x: float
    y: float
    words: str
    size: float
    bold: bool = False
    muted: bool = False
    centred: bool = False
    whole: str | None = None


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x coordinate of the right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y coordinate of the bottom edge."""
        return self.y + self.height


class Cable(NamedTuple):
    """A horizontal link from ``x1`` to ``x2`` at height ``y``."""

    x1: float
    x2: float
    y: float
    direction: Direction


@dataclass(slots=True)
class Scene:
    """A placed diagram; ``around`` is the frame around all of it."""

    width: float
    height: float = 0.0
    around: Box | None = None
    machines: list[Box] = field(default_factory=list)
    ports: list[Box] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


class _Block(NamedTuple):
    """Lines of text one below the other, each with its size, look, and full text where it was shortened."""

    lines: tuple[tuple[str, float, bool, bool, str | None], ...]

    @property
    def height(self) -> float:
        return sum(size * _LINE for _, size, *_ in self.lines)

    def write(self, scene: Scene, x: float, y: float) -> None:
        for words, size, bold, muted, whole in self.lines:
            y += size * _LINE
            scene.texts.append(Text(x, y - size * 0.3, words, size, bold=bold, muted=muted, whole=whole))


class _Columns(NamedTuple):
    """The left edges of both columns of machines, the width of a machine, and the width of a port inside it."""

    left: float
    right: float
    machine: float

    @property
    def port(self) -> float:
        return self.machine - 2 * _PAD


def place_diagram(wiring: Wiring, wide: float = 760.0) -> Scene:
    """Places a diagram of the given width; its height follows from the content."""
    scene = Scene(wide)
    edge = _PAD if wiring.around else 1.0
    columns = _columns(wiring.links, wide, edge)
    y = edge
    if wiring.around:
        title = _block(wiring.around, (), wide - 4 * _PAD)
        title.write(scene, 2 * _PAD, y)
        y += title.height + _PAD
    y = _rows(scene, wiring.links, columns, y)
    scene.height = y + edge + 1.0
    if wiring.around:
        scene.around = Box(1.0, 1.0, wide - 2.0, scene.height - 2.0)
    return scene


def _columns(links: Sequence[LinkPart], wide: float, edge: float) -> _Columns:
    """Computes the columns; the middle fits the longest label but takes at most a third of the width."""
    label = max((width(link.label, SMALL) for link in links), default=0.0) + 2 * _GAP
    inner = wide - 2 * edge - 2.0
    link = min(max(_LEAST_LINK, label), inner / 3)
    machine = (inner - link) / 2
    return _Columns(edge + 1.0, edge + 1.0 + machine + link, machine)


def _rows(scene: Scene, links: Sequence[LinkPart], columns: _Columns, y: float) -> float:
    """Places the links one below the other; returns the y coordinate below the last box."""
    rights = _spans([(link.right_machine, link.right) for link in links])
    above = []
    tops = []
    bottoms = []
    for number, link in enumerate(links):
        before = links[number - 1] if number else None
        new = [
            before is None or getattr(before, side) != getattr(link, side) for side in ("left_machine", "right_machine")
        ]
        if number:
            y += _PAD + (_GAP if any(new) else 0.0)
        heads = [
            _head(machine, columns).height + _PAD
            for machine, is_new in zip((link.left_machine, link.right_machine), new, strict=True)
            if is_new
        ]
        above.append(max(heads, default=0.0))
        y += above[-1]
        tops.append(y)
        height = _port_height(link.left, columns)
        label = _block_of_label(link.label, columns.right - columns.left - columns.machine - 2 * _PAD)
        height = max(height, label.height * 2 + _PAD)
        first, last = rights[number]
        if number == last:  # the port on the right reaches over all its links
            height = max(height, _port_height(link.right, columns) - (y - tops[first]))
        y += height
        bottoms.append(y)
    _boxes(scene, links, columns, above, tops, bottoms)
    return y + _PAD


def _spans(keys: Sequence[object]) -> list[tuple[int, int]]:
    """Returns, for each item, the first and last index of the run of equal keys that it belongs to."""
    spans = []
    for _, members in groupby(range(len(keys)), key=lambda at: keys[at]):
        run = list(members)
        spans += [(run[0], run[-1])] * len(run)
    return spans


def _boxes(
    scene: Scene,
    links: Sequence[LinkPart],
    columns: _Columns,
    above: Sequence[float],
    tops: Sequence[float],
    bottoms: Sequence[float],
) -> None:
    """Adds boxes of machines around their ports, boxes of ports around their links, and the links between."""
    lefts = [(link.left_machine, link.left) for link in links]
    rights = [(link.right_machine, link.right) for link in links]
    for x, keys in ((columns.left, lefts), (columns.right, rights)):
        for first, last in dict.fromkeys(_spans([machine for machine, _ in keys])):
            head = _head(keys[first][0], columns)
            top = tops[first] - above[first]
            scene.machines.append(Box(x, top, columns.machine, bottoms[last] + _PAD - top))
            head.write(scene, x + _PAD, top + _PAD / 2)
        for first, last in dict.fromkeys(_spans(keys)):
            box = Box(x + _PAD, tops[first], columns.port, bottoms[last] - tops[first])
            scene.ports.append(box)
            block = _of_port(keys[first][1], columns)
            block.write(scene, box.x + _PAD, box.y + (box.height - block.height) / 2)
    for number, link in enumerate(links):
        y = (tops[number] + bottoms[number]) / 2
        start, end = columns.left + columns.machine - _PAD, columns.right + _PAD
        scene.cables.append(Cable(start, end, y, link.direction))
        label = _block_of_label(link.label, columns.right - columns.left - columns.machine - 2 * _PAD)
        at = y - label.height - 2.0
        for words, size, _, _, whole in label.lines:
            at += size * _LINE
            scene.texts.append(
                Text((start + end) / 2, at - size * 0.3, words, size, muted=True, centred=True, whole=whole)
            )


def _head(machine: MachinePart, columns: _Columns) -> _Block:
    return _block(machine.title, machine.lines, columns.machine - 2 * _PAD)


def _of_port(port: PortPart, columns: _Columns) -> _Block:
    return _block(port.name, port.lines, columns.port - 2 * _PAD)


def _port_height(port: PortPart, columns: _Columns) -> float:
    return _of_port(port, columns).height + _PAD


def _block(title: str, lines: Sequence[str], room: float) -> _Block:
    return _Block(
        (
            *_lines(title, room, TITLE, bold=True),
            *(each for text in lines for each in _lines(text, room, SMALL, muted=True)),
        )
    )


def _block_of_label(text: str, room: float) -> _Block:
    return _Block(tuple(_lines(text, room, SMALL, muted=True))) if text else _Block(())


def _lines(
    text: str, room: float, size: float, *, bold: bool = False, muted: bool = False
) -> list[tuple[str, float, bool, bool, str | None]]:
    made = wrap(text, room, size, most=_MOST_LINES, bold=bold)
    whole = text if any("…" in line for line in made) else None
    return [(line, size, bold, muted, whole) for line in made]


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
        below = inlines(f"The testbed{whose}. {wiring.words}")
        yield Figure((Panel(wide, narrow=narrow),), below, "testbed-picture")


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
