"""The parts of a report: headings, paragraphs, tables, figures and a few more, immutable and without markup. A section
returns its blocks; ``finishing`` makes a document of them, and html.py, pdf and markdown write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from nicbench.core.frozen import frozen

Tone = Literal["", "quiet", "good", "warn", "bad", "missed"]
"""The emphasis of a text; its meaning is always in the words, too."""
Role = Literal["", "eyebrow", "answer", "caption", "description", "author", "question", "verdict", "footer"]
MOST_ROWS = 400
"""The most rows of a folded part that is printed; a longer one would fill more than a dozen sheets and stays on the
page.
"""


@frozen
class Text:
    """Characters of one style. A newline breaks the line; U+200B marks a place where a long name may be broken."""

    text: str
    strong: bool = False
    code: bool = False
    raised: bool = False
    """Whether the text is set as a superscript, as an exponent is."""
    small: bool = False
    badge: bool = False
    tone: Tone = ""
    link: str | None = None
    """The target of a link: an address, ``#`` and the id of a heading, or a file of the run folder."""
    title: str = ""
    """Words that a page shows next to the pointer; they repeat what stands elsewhere."""


@frozen
class Drawing:
    """A picture as SVG whose colours are variables of the page, and a description of it in words."""

    svg: str
    label: str


Inline: TypeAlias = Text | Drawing
Inlines: TypeAlias = tuple[Inline, ...]


@frozen
class Heading:
    """A heading; ``level`` is 1 for a section."""

    level: int
    inlines: Inlines
    id: str | None = None


@frozen
class Paragraph:
    """A paragraph of text."""

    inlines: Inlines
    role: Role = ""


@frozen
class Verdict:
    """What the results are worth: badges, and the sentence beside them."""

    badges: tuple[Text, ...]
    inlines: Inlines


@frozen
class Cell:
    """A cell of a table. ``columns`` and ``rows`` are how many it spans. A cell of ``words`` is aligned left and may be
    broken; numbers are aligned right.
    """

    inlines: Inlines
    columns: int = 1
    rows: int = 1
    is_head: bool = False
    words: bool = False
    tone: Tone = ""
    indent: int = 0
    title: str = ""
    heat: int | None = None
    """How dark the cell is, in percent."""
    look: Literal["", "first", "short"] = ""
    """``first`` marks the first column of a group; words that are ``short`` stay on one line."""


RowLook = Literal["", "made", "about", "invalid", "server"]


@frozen
class Row:
    """A row of a table. ``look`` is ``made`` (computed from the rows above), ``about`` (a heading of the rows below),
    ``invalid``, or ``server``.
    """

    cells: tuple[Cell, ...]
    look: RowLook = ""
    begins_group: bool = False


TableLook = Literal["", "result", "heat", "sums", "broad", "measures", "facts", "system", "ledger", "testbed"]


@frozen
class Table:
    """A table. Every row fills all ``columns``, counting cells that reach down from rows above. ``finishing`` gives the
    title, to which the one given here is added.
    """

    columns: int
    head: tuple[Row, ...]
    body: tuple[Row, ...]
    caption: Inlines = ()
    look: TableLook = ""
    title: str = ""


@frozen
class Fact:
    """A label with its text, with lines of code, with further facts, or with a table of things side by side."""

    label: Inlines
    inlines: Inlines = ()
    code: tuple[str, ...] = ()
    children: tuple[Fact, ...] = ()
    beside: Table | None = None


@frozen
class Facts:
    """Labelled facts, some within others: nested tables on a page, indented rows on paper."""

    facts: tuple[Fact, ...]
    title: str = ""


@frozen
class Panel:
    """One drawing of a figure, with what stands above and below it. ``narrow`` is the same drawing for a
    phone.
    """

    drawing: Drawing
    head: Inlines = ()
    caption: Inlines = ()
    narrow: Drawing | None = None


FigureLook = Literal["", "multiples", "of-runs", "testbed-picture"]


@frozen
class Figure:
    """One drawing, several below one another, or (``multiples``) several small ones with one scale."""

    panels: tuple[Panel, ...]
    caption: Inlines = ()
    look: FigureLook = ""
    title: str = ""

    @property
    def is_of_multiples(self) -> bool:
        """Whether its panels are small and stand side by side."""
        return self.look in ("multiples", "of-runs")


@frozen
class Code:
    """Lines of code, shown unchanged."""

    text: str
    file: str = ""
    """The name of a file of these lines, which a page offers in their place."""


@frozen
class Listing:
    """A list of items, with bullets or numbered."""

    items: tuple[Inlines, ...]
    ordered: bool = False
    look: Literal["", "findings"] = ""


@frozen
class Definitions:
    """Words and what they mean; ``finishing`` leaves out words that the document does not use."""

    pairs: tuple[tuple[Inlines, Inlines], ...]


@frozen
class Note:
    """A note that must not be overlooked."""

    blocks: tuple[Block, ...]
    look: Literal["plainly", "forced"] = "plainly"


@dataclass(frozen=True)
class FoldedBlocks:
    """Blocks that a page shows only when the reader opens them. Where ``is_for_screens`` is set, paper has only a
    sentence about them.
    """

    summary: Inlines
    blocks: tuple[Block, ...]
    look: Literal["", "remarks", "runs", "round"] = ""
    is_open: bool = False
    is_for_screens: bool = False
    is_detail: bool = False
    """Whether a PDF has only a sentence about it, too: evidence behind the results, such as every trial."""
    id: str | None = None

    @cached_property
    def rows(self) -> int:
        """The number of rows of all tables in it, headings included."""
        return sum(map(_rows, self.blocks))

    @property
    def left_out(self) -> bool:
        """Whether paper has only a sentence about it."""
        return self.is_for_screens or self.rows > MOST_ROWS


GroupLook = Literal["", "opening", "overview", "folded", "sheet", "trials", "besides"]


@frozen
class Group:
    """Blocks that a style sheet treats together: a section of the page, or tables that stand side by side. An
    ``opening`` section stands before the table of contents on paper: the answer, the findings, the question. An
    ``overview`` is a chart next to a table. Of a ``folded`` group, which begins with a heading, a page shows the
    heading until the reader opens it; paper has all of it.
    """

    blocks: tuple[Block, ...]
    look: GroupLook = ""


Block: TypeAlias = (
    Heading | Paragraph | Verdict | Table | Facts | Figure | Code | Listing | Definitions | Note | FoldedBlocks | Group
)


@frozen
class Document:
    """A whole document. ``header`` stands above the table of contents, and ``footer`` below everything."""

    title: str
    language: str
    generator: str
    author: str
    """The author of the report whom its bench file names; else the program."""
    header: tuple[Block, ...]
    contents: tuple[Heading, ...]
    """The headings that the table of contents of a page lists."""
    blocks: tuple[Block, ...]
    footer: Inlines
    palette: Mapping[str, str]
    """The page's light colours by name: ``ink``, ``muted``, ``grid``, ..."""
    is_brief: bool = False
    """Whether paper has it in small type, without a table of contents."""
    logo: bytes = b""
    """The publisher's, as PNG, above the title; empty without one."""


def plain(inlines: Inlines) -> str:
    """Returns the words alone, on one line."""
    words = "".join(each.text if isinstance(each, Text) else each.label for each in inlines)
    return " ".join(words.replace("\u200b", "").split())


def first_sentence(inlines: Inlines) -> str:
    """Returns the first sentence of a text without its full stop."""
    return plain(inlines).partition(". ")[0].rstrip(".")


def _rows(block: Block | Fact) -> int:
    match block:
        case Table():
            return len(block.head) + len(block.body)
        case Facts():
            return sum(map(_rows, block.facts))
        case Fact():
            return 1 + sum(map(_rows, block.children)) + (_rows(block.beside) if block.beside else 0)
        case FoldedBlocks():
            return block.rows
        case Group() | Note():
            return sum(map(_rows, block.blocks))
        case _:
            return 0
