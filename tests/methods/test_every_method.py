"""What a report must say of options that fall short of the RFC, and that it says nothing where they do not."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nicbench.compare.matching import summarise_points
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, Value
from nicbench.core.table import ImportTable
from nicbench.core.trial import Reading, StreamReading, TrialRequest
from nicbench.core.turn import ONCE
from nicbench.importing.columns import plain
from nicbench.importing.results import importable
from nicbench.methods._loads import TrialTimes
from nicbench.methods.base import FrameMethod, main_values
from nicbench.methods.stream import Stream
from nicbench.methods.throughput import BESIDE_S, SearchChoice, Throughput
from nicbench.report.tables import sections

from .known import LINE, KnownContext, reading_of, run


def deviations(search: SearchChoice, trial: TrialTimes | None = None) -> tuple[str, ...]:
    options = Throughput.Options(search=search, trial=trial or TrialTimes())
    return Throughput("throughput", options).deviations()


def test_a_search_by_the_letter_of_the_rfc_has_no_deviations() -> None:
    assert deviations(SearchChoice(trials_per_bound=1)) == ()


def test_more_trials_than_one_at_a_load_are_a_deviation() -> None:
    said = "up to 2 trials confirm each end of the interval, RFC 2544 section 26.1 uses one"
    assert deviations(SearchChoice()) == (said,)


NO_VALIDATION = SearchChoice(trials_per_bound=1, validation=0.0)


def test_each_time_that_is_shorter_than_the_rfcs_is_named() -> None:
    assert deviations(NO_VALIDATION, TrialTimes(duration=1.0, drain=0.2)) == (
        "trial duration 1 s, RFC 2544 section 24 asks for 60 s",
        "drain 0.2 s, RFC 2544 section 23 asks for 2 s",
    )


def test_short_trials_whose_answer_is_confirmed_by_a_long_one_are_no_deviation() -> None:
    assert deviations(SearchChoice(trials_per_bound=1), TrialTimes(duration=1.0)) == ()


def test_a_short_validation_trial_is_one() -> None:
    said = deviations(SearchChoice(trials_per_bound=1, validation=10.0), TrialTimes(duration=1.0))
    assert said == ("validation trial 10 s, RFC 2544 section 24 asks for 60 s",)


def test_the_time_that_is_said_to_be_the_most_holds_where_every_trial_has_to_be_long() -> None:
    times = TrialTimes(duration=1.0, drain=2.0, settle=5.0)
    search = SearchChoice(kind="step-down", maximum_trials=10)
    options = Throughput.Options(frame_bytes=(64,), search=search, trial=times)
    assert Throughput("throughput", options).estimate_s() == 10 * 72.0
    unvalidated = options.replace(search=search.replace(validation=0.0))
    assert Throughput("throughput", unvalidated).estimate_s() == 10 * 13.0


@pytest.mark.parametrize("kind", ["guided", "step-down"])
def test_the_time_that_is_given_is_the_most_for_all_sizes(kind: str) -> None:
    options = Throughput.Options(frame_bytes=(64, 512), search=SearchChoice(kind=kind, time=60.0))
    assert Throughput("throughput", options).estimate_s() == 60.0


def test_the_default_search_has_time_for_twelve_trials_at_each_size_and_the_validation_of_each_goal() -> None:
    times = TrialTimes(duration=1.0, drain=0.1, settle=0.1)
    short = Throughput.Options(frame_bytes=(64, 512), search=SearchChoice(validation=0.0), trial=times)
    assert Throughput("throughput", short).estimate_s() == pytest.approx(2 * 12 * (1.3 + BESIDE_S))
    validated = short.replace(search=SearchChoice())
    longer_s = Throughput("throughput", validated).estimate_s() - Throughput("throughput", short).estimate_s()
    assert longer_s == pytest.approx(2 * 2 * 60.0)


def test_each_frame_size_of_the_rfc_that_is_not_measured_is_named() -> None:
    options = Throughput.Options(frame_bytes=(64, 512, 1518, "imix"), search=SearchChoice(trials_per_bound=1))
    said = "no frames of 128, 256, 1024, 1280 bytes, RFC 2544 section 9.1 asks for seven"
    assert Throughput("throughput", options).deviations() == (said,)


# Every method that takes imports declares values that its tables know, and rules about columns that it has.


def table_of(kind: str) -> ImportTable:
    table = importable()[kind].imports()
    assert table is not None
    return table


def test_these_methods_take_imports() -> None:
    of_frames = {"back-to-back", "frame-loss", "latency", "load-sweep", "single-core", "throughput"}
    assert set(importable()) == of_frames | {"forwarding", "frames", "request-response", "stream", "transfer"}


@pytest.mark.parametrize("kind", importable())
def test_every_rule_is_about_a_column_there_is(kind: str) -> None:
    table = table_of(kind)
    values = {column.value for column in table.columns}
    rules = (table.shares, table.bit_rates, table.rising, table.complements, table.percentages, table.lossless)
    named = {name for rule in rules for names in rule for name in names}
    assert not named - values
    assert not set(table.any_of) - values
    assert table.line_rate is None or table.line_rate in values


@pytest.mark.parametrize("kind", importable())
def test_no_two_columns_answer_to_one_name(kind: str) -> None:
    columns = table_of(kind).columns
    names = [name for column in columns for name in {plain(name) for name in (column.name, *column.also)}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", importable())
def test_every_main_column_of_its_own_table_can_be_imported(kind: str) -> None:
    own = importable()[kind].table()
    values = {column.value for column in table_of(kind).columns}
    assert all(column.value in values for column in own.columns if column.is_main) if own else True


# What runs are repeated for, where their number grows: the figures that a method's table is about.


def of(method: str, parameters: dict[str, object], values: dict[str, Value]) -> tuple[str, ...]:
    return main_values(Result(id="x", method=method, parameters=parameters, values=values))


def test_bold_columns_are_waited_for_and_of_rows_that_are_summed_up_only_their_sum() -> None:
    assert of("load-sweep", {}, {"offered_frames": 1, "returned_percent": 99.0}) == ("returned_percent",)
    assert of("soak", {"interval": "all"}, {"loss_percent": 0.1}) == ("loss_percent",)
    assert of("soak", {"interval": 3}, {"loss_percent": 0.1}) == ()


def test_every_goal_of_a_throughput_is_and_of_a_latency_the_median() -> None:
    rate, line = Bounded(value=3.0, lower=3.0, upper=4.0), 14_880_952.0
    values = {"ndr_frames_per_s": rate, "pdr_frames_per_s": rate, "line_rate_frames_per_s": line}
    assert of("throughput", {}, values) == ("ndr_frames_per_s", "pdr_frames_per_s")
    assert of("latency", {}, {"latency_minimum_ns": 1, "latency_p50_ns": 2}) == ("latency_p50_ns",)


@pytest.mark.parametrize(("part", "awaited"), [("ports", 1), ("combined", 1), ("clients", 0)])
def test_how_clients_share_a_port_is_not(part: str, awaited: int) -> None:
    assert len(of("stream", {"part": part}, {"throughput_bits_per_s": 1e9})) == awaited


def test_of_requests_rate_and_median_are() -> None:
    assert of("request-response", {"part": "requests"}, {}) == ("transactions_per_s", "latency_p50_ns")
    assert of("transfer", {}, {}) == ("throughput_bits_per_s",)
    assert of("agreement", {"part": "agreement"}, {}) == ("ratio",)


def test_a_method_that_nobody_knows_has_none() -> None:
    assert of("gone", {}, {"x": 1.0}) == ()


def test_two_figures_in_one_cell_are_the_medians_of_the_runs() -> None:
    figures = [(97e6, 55.0), (99e6, 51.0), (98e6, 40.0)]
    runs = [
        Result(
            id=f"default/{run}/tcp/s0",
            test="tcp",
            method="stream",
            run=run,
            parameters={"part": "ports"},
            values={
                "throughput_bits_per_s": rate,
                "server_cpu_mean_percent": cpu,
                "throughput_and_cpu": f"{rate / 1e6:g} / {cpu:g}",
            },
        )
        for run, (rate, cpu) in enumerate(figures, 1)
    ]
    (over,) = summarise_points(runs, ONCE, "20260101T000000Z-0123456789")
    assert over.values["throughput_and_cpu"] == "98 / 51"


@pytest.mark.parametrize(
    ("measured", "cell"),
    [
        ({"server_cpu_own_percent": 4.0, "server_cpu_mean_percent": 100.0}, "95 / 4"),
        ({"server_cpu_mean_percent": 24.0}, "95 / 24"),  # before the test's own was told apart, and as published
        ({"server_cpu_mean_percent": None}, "95"),
    ],
)
def test_beside_the_rate_stands_the_cpu_time_of_the_test_where_it_is_known(
    measured: dict[str, float | None], cell: str
) -> None:
    values = {"throughput_bits_per_s": 95e6, "throughput_and_cpu": "95 / 24", **measured}
    result = Result(id="tcp/s0", test="tcp", method="stream", parameters={"part": "ports"}, values=values)
    assert Stream.table_values(result, {})["throughput_and_own_cpu"] == cell


# The template of a method in CONTRIBUTING works as it stands: its rate is the DUT's, with its column in the report.


CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


class HalfOfEverything(KnownContext):
    """Its DUT forwards every other frame."""

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.load_frames_per_s is not None
        sent = int(request.load_frames_per_s * request.duration_s)
        counts = Counts(intended=sent, sent=sent, received=sent // 2, lost=sent - sent // 2)
        return reading_of(request.duration_s, [StreamReading(name="0->1 a", counts=counts)])


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> type[FrameMethod]:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    code = text.partition("## Adding a method")[2].partition("```python\n")[2].partition("```")[0]
    module = ModuleType("nicbench.methods.name_of_the_method")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, str(CONTRIBUTING), "exec"), vars(module))
    return vars(module)["NameOfTheMethod"]


async def test_the_template_measures_and_has_its_column_in_the_report(
    template: type[FrameMethod], monkeypatch: pytest.MonkeyPatch
) -> None:
    template.check()
    method = template("new", template.Options(frame_bytes=(64,)))
    (result,) = await run(method, HalfOfEverything())
    assert result.values["forwarding_rate_frames_per_s"] == pytest.approx(0.5 * LINE, rel=1e-4)
    assert "RFC 0000" in template.procedure()
    monkeypatch.setattr("nicbench.report.tables.find", lambda package, base: {template.kind: template})
    found = sections([result], {})
    (section,) = found
    assert (section.table.columns[1].unit, section.rows[0].cells) == ("kpps", ("64", "744"))
    assert section.sentence == "forwards 744\u00a0kpps of 64-byte frames"
