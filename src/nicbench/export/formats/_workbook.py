"""Writes tables as an XLSX workbook (ECMA-376): a sheet for each, numbers with all their digits, text as text.

The same tables are the same bytes. A sheet is written as it is made, row by row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from nicbench.core.errors import UsageError
from nicbench.export.document import replace_controls
from nicbench.export.tables import LARGEST_EXACT, Cell, Column, Table

_MOST_ROWS: Final = 1_048_576
_MOST_COLUMNS: Final = 16_384
_MOST_CELLS: Final = 2**23
"""More may be more than the 2 GiB that a plain entry of a ZIP file holds."""
_LONGEST_TEXT: Final = 32_767
"""Limit of a cell, in units of UTF-16."""
_LONGEST_TITLE: Final = 255
_NARROWEST, _WIDEST = 10, 40
_ROWS_AT_ONCE: Final = 1000

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SCHEMAS: Final = "http://schemas.openxmlformats.org"
_MAIN: Final = f'xmlns="{_SCHEMAS}/spreadsheetml/2006/main"'
_OFFICE: Final = f"{_SCHEMAS}/officeDocument/2006/relationships"
_CORE: Final = f"{_SCHEMAS}/package/2006/relationships/metadata/core-properties"
_SHEET_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PACKAGE_TYPE: Final = "application/vnd.openxmlformats-package"
_FONT: Final = '<sz val="11"/><name val="Calibri"/><family val="2"/>'
_STYLES: Final = (
    f"<styleSheet {_MAIN}>"
    f'<fonts count="2"><font>{_FONT}</font><font><b/>{_FONT}</font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border><border><left/><right/><top/>'
    '<bottom style="thin"><color auto="1"/></bottom><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="1" xfId="0" applyFont="1" applyBorder="1" applyAlignment="1">'
    '<alignment vertical="top" wrapText="1"/></xf></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
"""Style 0 is that of all cells, style 1 that of headings: bold, above a line."""
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "_x000D_"})
_LIKE_AN_ESCAPE: Final = re.compile(r"_(x[0-9A-Fa-f]{4}_)")
"""Text that a spreadsheet program would read as one character: its underscore is written as an escape itself."""


def write_workbook(stream: BinaryIO, title: str, tables: Sequence[Table]) -> None:
    """Writes a sheet for each table. UsageError where one is larger than a sheet can be."""
    for table in tables:
        _check(table)
    with ZipFile(stream, "w", ZIP_DEFLATED) as book:
        for name, text in _parts(title, tables).items():
            book.writestr(_entry(name), f"{_XML}{text}")
        for number, table in enumerate(tables, 1):
            large = len(table.rows) * len(table.columns) > _MOST_CELLS
            with book.open(_entry(f"xl/worksheets/sheet{number}.xml"), "w", force_zip64=large) as part:
                for text in _sheet(table):
                    part.write(text.encode())


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name)  # of 1980, whenever it is written
    entry.compress_type = ZIP_DEFLATED
    return entry


def _check(table: Table) -> None:
    if len(table.rows) >= _MOST_ROWS or len(table.columns) > _MOST_COLUMNS:
        raise UsageError(
            f"the table {table.name!r} has {len(table.rows)} rows and {len(table.columns)} columns;"
            f" a sheet holds {_MOST_ROWS - 1} and {_MOST_COLUMNS}",
            place="--to xlsx",
            next_step=f"--to parquet --table {table.name} holds them all",
        )


def _parts(title: str, tables: Sequence[Table]) -> dict[str, str]:
    """Returns everything but the sheets, by the names of the entries."""
    sheets = [f"worksheets/sheet{number}.xml" for number in range(1, len(tables) + 1)]
    kinds = {"workbook.xml": "sheet.main", "styles.xml": "styles"} | dict.fromkeys(sheets, "worksheet")
    types = "".join(
        f'<Override PartName="/xl/{name}" ContentType="{_SHEET_TYPE}.{kind}+xml"/>' for name, kind in kinds.items()
    )
    names = "".join(
        f'<sheet name="{_text(table.name)}" sheetId="{number}" r:id="rId{number}"/>'
        for number, table in enumerate(tables, 1)
    )
    filters = "".join(
        f'<definedName name="_xlnm._FilterDatabase" localSheetId="{number}" hidden="1">'
        f"{_text(table.name)}!{_extent(table, '$')}</definedName>"
        for number, table in enumerate(tables)
    )
    return {
        "[Content_Types].xml": f'<Types xmlns="{_SCHEMAS}/package/2006/content-types"><Default Extension="rels" '
        f'ContentType="{_PACKAGE_TYPE}.relationships+xml"/><Override PartName="/docProps/core.xml" '
        f'ContentType="{_PACKAGE_TYPE}.core-properties+xml"/>{types}</Types>',
        "_rels/.rels": _relations((f"{_OFFICE}/officeDocument", "xl/workbook.xml"), (_CORE, "docProps/core.xml")),
        "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{_SCHEMAS}/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>{_text(title[:_LONGEST_TITLE])}</dc:title>'
        '<dcterms:created xsi:type="dcterms:W3CDTF">2000-01-01T00:00:00Z</dcterms:created></cp:coreProperties>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><bookViews><workbookView/></bookViews>'
        f"<sheets>{names}</sheets><definedNames>{filters}</definedNames></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            *((f"{_OFFICE}/worksheet", name) for name in sheets), (f"{_OFFICE}/styles", "styles.xml")
        ),
        "xl/styles.xml": _STYLES,
    }


def _relations(*targets: tuple[str, str]) -> str:
    each = (
        f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_SCHEMAS}/package/2006/relationships">{"".join(each)}</Relationships>'


def _sheet(table: Table) -> Iterable[str]:
    """Returns the text of a sheet in pieces: the headings stay in sight, and filter the rows below."""
    letters = [_letters(number) for number in range(len(table.columns))]
    headings = [_heading(column) for column in table.columns]
    widths = (min(max(_NARROWEST, len(heading)), _WIDEST) for heading in headings)
    columns = "".join(
        f'<col min="{number}" max="{number}" width="{width + 0.71}" customWidth="1"/>'
        for number, width in enumerate(widths, 1)
    )
    heads = "".join(
        f'<c r="{letter}1" s="1" t="inlineStr">{_string(heading)}</c>'
        for letter, heading in zip(letters, headings, strict=True)
    )
    yield (
        f'{_XML}<worksheet {_MAIN}><sheetViews><sheetView workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
        f'<cols>{columns}</cols><sheetData><row r="1">{heads}</row>'
    )
    for first in range(0, len(table.rows), _ROWS_AT_ONCE):
        rows = enumerate(table.rows[first : first + _ROWS_AT_ONCE], first + 2)
        yield "".join([f'<row r="{number}">{_cells(letters, number, row)}</row>' for number, row in rows])
    yield f'</sheetData><autoFilter ref="{_extent(table)}"/></worksheet>'


def _extent(table: Table, fixed: str = "") -> str:
    """Returns the first and the last place of a sheet: A1:C7, or $A$1:$C$7."""
    return f"{fixed}A{fixed}1:{fixed}{_letters(len(table.columns) - 1)}{fixed}{len(table.rows) + 1}"


def _cells(letters: Sequence[str], number: int, row: Sequence[Cell]) -> str:
    """Returns the cells of a row that are not empty."""
    found = []
    for letter, cell in zip(letters, row, strict=True):
        if cell is None or cell == "":
            continue
        if isinstance(cell, bool):
            found.append(f'<c r="{letter}{number}" t="b"><v>{cell:d}</v></c>')
        elif isinstance(cell, float) or (isinstance(cell, int) and abs(cell) <= LARGEST_EXACT):
            found.append(f'<c r="{letter}{number}"><v>{cell!r}</v></c>')
        else:  # a whole number beyond what a spreadsheet can count is text, so that no digit is lost
            found.append(f'<c r="{letter}{number}" t="inlineStr">{_string(str(cell))}</c>')
    return "".join(found)


def _letters(number: int) -> str:
    """Returns the name of a column, which are numbered from 0: A, Z, AA."""
    before, last = divmod(number, 26)
    return f"{_letters(before - 1) if before else ''}{chr(ord('A') + last)}"


def _heading(column: Column) -> str:
    return f"{column.name} [{column.unit}]" if column.unit else column.name


@lru_cache(maxsize=4096)  # most cells of a long table hold one of a few words
def _string(text: str) -> str:
    return f'<is><t xml:space="preserve">{_text(text)}</t></is>'


def _text(text: str) -> str:
    """Returns text for XML, no longer than a cell may be."""
    clean = replace_controls(text)[:_LONGEST_TEXT]
    if not clean.isascii():
        clean = clean.encode("utf-16-le")[: 2 * _LONGEST_TEXT].decode("utf-16-le", "ignore")
    return _LIKE_AN_ESCAPE.sub(r"_x005F_\1", clean).translate(_ESCAPED)
