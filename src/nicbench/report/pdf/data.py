"""The document as plain data for the typst template: page orientation, unbroken groups, and valid links."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from nicbench.core.errors import NicbenchError, NotReadyError
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
    Inlines,
    Listing,
    Note,
    Paragraph,
    Row,
    Table,
    Text,
    plain,
)
from nicbench.report.document.finishing import left_out_words, on_paper, pages
from nicbench.report.pdf.widths import FittedTable, breakable, fit_tables
from nicbench.store.files import json_text

_TOGETHER = 16
"""A table or row with up to this many lines is not broken across pages."""
_SHORT = 40
"""Upright content of up to this many lines between two landscape sheets is put on landscape paper as well."""
_LONGEST_TITLE = 400
_LONG_TABLE = 10
"""The number of rows from which a table of facts is laid out in two halves, if its labels and facts are short."""
_SHORT_LABEL = 45
_SHORT_FACT = 70
_LONGEST_CODE = 100_000
_CODE_LINE = 86
_ABROAD = ("https://", "http://", "mailto:")

Data = dict[str, Any]


def data_of(document: Document, about: str) -> Data:
    """Returns the document as data that the template reads as JSON."""
    shown = pages(document)
    maker = _Maker(frozenset(_ids([*shown.front, *shown.blocks])), document.palette)
    return {
        "title": document.title[:_LONGEST_TITLE],
        "heading": breakable(document.title[:_LONGEST_TITLE]),
        "about": about,
        "language": document.language,
        "generator": document.generator,
        "author": document.author,
        "brief": document.is_brief,
        "palette": dict(document.palette),
        "logo": list(document.logo),
        "front": maker.blocks(shown.front),
        "sheets": maker.sheets(shown.blocks),
    }


def _ids(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Heading) and block.id:
            yield block.id
        elif isinstance(block, Note) or (isinstance(block, FoldedBlocks) and not block.is_detail):
            yield from _ids(block.blocks)


class _Maker:
    def __init__(self, ids: frozenset[str], palette: Mapping[str, str]) -> None:
        self._ids = ids
        self._palette = palette
        self._given: set[str] = set()

    def sheets(self, blocks: Iterable[Block]) -> list[Data]:
        """Groups blocks into upright and landscape sheets; a heading stays with the blocks that follow it."""
        sheets: list[Data] = []
        groups = [self.blocks(group) for group in _groups(tuple(_unfold(blocks)))]
        for turned, run in itertools.groupby(groups, lambda made: any(block.get("turned") for block in made)):
            sheets.append({"turned": turned, "blocks": [block for made in run for block in made]})
        joined = sheets[:1]
        for sheet in sheets[1:-1]:
            if not sheet["turned"] and _height(sheet["blocks"]) <= _SHORT:
                sheet = {**sheet, "turned": True}  # too short for a sheet between two landscape ones
            joined.append(sheet)
        joined += sheets[-1:] if len(sheets) > 1 else []
        return [
            {"turned": turned, "blocks": [block for sheet in run for block in sheet["blocks"]]}
            for turned, run in itertools.groupby(joined, lambda sheet: sheet["turned"])
        ]

    def blocks(self, blocks: Iterable[Block]) -> list[Data]:
        """Converts blocks to data; a paragraph before a table, figure or code is marked to stay with it."""
        made = [data for block in _unfold(blocks) for data in self._block(block)]
        for data, following in itertools.pairwise(made):
            if data["kind"] in ("summary", "paragraph") and following["kind"] in ("table", "figure", "code"):
                data["sticky"] = len(str(data["text"])) < 2000
        return made

    def _block(self, block: Block) -> Iterator[Data]:
        match block:
            case Heading():
                yield {"kind": "heading", "level": block.level, "text": self._inlines(block.inlines), **self._id(block)}
            case Paragraph():
                yield {"kind": "paragraph", "role": block.role, "text": self._inlines(block.inlines)}
            case Table():
                for part in fit_tables(_all_breakable(_halve(block))):
                    yield self._table(part)
            case Figure():
                yield self._figure(block)
            case Code():
                text = block.text if len(block.text) <= _LONGEST_CODE else breakable(block.text)
                yield {"kind": "code", "text": "\n".join(breakable(line, _CODE_LINE) for line in text.split("\n"))}
            case Listing():
                yield {"kind": "list", "ordered": block.ordered, "items": [self._inlines(i) for i in block.items]}
            case Definitions():
                pairs = [[self._inlines(word), self._inlines(meaning)] for word, meaning in block.pairs]
                yield {"kind": "definitions", "pairs": pairs}
            case Note():
                yield {"kind": "note", "blocks": self.blocks(block.blocks)}
            case FoldedBlocks():
                yield {"kind": "summary", "text": self._inlines(block.summary)}

    def _id(self, heading: Heading) -> Data:
        if heading.id is None or heading.id in self._given:
            return {}
        self._given.add(heading.id)
        return {"id": heading.id}

    def _table(self, part: FittedTable) -> Data:
        table = part.table
        lines = part.lines
        return {
            "kind": "table",
            "title": table.title,
            "caption": self._inlines(table.caption),
            "widths": part.widths,
            "size": part.size,
            "turned": part.turned,
            "together": sum(lines) <= _TOGETHER,
            "whole_rows": part.most_lines <= _TOGETHER,
            "head": [[self._cell(cell) for cell in row.cells] for row in table.head],
            "body": [self._row(row) for row in table.body],
        }

    def _row(self, row: Row) -> Data:
        return {"look": row.look, "cells": [self._cell(cell) for cell in row.cells]}

    def _cell(self, cell: Cell) -> Data:
        made: Data = {"text": self._inlines(cell.inlines)}
        if cell.columns > 1:
            made["columns"] = cell.columns
        if cell.rows > 1:
            made["rows"] = cell.rows
        if cell.is_head:
            made["head"] = True
        if cell.words:
            made["words"] = True
        if cell.tone:
            made["tone"] = cell.tone
        if cell.indent:
            made["indent"] = cell.indent
        return made

    def _figure(self, figure: Figure) -> Data:
        panels = [
            {
                "svg": on_paper(panel.drawing.svg, self._palette),
                "label": panel.drawing.label or figure.title,
                "head": self._inlines(panel.head),
                "caption": self._inlines(panel.caption),
            }
            for panel in figure.panels
        ]
        return {"kind": "figure", "title": figure.title, "caption": self._inlines(figure.caption), "panels": panels}

    def _inlines(self, inlines: Inlines) -> str | list[Any]:
        """Returns plain text as a string, anything else as a list of runs of text."""
        if not inlines:
            return ""
        if len(inlines) == 1 and isinstance(inlines[0], Text) and inlines[0] == Text(inlines[0].text):
            return breakable(inlines[0].text)
        return [self._run(run) for run in inlines]

    def _run(self, run: Text | Drawing) -> str | Data:
        if isinstance(run, Drawing):
            return {"svg": on_paper(run.svg, self._palette), "label": run.label or "drawing"}
        made: Data = {"text": breakable(run.text)}
        for name in ("strong", "code", "raised", "small", "badge", "tone"):
            if value := getattr(run, name):
                made[name] = value
        if run.link and run.link.startswith(_ABROAD):
            made["to"] = run.link
        elif run.link and run.link[:1] == "#" and run.link[1:] in self._ids:
            made["heading"] = run.link[1:]
        return made if len(made) > 1 else made["text"]


def _unfold(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields folded blocks unfolded, or a sentence that says where those left out of the PDF are found."""
    for block in blocks:
        if not isinstance(block, FoldedBlocks):
            yield block
        elif block.left_out or block.is_detail:
            yield Paragraph((left_out_words(block),), "caption")
        else:
            yield FoldedBlocks(block.summary, ())
            yield from _unfold(block.blocks)


def _halve(table: Table) -> Table:
    """Returns a long table of short facts with its second half beside its first, which takes half the paper."""
    short = all(
        len(plain(row.cells[0].inlines)) <= _SHORT_LABEL and len(plain(row.cells[-1].inlines)) <= _SHORT_FACT
        for row in table.body
    )
    is_of_facts = [plain(cell.inlines) for row in table.head for cell in row.cells] == ["Subject", "Value"]
    if not (is_of_facts and short and len(table.body) >= _LONG_TABLE):
        return table
    middle = (len(table.body) + 1) // 2
    none = (Cell((), columns=2),)
    halves = itertools.zip_longest(table.body[:middle], table.body[middle:])
    body = tuple(replace(left, cells=left.cells + (right.cells if right else none)) for left, right in halves)
    head = tuple(replace(row, cells=row.cells * 2) for row in table.head)
    return replace(table, columns=4, head=head, body=body)


def _height(blocks: list[Data]) -> int:
    """Estimates the height in lines, to decide whether the blocks need a sheet of their own."""
    return sum(
        len(block["body"]) + 4 if block["kind"] == "table" else 30 if "panels" in block else 4 for block in blocks
    )


def _groups(blocks: tuple[Block, ...]) -> Iterator[list[Block]]:
    """Groups each heading or summary with its content; one without a table or figure leads the next group."""
    group: list[Block] = []
    for block in blocks:
        begins = isinstance(block, Heading | FoldedBlocks)
        if begins and any(not isinstance(each, Heading | FoldedBlocks | Paragraph) for each in group):
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _all_breakable(table: Table) -> Table:
    """Returns the table with all places to break in its text, so that widths are computed from what is printed."""

    def opened(run: Text | Drawing) -> Text | Drawing:
        return replace(run, text=breakable(run.text)) if isinstance(run, Text) else run

    def rows(them: tuple[Row, ...]) -> tuple[Row, ...]:
        cells = (tuple(replace(cell, inlines=tuple(map(opened, cell.inlines))) for cell in row.cells) for row in them)
        return tuple(replace(row, cells=broken) for row, broken in zip(them, cells, strict=True))

    return replace(table, head=rows(table.head), body=rows(table.body))


_TEMPLATE = "report.typ"
_FACES = ("Regular", "Semibold", "Bold", "It")
_OF_STANDARD = "PDF/UA"
"""The beginning of typst's error messages where a document could be written, but would violate the standard."""
_Standard = Literal["ua-1"]
ACCESSIBLE: Final[_Standard] = "ua-1"
"""The standard PDF/UA-1 (ISO 14289-1): typst refuses to write a file that violates it."""


def make_pdf(document: Document, about: str, created: datetime) -> bytes:
    """Returns the PDF file, tagged, and identical byte for byte for the same document and ``created``.

    ``about`` is printed at the head of each page: "run ID". Characters that our fonts lack are taken from the machine's
    fonts; where these lack them too, the file is tagged all the same but does not declare PDF/UA-1. NotReadyError where
    typst or the fonts are not installed.
    """
    needed = [name for name in ("typst", "font_source_sans_pro") if importlib.util.find_spec(name) is None]
    if needed:
        packages = " ".join(name.replace("_", "-") for name in needed)
        raise NotReadyError(
            f"a PDF needs the Python package {packages}, which is not installed",
            place="--format pdf",
            next_step="pip install 'nicbench[pdf]', or make install in a clone",
        )
    content = json_text(data_of(document, about), indent=None)
    with tempfile.TemporaryDirectory(prefix="nicbench-") as folder:
        _copy_faces(Path(folder))
        for with_machines, standards in ((False, [ACCESSIBLE]), (True, [ACCESSIBLE]), (True, [])):
            found = _compile(content, Path(folder), with_machines, standards, created)
            if found is not None:
                return found
    raise NicbenchError("typst finds no glyphs, whatever it is given", place=_TEMPLATE, next_step="report this")


def _compile(
    content: str, faces: Path, with_machines: bool, standards: list[_Standard], created: datetime
) -> bytes | None:
    """Returns the PDF; None where the content violates the standard, mostly because these fonts lack a character."""
    import typst  # here: loads 30 MB, needed for a PDF alone

    template = (files("nicbench.report.pdf") / _TEMPLATE).read_bytes()
    fonts = typst.Fonts(include_system_fonts=with_machines, font_paths=[faces])
    try:
        found = typst.compile(
            template,
            font_paths=fonts,
            format="pdf",
            sys_inputs={"report": content},
            pdf_standards=[*standards],
            timestamp=int(created.timestamp()),
        )
        return found
    except typst.TypstError as error:
        if standards and error.message.startswith(_OF_STANDARD):
            return None
        raise NicbenchError(
            f"typst could not lay out the report: {error.message}", place=_TEMPLATE, next_step="report this as a defect"
        ) from error


def _copy_faces(folder: Path) -> None:
    """Copies the TTF faces alone: of the formats in the package, typst takes the one that the disk lists first."""
    faces = files("font_source_sans_pro") / "files"
    for face in _FACES:
        name = f"SourceSansPro-{face}.ttf"
        (folder / name).write_bytes((faces / name).read_bytes())
