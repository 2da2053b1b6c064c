"""Streams of configurations beside each other: a bar for each, and below them who it is that was held down, and how."""

from __future__ import annotations

from typing import Any

from nicbench.compare.points import Side, match_sides, scale_units
from nicbench.core.result import Result
from nicbench.report.answer.of_comparison import _of_each
from nicbench.report.drawing.charts import WIDE
from nicbench.report.drawing.plots import bars_chart
from nicbench.report.drawing.svg import svg
from nicbench.report.section import Section
from nicbench.report.tables import side_by_side
from nicbench.stats.runs import summarise_over_runs

MODES = ("TCP to the server", "TCP from the server")


def streamed(configuration: str, run: int, mode: str, **values: Any) -> Result:
    parameters = {"part": "ports", "port": "s0", "mode": mode, "at_once": "s0 alone", "beside": "each port alone"}
    return Result(
        id=f"{configuration}/{run}/tcp/{mode}",
        method="stream",
        test="tcp",
        configuration=configuration,
        run=run,
        parameters=parameters,
        values={"throughput_bits_per_s": 1e9 + run, "limit": "the link was full", **values},
    )


def ports_of(results: list[Result]) -> Section:
    (section,) = side_by_side(summarise_over_runs(results), {}, results)
    return section


RESULTS = [streamed(name, run, mode) for name in ("one", "two") for run in (1, 2) for mode in MODES]


def test_each_configuration_has_a_bar_of_its_own_beside_the_others_of_its_way() -> None:
    chart = bars_chart(ports_of(RESULTS), WIDE)
    assert chart is not None
    names = [f"{mode}, {name}" for mode in MODES for name in ("one", "two")]
    assert chart["encoding"]["xOffset"]["scale"]["domain"] == names
    assert all(name in svg(chart, 1, "bars") for name in names)


def notes_of(results: list[Result]) -> list[str]:
    return list(map(str, ports_of(results).notes))


def test_a_note_that_all_share_is_said_once_and_another_with_whose_it_is() -> None:
    assert notes_of(RESULTS) == ["Limit: the link was full"]
    slow = [
        one.replace(values={**one.values, "limit": "a CPU was full"})
        if (one.configuration, one.parameters["mode"]) == ("two", MODES[1])
        else one
        for one in RESULTS
    ]
    assert notes_of(slow) == [
        f"Limit: the link was full ({MODES[0]}, “one”; {MODES[1]}, “one”; {MODES[0]}, “two”)",
        f"Limit: a CPU was full ({MODES[1]}, “two”)",
    ]


def test_what_runs_tell_differently_is_told_of_each_and_of_many_runs_not_at_length() -> None:
    bond = [streamed("one", 1, MODES[0]), streamed("one", 2, MODES[0])]
    bond += [streamed("two", run, MODES[0], bond=f"c{run} was alone") for run in (1, 2)]
    notes = notes_of(bond)
    assert notes[1:] == ["Bond, “two”, run 1: c1 was alone", "Bond, “two”, run 2: c2 was alone"]
    bond += [streamed("two", run, MODES[0], bond=f"c{run} was alone") for run in range(3, 12)]
    *_, last, rest = notes_of(bond)
    assert (last, rest) == (
        "Bond, “two”, run 8: c8 was alone",
        "3 more notes stand with each run by itself, below",
    )


def test_statistics_of_slow_streams_are_in_the_unit_of_their_tables() -> None:
    side = Side("one", tuple(one.replace(values={"throughput_bits_per_s": 9e6}) for one in RESULTS))
    (to, _) = scale_units(match_sides([side]))
    assert (to.value.quantity.unit, to.numbers("one")[0]) == ("Mb/s", 9.0)
    (to, _) = scale_units(match_sides([Side("one", tuple(RESULTS))]))
    assert to.value.quantity.unit == "Gb/s"


def test_of_many_configurations_the_answer_has_the_first_and_says_where_the_others_are() -> None:
    names = ("one", "two", "three", "four", "five")
    few, many = (
        _of_each(ports_of([streamed(name, run, mode) for name in part for run in (1, 2) for mode in MODES]))
        for part in (names[:4], names)
    )
    assert [said.split()[0] for said in few] == ["“one”", "“two”", "“three”", "“four”"]
    assert many == [few[0], "The tables below have the other 4 configurations."]
