"""The items of published studies: every published table is in one, and each bench file, test and heading is there."""

from __future__ import annotations

import asyncio
import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
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
from nicbench.bench_file.models import BenchFile
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

sys.path.insert(0, str(Path(__file__).parents[3] / "docs/site"))
from nicbench_docs.items import FOLDER, Item, items

ROOT = Path(__file__).parents[3]
DATA = ROOT / "src/nicbench/importing/reference/data"
PAGES = sorted(FOLDER.glob("*.md"))
# By which column a reference table numbers the published table of a row, and what pages call such a number.
NUMBERED = {"table": "Table", "figure": "Figure"}
EVERY = list(items())
UNPRINTED = {"sriov", "numa", "incast-roce", "eight-ports", "testpmd", "l3fwd", "zero-loss", "streams", "frames-nfs"}


def items_of(page: Path) -> list[Item]:
    """The items of the study of a page, which leads to their table and to what was printed."""
    text = page.read_text(encoding="utf-8")
    assert f"../tables/studies.markdown#{page.stem})" in text
    found = [item for item in EVERY if item.study == page.stem]
    assert found
    return found


def benches_of(item: Item) -> list[BenchFile]:
    return [load(ROOT / f"examples/{name}.yaml") for name in item.bench_files]


def numbers_in(text: str, word: str) -> set[str]:
    """The numbers that "Tables 5 to 26" or "Table 8" name."""
    found = set()
    for first, last in re.findall(rf"{word}s? (\d+)(?: (?:to|and) (\d+))?", text):
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_names_bench_files_that_have_the_test(page: Path) -> None:
    for item in items_of(page):
        assert item.bench_files, item
        for bench in benches_of(item):
            assert item.test in [test.name for test in bench.tests], item


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_place_is_a_heading_that_a_report_has(page: Path) -> None:
    folder = ROOT / "src/nicbench/report"
    sections = "".join(path.read_text() for path in sorted(folder.rglob("*.py"))).lower()
    written = re.sub(r"\{doing\('(\w+)'\)\}", r"\1", sections).replace("machine{'s' if several else ''}", "machines")
    for item in items_of(page):
        kinds = {test.method_kind for bench in benches_of(item) for test in bench.tests if test.name == item.test}
        methods = [find("nicbench.methods", Method)[kind] for kind in kinds]
        titles = {table.title.partition("{")[0] for method in methods for table in method.tables()}
        assert item.places, item
        for place in item.places:
            is_title = any(place.startswith(title) for title in titles)
            assert is_title or place.lower().replace("machine did", "machines did") in written, (place, item)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_each_command_printed_stands_below_it(page: Path) -> None:
    text = page.with_suffix(".txt").read_text(encoding="utf-8")
    assert f"({page.stem}.txt)" in page.read_text(encoding="utf-8")
    for item in items_of(page):
        (below,) = re.findall(rf"(?ms)^{item.number}\. {re.escape(item.published)}$(.*?)^$", text)
        for command in item.commands:
            if Path(command.split()[-1]).stem in UNPRINTED:
                continue
            assert re.search(rf"(?m)^\$ {re.escape(command)}\n  \S", below), f"{item.number}: {command} printed nothing"


def test_every_data_set_is_in_an_item() -> None:
    assert {item.data_set for item in EVERY if item.data_set} == data_sets().keys()


def test_every_published_table_is_in_the_row_of_its_data_set() -> None:
    for name in data_sets():
        said = [item.published for item in EVERY if item.data_set == name]
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


HEADING_STUDIES = ("four-ports", "numa", "film-frames")
# Of each data set: headings do not depend on how many there are.
MOST_RESULTS = 4
TUNED = {"host": "tester", "item": "sysctls", "outcome": "changed", "before": {"a": 1}, "asked": {"a": 0}}


def headings(report: Document) -> Iterator[str]:
    for block in walk(report.blocks):
        if isinstance(block, Heading):
            yield plain(block.inlines)


def ports_results() -> Iterator[Result]:
    """The first published results for each place that the page of four ports names."""
    by_places = {item.places: item.data_set for item in EVERY if item.study == "four-ports" and item.data_set}
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


@pytest.mark.parametrize("study", HEADING_STUDIES)
def test_each_place_is_a_heading_of_a_built_report(study: str, built: str) -> None:
    places = {place for item in EVERY if item.study == study for place in item.places}
    # Of one machine, as of these, the heading is in the singular.
    lacking = {place for place in places if place.replace("machines did", "machine did") not in built}
    assert not lacking, f"{study} names {sorted(lacking)}; the headings are:\n{built}"
