"""Sheets of workbooks: figures as people see them, and nothing that a workbook does not say."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from datetime import date
from io import BytesIO

import pytest
import xlsxwriter

from nicbench.core.errors import WrongFileError
from nicbench.importing.workbook import is_workbook, read_workbook, sheet_names

Fill = Callable[[xlsxwriter.Workbook], None]


def workbook(fill: Fill) -> bytes:
    file = BytesIO()
    with xlsxwriter.Workbook(file) as book:
        fill(book)
    return file.getvalue()


def one_cell(value: object, form: str | None = None) -> bytes:
    def fill(book: xlsxwriter.Workbook) -> None:
        book.add_worksheet().write(0, 0, value, book.add_format({"num_format": form}) if form else None)

    return workbook(fill)


def changed(content: bytes, part: str, old: bytes, new: bytes) -> bytes:
    """The workbook with a part of its archive changed."""
    file = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as source, zipfile.ZipFile(file, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            assert name != part or old in text
            target.writestr(name, text.replace(old, new) if name == part else text)
    return file.getvalue()


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("value", "form", "text", "is_typed"),
    [
        (37.2, None, "37.2", True),
        (0.1 + 0.2, None, "0.3", True),
        (234962, "#,##0", "234962", True),
        (1e-7, None, "0.0000001", True),
        (0.9999, "0.00%", "99.99 %", True),
        (0.5, "0%", "50 %", True),
        (0.5, '0.0" % of nothing"', "0.5", True),
        (12.5, '0.0" us"', "12.5", True),
        (12.5, "General", "12.5", True),
        ("1.488.095", None, "1.488.095", False),
        ("  two  words ", None, "two words", False),
        (True, None, "1", False),
    ],
)
def test_a_cell_is_what_people_see(value: object, form: str | None, text: str, is_typed: bool) -> None:
    [[cell]] = read_workbook(one_cell(value, form), "x.xlsx")
    assert (cell.text, cell.is_typed) == (text, is_typed)


def test_a_date_is_no_number_as_spreadsheets_make_dates_of_figures() -> None:
    [[cell]] = read_workbook(one_cell(date(2026, 5, 1), "d.m"), "x.xlsx")
    assert cell.text.startswith("the date")
    assert not cell.is_typed


def test_merged_cells_are_filled_and_places_are_those_of_the_sheet() -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        sheet = book.add_worksheet()
        sheet.merge_range("A2:A3", "Card A")
        sheet.write("C3", 7)

    rows = read_workbook(workbook(fill), "x.xlsx")
    assert [[cell.text for cell in row] for row in rows] == [["Card A", "", ""], ["Card A", "", "7"]]
    assert rows[1][2].position[:2] == (3, 3)


def test_of_several_sheets_one_is_to_be_named() -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        for name in ("Remarks", "Results", "Hidden", "Empty"):
            sheet = book.add_worksheet(name)
            if name != "Empty":
                sheet.write(0, 0, name)
            if name == "Hidden":
                sheet.hide()

    content = workbook(fill)
    assert sheet_names(content, "x.xlsx") == ("Remarks", "Results")
    with pytest.raises(WrongFileError, match="2 of its sheets are filled: `Remarks`, `Results`") as refused:
        read_workbook(content, "x.xlsx")
    assert refused.value.problems[0].flags == ("--sheet", "Remarks")
    assert read_workbook(content, "x.xlsx", "Results")[0][0].text == "Results"
    with pytest.raises(WrongFileError, match="there is no sheet `Result`"):
        read_workbook(content, "x.xlsx", "Result")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK\x03\x04 xl/workbook.xml", "no workbook that can be read"),
        (changed(one_cell(1), SHEET, b"<v>1</v>", b"<v>one</v>"), "no workbook that can be read"),
        (changed(one_cell(1), SHEET, b"<v>1</v>", b"<f>A2+1</f>"), "this formula has no result"),
        (changed(one_cell(1), SHEET, b'r="A1"', b'r="XFD1"'), "has more than 256 columns"),
        (changed(one_cell(1), SHEET, b"<worksheet", b"<!DOCTYPE a><worksheet"), "holds a document type"),
        (changed(one_cell(1), SHEET, b"</sheetData>", b"<x>" + bytes(65 << 20)), "larger than 64 MiB when unpacked"),
        (changed(one_cell("a"), SHEET, b"<v>0</v>", b"<v>7</v>"), "no workbook that can be read"),
        (one_cell(1)[:-200], "no workbook that can be read"),
    ],
    ids=["no archive", "no number", "no result", "a far cell", "entities", "a bomb", "no such text", "cut"],
)
def test_what_is_wrong_with_a_workbook_is_told(content: bytes, says: str) -> None:
    assert is_workbook(content) or says == "no workbook that can be read"
    with pytest.raises(WrongFileError, match=says):
        read_workbook(content, "x.xlsx")
