"""report.md: a document in GitHub Flavored Markdown (GFM), with its figures as files beside it. No text of a run can
become a tag, a link, a heading or a column. Headings of a table that span columns are flattened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from nicbench.report.document.blocks import (
    Block,
    Cell,
    Code,
    Definitions,
    Document,
    Drawing,
    Figure,
    FoldedBlocks,
    Heading,
    Inline,
    Inlines,
    Listing,
    Note,
    Paragraph,
    Row,
    Table,
    plain,
)
from nicbench.report.document.finishing import Pages, left_out_words, on_paper, pages

_ABROAD = ("https://", "http://", "mailto:")
_IN_CONTENTS = 2
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#$])")
_LEADING = re.compile(r"^(\s*)([-+=]|\d+[.)](?=\s|$)|:)", re.MULTILINE)
_BARE = re.compile(r"\b(https?|ftp)(:)(?=//)|\b(www)(\.)|(?<=\w)(@)(?=\w)")
_OF_TAGS = re.compile(r"[&<>|\\`*_\[\]~#$]")
_BACKTICKS = re.compile(r"`+")
_DROPPED = re.compile(r"[^\w\- ]")


class MarkdownText(NamedTuple):
    """The text, and the pictures that it refers to, by their file names."""

    text: str
    pictures: dict[str, str]


def write_markdown(document: Document, pictures_folder: str) -> MarkdownText:
    """Returns the document as Markdown; ``pictures_folder`` is the name of the folder for the pictures
    next to the file.
    """
    writer = _Writer(document, pictures_folder)
    front = "\n\n".join(writer.blocks(writer.pages.front))
    body = "\n\n".join(writer.blocks(writer.pages.blocks))
    parts = [f"# {escape_text(document.title)}", front, writer.contents(), body]
    return MarkdownText("\n\n".join(part for part in parts if part) + "\n", writer.pictures)


class _Writer:
    def __init__(self, document: Document, folder: str) -> None:
        self.pictures: dict[str, str] = {}
        self._folder = folder
        self._anchors = Anchors()
        self._anchors.of(document.title)
        self._headings: list[tuple[int, str, str]] = []
        self.pages = pages(document)
        self._ids = _anchors_of_ids(document.title, self.pages)
        self._palette = document.palette
        self._counts = {"Table": 0, "Figure": 0}

    def contents(self) -> str:
        """Returns the table of contents, with a link to each section; it is known once all blocks were written."""
        listed = [(level, text, anchor) for level, text, anchor in self._headings if level <= _IN_CONTENTS]
        if len(listed) < 2:
            return ""
        lines = [f"{'  ' * (level - 1)}- [{text}](#{quote(anchor)})" for level, text, anchor in listed]
        return "**Contents**\n\n" + "\n".join(lines)

    def blocks(self, blocks: Iterable[Block]) -> list[str]:
        """Returns the text of each block."""
        return [text for block in blocks for text in self._block(block) if text]

    def _block(self, block: Block) -> Iterator[str]:
        match block:
            case Heading():
                text = self._line(block.inlines)
                self._headings.append((block.level, text, self._anchors.of(plain(block.inlines))))
                yield f"{'#' * (block.level + 1)} {text}"
            case Paragraph():
                text = self._line(block.inlines)
                yield f"**{_drop_bold(text)}**" if block.role == "answer" else text
            case Table():
                yield f"**{self._numbered('Table', block.title)}**"
                yield self._table(block)
                yield self._line(block.caption)
            case Figure():
                yield f"**{self._numbered('Figure', block.title)}**"
                yield from self._figure(block)
            case Code():
                yield fence_lines(block.text)
            case Listing():
                marks = (f"{number}." if block.ordered else "-" for number in range(1, len(block.items) + 1))
                yield "\n".join(f"{mark} {self._line(item)}" for mark, item in zip(marks, block.items, strict=True))
            case Definitions():
                yield "\n".join(f"- **{self._line(word)}**: {self._line(told)}" for word, told in block.pairs)
            case Note():
                yield "\n>\n".join(
                    "\n".join(f"> {line}" for line in text.split("\n")) for text in self.blocks(block.blocks)
                )
            case FoldedBlocks():
                yield from self._folded(block)

    def _folded(self, block: FoldedBlocks) -> Iterator[str]:
        """Yields a folded part, which GitHub can fold, too; one that is too long for a text file stays on the HTML
        page.
        """
        summary = self._line(block.summary)
        if block.left_out:
            yield self._line((left_out_words(block),))
        else:
            yield f"<details><summary>{_to_tags(summary)}</summary>"
            yield from self.blocks(block.blocks)
            yield "</details>"

    def _numbered(self, kind: str, title: str) -> str:
        self._counts[kind] += 1
        return f"{kind} {self._counts[kind]}. {escape_text(title)}"

    def _figure(self, figure: Figure) -> Iterator[str]:
        number = self._counts["Figure"]
        for place, panel in enumerate(figure.panels, start=1):
            name = f"figure-{number:02}{f'-{place:02}' if len(figure.panels) > 1 else ''}.svg"
            yield from filter(None, [self._line(panel.head)])
            yield self._picture(name, panel.drawing, figure.title)
            yield from filter(None, [self._line(panel.caption)])
        yield self._line(figure.caption)

    def _picture(self, name: str, drawing: Drawing, title: str) -> str:
        self.pictures[name] = _on_white(on_paper(drawing.svg, self._palette))
        return f"![{escape_text(drawing.label or title)}]({quote(self._folder)}/{name})"

    def _table(self, table: Table) -> str:
        """Returns a table with one line of headings, as GFM has them; a heading that spans columns precedes each
        heading below it.
        """
        heads = self._heads(table)
        numeric = [not any(cell.words for cell in column) for column in _columns(table)]
        lines = ["| " + " | ".join(heads) + " |"]
        lines.append("| " + " | ".join("---:" if number else "---" for number in numeric) + " |")
        for row in table.body:
            lines.append("| " + " | ".join(self._cells(row, table.columns)) + " |")
        return "\n".join(lines)

    def _heads(self, table: Table) -> list[str]:
        heads: list[list[str]] = [[] for _ in range(table.columns)]
        for row in table.head:
            at = 0
            for cell in row.cells:
                text = self._line(cell.inlines).replace("<br>", " ")
                for column in range(at, min(at + cell.columns, table.columns)):
                    if text:
                        heads[column].append(text)
                at += cell.columns
        return [": ".join(parts) or " " for parts in heads]

    def _cells(self, row: Row, columns: int) -> list[str]:
        cells = []
        for cell in row.cells:
            text = self._line(cell.inlines)
            if row.look == "about" and text:
                text = f"**{_drop_bold(text)}**"
            cells += ["&nbsp;" * 4 * cell.indent + text or " "] + [" "] * (cell.columns - 1)
        return (cells + [" "] * columns)[:columns]

    def _line(self, inlines: Inlines) -> str:
        """Returns a paragraph or a cell on one line."""
        return "".join(map(self._run, inlines)).replace("\n", "<br>").strip()

    def _run(self, run: Inline) -> str:
        if isinstance(run, Drawing):
            return ""  # a small drawing within a line; its numbers stand beside it
        text = run.text
        inner = text.strip(" \n")
        if not inner:
            return escape_text(text) if "\n" in text else text
        made = code(inner) if run.code else escape_text(inner)
        if run.raised:
            made = f"<sup>{made}</sup>"
        if (run.strong or run.badge) and not run.code:
            made = f"**{made}**"
        if run.tone == "missed":
            made = f"*{made}*"
        if target := self._target(run.link):
            made = f"[{made}]({target})"
        before, after = text[: len(text) - len(text.lstrip(" \n"))], text[len(text.rstrip(" \n")) :]
        return before.replace("\n", "<br>") + made + after.replace("\n", "<br>")

    def _target(self, link: str | None) -> str | None:
        if link is None:
            return None
        if link.startswith("#"):
            anchor = self._ids.get(link[1:])
            return f"#{quote(anchor)}" if anchor else None
        if link.startswith(_ABROAD):
            return quote(link, safe=":/?&=%#+@,;~-._")
        return None if re.match(r"[a-zA-Z][\w+.-]*:|/", link) else quote(link, safe="/%")


def _anchors_of_ids(title: str, shown: Pages) -> dict[str, str]:
    anchors = Anchors()
    anchors.of(title)
    return dict(_ids([*shown.front, *shown.blocks], anchors))


def _ids(blocks: Iterable[Block], anchors: Anchors) -> Iterator[tuple[str, str]]:
    for block in blocks:
        if isinstance(block, Heading):
            anchor = anchors.of(plain(block.inlines))
            if block.id:
                yield block.id, anchor
        elif isinstance(block, FoldedBlocks | Note) and not (isinstance(block, FoldedBlocks) and block.left_out):
            yield from _ids(block.blocks, anchors)


def _columns(table: Table) -> list[list[Cell]]:
    columns: list[list[Cell]] = [[] for _ in range(table.columns)]
    for row in table.body:
        at = 0
        for cell in row.cells:
            if cell.columns == 1 and at < table.columns and row.look != "about":
                columns[at].append(cell)
            at += cell.columns
    return columns


def _drop_bold(text: str) -> str:
    return text.replace("**", "")


def _to_tags(text: str) -> str:
    """Returns a text for use within an HTML tag, where GitHub reads no Markdown: escapes become entities, and bold
    becomes a tag.
    """
    text = re.sub(r"\*\*(.*?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\\([\\`*_\[\]<>|~#$\-+=:.)])", lambda found: f"&#{ord(found[1])};", text)


def _on_white(svg: str) -> str:
    """Returns the drawing with a white background, because the colours of paper would be unreadable on GitHub's dark
    page.
    """
    found = re.match(r"<svg\b[^>]*>", svg)
    assert found is not None  # noqa: S101 - a drawing begins with its tag
    return f'{found[0]}<rect width="100%" height="100%" fill="#ffffff"/>{svg[found.end() :]}\n'


class Anchors:
    """The anchors that GitHub gives headings: one for each, in order, with a number where the same heading occurs
    again.
    """

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def of(self, heading: str) -> str:
        """Returns the anchor of the next heading: lower case, no punctuation, hyphens for spaces."""
        slug = _DROPPED.sub("", heading.strip().lower()).replace(" ", "-")
        times = self._given.get(slug, 0)
        self._given[slug] = times + 1
        return f"{slug}-{times}" if times else slug


def escape_text(text: str) -> str:
    """Returns the text escaped so that it reads unchanged, wherever it stands; a newline becomes a line break."""
    text = text.replace("\u200b", "").replace("&", "&amp;")
    text = _SPECIAL.sub(r"\\\1", text)
    text = _BARE.sub(_break_links, text)
    text = _LEADING.sub(_escape_leading, text)
    return "<br>".join(line.strip(" ") for line in text.split("\n"))


def _break_links(found: re.Match[str]) -> str:
    """Returns an address that GitHub does not turn into a link: an empty comment separates its parts."""
    scheme, colon, www, dot, at = found.groups()
    return f"{scheme or www or ''}<!-- -->{colon or dot or at}"


def _escape_leading(found: re.Match[str]) -> str:
    space, mark = found.groups()
    return f"{space}{mark[:-1]}\\{mark[-1]}"


def code(text: str) -> str:
    """Returns code within a line. A pipe would end a cell even within code, so it is written as an entity in a tag."""
    text = " ".join(text.replace("\u200b", "").split())
    if not text:
        return ""
    if "|" in text or "\\" in text:
        plain = _OF_TAGS.sub(lambda found: f"&#{ord(found[0])};", text)
        return f"<code>{plain}</code>"
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fence_lines(text: str) -> str:
    """Returns the lines unchanged, within a fence longer than any in them."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return f"{fence}text\n{text}\n{fence}"
