"""A small trial and result, and a fresh run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.core.trial import Health, Latency, Purpose, Reading, StreamReading, Trial, TrialRequest
from nicbench.store import RunFolder

MakeTrial = Callable[..., Trial]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", "nicbench: 1\ntitle: Forwarding\n", "Forwarding")


@pytest.fixture
def histogram() -> HdrHistogram:
    recorded = HdrHistogram(1, 100_000_000_000, 3)
    for latency_ns, frames in ((9_000, 90_000), (25_000, 9_900), (400_000, 99), (2_000_000, 1)):
        recorded.record_value(latency_ns, frames)
    return recorded


@pytest.fixture
def make_trial(histogram: HdrHistogram) -> MakeTrial:
    def make(number: int = 0, *, purpose: Purpose = Purpose.SEARCH, disturbed: bool = False) -> Trial:
        counts = Counts(intended=100_000, sent=100_000, received=99_990, lost=10)
        latency = Latency(
            source="software",
            count=99_990,
            minimum_ns=8_998,
            mean_ns=10_977.5,
            maximum_ns=2_000_123,
            percentiles_ns={"50": 9_000, "99": 25_000, "99.9": 400_000, "99.99": 400_000},
            histogram=histogram.encode().decode(),
        )
        finding = Finding(
            reason=Reason.DISTURBED, threshold="longest_gap", value=31e6, limit=20e6, text="held up for 31 ms"
        )
        return Trial(
            id=f"t{number:04}",
            key=f"throughput/default/64/{number}/0",
            test="throughput",
            configuration="default",
            parameters={"frame_bytes": 64},
            repeat=0,
            request=TrialRequest(
                frame_bytes=64, load_frames_per_s=100_000.0, duration_s=1.0, drain_s=0.2, settle_s=0.1, purpose=purpose
            ),
            reading=Reading(
                transmit_ns=1_000_000_000,
                counts=counts,
                streams=(StreamReading(name="forward", counts=counts),),
                ports=(),
                latency=latency,
                health=Health(
                    longest_gap_ns=310_000,
                    total_gap_ns=900_000,
                    gap_floor_ns=100_000,
                    gaps=4,
                    iterations=9,
                    idle_iterations=1,
                    core_clock_hz=(3.9e9, 3.7e9),
                ),
            ),
            verdict=Verdict(findings=(finding,) if disturbed else ()),
            at_s=float(number),
        )

    return make


@pytest.fixture
def result() -> Result:
    return Result(
        id="throughput/default/64",
        method="throughput",
        scope="per port",
        parameters={"frame_bytes": 64},
        values={
            "ndr_frames_per_s": Bounded(value=0.1 + 0.2, lower=0.3, upper=1e6 / 3, limited_by=LimitedBy.DUT, n=4),
            "line_rate_frames_per_s": 14880952.380952381,
            "ceiling_frames_per_s": None,
        },
        trials=("t0000",),
    )


@pytest.fixture
def summary(result: Result) -> Summary:
    return Summary(title="Forwarding", verdict=ResultVerdict.VALID, results=(result,))
