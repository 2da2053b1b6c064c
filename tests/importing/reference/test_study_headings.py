"""The pages of docs/studies name headings that reports have: looked for in reports that are built here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.importing.reference.test_studies import EVERY
from tests.methods.round_contexts import Laboratory
from tests.methods.test_agreement import compared, times
from tests.methods.test_placement import laboratory, method, obedient
from tests.report import _editors
from tests.report._documents import of_run
from tests.report._synthetic import SyntheticRun
from tests.report.test_watched import written

from nicbench.core.result import Result
from nicbench.importing.reference.data_sets import as_run, data_set
from nicbench.report.document.blocks import Document, Heading, plain
from nicbench.report.document.finishing import walk
from nicbench.report.gather import gather
from nicbench.report.layouts import document
from nicbench.report.sections.rounds import Variable
from nicbench.store import RunFolder

PAGES = ("four-ports.md", "numa.md", "film-frames.md")
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


@pytest.mark.parametrize("page", PAGES)
def test_each_place_is_a_heading_of_a_built_report(page: str, built: str) -> None:
    places = {place for line in EVERY if line.page == page for place in line.places}
    # Of one machine, as of these, the heading is in the singular.
    lacking = {place for place in places if place.replace("machines did", "machine did") not in built}
    assert not lacking, f"{page} names {sorted(lacking)}; the headings are:\n{built}"
