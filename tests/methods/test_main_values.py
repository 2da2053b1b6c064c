"""What runs are repeated for, where their number grows: the figures that a method's table is about."""

from __future__ import annotations

import pytest

from nicbench.compare.matching import summarise_points
from nicbench.core.result import Bounded, Result, Value
from nicbench.core.turn import ONCE
from nicbench.methods.base import main_values
from nicbench.methods.stream import Stream


def of(method: str, parameters: dict[str, object], values: dict[str, Value]) -> tuple[str, ...]:
    return main_values(Result(id="x", method=method, parameters=parameters, values=values))


def test_bold_columns_are_waited_for_and_of_rows_that_are_summed_up_only_their_sum() -> None:
    assert of("load-sweep", {}, {"offered_frames": 1, "returned_percent": 99.0}) == ("returned_percent",)
    assert of("soak", {"interval": "all"}, {"loss_percent": 0.1}) == ("loss_percent",)
    assert of("soak", {"interval": 3}, {"loss_percent": 0.1}) == ()


def test_every_goal_of_a_throughput_is_and_of_a_latency_the_median() -> None:
    rate, line = Bounded(value=3.0, lower=3.0, upper=4.0), 14_880_952.0
    values: dict[str, Value] = {"ndr_frames_per_s": rate, "pdr_frames_per_s": rate, "line_rate_frames_per_s": line}
    assert of("throughput", {}, values) == ("ndr_frames_per_s", "pdr_frames_per_s")
    assert of("latency", {}, {"latency_minimum_ns": 1, "latency_p50_ns": 2}) == ("latency_p50_ns",)


@pytest.mark.parametrize(("part", "awaited"), [("ports", 1), ("combined", 1), ("clients", 0)])
def test_how_clients_share_a_port_is_not(part: str, awaited: int) -> None:
    assert len(of("stream", {"part": part}, {"throughput_bits_per_s": 1e9})) == awaited


def test_of_requests_rate_and_median_are_and_the_bins_of_the_tail_are_not() -> None:
    assert of("request-response", {"part": "requests"}, {}) == ("transactions_per_s", "latency_p50_ns")
    assert of("request-response", {"part": "tail"}, {"requests": 1}) == ()
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
