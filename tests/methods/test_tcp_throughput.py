"""TCP throughput: the metrics of RFC 6349, computed by hand, and what is unknown where a tool has no round trips."""

from __future__ import annotations

import asyncio

import pytest

from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.round import Figures, Flow, Job, JobOutcome, RoundTrip, StreamFigures
from nicbench.methods.tcp_throughput import TcpThroughput
from nicbench.report.tables import sections

from .round_contexts import Laboratory

MS = 1e6


def moved(rate: float, trip: RoundTrip | None, *, retransmissions: int = 0, sent_bytes: int = 0) -> JobOutcome:
    flow = Flow(
        direction="forward", sent_bytes=sent_bytes, received_bits_per_s=rate, retransmissions=retransmissions,
        streams=(StreamFigures(received_bits_per_s=rate, round_trip=trip),),
    )  # fmt: skip
    figures = Figures(flows=(flow,), mss_bytes=1448, path_mtu_bytes=1500)
    return JobOutcome(figures=figures, began_s=0.0, took_s=1.0)


SLOW = moved(5e5, RoundTrip(minimum_ns=10 * MS, mean_ns=11 * MS, maximum_ns=12 * MS))
FAST = moved(
    80e6, RoundTrip(minimum_ns=10 * MS, mean_ns=25 * MS, maximum_ns=30 * MS), retransmissions=10, sent_bytes=1_433_520
)


def measured(slow: JobOutcome, fast: JobOutcome, **options: object) -> Result:
    def outcome(_: int, job: Job) -> JobOutcome:
        return slow if job.ask.rate_bits_per_s else fast

    laboratory = Laboratory(outcome)
    method = TcpThroughput("tcp", TcpThroughput.Options.model_validate(options))
    (result,) = asyncio.run(method.run(laboratory.context))
    return result


def test_the_metrics_of_the_rfc_follow_from_both_connections() -> None:
    values = measured(SLOW, FAST).values
    achievable = 100e6 * 1448 / 1538  # the link of 100 Mb/s, in segments of 1448 with all that Ethernet adds
    assert values["achievable_bits_per_s"] == pytest.approx(achievable)
    assert values["transfer_time_ratio"] == pytest.approx(achievable / 80e6)
    assert values["tcp_efficiency_percent"] == pytest.approx(99.0)  # 990 segments of 1000 were no retransmissions
    assert values["buffer_delay_percent"] == pytest.approx(150.0)
    assert values["buffered_bytes"] == Bounded(value=200_000, lower=200_000)  # at least 20 ms at 80 Mb/s
    assert (values["path_mtu_bytes"], values["baseline_round_trip_ns"]) == (1500, 10 * MS)


def test_the_bottleneck_of_the_bench_file_stands_before_the_link() -> None:
    assert measured(SLOW, FAST, bottleneck=85e6).values["transfer_time_ratio"] == pytest.approx(85 / 80 * 1448 / 1538)


def test_a_tool_without_round_trips_leaves_them_unknown_and_the_rate_known() -> None:
    result = measured(moved(5e5, None), moved(80e6, None))
    delay = result.values["buffer_delay_percent"]
    assert (delay.value, delay.reason_null) == (None, "the tool reports no round-trip times")
    assert (result.values["throughput_bits_per_s"], result.verdict) == (80e6, ResultVerdict.VALID)


def test_the_report_has_them_in_one_sentence() -> None:
    (section,) = sections([measured(SLOW, FAST)], {})
    assert section.sentence == (
        "moves 80.0\u00a0Mb/s by TCP at port s0, with an efficiency of 99\u00a0% and a buffer delay of 150\u00a0%"
    )


def test_a_transfer_shorter_than_the_rfc_asks_for_is_a_deviation() -> None:
    method = TcpThroughput("tcp", TcpThroughput.Options(duration=10.0))
    assert method.deviations() == ("transfers of 10 s, RFC 6349 asks for 30 s and more",)
