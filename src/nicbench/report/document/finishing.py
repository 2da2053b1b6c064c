"""Makes a document of the blocks of its sections: names tables, gives headings ids, and reduces the glossary to used
words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html import unescape
from typing import Final

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
    plain,
)

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
    "L1, L2": r"\bL[12]\b|layer [12]",
    "Frame size": r"frame",
    "Bootstrap": r"bootstrap",
    "Interval": r"\binterval",
}
"""Patterns that find a word of the glossary in the text where it is used in another form than it is listed."""


def finish_document(document: Document, *, has_contents: bool = True) -> Document:
    """Returns the document with ids, titles and table of contents; its blocks come as their sections made them."""
    blocks = tuple(_with_used_words(document))
    blocks = tuple(_Naming(blocks).name_blocks(_Ids(blocks).give_ids(blocks)))
    contents = tuple(block for block in walk(blocks) if isinstance(block, Heading) and block.level == 1)
    return replace(document, blocks=blocks, contents=contents if has_contents else ())


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields every block, and the blocks within it."""
    for block in blocks:
        yield block
        if isinstance(block, Group | Note | FoldedBlocks):
            yield from walk(block.blocks)


class _Ids:
    """Gives every heading an id that is unique in the document."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self._taken = {block.id for block in walk(blocks) if isinstance(block, FoldedBlocks) and block.id}

    def give_ids(self, blocks: Iterable[Block]) -> tuple[Block, ...]:
        return tuple(map(self._give_ids, blocks))

    def _give_ids(self, block: Block) -> Block:
        match block:
            case Heading():
                name = _free(block.id or anchor(plain(block.inlines)), self._taken)
                self._taken.add(name)
                return replace(block, id=name)
            case Group() | Note() | FoldedBlocks():
                return replace(block, blocks=self.give_ids(block.blocks))
            case _:
                return block


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


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
        sentence = plain(below).partition(". ")[0].rstrip(".")
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
    """Yields the texts of blocks, those of drawings and folded blocks included, but not those of a glossary."""
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
    if panel.numbers:
        yield from _texts_of((panel.numbers,))


def _texts(inlines: Inlines) -> Iterator[str]:
    for run in inlines:
        if isinstance(run, Text):
            yield run.text.replace("\u200b", "")
        elif isinstance(run, Drawing):
            yield unescape(_TAG.sub(" ", run.svg))
