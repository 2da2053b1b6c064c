"""Makes a document of the blocks of its sections (names tables, gives headings ids, reduces the glossary, folds
sections), and the form that paper and text files have: without the parts for screens alone, in the colours of a light
page.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html import unescape
from typing import Final, NamedTuple

from nicbench.core.redaction import make_visible
from nicbench.report.document.blocks import (
    Block,
    Cell,
    Code,
    Definitions,
    Document,
    Drawing,
    Fact,
    Facts,
    Figure,
    FoldedBlocks,
    Group,
    Heading,
    Inlines,
    Listing,
    Note,
    Panel,
    Paragraph,
    Row,
    Table,
    Text,
    Verdict,
    first_sentence,
    plain,
)
from nicbench.report.document.making import facts_table, head, inlines, row


def fold(blocks: Iterable[Block], level: int = 2) -> Iterator[Block]:
    """Yields the blocks with each heading of ``level`` and all that follows it as one folded group.

    What stands before the first heading stays unchanged, and so does what is folded by itself and holds such headings.
    """
    part: list[Block] = []
    for block in blocks:
        begins = _is_heading(block, level)
        apart = not begins and _holds_sections(block, level)
        if (begins or apart) and part:
            yield Group(tuple(part), "folded")
            part = []
        if apart:
            is_plain = isinstance(block, Group) and block.look == "" and _is_heading(block.blocks[0], level)
            yield replace(block, look="folded") if isinstance(block, Group) and is_plain else block
        elif begins or part:
            part.append(block)
        else:
            yield block
    if part:
        yield Group(tuple(part), "folded")


def _is_heading(block: Block, level: int) -> bool:
    return isinstance(block, Heading) and block.level == level


def _holds_sections(block: Block, level: int) -> bool:
    return isinstance(block, Group | FoldedBlocks) and any(_is_heading(each, level) for each in block.blocks)


FONT = "Source Sans Pro"
_ROOT = re.compile(r":root\s*\{([^}]*)\}")
_VARIABLE = re.compile(r"--([\w-]+):\s*(#[0-9a-fA-F]{3,8})\s*[;}]")
_USED = re.compile(r"var\(\s*--([\w-]+)\s*(?:,\s*([^()]*))?\)")
_FAMILY = re.compile(r'font-family="[^"]*"')
_FOR_SCRIPTS = re.compile(r' (?:data-[a-z-]+|tabindex)="[^"]*"')
_LONGEST_LABEL = 1000
_TEXT = re.compile(r"(<t(?:ext|span|itle)\b[^>]*>(?:&\w+;|&#\w+;|[^<&]){300})[^<]+")
"""The text of a drawing that is longer than 300 characters, which is shortened."""
_LABEL = re.compile(r'aria-label="([^"]*)"')
_SEVERAL = re.compile(r"(?!1\b)\d+ ")
"""The beginning of a summary that counts more than one."""
_SVG_TAG = re.compile(r"<svg\b[^>]*>")


class Pages(NamedTuple):
    """A document for pages. ``front`` stands before the table of contents; the contents of groups and verdicts stand
    among the other blocks.
    """

    front: tuple[Block, ...]
    blocks: tuple[Block, ...]


def pages(document: Document) -> Pages:
    """Returns the document for pages. No heading is more than one level below the one before it, as readers of tagged
    PDF files expect.
    """
    last = max((at for at, block in enumerate(document.blocks) if _opens(block)), default=-1)
    opening = tuple(_flat([*document.header, *document.blocks[: last + 1]]))
    footer = Paragraph(document.footer, "footer")
    rest = tuple(_flat([*document.blocks[last + 1 :], *([footer] if document.footer else [])]))
    blocks = tuple(_level_headings([*opening, *rest]))
    begun = (*opening, *rest) if last < 0 else opening
    length = len(tuple(itertools.takewhile(_leads, begun))) if last < 0 else len(opening)
    return Pages(blocks[:length], blocks[length:])


def _opens(block: Block) -> bool:
    return isinstance(block, Group) and block.look == "opening"


def _leads(block: Block) -> bool:
    return isinstance(block, Paragraph | Note)


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        match block:
            case Group():
                yield from _flat(block.blocks)
            case Verdict():
                parts = [part for badge in block.badges for part in (badge, " ")]
                yield Paragraph(inlines(*parts, block.inlines), "verdict")
            case Facts():
                yield _add_heads(facts_table(block))
            case Note():
                yield Note(tuple(_flat(block.blocks)), block.look)
            case FoldedBlocks() if block.left_out:
                yield block
            case FoldedBlocks():
                yield replace(block, blocks=tuple(_flat(block.blocks)))
            case Paragraph() if not block.inlines:
                pass
            case Table() if not (block.head or block.body):
                pass
            case Table():
                yield _add_heads(block)
            case _:
                yield block


def _add_heads(table: Table) -> Table:
    """Returns the table with a row of headings where it has none, so that a tagged PDF says what each column holds."""
    if table.head or table.columns < 2:
        return table
    cells = (head("Subject", words=True), head("Value", words=True, columns=table.columns - 1))
    return replace(table, head=(row(*cells),))


def _level_headings(blocks: Iterable[Block]) -> Iterator[Block]:
    last = 0
    for block in blocks:
        if isinstance(block, Heading):
            last = min(block.level, last + 1)
            yield Heading(last, block.inlines, block.id)
        else:
            yield block


def left_out_words(folded: FoldedBlocks) -> Text:
    """Returns the sentence that paper has in place of a part that stays on the page."""
    words = "".join(each.text for each in folded.summary if isinstance(each, Text))
    rows = f", {folded.rows} rows" if folded.rows else ""
    are = "They are" if _SEVERAL.match(words) else "It is"
    return Text(f"Left out here: {words}{rows}. {are} in report.html.")


def palette(style: str) -> dict[str, str]:
    """Returns the colours by their names, from the first ``:root`` of a style sheet, which is for a light screen."""
    found = _ROOT.search(style)
    return dict(_VARIABLE.findall(found[1])) if found else {}


def on_paper(svg: str, colours: Mapping[str, str]) -> str:
    """Returns the drawing without variables, in our font, and able to stand alone in a file."""
    svg = _USED.sub(lambda used: colours.get(used[1]) or used[2] or colours.get("ink", "#000000"), svg)
    svg = svg.replace("currentColor", colours.get("ink", "#000000"))
    svg = _TEXT.sub(r"\1 …", _FOR_SCRIPTS.sub("", svg))
    svg = _FAMILY.sub(f'font-family="{FONT}, Helvetica, Arial, sans-serif"', svg)
    if "xmlns=" not in _SVG_TAG.match(svg)[0]:  # type: ignore[index]  # a drawing begins with its tag
        svg = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return svg


def drawing(svg: str) -> Drawing:
    """Returns a drawing with the description that a screen reader speaks."""
    svg = make_visible(svg)
    found = _LABEL.search(svg)
    return Drawing(svg, unescape(found[1])[:_LONGEST_LABEL] if found else "")


# Names by which sentences refer to tables; pure.


def anchor(*words: str) -> str:
    """Returns the id of a table, made of the words that tell it from other tables: ``throughput-bare-run-2``."""
    text = " ".join(word for word in words if word and word != "default")
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "table"


_LONGEST_TITLE: Final = 80
"""The longest label of a drawing that can be its title; a longer one describes the drawing."""
_TAG = re.compile(r"<[^>]*>")
_MET_AS: Final = {
    "p99.9": r"p99",
    "kpps, Mpps": r"\b[kM]pps",
    "L1, L2": r"\bL[12]\b|layer [12]",
    "Bootstrap": r"bootstrap",
    "Interval": r"\binterval",
    "Share": r"% \[",
    "TSC": r"(?-i:\bTSC\b)",
}
"""Patterns that find a word of the glossary in the text where it is used in another form than it is listed."""


def finish_document(document: Document, *, has_contents: bool = True) -> Document:
    """Returns the document with ids, titles and table of contents; its blocks come as their sections made them."""
    blocks = tuple(_with_used_words(document))
    taken = {block.id for block in walk(blocks) if isinstance(block, FoldedBlocks) and block.id}
    blocks = tuple(_Naming(blocks).name_blocks(_give_ids(blocks, taken)))
    contents = tuple(block for block in walk(blocks) if isinstance(block, Heading) and block.level == 1)
    return replace(document, blocks=blocks, contents=contents if has_contents else ())


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields every block, and the blocks within it."""
    for block in blocks:
        yield block
        if isinstance(block, Group | Note | FoldedBlocks):
            yield from walk(block.blocks)


def _give_ids(blocks: Iterable[Block], taken: set[str]) -> tuple[Block, ...]:
    """Gives every heading an id that is unique in the document, and adds it to those that are ``taken``."""

    def with_id(block: Block) -> Block:
        if isinstance(block, Group | Note | FoldedBlocks):
            return replace(block, blocks=_give_ids(block.blocks, taken))
        if not isinstance(block, Heading):
            return block
        name = block.id or anchor(plain(block.inlines))
        free = next(
            each for number in itertools.count(1) if (each := f"{name}-{number}" if number > 1 else name) not in taken
        )
        taken.add(free)
        return replace(block, id=free)

    return tuple(map(with_id, blocks))


class _Naming:
    """Gives tables and figures the names of the headings above them, each name once, so that a list
    tells them apart.
    """

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        texts = Counter(plain(block.inlines) for block in walk(blocks) if isinstance(block, Heading))
        self._repeated = {text for text, times in texts.items() if times > 1}
        self._headings: list[tuple[int, str]] = []
        self._folded_in = ""
        self._titles: Counter[tuple[str, str]] = Counter()

    def name_blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yields the blocks with their titles."""
        for block in blocks:
            yield self._name_block(block)

    def _name_block(self, block: Block) -> Block:
        match block:
            case Heading():
                above = [(level, text) for level, text in self._headings if level < block.level]
                self._headings = [*above, (block.level, plain(block.inlines))]
                self._folded_in = ""
                return block
            case Table() if not (block.head or block.body):
                return block
            case Table() | Facts():
                # One of several tables in one place says itself which it is.
                which = f", {block.title}" if isinstance(block, Table) and block.title else ""
                return replace(block, title=self._once("table", f"{self._under or 'Table'}{which}"))
            case Figure():
                return replace(block, title=self._once("figure", self._title(block)))
            case FoldedBlocks():
                return block if block.left_out else self._within(block)
            case Group() | Note():
                return replace(block, blocks=tuple(self.name_blocks(block.blocks)))
            case _:
                return block

    def _within(self, block: FoldedBlocks) -> FoldedBlocks:
        outer = self._folded_in, self._headings
        self._folded_in = plain(block.summary)
        blocks = tuple(self.name_blocks(block.blocks))
        self._folded_in, self._headings = outer
        return replace(block, blocks=blocks)

    @property
    def _under(self) -> str:
        """The name of a table here: the heading above it; where that heading occurs repeatedly, the one above that,
        too; and what it is folded into.
        """
        texts = [text for _, text in self._headings]
        named = texts[-1] if texts else ""
        if named in self._repeated and len(texts) > 1:
            named = f"{named}, {texts[-2]}"
        if named.lower() in self._folded_in.lower():
            return self._folded_in
        return ": ".join(part for part in (named, self._folded_in) if part)

    def _title(self, figure: Figure) -> str:
        """Returns the title of a figure. Of those without a title of their own, small multiples get the heading above
        them; others the label or, where the label is a long description, the first sentence of the caption.
        """
        if figure.title:
            return figure.title
        if figure.is_of_multiples and len(figure.panels) > 1:
            return self._under
        below = figure.panels[0].caption if figure.is_of_multiples else figure.caption
        sentence = first_sentence(below)
        label = figure.panels[0].drawing.label
        short = (text for text in (label, sentence, self._under) if 0 < len(text) <= _LONGEST_TITLE)
        return next(short, "Drawing")

    def _once(self, kind: str, title: str) -> str:
        """Returns the title, with a number behind it where it was given before."""
        self._titles[kind, title] += 1
        times = self._titles[kind, title]
        return title if times == 1 else f"{title} ({times})"


def _with_used_words(document: Document) -> Iterator[Block]:
    """Yields the blocks of the document, with the glossary reduced to words that occur elsewhere in it."""
    if not any(isinstance(block, Definitions) for block in walk(document.blocks)):
        yield from document.blocks
        return
    words = (document.title, *_texts_of(document.header), *_texts_of(document.blocks), plain(document.footer))
    yield from _with_words(document.blocks, " ".join(" ".join(words).split()))


def _with_words(blocks: Iterable[Block], text: str) -> Iterator[Block]:
    for block in blocks:
        match block:
            case Definitions():
                yield Definitions(tuple(pair for pair in block.pairs if _is_used(plain(pair[0]), text)))
            case Group():
                yield replace(block, blocks=tuple(_with_words(block.blocks, text)))
            case _:
                yield block


def _is_used(word: str, text: str) -> bool:
    pattern = _MET_AS.get(word) or rf"(?<!\w){re.escape(word)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _texts_of(blocks: Iterable[Block]) -> Iterator[str]:
    """Yields the texts of blocks, including drawings and folded blocks, without the glossary."""
    for block in blocks:
        match block:
            case Heading() | Paragraph() | Verdict():
                yield from _texts(block.inlines)
                yield from (badge.text for badge in block.badges) if isinstance(block, Verdict) else ()
            case Table():
                yield from _of_table(block)
            case Facts():
                yield from _of_facts(block.facts)
            case Figure():
                for panel in block.panels:
                    yield from _of_panel(panel)
                yield from _texts(block.caption)
            case Code():
                yield block.text
            case Listing():
                yield from (text for item in block.items for text in _texts(item))
            case FoldedBlocks():
                yield from _texts(block.summary)
                yield from _texts_of(block.blocks)
            case Group() | Note():
                yield from _texts_of(block.blocks)


def _of_table(table: Table) -> Iterator[str]:
    rows: Iterable[Row] = (*table.head, *table.body)
    cells: Iterable[Cell] = (cell for row in rows for cell in row.cells)
    yield from _texts(table.caption)
    yield from (text for cell in cells for text in _texts(cell.inlines))


def _of_facts(facts: Iterable[Fact]) -> Iterator[str]:
    for fact in facts:
        yield from (*_texts(fact.label), *_texts(fact.inlines), *fact.code)
        yield from _of_facts(fact.children)
        if fact.beside:
            yield from _of_table(fact.beside)


def _of_panel(panel: Panel) -> Iterator[str]:
    yield from _texts((panel.drawing, *panel.head, *panel.caption))


def _texts(inlines: Inlines) -> Iterator[str]:
    for run in inlines:
        if isinstance(run, Text):
            yield run.text.replace("\u200b", "")
        elif isinstance(run, Drawing):
            yield unescape(_TAG.sub(" ", run.svg))
