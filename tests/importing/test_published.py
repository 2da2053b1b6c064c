"""The published tables by `nicbench import`: cell for cell as they are printed, their errata apart."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import WrongFileError
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.registry import find
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.units import line_rate_frames_per_s
from nicbench.importing.cells import read_sheet
from nicbench.importing.columns import ImportOptions, choose_rows, parse_unit, plain
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults, import_results
from nicbench.methods.frames import IMPORTS, Frames
from nicbench.report.section import RunKnowledge
from nicbench.report.tables import sections
from nicbench.report.tails import tail_tables
from nicbench.stats.frames import (
    RATE,
    SUM,
    Point,
    RunFigures,
    Target,
    find_sustained,
    group_by_point,
    summarise_run_figures,
)

Imported = Callable[..., ImportedResults]


def runs_of(results: Iterable[Result], default: Target) -> dict[Point, tuple[RunFigures, ...]]:
    """The figures of each run, by point."""
    return {
        point: tuple(ran.figures for ran in found.runs) for point, found in group_by_point(results, default).items()
    }


def lines(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def value(result: Result, name: str) -> float:
    found = result.values[name]
    assert isinstance(found, int | float)
    return float(found)


def zero_loss(results: tuple[Result, ...]) -> list[list[tuple[str, ...]]]:
    """The cells of every zero-loss table."""
    goals = {"search": {"goals": {"NDR": 0.0}}}
    test = PlannedTest(name="throughput", method="throughput", description="", options=goals, points=1, estimate_s=0.0)
    plan = Plan(run_id="x", title="x", nicbench_version="0", seed=0, tests=(test,))
    found = [further for section in sections(results, {}, known=RunKnowledge(plan)) for further in section.further]
    return [[row.cells for row in further.rows] for further in found if further.table.title == "Zero packet loss"]


def test_zero_loss(imported: Imported, reference: Path) -> None:
    path = reference / "connectx5_dpdk1908_zero_loss.csv"
    options = {
        "columns": {"ports": "link"},
        "configurations": ("nic", "scope"),
        "ignore": ("test", "dut"),
    }
    found = imported(path.read_text(), "throughput", **options)
    assert not found.errata
    columns = ("frame_bytes", "frame_rate_mpps", "line_rate_mpps", "percent_of_line_rate")
    rows = lines(path)
    assert zero_loss(found.results) == [
        [tuple(row[column] for column in columns) for row in rows if row["test"] == test]
        for test in ("1", "2", "5", "6")
    ]
    for row, result in zip(rows, found.results, strict=True):
        total = {"2x25GbE": 50e9, "1x100GbE": 100e9}[row["ports"]]
        ours = line_rate_frames_per_s(total, int(row["frame_bytes"]))
        assert value(result, "line_rate_frames_per_s") == pytest.approx(ours, abs=5000.0)  # printed to 0.01 Mpps
        assert result.scope == ("sum of 2 ports" if row["ports"] == "2x25GbE" else "per port")
        assert result.verdict is ResultVerdict.IMPORTED
        assert result.imported is not None


SINGLE_CORE = {
    "columns": {"ports": "link", "cpu_cycles_per_packet": "TSC cycles per packet"},
    "units": {"throughput_gbps": parse_unit("Gb/s L2")},
    "configurations": ("nic",),
    "ignore": ("test", "dut"),
    "errata": True,
}


def test_single_core(imported: Imported, reference: Path) -> None:
    path = reference / "connectx5_dpdk1908_single_core.csv"
    found = imported(path.read_text(), "single-core", **SINGLE_CORE)
    columns = ("frame_rate_mpps", "line_rate_mpps", "throughput_gbps", "cpu_frequency_ghz", "cpu_cycles_per_packet")
    heads = ("Frame rate", "Line rate", "Throughput", "DUT's core", "TSC cycles per packet")
    shown = []
    for section in sections(found.results, {}):
        for row in section.rows:
            cells = dict(zip((column.head for column in section.table.columns), row.cells, strict=True))
            shown.append(tuple(cells[head] for head in heads))
    assert shown == [tuple(row[column] for column in columns) for row in lines(path)]


def test_the_errata_of_single_core_are_those_that_are_known(imported: Imported, reference: Path) -> None:
    """At 100 Gb/s the line rate is that of one port where two carry traffic; at 25 three bit rates miss their rates."""
    path = reference / "connectx5_dpdk1908_single_core.csv"
    found = imported(path.read_text(), "single-core", **SINGLE_CORE)
    listed = [
        (result.configuration, result.parameters["frame_bytes"], erratum.value, erratum.printed)
        for result, erratum in found.errata
    ]
    rows = lines(path)
    one_port = [
        (row["nic"], int(row["frame_bytes"]), "line_rate_frames_per_s", f"{row['line_rate_mpps']} Mpps")
        for row in rows
        if row["ports"] == "2x100GbE"
    ]
    wrong = {"128": "43.039 Gb/s", "512": "48.091 Gb/s", "1280": "49.06 Gb/s"}
    bits = [("ConnectX-5 25GbE", int(size), "throughput_l2_bits_per_s", text) for size, text in wrong.items()]
    assert listed == [*one_port, *bits]
    computed = {erratum.printed: erratum.computed for _, erratum in found.errata}
    assert computed["49.06 Gb/s"] == "49.2544 Gb/s"
    assert computed["148.81 Mpps"] == "297.619 Mpps"


def test_load_sweep(imported: Imported, reference: Path) -> None:
    path = reference / "nsfnic4_2000_load_sweep.csv"
    found = imported(path.read_text(), "load-sweep", ignore=("table",))
    (section,) = sections(found.results, {})
    assert [grid.title for grid in section.grids] == ["64 bytes", "1000 bytes"]
    for grid, number in zip(section.grids, ("6", "7"), strict=True):
        cells = [row["returned_percent"] for row in lines(path) if row["table"] == number]
        assert grid.corner == "Load [% of line rate]"
        assert [cell.text if cell else None for _, crossings in grid.rows for cell in crossings] == cells
        modes = [f"{speed} Mb/s, {duplex} duplex" for speed in (10, 100) for duplex in ("half", "full")]
        assert grid.spans(0) == tuple((mode, 2) for mode in modes)
        assert grid.spans(1) == (("2 ports", 1), ("4 ports", 1)) * 4


def test_long_tail(imported: Imported, reference: Path) -> None:
    """The report does not print the frame size of its 100 million frames; 64 bytes stand in."""
    found = imported(
        (reference / "netxtreme25_2018_findings.csv").read_text(),
        "latency",
        "long",
        where={"test": "RFC 2544, 100M frames at lossless rate"},
        configurations=("device",),
        given={"frame size": "64", "load [% of throughput]": "100", "timed frames": "100000000"},
        columns={"latency bound of all frames": "maximum latency"},
    )
    (table,) = tail_tables(found.results, {})
    assert (table.load, table.bounds) == ("100 % of the throughput", ("10", "20", "120"))
    nothing = ("\u2013", "\u2013")
    assert [(row.name, row.frames, row.outside) for row in table.rows] == [
        ("NetXtreme P225p 25GbE, 64 bytes", "100\u202f000\u202f000", (nothing, ("35\u202f000", "0.0350 %"), nothing)),
        (
            "ConnectX-4 Lx 25GbE, 64 bytes",
            "100\u202f000\u202f000",
            (("1\u202f300\u202f000", "1.30 %"), nothing, ("145\u202f000", "0.145 %")),
        ),
    ]
    assert value(found.results[0], "latency_maximum_ns") == 40_000


def test_without_the_option_errata_are_refused_with_place_and_computed_value(
    imported: Imported, reference: Path
) -> None:
    text = (reference / "connectx5_dpdk1908_single_core.csv").read_text()
    options = {**SINGLE_CORE, "errata": False}
    with pytest.raises(
        Exception, match=r"throughput 49.06 Gb/s cannot be: 4.81 Mpps of 1280 bytes on layer 2"
    ) as refused:
        imported(text, "single-core", **options)
    assert "x.csv:14:51: throughput" in str(refused.value)
    assert "computed: 49.2544 Gb/s" in str(refused.value)


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
    assert first.verdict is ResultVerdict.IMPORTED
    assert (first.imported.printed[SUM].text, first.imported.printed[SUM].unit) == ("25.2", "fps")
    assert first.parameters == {"direction": "read", "instances": 1, "run": 1, "part": "runs"}
    assert first.configuration == "1x100"


def test_rates_of_instances_need_no_option_for_their_unit(reference: Path) -> None:
    found = instances(reference)
    assert len(found.results) == 2340
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
    assert (found.in_every_run.instances, found.in_median_run.instances) == (every, median)
    assert found.by_every_instance is None, "of sums alone nobody knows"


def test_runs_are_made_of_instances_where_those_are_printed(reference: Path) -> None:
    runs = runs_of((*instances(reference).results, *sums(reference).results), TARGET)
    assert len(runs) == 48
    known = [run for of_point in runs.values() for run in of_point if run.instances_met is not None]
    assert len(known) == 360


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
