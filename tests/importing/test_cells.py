"""Cells and their places, whatever wrote the file; the standard library's reader is the oracle of what they hold."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.errors import Position, WrongFileError
from nicbench.importing import cells
from nicbench.importing.cells import read_sheet

TEXTS = st.text(alphabet=st.sampled_from("ab1,;\"\t\n '."), max_size=12)


def rows(text: str, delimiter: str | None = None) -> list[list[str]]:
    sheet = read_sheet(text, "x.csv", delimiter)
    return [[cell.text for cell in row] for row in sheet.rows]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters_and_line_ends_are_found(mark: str, ends: str) -> None:
    text = ends.join([mark.join("abc"), mark.join("123"), "", mark.join("456")]) + ends
    assert rows(text) == [["1", "2", "3"], ["4", "5", "6"]]


def test_a_line_of_excel_names_the_delimiter() -> None:
    assert rows("sep=;\na,x;b\n1,5;2\n") == [["1,5", "2"]]


def test_what_is_quoted_holds_anything_and_keeps_its_place() -> None:
    sheet = read_sheet('a,b\n"x, ""y""\nz" , 2\n3,4\n', "x.csv")
    assert [[(cell.text, cell.position) for cell in row] for row in sheet.rows] == [
        [('x, "y"\nz', Position(2, 1)), ("2", Position(3, 5))],
        [("3", Position(4, 1)), ("4", Position(4, 3))],
    ]


@given(st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_what_the_standard_library_writes_is_read_as_it_was(table: list[list[str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["a", "b", "c"], *table])
    kept = [[cell.strip() for cell in row] for row in table if any(cell.strip() for cell in row)]
    if kept:
        assert rows(stream.getvalue(), ",") == kept


@given(st.text(alphabet=st.sampled_from('a1,;"\n\r'), max_size=60))
def test_whatever_the_text_it_is_a_sheet_or_an_error_with_a_place(text: str) -> None:
    places, widths = ["x.csv:"], {0}
    try:
        sheet = read_sheet(text, "x.csv")
        widths = {len(row) - len(sheet.heads) for row in sheet.rows}
    except WrongFileError as error:
        places = [str(error.place)]
    assert widths == {0}
    assert places[0].startswith("x.csv:")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "has no heading"),
        ("a,b\n", "1:1", "has headings and no rows"),
        ("a,b\n1,2,3\n", "2:5", "this row has 3 cells and the file 2 headings"),
        ("a,a\n1,2\n", "1:3", "`a` is a heading already, in column 1"),
        ("a,,c\n1,2,3\n", "1:3", "this column has no heading"),
        ('a,b\n"1,2\n', "2:1", "this quote is never closed"),
        ('a,b\n"1"x,2\n', "2:4", "there is text after the closing quote"),
        (f"a,b\n{'9' * 1001},2\n", "2:1", "this cell has more than 1000 characters"),
        (",".join(map(str, range(300))) + "\n1\n", "1:1", "has 300 columns, more than 256"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(WrongFileError) as refused:
        read_sheet(text, "x.csv")
    assert (refused.value.place, refused.value.message) == (f"x.csv:{place}", message)


def test_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_ROWS", 3)
    assert len(rows("a\n1\n2\n3\n")) == 3
    with pytest.raises(WrongFileError, match="has more than 3 rows"):
        rows("a\n1\n2\n3\n4\n")


def test_what_stands_above_the_headings_is_left_out_and_lines_keep_their_numbers() -> None:
    sheet = read_sheet('A report, "unfinished\n\na,b\n1,2\n', "x.csv", heading_line=3)
    assert sheet.rows[0][1].position == Position(4, 3)
