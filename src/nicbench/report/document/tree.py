"""A page of ours as a tree. Drawings are cut out before, whole: they are most of a page, and nobody looks into them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TypeAlias

KNOWN = frozenset(
    str.split(
        "html head meta title style body header main footer section article div p h1 h2 h3 h4 h5 h6 a b strong i em "
        "span small sup sub br wbr code pre ul ol li dl dt dd table caption colgroup col thead tbody tr th td figure "
        "figcaption details summary svg"
    )
)
"""Tags whose meaning is known."""
SKIPPED = frozenset(str.split("head style script template nav button input label select option output noscript dialog"))
"""What a screen needs, and paper does not."""
_VOID = frozenset(str.split("meta br wbr col input hr img link"))
_SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)


@dataclass(slots=True)
class Element:
    """A tag with what is in it."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    classes: frozenset[str] = frozenset()

    def every(self, tag: str) -> list[Element]:
        """All of this tag in it, at any depth, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag:
                    found.append(child)
                found.extend(child.every(tag))
        return found

    def elements(self, *tags: str) -> list[Element]:
        """Its own children of these tags."""
        return [child for child in self.children if isinstance(child, Element) and child.tag in tags]

    def text(self) -> str:
        """All characters in it."""
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


Node: TypeAlias = str | Element


def tree(page: str) -> Element:
    """The page from its root; each ``svg`` has the whole drawing as its only child. ValueError where a tag is open."""
    drawings: list[str] = []

    def cut(found: re.Match[str]) -> str:
        drawings.append(found[0])
        return f'<svg n="{len(drawings) - 1}"></svg>'

    builder = _Builder(drawings)
    builder.feed(_DRAWING.sub(cut, _SCRIPT.sub("", page)))
    builder.close()
    if len(builder.open) > 1:
        raise ValueError(f"<{builder.open[-1].tag}> is never closed")
    return builder.open[0]


class _Builder(HTMLParser):
    def __init__(self, drawings: list[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("")]
        self._drawings = drawings

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        element = Element(tag, attributes, classes=frozenset(attributes.get("class", "").split()))
        self.open[-1].children.append(element)
        if tag == "svg":
            element.children.append(self._drawings[int(element.attributes.pop("n"))])
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if self.open[-1].tag != tag:
            line, column = self.getpos()
            raise ValueError(f"line {line}, column {column}: </{tag}> closes <{self.open[-1].tag}>")
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)
