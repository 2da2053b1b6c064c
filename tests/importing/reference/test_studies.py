"""The pages of docs/studies: every published table is in one, and each bench file, test and heading is there."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.core.registry import find
from nicbench.importing.reference.data_sets import data_set, data_sets, sheet_of
from nicbench.methods.base import Method

ROOT = Path(__file__).parents[3]
DATA = ROOT / "src/nicbench/importing/reference/data"
PAGES = sorted((ROOT / "docs/studies").glob("*.md"))
HEAD = ["published", "data set", "bench file", "test", "in the report"]
# By which column a reference table numbers the published table of a row, and what pages call such a number.
NUMBERED = {"table": "Table", "figure": "Figure"}


@dataclass(frozen=True)
class Line:
    """A row of a page."""

    page: str
    published: str
    data_set: str | None
    benches: tuple[Path, ...]
    test: str
    places: tuple[str, ...]


def lines_of(page: Path) -> list[Line]:
    rows = [
        [cell.strip() for cell in row.strip("|").split(" | ")]
        for row in page.read_text().splitlines()
        if row[:1] == "|"
    ]
    rows = [[cell.strip("| ") for cell in row] for row in rows]
    assert rows[0] == HEAD
    return [
        Line(
            page=page.name,
            published=row[0],
            data_set=None if row[1] == "-" else row[1].strip("`"),
            benches=tuple((page.parent / path).resolve() for path in re.findall(r"\]\(([^)]+\.yaml)\)", row[2])),
            test=row[3].strip("`"),
            places=tuple(re.findall(r"“([^”]+)”", row[4])),
        )
        for row in rows[2:]
    ]


EVERY = [line for page in PAGES for line in lines_of(page)]


def numbers_in(text: str, word: str) -> set[str]:
    """The numbers that "Tables 5 to 26" or "Table 8" name."""
    found: set[str] = set()
    for first, last in re.findall(rf"{word}s? (\d+)(?: (?:to|and) (\d+))?", text):
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_names_bench_files_that_have_the_test(page: Path) -> None:
    for line in lines_of(page):
        assert line.benches, line
        for bench in line.benches:
            assert line.test in [test.name for test in load(bench).tests], line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_place_is_a_heading_that_a_report_has(page: Path) -> None:
    folder = ROOT / "src/nicbench/report"
    sections = "".join(path.read_text() for path in sorted(folder.rglob("*.py"))).lower()
    written = re.sub(r"\{doing\('(\w+)'\)\}", r"\1", sections).replace("machine{'s' if several else ''}", "machines")
    for line in lines_of(page):
        kinds = {test.method_kind for bench in line.benches for test in load(bench).tests if test.name == line.test}
        methods = [find("nicbench.methods", Method)[kind] for kind in kinds]
        titles = {table.title.partition("{")[0] for method in methods for table in method.tables()}
        assert line.places, line
        for place in line.places:
            is_title = any(place.startswith(title) for title in titles)
            assert is_title or place.lower().replace("machine did", "machines did") in written, (place, line)


def test_every_data_set_is_in_a_page() -> None:
    assert {line.data_set for line in EVERY if line.data_set} == data_sets().keys()


def test_every_published_table_is_in_the_row_of_its_data_set() -> None:
    for name in data_sets():
        said = [line.published for line in EVERY if line.data_set == name]
        wanted: dict[str, set[str]] = {}
        with (DATA / data_set(name).table).open() as file:
            numbered = dict(enumerate(csv.DictReader(file), 2))
        for row in sheet_of(data_set(name)).rows:
            for column, value in numbered[row[0].position.line].items():
                if column in (*NUMBERED, "test"):
                    wanted.setdefault(column, set()).add(str(value))
        for column, values in wanted.items():
            for value in values:
                word = NUMBERED.get(column, "Test")
                there = any(value in numbers_in(text, word) or text.startswith(f"{value}:") for text in said)
                assert there, f"{name}: {column} {value} is in no row"


def test_the_list_of_studies_leads_to_every_page() -> None:
    listed = (ROOT / "docs/studies.md").read_text()
    assert not [page.name for page in PAGES if f"(studies/{page.name})" not in listed]
