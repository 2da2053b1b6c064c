"""A synchronous search asks for asynchronous trials, and ends with its run."""

import asyncio

import pytest

from nicbench.core.reading import Counts
from nicbench.core.registry import find
from nicbench.core.result import LimitedBy
from nicbench.measure.frame_context import run_search
from nicbench.search.base import NDR, Limits, Sample, Search

LIMITS = Limits(
    minimum_load_frames_per_s=1000.0,
    maximum_load_frames_per_s=1_000_000.0,
    maximum_limited_by=LimitedBy.LINE_RATE,
    precision=0.01,
    trial_duration_s=1.0,
    maximum_trials=60,
)


def sample(load: float, capacity: float) -> Sample:
    intended = int(load)
    received = min(intended, int(capacity))
    counts = Counts(intended=intended, sent=intended, received=received, lost=intended - received)
    return Sample(load_frames_per_s=load, duration_s=1.0, counts=counts)


def guided() -> Search:
    return find("nicbench.search", Search)["guided"]()


async def test_the_search_finds_the_capacity_through_asynchronous_trials() -> None:
    async def measure(load: float, duration: float) -> Sample:
        await asyncio.sleep(0)
        return sample(load, 300_000)

    outcome = (await run_search(guided(), measure, [NDR], LIMITS))["NDR"]
    assert outcome.rate.lower is not None
    assert outcome.rate.upper is not None
    assert outcome.rate.lower <= 300_000 <= outcome.rate.upper


async def test_a_failing_trial_fails_the_search() -> None:
    async def measure(load: float, duration: float) -> Sample:
        raise OSError("the peer is gone")

    with pytest.raises(OSError, match="the peer is gone"):
        await run_search(guided(), measure, [NDR], LIMITS)


async def test_cancelling_the_run_cancels_the_trial_under_way_and_ends_the_search() -> None:
    under_way = asyncio.Event()
    cancelled = asyncio.Event()

    async def measure(load: float, duration: float) -> Sample:
        under_way.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError("unreachable")

    search = asyncio.create_task(run_search(guided(), measure, [NDR], LIMITS))
    await under_way.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert cancelled.is_set()
