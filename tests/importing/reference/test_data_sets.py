"""The built-in data sets: every descriptor imports without a problem, its errata are those that are known."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.importing.test_published import runs_of

from nicbench.core.errors import UsageError
from nicbench.importing.reference.data_sets import (
    DataSet,
    command_line,
    data_set,
    data_sets,
    errata_of,
    plain,
    results_of,
    sheet_of,
)
from nicbench.stats.frames import Target, find_sustained, summarise_run_figures

DATA = Path(__file__).parents[3] / "src/nicbench/importing/reference/data"
TAKEN = [one.name for one in data_sets().values() if one.reading]
SHOWN = [one.name for one in data_sets().values() if not one.reading]

RESULTS = {
    "connectx5-single-core": 14,
    "connectx5-zero-loss": 28,
    "frametest-read-instances": 2340,
    "frametest-statistics": 408,
    "frametest-sums": 720,
    "netxtreme25-long-tail": 2,
    "nsfnic4-eight-ports": 16,
    "nsfnic4-eight-ports-combined": 2,
    "nsfnic4-forwarding": 16,
    "nsfnic4-four-ports": 8,
    "nsfnic4-four-ports-combined": 2,
    "nsfnic4-load-sweep": 160,
    "nsfnic4-port-alone": 16,
    "nsfnic4-transfers": 16,
    "nsfnic4-transfers-fast-client": 16,
    "nsfnic4-two-clients": 16,
    "nsfnic4-two-clients-combined": 2,
}
FIGURES_A_ROW = {"frametest-statistics": 1164 / 408, "netxtreme25-long-tail": 2}


@pytest.mark.parametrize("name", TAKEN)
def test_every_row_becomes_a_result(name: str) -> None:
    chosen = data_set(name)
    found = results_of(chosen)
    assert len(found.results) == RESULTS[name]
    assert len(sheet_of(chosen).rows) == round(len(found.results) * FIGURES_A_ROW.get(name, 1))
    assert {result.method for result in found.results} == {chosen.reading.method if chosen.reading else None}


def test_each_of_these_data_sets_is_there() -> None:
    assert sorted(RESULTS) == TAKEN
    assert SHOWN == ["netxtreme25-findings", "snapio-findings"]


def test_every_table_is_of_a_data_set_and_every_row_is_shown_by_one() -> None:
    shown = {}
    for one in data_sets().values():
        shown.setdefault(one.table, set()).update(row[0].position.line for row in sheet_of(one).rows)
    assert sorted(shown) == sorted(path.name for path in DATA.glob("*.csv"))
    for table, lines in shown.items():
        with (DATA / table).open() as file:
            assert len(lines) == len(list(csv.DictReader(file))), table


@pytest.mark.parametrize("name", SHOWN)
def test_what_no_method_takes_says_why(name: str) -> None:
    chosen = data_set(name)
    assert command_line(chosen) is None
    assert plain(chosen)["rows"]
    with pytest.raises(UsageError, match=f"{name} cannot become a run: .+"):
        results_of(chosen)


def test_the_errata_are_those_that_are_known() -> None:
    found = {
        name: [(one.found_by, one.place, one.printed, one.computed) for one in errata_of(one_set)]
        for name, one_set in data_sets().items()
        if errata_of(one_set)
    }
    one_port = ["148.81", "84.46", "45.29", "23.5", "11.97", "9.62", "8.13"]
    single_core = found.pop("connectx5-single-core")
    assert [printed for _, _, printed, _ in single_core] == [
        *(f"{rate} Mpps" for rate in one_port),
        *("43.039 Gb/s", "48.091 Gb/s", "49.06 Gb/s"),
    ]
    assert {by for by, *_ in single_core} == {"computed"}
    assert found == {
        "frametest-statistics": [("computed", "175:24", "0.1 fps", "0 fps")],
        "frametest-sums": [("declared", "206:17", "25.1 fps", "24.9 fps")],
    }


@pytest.mark.parametrize("name", ["frametest-statistics", "frametest-sums"])
def test_what_is_wrong_is_what_stands_there_and_goes_with_its_result(name: str) -> None:
    chosen = data_set(name)
    lines = (DATA / chosen.table).read_text().splitlines()
    ((result, erratum),) = results_of(chosen).errata
    printed = result.imported.printed[erratum.value]
    assert f"{printed.text} {printed.unit}" == erratum.printed
    line, column = map(int, erratum.place.split(":"))
    assert lines[line - 1][column - 1 :] == printed.text


def test_a_sum_that_another_table_contradicts_is_listed_and_still_counts() -> None:
    runs = runs_of(results_of(data_set("frametest-sums")).results, Target())
    for place, every, median in (
        (("1x100", "read"), 9, 9),
        (("1x100", "write"), 9, 9),
        (("4x25", "read"), 2, 4),
        (("4x25", "write"), 3, 4),
    ):
        found = find_sustained(summarise_run_figures(of, Target()) for point, of in runs.items() if point[:2] == place)
        assert (found.in_every_run.instances, found.in_median_run.instances) == (every, median)
        assert not found.in_every_run.gaps


@pytest.mark.parametrize(
    ("name", "table", "duplex", "rate", "cpu"),
    [
        ("nsfnic4-four-ports-combined", "8", "full", 327.93e6, (98.0, 60.0, 100.0)),
        ("nsfnic4-two-clients-combined", "9", "half", 298.88e6, (88.0, 48.0, 95.0)),
        ("nsfnic4-eight-ports-combined", "10", "half", 320.56e6, (99.0, 64.0, 100.0)),
    ],
)
def test_all_ports_together_are_a_combined_result(
    name: str, table: str, duplex: str, rate: float, cpu: tuple[float, ...]
) -> None:
    assert data_set(name).rows_wanted == {"table": table}
    (result,) = (one for one in results_of(data_set(name)).results if one.parameters["duplex"] == duplex)
    assert result.parameters["part"] == "combined"
    assert "port" not in result.parameters
    assert result.values["throughput_bits_per_s"] == pytest.approx(rate)
    names = ("mean", "minimum", "maximum")
    assert tuple(result.values[f"server_cpu_{name}_percent"] for name in names) == cpu


def test_two_clients_of_a_port_are_results_of_clients() -> None:
    results = results_of(data_set("nsfnic4-two-clients")).results
    assert {one.parameters["part"] for one in results} == {"clients"}
    assert {one.parameters["client"] for one in results} == {"100 MHz Pentium", "166 MHz Pentium"}


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no built-in data set 'connectx5-zeroloss'") as refused:
        data_set("connectx5-zeroloss")
    assert refused.value.next_step == "did you mean `connectx5-zero-loss`?"


def test_a_descriptor_without_reading_and_reason_is_refused() -> None:
    with pytest.raises(ValidationError, match="either a `reading` or a `why_not`"):
        DataSet(name="x", title="x", year=2000, source="x", about="x", table="x.csv")


@pytest.mark.parametrize("name", TAKEN)
def test_results_stay_apart_at_the_points_of_the_studys_own_bench_file(name: str) -> None:
    chosen = data_set(name)
    found = [chosen.points.of(result) for result in results_of(chosen).results]
    points = {(one.configuration, json.dumps(one.parameters, sort_keys=True)) for one in found}
    assert len(points) == len(found)
    assert not any("{" in str(value) for one in found for value in one.parameters.values())
