"""Latency: at shares of a rate that was found, with the long tail in bins; against a DUT whose delays are known."""

from __future__ import annotations

import math
import random
from collections import Counter
from statistics import NormalDist
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from pydantic import ValidationError

from nicbench.core.reading import Counts
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Latency as LatencyReading
from nicbench.core.trial import Purpose, Reading, SharedCore, StreamReading, TrialRequest
from nicbench.methods._loads import TrialTimes
from nicbench.methods.latency import Latency
from nicbench.report.tables import sections
from nicbench.stats.latency import add_percentiles, histogram_of

from .known import KnownContext, reading_of

US = 1000


class KnownDelays(KnownContext):
    """Its DUT delays a number of frames by some nanoseconds, at any load; ``rate`` was found before."""

    def __init__(
        self, delays_ns: dict[int, int], rate: float | None = 1e6, shared_ns: dict[int, int] | None = None
    ) -> None:
        super().__init__(throughput=rate)
        self.delays_ns = delays_ns
        self.shared_ns = shared_ns

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        frames = sum(self.delays_ns.values())
        histogram = HdrHistogram(1, 100_000_000_000, 3)
        for delay_ns, count in self.delays_ns.items():
            histogram.record_value(delay_ns, count)
        latency = add_percentiles(
            LatencyReading(
                source="software",
                count=frames,
                minimum_ns=min(self.delays_ns),
                mean_ns=sum(delay * count for delay, count in self.delays_ns.items()) / frames,
                maximum_ns=max(self.delays_ns),
                histogram=histogram.encode().decode(),
                shared_core=None
                if self.shared_ns is None
                else SharedCore(count=sum(self.shared_ns.values()), histogram=histogram_of(self.shared_ns.items())),
            )
        )
        counts = Counts(intended=frames, sent=frames, received=frames, lost=0)
        return reading_of(1.0, [StreamReading(name="0->1", counts=counts)], latency=latency)


async def measured(dut: KnownDelays, **options: Any) -> tuple[Result, ...]:
    return await Latency("lat", Latency.Options(at="throughput", frame_bytes=(64,), **options)).run(dut)


async def test_it_is_measured_at_the_throughput_and_at_90_50_and_10_percent_of_it() -> None:
    dut = KnownDelays({5 * US: 100})
    results = await measured(dut)
    assert [request.load_frames_per_s for request in dut.requests] == [1e6, 0.9e6, 0.5e6, 0.1e6]
    assert [result.parameters["load_percent"] for result in results] == [100.0, 90.0, 50.0, 10.0]
    assert {request.purpose for request in dut.requests} == {Purpose.LATENCY}


async def test_frames_are_counted_in_their_bins_and_outside_each_bound() -> None:
    """Bounds belong to the bin below them, as in "10..20": what took 10 us is not outside 10 us."""
    delays = {5 * US: 900, 10 * US: 50, 15 * US: 30, 50 * US: 15, 130 * US: 5}
    (result,) = await measured(KnownDelays(delays), loads=(100.0,))
    names = [f"bin_to_{bound}_ns_frames" for bound in (10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 120_000)]
    assert [result.values[name] for name in names] == [950, 30, 0, 15, 0, 0, 0]
    assert result.values["bin_over_120000_ns_frames"] == 5
    assert result.values["outside_10000_ns_frames"] == 50
    assert result.values["outside_120000_ns_frames"] == 5
    assert result.values["outside_120000_ns_per_100_million"] == pytest.approx(500_000)
    assert result.values["timed_frames"] == 1000


async def test_percentiles_go_as_far_as_the_frames_can_tell_and_no_farther() -> None:
    (few,) = await measured(KnownDelays({5 * US: 999, 9 * US: 1}), loads=(100.0,))
    assert few.values["latency_p99_9_ns"] == pytest.approx(5 * US, rel=0.001)
    assert few.values["latency_p99_99_ns"] is None
    (many,) = await measured(KnownDelays({5 * US: 1_999_998, 9 * US: 2}), loads=(100.0,))
    assert many.values["latency_p99_9999_ns"] == pytest.approx(5 * US, rel=0.001)
    assert many.values["pdv_ns"] == pytest.approx(0, abs=5)  # p99.9 less the minimum, RFC 8219


async def test_a_trial_of_so_many_frames_is_as_long_as_they_take() -> None:
    dut = KnownDelays({5 * US: 100})
    await measured(dut, loads=(100.0, 10.0), frames=5_000_000, trial=TrialTimes(duration=20.0))
    assert [request.frames for request in dut.requests] == [5_000_000, None]  # 10 % would take 50 s
    assert dut.requests[0].duration_s == pytest.approx(5.0, rel=0.02)
    assert dut.requests[1].duration_s == 20.0


async def test_the_load_is_the_one_that_was_sent() -> None:
    dut = KnownDelays({10 * US: 1000}, rate=1e6)
    dut.sends = 0.9e6
    full, less = await measured(dut, loads=(100.0, 50.0))
    assert (full.values["load_frames_per_s"], less.values["load_frames_per_s"]) == (0.9e6, 0.5e6)
    assert full.values["lowered"] == "at 64 bytes the tester sent 900.0 kpps, not 1.000 Mpps"
    assert "lowered" not in less.values


async def test_without_a_throughput_there_is_no_latency() -> None:
    (result,) = await measured(KnownDelays({5 * US: 100}, rate=None), loads=(100.0,))
    assert result.verdict is ResultVerdict.INCOMPLETE


@pytest.mark.parametrize("bins", [(), (0.0,), (10e-6, 10e-6), (20e-6, 10e-6), (1e-9, 1.2e-9)])
def test_bounds_that_do_not_rise_are_refused(bins: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        Latency.Options(at="throughput", bins=bins)


HANDED_OVER = (
    "latency runs from handing a frame to the port to taking it from the port, RFC 1242 section 3.8 from its last bit "
    "in to its first bit out"
)
ALWAYS = (
    (
        "one trial in which every stamped frame is timed, RFC 2544 section 26.2 tags one frame in each of 20 trials, "
        "and RFC 8219 section 7.3.1 takes the median PDV of 20"
    ),
    HANDED_OVER,
)


def test_what_software_cannot_do_as_the_rfc_asks_is_always_said() -> None:
    assert Latency("lat", Latency.Options(at="throughput")).deviations() == ALWAYS


def test_every_other_deviation_is_declared() -> None:
    options = Latency.Options(
        at="throughput", of="PDR", loads=(50.0,), frame_bytes=(64, 128, 256, 512, 1024, 1280),
        frames=10**8, trial=TrialTimes(duration=10.0, settle=1.0),
    )  # fmt: skip
    assert Latency("lat", options).deviations() == (
        "trial 10 s, RFC 2544 section 26.2 asks for 120 s",
        "a trial ends after 100000000 frames, RFC 2544 section 26.2 asks for 120 s",
        "not at the throughput itself, as RFC 2544 section 26.2 asks (no load of 100 %)",
        "100 % is the PDR, RFC 2544 section 26.2 takes the throughput, which is without loss",
        "settle time 1 s, RFC 2544 section 23 asks for 5 s",
        "no frames of 1518 bytes, RFC 2544 section 9.1 asks for seven",
        *ALWAYS,
    )


async def test_frames_that_a_neighbour_may_have_delayed_stand_apart() -> None:
    delays, shared = {5 * US: 980, 900 * US: 120}, {5 * US: 20, 900 * US: 120}
    (result,) = await measured(KnownDelays(delays, shared_ns=shared), loads=(100.0,))

    assert result.values["latency_shared_core_percent"] == pytest.approx(100 * 140 / 1100)
    assert result.values["latency_own_core_p99_ns"] == pytest.approx(5 * US, rel=0.001)
    assert result.values["latency_shared_core_p50_ns"] == pytest.approx(900 * US, rel=0.001)
    assert result.values["latency_shared_core_p99_9_ns"] is None
    (section,) = sections([result], {})
    (apart,) = section.further
    assert [column.head for column in apart.table.columns][:3] == ["Frame", "Frames, core shared", "p50"]
    assert len(apart.rows) == 1


@pytest.mark.parametrize("shared", [None, {}])
async def test_without_a_neighbour_nothing_stands_apart(shared: dict[int, int] | None) -> None:
    (result,) = await measured(KnownDelays({5 * US: 1000}, shared_ns=shared), loads=(100.0,))

    assert not [name for name in result.values if "core" in name]
    (section,) = sections([result], {})
    assert section.further == ()


@pytest.mark.parametrize("seed", range(10))
async def test_the_slowest_of_several_takes_the_time_that_a_drawn_distribution_says(seed: int) -> None:
    draw = random.Random(f"tail {seed}")
    usual = NormalDist(draw.uniform(8, 14), draw.uniform(0.1, 1.5))  # of the logarithm of nanoseconds
    frames = 10_000
    delays = Counter(round(math.exp(usual.inv_cdf((number + 0.5) / frames))) for number in range(frames))
    (result, *_) = await measured(KnownDelays(dict(delays)), loads=(100,), slowest_of=(10, 1000, 100_000))
    for number in (10, 1000):
        # All of them are there within t by the chance of one to the power of their number.
        truth_ns = math.exp(usual.inv_cdf(0.5 ** (1 / number)))
        assert result.values[f"slowest_of_{number}_p50_ns"] == pytest.approx(truth_ns, rel=0.1)
    assert result.values["slowest_of_100000_p50_ns"] is None  # 10,000 frames do not tell
    (section,) = sections([result], {result.id: "lat"})
    assert "The slowest of several frames" in str(section)
