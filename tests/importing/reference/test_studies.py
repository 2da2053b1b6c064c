"""The items of published studies: every published table is in one, and each bench file, test and heading is there."""

from __future__ import annotations

import asyncio
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.methods.round_contexts import Laboratory
from tests.methods.test_agreement import compared, times
from tests.methods.test_placement import laboratory, method, obedient
from tests.report import _editors
from tests.report._documents import of_run
from tests.report._synthetic import SyntheticRun
from tests.report.test_watched import written

from nicbench.bench_file import load
from nicbench.core.registry import find
from nicbench.core.result import Result
from nicbench.importing.reference.data_sets import as_run, data_set, data_sets, sheet_of
from nicbench.methods.base import Method
from nicbench.report.document.blocks import Document, Heading, plain
from nicbench.report.document.finishing import walk
from nicbench.report.gather import gather
from nicbench.report.layouts import document
from nicbench.report.sections.rounds import Variable
from nicbench.store import RunFolder

ROOT = Path(__file__).parents[3]
DATA = ROOT / "src/nicbench/importing/reference/data"
PAGES = sorted((ROOT / "docs/studies").glob("*.md"))
ITEMS = ROOT / "docs/studies/items.csv"
# By which column a reference table numbers the published table of a row, and what pages call such a number.
NUMBERED = {"table": "Table", "figure": "Figure"}


@dataclass(frozen=True)
class Line:
    """An item of a study: what was published, and what repeats it."""

    page: str
    published: str
    data_set: str | None
    benches: tuple[Path, ...]
    test: str
    places: tuple[str, ...]


def lines() -> Iterator[Line]:
    with ITEMS.open(encoding="utf-8") as file:
        for item in csv.DictReader(file):
            yield Line(
                page=f"{item['study']}.md",
                published=item["published"],
                data_set=item["data_set"] or None,
                benches=tuple(ROOT / f"examples/{name}.yaml" for name in item["bench_files"].split()),
                test=item["test"],
                places=tuple(re.findall(r"“([^”]+)”", item["in_the_report"])),
            )


EVERY = list(lines())


def lines_of(page: Path) -> list[Line]:
    """The items of the study of a page, which leads to their table."""
    assert f"../tables/studies.markdown#{page.stem})" in page.read_text(encoding="utf-8")
    found = [line for line in EVERY if line.page == page.name]
    assert found
    return found


def numbers_in(text: str, word: str) -> set[str]:
    """The numbers that "Tables 5 to 26" or "Table 8" name."""
    found = set()
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


def test_every_data_set_is_in_an_item() -> None:
    assert {line.data_set for line in EVERY if line.data_set} == data_sets().keys()


def test_every_published_table_is_in_the_row_of_its_data_set() -> None:
    for name in data_sets():
        said = [line.published for line in EVERY if line.data_set == name]
        wanted = {}
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


HEADING_PAGES = ("four-ports.md", "numa.md", "film-frames.md")
# Of each data set: headings do not depend on how many there are.
MOST_RESULTS = 4
TUNED = {"host": "tester", "item": "sysctls", "outcome": "changed", "before": {"a": 1}, "asked": {"a": 0}}


def headings(report: Document) -> Iterator[str]:
    for block in walk(report.blocks):
        if isinstance(block, Heading):
            yield plain(block.inlines)


def ports_results() -> Iterator[Result]:
    """The first published results for each place that the page of four ports names."""
    by_places = {line.places: line.data_set for line in EVERY if line.page == "four-ports.md" and line.data_set}
    for name in sorted(set(by_places.values())):
        yield from as_run(data_set(name)).summary.results[:MOST_RESULTS]


def measured(folder: Path) -> Document:
    """The report of a run with monitors and settings, whose results are of rounds."""
    run = SyntheticRun(folder).start()
    run.folder.write_json("tuning.json", {"settings": [TUNED]})
    written(run.folder.path)
    placed = asyncio.run(method(memory_loads=[0]).run(laboratory(obedient).context))
    agreed = compared(Laboratory(times(1.01)), repetitions=3)
    for result in (*ports_results(), *placed, *agreed):
        run.publish(result.method, result)
    return of_run(run.finish())


def film(folder: Path) -> Document:
    """The report of instances of film, whose tools had an environment."""
    found = _editors.results(instances=(2,), runs=2)
    path = _editors.write(folder, found, ("1x100", "4x25"))
    return document(replace(gather(RunFolder.open(path)), variables=(Variable("LC_ALL", "C", ""),)))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The headings of both, in lines."""
    folder = tmp_path_factory.mktemp("runs")
    return "\n".join(sorted({*headings(measured(folder / "measured")), *headings(film(folder / "film"))}))


@pytest.mark.parametrize("page", HEADING_PAGES)
def test_each_place_is_a_heading_of_a_built_report(page: str, built: str) -> None:
    places = {place for line in EVERY if line.page == page for place in line.places}
    # Of one machine, as of these, the heading is in the singular.
    lacking = {place for place in places if place.replace("machines did", "machine did") not in built}
    assert not lacking, f"{page} names {sorted(lacking)}; the headings are:\n{built}"
