"""Reads a page into a document: what is a section, a table, a figure, a note, by its tags and a few classes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import get_args

from nicbench.report.document.blocks import (
    Block,
    Code,
    Definitions,
    Document,
    Figure,
    Folded,
    Heading,
    Inlines,
    Listing,
    Note,
    Panel,
    Paragraph,
    Role,
    Table,
    Text,
    plain,
)
from nicbench.report.document.inlines import LEFT_OUT, Inliner
from nicbench.report.document.palette import palette
from nicbench.report.document.tables import read_table
from nicbench.report.document.tree import SKIPPED, Element, Node, tree

MOST_ROWS = 400
"""A folded part of more rows would fill more than a dozen sheets: it stays on the page."""
_LONGEST_TITLE = 80
"""A drawing's words that are longer describe it, and name it no more."""
_HEADINGS = ("h2", "h3", "h4", "h5", "h6")
OPENING = "opening"
"""Class of a section that stands before the contents: question, answer, findings."""
_INLINE = frozenset(str.split("a b strong i em span small sup sub code br wbr"))
_ROLES = frozenset(role for role in get_args(Role) if role)


def read(page: str) -> Document:
    """The document of a page that html.py has rendered. ValueError where the page is not well-formed."""
    root = tree(page)
    html = root.every("html")[0]
    colours = palette("".join(style.text() for style in root.every("style")))
    body = html.elements("body")[0]
    titles = body.every("h1")
    metas = {meta.attributes.get("name"): meta.attributes.get("content", "") for meta in root.every("meta")}
    authors = [plain(Inliner(colours).inlines(each.children)) for each in body.every("p") if "author" in each.classes]
    reader = Reader(Inliner(colours), _repeated(body))
    before, after = _opened([part for each in body.children for part in _parts(each)])
    opening = len(blocks := list(reader.blocks(before)))
    blocks = list(_leveled(_joined([*blocks, *reader.blocks(after)])))
    front = blocks[: opening or len(list(itertools.takewhile(lambda each: isinstance(each, Paragraph | Note), blocks)))]
    return Document(
        title=plain(Inliner(colours).inlines(titles[0].children)) if titles else "",
        language=html.attributes.get("lang", "en"),
        generator=metas.get("generator", "").strip(),
        author=authors[0] if authors else metas.get("generator", "").strip(),
        front=tuple(front),
        blocks=tuple(blocks[len(front) :]),
        palette=colours,
    )


def _parts(node: Node) -> list[Node]:
    return node.children if isinstance(node, Element) and node.tag == "main" else [node]


def _opened(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """What comes before the contents: all up to the last part that opens the report."""
    last = max(
        (at for at, node in enumerate(nodes) if isinstance(node, Element) and OPENING in node.classes), default=-1
    )
    return nodes[: last + 1], nodes[last + 1 :]


def _repeated(body: Element) -> frozenset[str]:
    """Headings that several parts of the page have: such a one alone names no table."""
    texts = (" ".join(each.text().split()) for tag in _HEADINGS for each in body.every(tag))
    return frozenset(text for text, times in Counter(texts).items() if times > 1)


class Reader:
    """Goes over a page once; remembers the headings it is under, after which tables are named."""

    def __init__(self, inliner: Inliner, repeated: frozenset[str] = frozenset()) -> None:
        self._inliner = inliner
        self._repeated = repeated
        self._headings: list[tuple[int, str]] = []
        self._folded_in = ""
        self._titles: Counter[tuple[str, str]] = Counter()

    def blocks(self, nodes: Iterable[Node]) -> Iterator[Block]:
        """The blocks among ``nodes``; text that stands free among them is a paragraph."""
        loose: list[Node] = []
        for node in nodes:
            if isinstance(node, str) or node.tag in _INLINE:
                loose.append(node)
                continue
            yield from self._paragraph(loose)
            loose = []
            if node.tag not in SKIPPED and not node.classes & LEFT_OUT:
                yield from self._block(node)
        yield from self._paragraph(loose)

    def _paragraph(self, nodes: Iterable[Node], role: Role = "") -> Iterator[Paragraph]:
        inlines = self._inliner.inlines(nodes)
        if inlines:
            yield Paragraph(inlines, role)

    def _block(self, node: Element) -> Iterator[Block]:
        match node.tag:
            case "h1":
                return  # the title of the document
            case tag if tag in _HEADINGS:
                inlines = self._inliner.inlines(node.children)
                level = int(node.tag[1]) - 1
                above = [(over, text) for over, text in self._headings if over < level]
                self._headings = [*above, (level, plain(inlines))]
                self._folded_in = ""
                yield Heading(level, inlines, node.attributes.get("id"))
            case "p":
                yield from self._paragraph(node.children, _role(node))
            case "table":
                if node.every("tr"):
                    yield self._table(node)
            case "figure":
                yield from self._figures([node])
            case "pre":
                yield Code(node.text().strip("\n"))
            case "ul" | "ol":
                items = (self._inliner.inlines(item.children) for item in node.elements("li"))
                yield Listing(tuple(item for item in items if item), node.tag == "ol")
            case "dl":
                words = [self._inliner.inlines(each.children) for each in node.elements("dt")]
                yield Definitions(tuple(zip(words, map(self._meaning, node.elements("dd")), strict=True)))
            case "details":
                yield self._folded(node)
            case "footer":
                yield from self._paragraph(node.children, "footer")
            case _ if "plainly" in node.classes:
                yield Note(tuple(self.blocks(node.children)))
            case _ if "verdict" in node.classes:
                yield from self._verdict(node)
            case _ if "multiples" in node.classes:
                yield from self._figures(node.elements("figure"))
            case _:
                yield from self.blocks(node.children)

    @property
    def _under(self) -> str:
        """What names a table here: the heading, of a common one also the one above it, and what it is folded into."""
        texts = [text for _, text in self._headings]
        named = texts[-1] if texts else ""
        if named in self._repeated and len(texts) > 1:
            named = f"{named}, {texts[-2]}"
        if named.lower() in self._folded_in.lower():
            return self._folded_in
        return ": ".join(part for part in (named, self._folded_in) if part)

    def _meaning(self, node: Element) -> Inlines:
        return self._inliner.inlines(node.children)

    def _verdict(self, node: Element) -> Iterator[Paragraph]:
        """Badges, and the sentence beside them."""
        parts: list[Node] = []
        for child in node.children:
            parts += [*child.children, " "] if isinstance(child, Element) else [child]
        yield from self._paragraph(parts, "verdict")

    def _table(self, node: Element) -> Table:
        return read_table(node, self._named("table", self._under or "Table"), self._inliner)

    def _figures(self, nodes: list[Element]) -> Iterator[Figure]:
        """One figure; of several in a row, one of as many panels."""
        panels = [panel for node in nodes for panel in self._panels(node)]
        if not panels:
            return
        if len(nodes) > 1:
            yield Figure(self._named("figure", self._under), tuple(panels))
        else:
            caption = panels[-1].caption
            alone = tuple(Panel(panel.drawing, panel.head) for panel in panels)
            yield Figure(self._named("figure", self._title(panels[0].drawing.label, plain(caption))), alone, caption)

    def _title(self, label: str, caption: str) -> str:
        """What a drawing is called: its label, or where that describes it at length, how its caption begins."""
        sentence = caption.partition(". ")[0].rstrip(".")
        short = (text for text in (label, sentence, self._under) if 0 < len(text) <= _LONGEST_TITLE)
        return next(short, "Drawing")

    def _panels(self, node: Element) -> Iterator[Panel]:
        drawings = [self._inliner.drawing(found) for found in _shown(node)]
        above = [child for child in node.elements("p") if not child.every("svg")]
        head = self._inliner.inlines([part for paragraph in above for part in paragraph.children])
        below = node.elements("figcaption")
        caption = self._inliner.inlines(below[0].children) if below else ()
        for number, drawing in enumerate(drawings):
            is_last = number == len(drawings) - 1
            yield Panel(drawing, head if number == 0 else (), caption if is_last else ())

    def _folded(self, node: Element) -> Folded:
        summary = node.elements("summary")
        inlines = self._inliner.inlines(summary[0].children) if summary else (Text("More"),)
        rows = len(node.every("tr"))
        left_out = "many" in node.classes or rows > MOST_ROWS
        outer = self._folded_in, self._headings
        self._folded_in = plain(inlines)
        rest = [child for child in node.children if not (isinstance(child, Element) and child.tag == "summary")]
        blocks = () if left_out else tuple(_joined(self.blocks(rest)))
        self._folded_in, self._headings = outer
        return Folded(inlines, blocks, rows, left_out)

    def _named(self, kind: str, title: str) -> str:
        """The title, and a number behind it where it was there before: a list of tables names each once."""
        self._titles[kind, title] += 1
        times = self._titles[kind, title]
        return title if times == 1 else f"{title} ({times})"


def _role(node: Element) -> Role:
    return next((role for role in get_args(Role) if role in node.classes and role in _ROLES), "")


def _shown(node: Element) -> Iterator[Element]:
    """The drawings of a figure that are for wide screens and paper."""
    for child in node.children:
        if isinstance(child, Element) and not child.classes & LEFT_OUT and child.tag not in SKIPPED:
            if child.tag == "svg":
                yield child
            elif child.tag not in ("figcaption", "details", "table"):
                yield from _shown(child)


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """Tables of facts that follow one another under a heading are one, as they look on the page."""
    last: Block | None = None
    for block in blocks:
        if (
            isinstance(last, Table)
            and isinstance(block, Table)
            and not (last.head or block.head or block.caption)
            and last.columns == block.columns
            and block.title.startswith(f"{last.title} (")
        ):
            last = replace(last, body=(*last.body, *block.body))
            continue
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last


def _leveled(blocks: Iterable[Block]) -> Iterator[Block]:
    """No heading is more than one level below the one before it, as readers of a tagged file expect."""
    last = 0
    for block in blocks:
        if isinstance(block, Heading):
            last = min(block.level, last + 1)
            yield Heading(last, block.inlines, block.id)
        else:
            yield block
