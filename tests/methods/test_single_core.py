"""Single core: the average over a trial on one basis, and the DUT's cycles; a known curve, and published rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import NicbenchError
from nicbench.core.frame_size import IMIX, Size, mean_bytes
from nicbench.core.machine import DutWork
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, StreamReading, TrialRequest
from nicbench.core.units import l2_bits_per_s, line_rate_frames_per_s
from nicbench.methods._loads import TrialTimes
from nicbench.methods.single_core import NO_RECORD, SingleCore, values_of
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run

PUBLISHED = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "connectx5_dpdk1908_single_core.csv"
WORK = DutWork(
    source="testpmd --record-core-cycles", packets=1000, tsc_cycles=60_000, tsc_hz=2.6e9, core_clock_hz=(3.9e9, 3.9e9)
)


class KnownDut(KnownContext):
    """Its DUT forwards ``capacity`` on each of ``ports``; a lossless link of 25 Gb/s refuses what is more."""

    def __init__(
        self, capacity: float, *, ceiling: float | None = 20e6, ports: int = 1, work: DutWork | None = WORK,
        disturbed: bool = False, faster_than_the_line: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(ceiling=ceiling, disturbed=[1] if disturbed else [])
        self.capacity, self.ports, self.work, self.faster = capacity, ports, work, faster_than_the_line

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        return tuple(IMIX if isinstance(size, str) else size for size in written)

    def line_rate_frames_per_s(self, size: Size) -> float:
        return line_rate_frames_per_s(25e9, mean_bytes(size))

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        load = request.load_frames_per_s
        assert load is not None
        passed = int(min(load, self.capacity) * request.duration_s * self.faster)
        intended = int(load * request.duration_s)
        one = Counts(
            intended=intended, sent=passed, unsent_backpressure=max(0, intended - passed), received=passed, lost=0
        )
        streams = [StreamReading(name=f"{port}->{1 - port} a", counts=one) for port in range(self.ports)]
        return reading_of(request.duration_s, streams, dut_work=self.work)


async def measured(dut: KnownDut, **options: Any) -> Result:
    (result,) = await run(SingleCore("one", SingleCore.Options(**{"frame_bytes": (64,), **options})), dut)
    return result


def rate_of(result: Result) -> Bounded:
    rate = result.values["frame_rate_frames_per_s"]
    assert isinstance(rate, Bounded)
    return rate


async def test_a_dut_that_pushes_back_is_the_limit_and_its_rate_is_what_came_back() -> None:
    result = await measured(KnownDut(capacity=9e6))
    rate = rate_of(result)
    assert rate.value == rate.upper == pytest.approx(9e6)
    assert rate.limited_by is LimitedBy.DUT
    assert result.values["throughput_l2_bits_per_s"] == pytest.approx(9e6 * 64 * 8)
    assert result.values["percent_of_line_rate"] == pytest.approx(100 * 9e6 / (25e9 / (84 * 8)))
    assert result.verdict is ResultVerdict.VALID


async def test_a_dut_that_carries_all_that_the_tester_can_send_has_at_least_that_rate() -> None:
    rate = rate_of(await measured(KnownDut(capacity=30e6)))
    assert rate.value == pytest.approx(20e6)
    assert rate.at_least
    assert rate.limited_by is LimitedBy.TESTER


async def test_without_a_ceiling_the_line_is_the_limit() -> None:
    rate = rate_of(await measured(KnownDut(capacity=100e6, ceiling=None)))
    assert rate.limited_by is LimitedBy.LINE_RATE


async def test_with_both_ports_rates_and_line_rate_are_sums_of_both() -> None:
    result = await measured(KnownDut(capacity=9e6, ports=2))
    assert result.scope == "sum of 2 ports"
    assert rate_of(result).value == pytest.approx(18e6)
    assert result.values["line_rate_frames_per_s"] == pytest.approx(2 * 25e9 / (84 * 8))
    assert result.values["percent_of_line_rate"] == pytest.approx(100 * 9e6 / (25e9 / (84 * 8)))


async def test_several_streams_of_a_port_are_one_port() -> None:
    trial, _ = await KnownDut(capacity=9e6).measure({}, TrialTimes().request(64, 9e6, Purpose.AVERAGE))
    both = tuple(trial.reading.streams[0].replace(name=f"0->1 {name}") for name in ("a", "b"))
    trial = trial.replace(reading=trial.reading.replace(streams=both))
    assert values_of(trial, 37e6, None)["line_rate_frames_per_s"] == 37e6


async def test_a_mix_is_one_size_with_rates_by_its_mean() -> None:
    dut = KnownDut(capacity=3e6)
    result = await measured(dut, frame_bytes=("imix",))
    assert (result.id, result.parameters["size"], result.parameters["mix"]) == ("one/imix", "imix", "imix")
    assert dut.requests[0].mix == IMIX
    assert result.values["throughput_l2_bits_per_s"] == pytest.approx(3e6 * IMIX.frame_bytes * 8)
    assert result.values["percent_of_line_rate"] == pytest.approx(100 * 3e6 / (25e9 / ((IMIX.frame_bytes + 20) * 8)))
    (section,) = sections([result], {})
    assert section.rows[0].cells[0] == "imix"
    assert str(section.sentence).startswith("forwards 3.00\u00a0Mpps of imix frames on one core")


async def test_cycles_of_the_counter_and_of_the_core_are_two_fields() -> None:
    values = (await measured(KnownDut(capacity=9e6))).values
    assert (values["tsc_cycles_per_packet"], values["core_cycles_per_packet"]) == (60.0, pytest.approx(90.0))
    assert (values["tsc_hz"], values["core_clock_hz"]) == (2.6e9, 3.9e9)
    assert values["cycles_source"] == "testpmd --record-core-cycles; empty polls do not count"


async def test_a_dut_without_a_record_has_no_cycles_and_the_report_says_so() -> None:
    values = (await measured(KnownDut(capacity=9e6, work=None))).values
    assert values["tsc_cycles_per_packet"] is None
    assert values["cycles_source"] == NO_RECORD


async def test_a_share_of_the_load_that_passes_is_limited_by_nothing_but_the_load() -> None:
    dut = KnownDut(capacity=30e6)
    result = await measured(dut, load=50.0)
    assert dut.requests[0].load_frames_per_s == pytest.approx(10e6)
    assert dut.requests[0].purpose is Purpose.AVERAGE
    assert rate_of(result).limited_by is None
    assert result.values["limited_by"] == "the load"


async def test_a_disturbed_trial_marks_its_result_with_what_disturbed_it() -> None:
    result = await measured(KnownDut(capacity=9e6, disturbed=True))
    assert result.verdict is ResultVerdict.DISTURBED
    assert result.disturbances == ("the worker was held up",)
    rate = result.values["frame_rate_frames_per_s"]
    assert (rate.value, rate.upper, rate.limited_by) == (9e6, None, None)
    assert result.values["limited_by"] == "not known (disturbed)"


async def test_more_than_the_line_carries_is_an_error_and_no_result() -> None:
    with pytest.raises(NicbenchError, match="where the line carries"):
        await measured(KnownDut(capacity=100e6, ceiling=None, faster_than_the_line=1.01))


def test_an_average_over_less_than_a_minute_is_a_deviation() -> None:
    assert SingleCore("one", SingleCore.Options()).deviations() == ()
    short = SingleCore.Options(trial=TrialTimes(duration=1.0))
    assert SingleCore("one", short).deviations() == ("trial 1 s, the published test averages over 60 s",)


def published() -> list[dict[str, str]]:
    with PUBLISHED.open() as file:
        return list(csv.DictReader(file))


def port_line_rate_mpps(row: Mapping[str, str]) -> float:
    speed = {"2x100GbE": 100e9, "2x25GbE": 25e9}[row["ports"]]
    return line_rate_frames_per_s(speed, int(row["frame_bytes"])) / 1e6


def name(row: Mapping[str, str]) -> str:
    return f"{row['ports']}-{row['frame_bytes']}"


# Printed rate and printed throughput contradict each other: 42.23 Mpps of 128 bytes are 43.24 Gb/s (printed: 43.039),
# 11.75 of 512 are 48.13 (48.091), 4.81 of 1280 are 49.25 (49.06). The rates are the line rate's, rounded up.
ERRATA = {"2x25GbE-128", "2x25GbE-512", "2x25GbE-1280"}


@pytest.mark.parametrize("row", published(), ids=name)
def test_a_published_throughput_is_our_formulas_within_the_rounding_of_its_rate(row: dict[str, str]) -> None:
    frame_bytes, rate = int(row["frame_bytes"]), row["frame_rate_mpps"]
    rounding_mpps = 0.5 * 10.0 ** -len(rate.partition(".")[2])
    slack = l2_bits_per_s(rounding_mpps * 1e6, frame_bytes) / 1e9 + 0.0005
    computed = l2_bits_per_s(float(rate) * 1e6, frame_bytes) / 1e9
    assert (abs(computed - float(row["throughput_gbps"])) <= slack) is (name(row) not in ERRATA)


@pytest.mark.parametrize("row", published(), ids=name)
def test_a_published_line_rate_is_that_of_one_port_at_100_gigabits_and_of_both_at_25(row: dict[str, str]) -> None:
    ports = 1 if row["ports"] == "2x100GbE" else 2
    assert ports * port_line_rate_mpps(row) == pytest.approx(float(row["line_rate_mpps"]), abs=0.011)


@pytest.mark.parametrize("row", published(), ids=name)
def test_on_the_basis_of_both_ports_no_published_rate_exceeds_the_line(row: dict[str, str]) -> None:
    assert float(row["frame_rate_mpps"]) <= 2 * port_line_rate_mpps(row) * 1.001


@pytest.mark.parametrize("row", published(), ids=name)
def test_the_published_cycles_fit_a_time_stamp_counter_of_2700_megahertz(row: dict[str, str]) -> None:
    """A core that is busy with these packets all the time has no more cycles than that."""
    assert float(row["cpu_cycles_per_packet"]) * float(row["frame_rate_mpps"]) <= 2700.0
