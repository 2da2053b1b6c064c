"""The published frames tables (docs/studies.md) through the import: statistics are those printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import WrongFileError
from nicbench.core.registry import find
from nicbench.core.result import ResultVerdict
from nicbench.importing.cells import read_sheet
from nicbench.importing.columns import ImportOptions, choose_rows, parse_unit, plain
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults, import_results
from nicbench.methods.frames import IMPORTS, Frames
from nicbench.stats.frames import RATE, SUM, Target, find_sustained, runs_of, summarise_run_figures

TARGET = Target()
FPS = parse_unit("fps")


def imported(text: str, form: str = "plain", **said: Any) -> ImportedResults:
    options = ImportOptions(**said)
    sheet = choose_rows(read_sheet(text, "x.csv"), options)
    formatted = find("nicbench.importing.formats", Format)[form].sheet(sheet, "x.csv", "frames", options)
    return import_results(formatted, "x.csv", Frames, options)


def text_of(reference: Path, name: str) -> str:
    return (reference / f"frametest_r750_2022_{name}.csv").read_text()


def sums(reference: Path) -> ImportedResults:
    return imported(
        text_of(reference, "sums"), units={"fps_sum": FPS}, ignore=("table",), configurations=("configuration",)
    )


def instances(reference: Path) -> ImportedResults:
    return imported(
        text_of(reference, "read_instances"),
        given={"direction": "read"},
        ignore=("table",),
        configurations=("configuration",),
    )


def statistics(reference: Path) -> ImportedResults:
    """A figure on each row; the column of their names is called ``metric`` by that format."""
    names = ("average", "median", "target", "stdev", "sum")
    return imported(
        text_of(reference, "published_statistics").replace("statistic", "metric", 1),
        "long",
        units=dict.fromkeys(names, FPS),
        ignore=("table",),
        configurations=("configuration",),
        errata=True,
    )


def test_every_row_becomes_a_result_with_the_digits_of_its_source(reference: Path) -> None:
    found = sums(reference)
    assert len(found.results) == 720
    assert not found.errata
    first = found.results[0]
    assert first.imported is not None
    assert first.verdict is ResultVerdict.IMPORTED
    assert (first.imported.printed[SUM].text, first.imported.printed[SUM].unit) == ("25.2", "fps")
    assert first.parameters == {"direction": "read", "instances": 1, "run": 1, "part": "runs"}
    assert first.configuration == "1x100"


def test_rates_of_instances_need_no_option_for_their_unit(reference: Path) -> None:
    found = instances(reference)
    assert len(found.results) == 1800
    assert {result.parameters["part"] for result in found.results} == {"instances"}
    assert found.results[0].values == {RATE: 25.2}


def test_the_summary_rows_of_the_imported_runs_are_those_printed(reference: Path) -> None:
    """Average, median and target; averages to half a unit of the inputs and half a unit of their own."""
    runs = runs_of(sums(reference).results, TARGET)
    assert len(runs) == 48
    printed = [result for result in statistics(reference).results if result.parameters["part"] == "summary"]
    assert len(printed) == 48
    for result in printed:
        said = result.parameters
        over = summarise_run_figures(runs[result.configuration, said["direction"], said["instances"]], TARGET)
        assert over.runs == 15
        assert over.median_frames_per_s == result.values["median_frames_per_s"]
        assert over.target_frames_per_s == result.values["target_frames_per_s"]
        assert over.average_frames_per_s == pytest.approx(result.values["average_frames_per_s"], abs=0.1)


@pytest.mark.parametrize(
    ("configuration", "direction", "every", "median"),
    [("1x100", "read", 9, 9), ("1x100", "write", 9, 9), ("4x25", "read", 2, 4), ("4x25", "write", 3, 4)],
)
def test_the_imported_runs_tell_the_streams_sustained(
    reference: Path, configuration: str, direction: str, every: int, median: int
) -> None:
    runs = runs_of(sums(reference).results, TARGET)
    found = find_sustained(
        summarise_run_figures(of, TARGET) for point, of in runs.items() if point[:2] == (configuration, direction)
    )
    assert found is not None
    assert (found.in_every_run.instances, found.in_median_run.instances) == (every, median)
    assert found.by_every_instance is None, "of sums alone nobody knows"


def test_runs_are_made_of_instances_where_those_are_printed(reference: Path) -> None:
    runs = runs_of((*instances(reference).results, *sums(reference).results), TARGET)
    assert len(runs) == 48
    known = [run for of_point in runs.values() for run in of_point if run.instances_met is not None]
    assert len(known) == 300


def test_an_instance_that_the_file_lacks_is_unknown() -> None:
    found = imported("instances,run,instance,fps\n2,1,1,24\n2,2,1,24\n2,2,2,23.9\n")
    (runs,) = runs_of(found.results, TARGET).values()
    assert [run.is_met for run in runs] == [False, True]
    assert runs[0].sum_frames_per_s is None


def test_what_is_an_erratum_is_as_good_as_unknown() -> None:
    heads = "instances,run,instance,fps,dropped frames,due frames"
    rows = ("1,1,1,-24,0,480", "1,2,1,24,9,8", "1,3,2,24,0,480", "0,4,,24,0,480", "1.5,5,1,24,0,480")
    found = imported("\n".join((heads, *rows)), errata=True)
    assert len(found.errata) == 5
    (runs,) = runs_of(found.results, TARGET).values()
    assert [(run.sum_frames_per_s, run.dropped_frames, run.due_frames) for run in runs] == [
        (None, 0, 480),
        (24.0, 9, None),
    ]


def test_where_no_run_is_numbered_there_is_one() -> None:
    (runs,) = runs_of(imported("instances,sum [fps]\n2,47.9\n").results, TARGET).values()
    assert [run.is_met for run in runs] == [True]


def test_dropped_frames_come_along() -> None:
    found = imported("instances,run,instance,fps,dropped frames,due frames\n1,1,1,23.95,1,480\n")
    (runs,) = runs_of(found.results, TARGET).values()
    assert (runs[0].dropped_frames, runs[0].due_frames) == (1, 480)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("instances,run,sum [Mpps]\n1,1,24\n", "Mpps counts frames on a line, and this is of film"),
        ("instances,run,sum\n1,1,24\n", "it has no unit"),
        ("instances,run,sum [fps]\n1,1,-24\n", "nothing of it can be negative"),
        ("instances,run,sum [fps]\n1,1,24\n1,1,25\n", "the same as line 2"),
        ("instances,run,instance,fps\n1,1,2,24\n", "it cannot be less than the instance, 2"),
        ("instances,run,instance,fps,dropped frames,due frames\n1,1,1,24,9,8\n", "less than the dropped frames, 9"),
        ("run,sum [fps]\n1,24\n", "there is no column `instances`"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(text: str, refused: str) -> None:
    with pytest.raises(WrongFileError, match=refused):
        imported(text)


def test_no_two_columns_answer_to_one_name_and_rules_are_about_columns() -> None:
    names = [name for column in IMPORTS.columns for name in {plain(name) for name in (column.name, *column.also)}]
    assert len(names) == len(set(names))
    values = {column.value for column in IMPORTS.columns}
    assert {name for rule in IMPORTS.rising for name in rule} <= values
    assert set(IMPORTS.any_of) <= values
