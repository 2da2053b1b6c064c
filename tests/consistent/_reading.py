"""Reads a report as its reader does: headings, sentences, tables and numbers, from Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from html.parser import HTMLParser

_GAPS = str.maketrans(
    {"\u202f": "", "\u00a0": " ", "\u2009": "", "\u2212": "-", "\u00ad": "", "\u200b": "", "\u2011": "-"}
)
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*\d)")


@dataclass
class Table:
    """``heads`` has the groups above a column in it: "NDR: Frame rate [kpps]"."""

    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def column(self, head: str) -> list[str]:
        """The cells below the heading that begins so; none where there is no such."""
        at = next((at for at, text in enumerate(self.heads) if text.startswith(head)), None)
        return [] if at is None else [row[at] for row in self.rows]


@dataclass
class Part:
    """What stands below one heading, in order."""

    level: int
    title: str
    above: tuple[str, ...]
    """The headings that it is under, the highest first."""
    content: list[str | Table] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        return [one for one in self.content if isinstance(one, Table)]

    @property
    def texts(self) -> list[str]:
        return [one for one in self.content if isinstance(one, str)]


def plain(text: str) -> str:
    """Without what only sets it: gaps in numbers, no-break spaces, runs of blanks."""
    return re.sub(r"\s+", " ", text.translate(_GAPS)).strip()


def _cell(text: str) -> str:
    """A cell of Markdown as text; what stands on another line of it is after a bar."""
    text = text.replace("&nbsp;", " ").replace("<br>", " | ")
    text = re.sub(r"\\([\\`*_{}\[\]()#+\-.!|<>~])", lambda found: f"\0{ord(found[1])}\0", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.replace("**", "").replace("`", ""))
    text = re.sub(r"</?[a-z][^>]*>", "", text)
    return plain(re.sub("\0(\\d+)\0", lambda found: chr(int(found[1])), text))


def _cells(line: str) -> list[str]:
    return [_cell(cell) for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def read_markdown(text: str) -> list[Part]:
    """The parts of a report; what is folded is part of what it stands in, code is left out."""
    parts = [Part(0, "", ())]
    table = None
    in_code = False
    for line in text.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        if in_code or line.startswith(("```", "![")):
            continue
        found = re.match(r"(#+) (.*)", line)
        if found:
            level = len(found[1])
            above = [(part.level, part.title) for part in parts]
            chain = []
            for one in above:
                chain = [*[each for each in chain if each[0] < one[0]], one]
            names = tuple(title for each, title in chain if 0 < each < level)
            parts.append(Part(level, _cell(found[2]), names))
            table = None
        elif line.startswith("|"):
            cells = _cells(line)
            if table is None:
                table = Table(cells)
                parts[-1].content.append(table)
            elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                table.rows.append(cells)
        else:
            table = None
            if line.strip():
                parts[-1].content.append(_cell(re.sub(r"^(\s*[-*>] |\d+\. )", "", line)))
    return parts


class Page(HTMLParser):
    """The tables of a page and its visible text, without what only a machine reads."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = 0
        self.tables: list[list[list[str]]] = []
        self.texts: list[str] = []
        self.headings: list[str] = []
        self._cell: list[str] | None = None
        self._heading: list[str] | None = None
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "svg", "pre"):
            self.hidden += 1
        elif self.hidden:
            return
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []
        elif tag == "br" and self._cell is not None:
            self._cell.append(" | ")
        elif re.fullmatch(r"h[1-6]", tag):
            self._heading = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "svg", "pre"):
            self.hidden -= 1
        elif self.hidden:
            return
        elif tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append(plain("".join(self._cell)))
            self._cell = None
        elif re.fullmatch(r"h[1-6]", tag) and self._heading is not None:
            self.headings.append(plain("".join(self._heading)))
            self._heading = None

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if self._cell is not None:
            self._cell.append(data)
        if self._heading is not None:
            self._heading.append(data)
        self.texts.append(data)


def read_page(text: str) -> Page:
    """The page as it is seen, with everything unfolded."""
    page = Page()
    page.feed(text)
    return page


@dataclass(frozen=True)
class Printed:
    """A number as it was printed."""

    text: str
    before: str = ""
    """What stands before it."""

    @property
    def value(self) -> float:
        return float(self.text.replace(",", ""))

    @property
    def digits(self) -> int:
        """How many digits it has without leading zeros."""
        return len(Decimal(self.text.replace(",", "")).as_tuple().digits)

    def is_of(self, number: float, slack: float = 1e-9) -> bool:
        """Whether the number is printed so, at this or a finer rounding; a bound may only be loosened by it."""
        exponent = Decimal(self.text.replace(",", "")).as_tuple().exponent
        assert isinstance(exponent, int)
        last, more, little = 10.0**exponent, self.value - number, slack * abs(number)
        if self.before.endswith(("≥", "at least")):
            return -last < more <= little
        if self.before.endswith(("<", "below")):
            return -little <= more < last
        return abs(more) <= 0.5 * last * (1 + 1e-6) + little


def numbers_in(text: str) -> list[Printed]:
    return [Printed(found[0], text[: found.start()].rstrip()) for found in NUMBER.finditer(text)]


def visible_texts(parts: list[Part]) -> Iterator[tuple[str, str]]:
    """Every text, with the place where it stands."""
    for part in parts:
        yield part.title, part.title
        for one in part.content:
            if isinstance(one, str):
                yield part.title, one
            else:
                yield from ((part.title, head) for head in one.heads)
                yield from ((part.title, cell) for row in one.rows for cell in row)
