"""The published tables by `nicbench import`: cell for cell as they are printed, their errata apart."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.units import line_rate_frames_per_s
from nicbench.importing.columns import parse_unit
from nicbench.importing.results import ImportedResults
from nicbench.report.section import RunKnowledge
from nicbench.report.tables import sections
from nicbench.report.tails import tail_tables

Imported = Callable[..., ImportedResults]


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
    options: dict[str, Any] = {
        "columns": {"ports": "link"},
        "configurations": ("nic", "scope"),
        "ignore": ("test", "dut"),
    }
    found = imported(path.read_text(), "throughput", **options)
    assert not found.errata
    columns = ("frame_bytes", "frame_rate_mpps", "line_rate_mpps", "percent_of_line_rate")
    rows = lines(path)
    assert zero_loss(found.results) == [
        [tuple(row[column] for column in columns) for row in rows if row["test"] == test] for test in ("1", "2", "5")
    ]
    for row, result in zip(rows, found.results, strict=True):
        total = {"2x25GbE": 50e9, "1x100GbE": 100e9}[row["ports"]]
        ours = line_rate_frames_per_s(total, int(row["frame_bytes"]))
        assert value(result, "line_rate_frames_per_s") == pytest.approx(ours, abs=5000.0)  # printed to 0.01 Mpps
        assert result.scope == ("sum of 2 ports" if row["ports"] == "2x25GbE" else "per port")
        assert result.verdict is ResultVerdict.IMPORTED
        assert result.imported is not None


SINGLE_CORE: dict[str, Any] = {
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
    options: Mapping[str, Any] = {**SINGLE_CORE, "errata": False}
    with pytest.raises(
        Exception, match=r"throughput 49.06 Gb/s cannot be: 4.81 Mpps of 1280 bytes on layer 2"
    ) as refused:
        imported(text, "single-core", **options)
    assert "x.csv:14:51: throughput" in str(refused.value)
    assert "computed: 49.2544 Gb/s" in str(refused.value)
