"""Exports of testers. What is known of them is said in each format's file; here a golden file of each, and its results.

The figures of the IxNetwork file are those that the maker's own sample script prints of a flow; TestCenter's are made
up, in the columns that public programs read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.core.errors import UsageError
from nicbench.core.registry import find
from nicbench.core.result import Bounded
from nicbench.importing.columns import parse_link
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults

Imported = Callable[..., ImportedResults]
GIGABIT, TEN_GIGABIT = parse_link("1x1GbE"), parse_link("1x10GbE")


def test_every_format_says_what_it_is() -> None:
    formats = find("nicbench.importing.formats", Format)
    assert list(formats) == ["iperf3", "ixnetwork", "long", "plain", "testcenter", "trex"]
    assert all(one.about for one in formats.values())


def test_ixnetwork_latency(imported: Imported, golden: Path) -> None:
    text = (golden / "ixnetwork_aggregate_results.csv").read_text()
    (result,) = imported(text, "latency", "ixnetwork").results
    assert (result.parameters["load_percent"], result.parameters["load_of"]) == (10.0, "line rate")
    latencies = ("latency_minimum_ns", "latency_mean_ns", "latency_maximum_ns")
    assert [result.values[name] for name in latencies] == [13_120, 112_147_705, 257_539_360]
    assert result.values["loss_ratio"] == pytest.approx(2e-5)


def test_ixnetwork_throughput_that_allowed_loss_is_a_pdr(imported: Imported, golden: Path) -> None:
    text = (golden / "ixnetwork_aggregate_results.csv").read_text()
    with pytest.raises(UsageError, match=r"loss 0.002 % cannot be: the rate beside it was found without loss"):
        imported(text, "throughput", "ixnetwork", link=GIGABIT)
    (result,) = imported(text, "throughput", "ixnetwork", link=GIGABIT, loss_ratio=0.005).results
    assert result.values["pdr_frames_per_s"] == Bounded(value=69955.021)
    assert result.values["pdr_percent_of_line_rate"] == 4.701
    assert result.values["line_rate_frames_per_s"] == pytest.approx(1e9 / (84 * 8))


def test_ixnetwork_frame_loss(imported: Imported, golden: Path) -> None:
    text = (golden / "ixnetwork_aggregate_results.csv").read_text()
    (result,) = imported(text, "frame-loss", "ixnetwork").results
    names = ("offered_frames", "returned_frames", "lost_frames", "loss_percent")
    assert [result.values[name] for name in names] == [1_488_095, 1_488_068, 27, 0.002]


def test_several_trials_are_not_thrown_together(imported: Imported, golden: Path) -> None:
    head, row, *_ = (golden / "ixnetwork_aggregate_results.csv").read_text().splitlines()
    text = "\n".join([head, row, row.replace("1,64", "2,64", 1)])
    with pytest.raises(UsageError, match="about the same as line 2"):
        imported(text, "latency", "ixnetwork")
    (result,) = imported(text, "latency", "ixnetwork", where={"Trial": "2"}).results
    assert result.imported is not None
    assert result.imported.line == 3


def test_testcenter_throughput_is_the_highest_load_that_passed(imported: Imported, golden: Path) -> None:
    text = (golden / "testcenter_throughput.csv").read_text()
    found = imported(text, "throughput", "testcenter", link=TEN_GIGABIT)
    rates = [result.values["ndr_frames_per_s"] for result in found.results]
    assert rates == [
        Bounded(value=11_160_714.0),
        Bounded(value=8_445_945.0),
        Bounded(value=None, reason_null="the source has no figure"),
    ]
    assert [result.imported.line for result in found.results if result.imported] == [4, 6, 7]


def test_testcenter_latency_is_at_every_load(imported: Imported, golden: Path) -> None:
    text = (golden / "testcenter_throughput.csv").read_text()
    results = imported(text, "latency", "testcenter").results
    assert [result.parameters["load_percent"] for result in results] == [100.0, 50.0, 75.0, 87.5, 100.0, 1.0]
    assert results[1].values["latency_maximum_ns"] == 21_550


@pytest.mark.parametrize("form", ["ixnetwork", "testcenter"])
def test_a_table_of_something_else_is_no_export(form: str, imported: Imported) -> None:
    with pytest.raises(UsageError, match="this is no table of"):
        imported("frame size,frame rate [Mpps]\n64,1\n", "throughput", form)
    with pytest.raises(UsageError, match="nothing is known of how"):
        imported("Framesize,x\n64,1\n", "single-core", form)


def test_a_long_table_needs_its_columns_and_each_figure_once(imported: Imported) -> None:
    with pytest.raises(UsageError, match="there is no column `metric`"):
        imported("a,value\n1,2\n", "latency", "long")
    with pytest.raises(UsageError, match="stands on line 2 already"):
        imported("metric,value\nmin,2\nmin,3\n", "latency", "long")
