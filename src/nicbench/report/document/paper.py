"""A document as paper and text files have it: without the parts for screens alone, in the colours of a light page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import unescape

from nicbench.core.redaction import make_visible
from nicbench.report.document.blocks import (
    Block,
    Document,
    Drawing,
    Facts,
    FoldedBlocks,
    Group,
    Heading,
    Note,
    Paragraph,
    Table,
    Text,
    Verdict,
)
from nicbench.report.document.inlines import inlines
from nicbench.report.document.tables import facts_table, head, row

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
_TAG = re.compile(r"<svg\b[^>]*>")


@dataclass(frozen=True, slots=True)
class Pages:
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
    if "xmlns=" not in _TAG.match(svg)[0]:  # type: ignore[index]  # a drawing begins with its tag
        svg = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return svg


def drawing(svg: str) -> Drawing:
    """Returns a drawing with the description that a screen reader speaks."""
    svg = make_visible(svg)
    found = _LABEL.search(svg)
    return Drawing(svg, unescape(found[1])[:_LONGEST_LABEL] if found else "")
