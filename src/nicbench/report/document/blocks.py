"""What a report is made of: headings, paragraphs, tables, figures and a few more, frozen, without markup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone = Literal["", "quiet", "good", "warn", "bad", "missed"]
"""How loud a text is; what it means is always in its words, too."""
Role = Literal["", "eyebrow", "answer", "caption", "description", "author", "verdict", "footer"]


@dataclass(frozen=True, slots=True)
class Text:
    """Characters of one look. A newline breaks the line, U+200B says where a long name may be broken."""

    text: str
    strong: bool = False
    code: bool = False
    raised: bool = False
    """As an exponent is."""
    small: bool = False
    badge: bool = False
    tone: Tone = ""
    link: str | None = None
    """An address, ``#`` and the id of a heading, or a file of the run folder."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture as SVG in the colours of paper, and what it shows in words."""

    svg: str
    label: str


Inline: TypeAlias = Text | Drawing
Inlines: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """``level`` is 1 for a section; none is skipped."""

    level: int
    inlines: Inlines
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that belongs together."""

    inlines: Inlines
    role: Role = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """``columns`` and ``rows`` are how many it spans; ``words`` stand left and may be broken, numbers stand right."""

    inlines: Inlines
    columns: int = 1
    rows: int = 1
    is_head: bool = False
    words: bool = False
    tone: Tone = ""
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """``look``: computed from the rows above (made), a heading of those below (about), or spoilt."""

    cells: tuple[Cell, ...]
    look: Literal["", "made", "about", "spoilt"] = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Every row fills all ``columns``, cells that reach down from above counted."""

    title: str
    columns: int
    head: tuple[Row, ...]
    body: tuple[Row, ...]
    caption: Inlines = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a figure, with what stands above and below it."""

    drawing: Drawing
    head: Inlines = ()
    caption: Inlines = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One drawing, or several small ones of one scale."""

    title: str
    panels: tuple[Panel, ...]
    caption: Inlines = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Lines as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Items with bullets, or numbered."""

    items: tuple[Inlines, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Definitions:
    """Words and what they mean."""

    pairs: tuple[tuple[Inlines, Inlines], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What must not be overlooked."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """What a page opens when it is asked. ``rows`` are those of its tables; ``left_out``: it stays on the page."""

    summary: Inlines
    blocks: tuple[Block, ...]
    rows: int = 0
    left_out: bool = False


Block: TypeAlias = Heading | Paragraph | Table | Figure | Code | Listing | Definitions | Note | Folded


@dataclass(frozen=True, slots=True)
class Document:
    """The whole; ``front`` is what stands before the contents."""

    title: str
    language: str
    generator: str
    author: str
    """Of the report, as its bench file names one; else the program."""
    front: tuple[Block, ...]
    blocks: tuple[Block, ...]
    palette: Mapping[str, str]
    """The page's light colours by name: ``ink``, ``muted``, ``grid``, ..."""


def plain(inlines: Inlines) -> str:
    """The words alone, on one line."""
    words = "".join(each.text if isinstance(each, Text) else each.label for each in inlines)
    return " ".join(words.replace("\u200b", "").split())
