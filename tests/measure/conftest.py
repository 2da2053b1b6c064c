"""Readings and trials of a quiet tester, to be disturbed one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nicbench.core.judging import Thresholds
from nicbench.core.reading import Counts
from nicbench.core.trial import CpuTime, Health, PortReading, Purpose, Reading, Trial, TrialRequest
from nicbench.measure.trial_verdict import Evidence, judge

INTENDED = 1_000_000


def quiet_reading(**changes: Any) -> Reading:
    """A reading in which nothing is wrong; ``changes`` are of the counts, the health or the port."""
    parts = {
        "counts": {"intended": INTENDED, "sent": INTENDED, "received": INTENDED, "lost": 0},
        "health": {
            "longest_gap_ns": 200_000,
            "total_gap_ns": 900_000,
            "gap_floor_ns": 100_000,
            "gaps": 6,
            "iterations": 10_000_000,
            "idle_iterations": 5_000_000,
            "clock_step_ns": 12,
            "cpus": (quiet_cpu(0), quiet_cpu(1)),
        },
        "port": {"name": "t0", "foreign": 0, "corrupted_unattributed": 0, "receive_overrun": 0},
    }
    for name, value in changes.items():
        kind = next(part for part, model in KINDS.items() if name in model.model_fields)
        parts[kind][name] = value
    return Reading(
        transmit_ns=1_000_000_000,
        counts=Counts(**parts["counts"]),
        streams=(),
        ports=(PortReading(**parts["port"]),),
        latency=None,
        health=Health(**parts["health"]),
    )


KINDS = {"counts": Counts, "health": Health, "port": PortReading}


def quiet_cpu(cpu: int, **changes: int) -> CpuTime:
    """A core that forwarded in interrupts and was otherwise idle."""
    times = {"user": 5, "nice": 0, "system": 10, "softirq": 600, "irq": 20, "steal": 10, "idle": 355} | changes
    return CpuTime(cpu=cpu, **{f"{name}_ns": value * 1_000_000 for name, value in times.items()})


def trial_of(repeat: int, load_frames_per_s: float | None = 1e6, **changes: Any) -> Trial:
    """A trial of one second at a million frames per second, judged."""
    reading = quiet_reading(**changes)
    request = TrialRequest(
        frame_bytes=64,
        load_frames_per_s=load_frames_per_s,
        duration_s=1.0,
        drain_s=0.2,
        settle_s=0.1,
        purpose=Purpose.SEARCH,
    )
    return Trial(
        id=f"t{repeat}",
        key=f"throughput/default/64/0/{repeat}",
        test="throughput",
        configuration="default",
        parameters={},
        repeat=repeat,
        request=request,
        reading=reading,
        verdict=judge(Evidence.of(reading, dut_cpus={1}), Thresholds()),
    )


@pytest.fixture
def reading() -> Callable[..., Reading]:
    return quiet_reading


@pytest.fixture
def trial() -> Callable[..., Trial]:
    return trial_of


@pytest.fixture
def cpu() -> Callable[..., CpuTime]:
    return quiet_cpu
