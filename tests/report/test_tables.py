"""Sections that methods bring along, and tables laid out across: values as text, and published tables cell for cell."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from nicbench.cli.summary_table import print_summary
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.core.table import Column, Grid
from nicbench.methods.single_core import NO_RECORD, SingleCore
from nicbench.report import numbers
from nicbench.report.answer.of_run import in_brief
from nicbench.report.drawing import kit
from nicbench.report.drawing.plots import curve_chart, curves
from nicbench.report.numbers import UNKNOWN, speak_number
from nicbench.report.section import GridTable, RunKnowledge, Section, grid_tables, one_above_the_other
from nicbench.report.tables import compared_grid, has_tables, sections, side_by_side


def result(frame_bytes: int, rate: float, *, at_least: bool = False, cycles: float | None = 61.34) -> Result:
    limit = LimitedBy.TESTER if at_least else LimitedBy.DUT
    return Result(
        id=f"one/{frame_bytes}",
        method=SingleCore.kind,
        scope="sum of 2 ports",
        parameters={"frame_bytes": frame_bytes, "size": str(frame_bytes), "load_percent": 100.0},
        values={
            "frame_rate_frames_per_s": Bounded(value=rate, upper=None if at_least else rate, limited_by=limit),
            "line_rate_frames_per_s": 297_619_047.6,
            "percent_of_line_rate": 100 * rate / 297_619_047.6,
            "throughput_l2_bits_per_s": rate * frame_bytes * 8,
            "limited_by": "tester" if at_least else "DUT",
            "ceiling_frames_per_s": 20e6,
            "core_clock_hz": 3.696e9,
            "tsc_cycles_per_packet": cycles,
            "core_cycles_per_packet": None,
            "cycles_source": "its own record" if cycles is not None else NO_RECORD,
        },
        verdict=ResultVerdict.DISTURBED if at_least else ResultVerdict.VALID,
        disturbances=("the worker was held up",) if at_least else (),
    )


def test_each_value_stands_below_its_heading_and_unknown_is_a_dash() -> None:
    (section,) = sections([result(64, 9_660_000.0), result(1518, 3_200_000.0)], {"one/64": "one", "one/1518": "one"})
    assert [column.head for column in section.table.columns][:3] == ["Frame", "Frame rate", "Line rate"]
    assert section.rows[0].cells == ("64", "9.66", "297.62", "3.25", "4.95", "DUT", "20.00", "3.70", "61.3", UNKNOWN)
    assert section.rows[1].cells[1] == "3.20"
    assert section.scope == "sum of 2 ports"
    assert list(map(str, section.notes)) == ["Record of cycles: its own record"]
    assert section.doubts == ()


def test_a_rate_that_the_tester_limited_is_at_least_that_and_what_disturbed_it_is_said() -> None:
    (section,) = sections([result(64, 9_660_000.0, at_least=True)], {})
    assert section.rows[0].cells[1] == "≥ 9.66"
    forwards = "forwards at least 9.66\u00a0Mpps of 64-byte frames on one core"
    assert section.claim == f"{forwards}, in 61.3 cycles of the time-stamp counter each"
    assert section.sentence == f"{section.claim}. Not reliable: the trials were disturbed"
    assert section.doubts == ("64 bytes: the worker was held up",)


def test_a_dut_without_a_record_is_said_to_have_none() -> None:
    (section,) = sections([result(64, 1e6, cycles=None)], {})
    assert section.rows[0].cells[8] == UNKNOWN
    assert list(map(str, section.notes)) == [f"Record of cycles: {NO_RECORD}"]
    assert section.sentence == "forwards 1.00\u00a0Mpps of 64-byte frames on one core"


def test_tests_of_one_method_have_a_section_each() -> None:
    other = result(64, 1e6).replace(id="two/64")
    assert [section.test for section in sections([result(64, 1e6), other], {})] == ["one", "two"]


def test_methods_without_a_table_of_their_own_are_left_to_others() -> None:
    assert has_tables("single-core")
    assert not has_tables("of another version")
    assert sections([result(64, 1e6).replace(method="of another version")], {}) == ()


def soaked(interval: int | str, loss: float) -> Result:
    values = {"interval": interval, "load_frames_per_s": 49_900.0, "loss_percent": loss}
    return Result(id=f"soak/64/{interval}", method="soak", parameters={"size": "64"}, values=values)


def test_a_soak_answers_for_all_of_its_intervals() -> None:
    (section,) = sections([soaked(1, 0.0), soaked(2, 0.0312), soaked("all", 0.0156)], {})
    assert section.sentence == "loses 0.0156\u00a0% of 64-byte frames at 49.9\u00a0kpps, over all intervals of the soak"


def test_a_sentence_has_no_more_digits_than_say_something_and_no_loss_is_rounded_to_none() -> None:
    assert [speak_number(value) for value in (69.5, 93.1234, 0.0, 100.0, 566.087)] == [
        "69.5",
        "93.1",
        "0",
        "100",
        "566",
    ]
    assert speak_number(99.99996) == "> 99.999"
    assert speak_number(1e-9) == "< 0.001"


def searched(test: str, size: int, rate: float, half_width: float) -> Result:
    found = Bounded(value=rate, lower=rate - half_width, upper=rate + half_width, limited_by=LimitedBy.DUT, n=8)
    values = {"ndr_frames_per_s": found, "ndr_percent_of_line_rate": 1.0, "line_rate_frames_per_s": 1e7}
    parameters = {"frame_bytes": size}
    return Result(id=f"{test}/{size}", test=test, method="throughput", parameters=parameters, values=values)


def decimals(text: str) -> int:
    return len(text.partition(".")[2])


def test_a_rate_has_the_digits_of_its_own_interval_whatever_stands_beside_it() -> None:
    results = [searched("coarse", 64, 412e3, 9e3), searched("fine", 64, 98_340.0, 40.0)]
    coarse, fine = sections(results, {result.id: result.test for result in results})
    assert [decimals(section.rows[0].cells[1]) for section in (coarse, fine)] == [0, 2]


def test_a_rate_is_the_same_text_in_every_table_of_its_section() -> None:
    result = searched("throughput", 64, 98_340.0, 40.0)
    test = PlannedTest(
        name="throughput", method="throughput", description="", options={"search": {"goals": {"NDR": 0.0}}},
        points=1, estimate_s=1.0,
    )  # fmt: skip
    plan = Plan(run_id="r", title="t", nicbench_version="0", seed=1, tests=(test,))
    (section,) = sections([result], {result.id: "throughput"}, known=RunKnowledge(plan))
    (lossless,) = [each for each in section.further if each.table.title == "Zero packet loss"]
    assert lossless.rows[0].cells[1] == section.rows[0].cells[1] == "98.34"


PUBLISHED = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "nsfnic4_2000_load_sweep.csv"


def published() -> list[dict[str, str]]:
    with PUBLISHED.open() as file:
        return list(csv.DictReader(file))


def as_result(row: dict[str, str]) -> Result:
    """A line of the published table as the method would have given it."""
    mode = f"{row['link_mbps']} Mb/s, {row['duplex']} duplex"
    return Result(
        id=f"sweep/{row['frame_bytes']}/{row['load_percent']}/{mode}/{row['ports']}",
        method="load-sweep",
        scope="per port",
        parameters={
            "frame_bytes": int(row["frame_bytes"]),
            "size": row["frame_bytes"],
            "load_of": "line rate",
            "load_percent": float(row["load_percent"]),
            "mode": mode,
            "ports": int(row["ports"]),
        },
        values={"returned_percent": float(row["returned_percent"])},
    )


def grids_result(
    size: str, load: float, loss: float, *, method: str = "frame-loss", verdict: ResultVerdict = ResultVerdict.VALID
) -> Result:
    return Result(
        id=f"loss/{size}/{load:g}",
        method=method,
        scope="per port",
        parameters={"size": size, "load_of": "line rate", "load_percent": load, "mode": "1 Gb/s, one way", "ports": 2},
        values={"loss_percent": loss, "returned_percent": 100.0 - loss},
        verdict=verdict,
        disturbances=("the worker was held up",) if verdict is ResultVerdict.DISTURBED else (),
    )


def section_of(*results: Result) -> Section:
    (section,) = sections(results, {})
    return section


def test_the_published_sweep_is_rendered_cell_for_cell() -> None:
    rows = published()
    section = section_of(*map(as_result, rows))
    assert [grid.title for grid in section.grids] == ["64 bytes", "1000 bytes"]
    for grid, number in zip(section.grids, ("6", "7"), strict=True):
        cells = [row["returned_percent"] for row in rows if row["table"] == number]
        assert grid.corner == "Load [% of line rate]"
        assert [head for head, _ in grid.rows] == ["100", "75", "50", "45", "42", "35", "25", "20", "10", "1"]
        assert [cell.text if cell else None for _, crossings in grid.rows for cell in crossings] == cells
        modes = [f"{speed} Mb/s, {duplex} duplex" for speed in (10, 100) for duplex in ("half", "full")]
        assert grid.spans(0) == tuple((mode, 2) for mode in modes)
        assert grid.spans(1) == (("2 ports", 1), ("4 ports", 1)) * 4


def test_a_cell_that_nobody_measured_is_empty() -> None:
    (grid,) = section_of(
        grids_result("64", 100.0, 20.0), grids_result("64", 90.0, 0.0), grids_result("512", 100.0, 0.0)
    ).grids
    assert grid.title is None
    assert grid.heads == (("64 bytes", "512 bytes"),)
    assert [[cell.text if cell else None for cell in crossings] for _, crossings in grid.rows] == [
        ["20", "0"],
        ["0", None],
    ]


def test_no_result_hides_another_whose_load_is_printed_alike() -> None:
    near = (grids_result("64", 33.33331, 1.0), grids_result("64", 33.33332, 2.0), grids_result("64", 10.0, 0.0))
    again = [grids_result("64", 10.0, float(run)).replace(run=run) for run in (1, 2)]
    for found, labels in (
        (near, ["33.33332", "33.33331", "10"]),
        ((*again, grids_result("512", 10.0, 0.0)), ["10", "10 (run 2)"]),
    ):
        (grid,) = section_of(*found).grids
        assert [label for label, _ in grid.rows] == labels
        shown = [cell.result for _, crossings in grid.rows for cell in crossings if cell is not None]
        assert len(shown) == len(found)


def test_ports_stand_in_their_order_though_none_leads_to_itself() -> None:
    def way(source: str, to: str) -> Result:
        return Result(
            id=f"forwarding/{source}/{to}",
            method="forwarding",
            scope="one direction",
            parameters={"part": "ways", "mode": "TCP", "port": source, "destination": to},
            values={"throughput_bits_per_s": 95e6},
        )

    ports = [f"s{number}" for number in range(4)]
    found = [way(one, other) for one in ports for other in (*ports, "mean") if one != other]
    grid = Grid(rows=_column("port"), across=(_column("destination"),), cell=Column("throughput_bits_per_s", "x"))
    (table,) = grid_tables(found, grid)
    assert [label for label, _ in table.rows] == ports
    assert table.heads == ((*ports, "mean"),)


def _column(name: str) -> Column:
    return Column(name, name, form="text")


def test_the_sweep_is_one_table_over_sizes_loads_and_ports() -> None:
    section = section_of(*map(as_result, published()))
    ((small, large),) = one_above_the_other(section.grids)
    assert (small.title, large.title) == ("64 bytes", "1000 bytes")
    text = io.StringIO()
    found = tuple(map(as_result, published()))
    print_summary(
        Console(file=text, width=160, color_system=None), Summary(title="t", verdict=ResultVerdict.VALID, results=found)
    )
    shown = text.getvalue()
    assert shown.count("64 bytes") == shown.count("1000 bytes") == 1
    assert shown.index("64 bytes") < shown.index("1000 bytes")


def test_tables_with_other_headings_stay_apart() -> None:
    alike = GridTable("one", "Load", (("a", "b"),), ())
    other = GridTable("other", "Load", (("a",),), ())
    assert one_above_the_other([alike, alike, other, alike]) == ((alike, alike), (other,), (alike,))


def test_loads_of_several_sequences_stand_highest_first() -> None:
    (grid,) = section_of(
        grids_result("64", 87.3, 1.5), grids_result("64", 80.0, 0.0), grids_result("imix", 100.0, 0.25)
    ).grids
    assert [head for head, _ in grid.rows] == ["100", "87.3", "80"]
    assert grid.heads == (("64 bytes", "imix"),)
    assert grid.rows[1][1][0].text == "1.50"  # as many decimals as its neighbours


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (100.0, "100"),
        (1e-7, "< 0.001"),
        (99.99999, "> 99.999"),
        (0.0016, "0.002"),
        (26.5, "26.500"),
        (200.0, "200.000"),
    ],
)
def test_one_frame_in_many_millions_is_never_rounded_away(value: float, text: str) -> None:
    assert numbers.of_frames(value) == text


def test_a_table_of_a_few_lost_frames_in_millions_shows_how_few_at_most() -> None:
    few = 100.0 * 3 / 60_000_000
    section = section_of(grids_result("64", 100.0, few), grids_result("64", 90.0, 0.0))
    assert section.sentence.endswith("and loses < 0.001\u00a0% of 64-byte frames at 100\u00a0% of line rate")
    (grid,) = section.grids
    assert [cells[0].text for _, cells in grid.rows if cells[0] is not None] == ["< 0.001", "0"]


def test_the_answer_names_loss_size_and_load() -> None:
    section = section_of(grids_result("64", 100.0, 20.0))
    assert section.sentence == "loses 20\u00a0% of 64-byte frames at 100\u00a0% of line rate"
    swept = section_of(grids_result("imix", 100.0, 20.0, method="load-sweep"))
    assert swept.sentence == "returns 80\u00a0% of imix frames intact at 100\u00a0% of line rate"


def test_the_answer_says_first_up_to_which_load_nothing_was_lost() -> None:
    lost = section_of(grids_result("64", 100.0, 69.51), grids_result("64", 30.0, 0.0), grids_result("64", 10.0, 0.0))
    clean = "loses no 64-byte frame at the loads tried up to 30\u00a0% of line rate"
    assert lost.sentence == f"{clean}, and loses 69.5\u00a0% of 64-byte frames at 100\u00a0% of line rate"
    relapsed = section_of(grids_result("64", 100.0, 0.0), grids_result("64", 30.0, 0.1), grids_result("64", 10.0, 0.0))
    assert str(relapsed.sentence).startswith("loses no 64-byte frame at the loads tried up to 10\u00a0%")
    perfect = section_of(*(grids_result("64", load, 0.0, method="load-sweep") for load in (100.0, 50.0)))
    assert perfect.sentence == "returns every 64-byte frame intact at the loads tried up to 100\u00a0% of line rate"


def test_a_list_of_runs_has_the_first_clause_of_the_answer() -> None:
    results = (grids_result("64", 100.0, 69.51), grids_result("64", 30.0, 0.0))
    summary = Summary(title="Loss", verdict=ResultVerdict.VALID, results=results)
    assert in_brief(summary) == "loses no 64-byte frame at the loads tried up to 30\u00a0% of line rate"


def test_a_disturbed_cell_is_named_by_its_place() -> None:
    section = section_of(grids_result("64", 90.0, 20.0, method="load-sweep", verdict=ResultVerdict.DISTURBED))
    place = "64 bytes, 1 Gb/s, one way, 2 ports, 90 % of line rate"
    assert section.doubts == (f"{place}: the worker was held up",)


def test_the_graph_of_rfc_2544_goes_from_0_to_100_percent_on_both_axes() -> None:
    section = section_of(
        grids_result("64", 100.0, 20.0), grids_result("64", 90.0, 0.0), grids_result("1518", 100.0, 0.0)
    )
    for form in (kit.WIDE, kit.NARROW):
        chart = curve_chart(section, form)
        for layer in chart["layer"]:
            for axis in ("x", "y"):
                assert layer["encoding"][axis]["scale"]["domain"] == [0, 100]
            assert layer["encoding"]["x"]["title"] == "Load [% of line rate]"
            assert layer["encoding"]["y"]["title"] == "Frame loss rate [%]"


def test_a_section_of_which_nothing_is_known_has_no_graph() -> None:
    nothing = grids_result("64", 100.0, 0.0).replace(values={})
    assert curve_chart(section_of(nothing), kit.WIDE) is None


def test_loads_that_overload_a_port_are_on_the_axis() -> None:
    for highest, end in ((100.0, 100), (101.0, 200), (300.0, 300)):
        chart = curve_chart(section_of(grids_result("64", highest, 70.0), grids_result("64", 50.0, 0.0)), kit.WIDE)
        assert f'"domain": [0, {end}]' in json.dumps(chart)


def test_the_terminal_has_the_same_table() -> None:
    text = io.StringIO()
    results = (grids_result("64", 100.0, 20.0, verdict=ResultVerdict.DISTURBED), grids_result("512", 90.0, 0.0))
    summary = Summary(title="Loss", verdict=ResultVerdict.DISTURBED, results=results)
    print_summary(Console(file=text, width=150, color_system=None), summary)
    shown = text.getvalue()
    for part in ("Frame loss rate [%]", "Load [% of line rate]", "64 bytes", "20 *", "-"):
        assert part in shown
    assert "* 1 of 2 are disturbed or incomplete; the report says why" in shown
    assert "the worker was held up" not in shown  # a line for each cell would hide the table


def test_more_lines_than_colours_are_a_chart_for_each_of_the_first_column() -> None:
    sizes = [str(64 + number) for number in range(8)]
    assert [name for _, name in curves(section_of(*(grids_result(size, 100.0, 70.0) for size in sizes)))] == [""]
    section = section_of(*map(as_result, published()))
    assert [(name, len(part.rows)) for part, name in curves(section)] == [("64 bytes", 80), ("1000 bytes", 80)]


def test_configurations_are_the_rows_where_a_published_table_has_them_so() -> None:
    """Modes of links by ports: what is sent stands above the ports, as the outermost heading."""
    streams, port, name = (Column(value, value, form="text") for value in ("mode", "port", "configuration"))
    cell = Column("x", "x", form="text")
    grid = Grid(rows=streams, across=(port,), cell=cell, compares_rows=True)
    results = [
        Result(
            id=f"{mode}{at}",
            method="m",
            parameters={"mode": "TCP", "port": at, "configuration": mode},
            values={"x": mode},
        )
        for mode in ("10-half", "100-full")
        for at in ("s0", "s1")
    ]
    [table] = grid_tables(results, compared_grid(grid, name))
    assert [row for row, _ in table.rows] == ["10-half", "100-full"]
    assert table.heads == (("TCP", "TCP"), ("s0", "s1"))


def test_a_load_sweep_of_two_and_of_four_ports_is_one_table() -> None:
    """As the published report prints it: loads by mode and number of ports."""
    results = [
        Result(
            id=f"sweep/{ports}/{load}",
            test="sweep",
            method="load-sweep",
            scope="per port" if ports == 2 else "per port of 2 that send at once",
            configuration=f"ports-{ports}",
            parameters={
                "frame_bytes": 64,
                "size": "64",
                "load_percent": load,
                "load_of": "line rate",
                "mode": "full",
                "ports": ports,
            },
            values={"returned_percent": 100.0 - ports},
        )
        for ports in (2, 4)
        for load in (100.0, 50.0)
    ]
    [section] = side_by_side(results, {})
    [grid] = section.grids
    assert [[crossing.text if crossing else None for crossing in crossings] for _, crossings in grid.rows] == [
        ["98", "96"]
    ] * 2
