"""A search under way: it runs in a thread while its trials are made on the event loop, and says how far it has come."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from nicbench.core.events import BoundsNarrowed, GoalBounds
from nicbench.search import bounds_so_far
from nicbench.search.base import Goal, Limits, Outcome, Sample, Search


def bounds_event(
    test: str, point: dict[str, Any], samples: Sequence[Sample], goals: Sequence[Goal], limits: Limits
) -> BoundsNarrowed:
    """The event that tells between which loads each goal's rate lies, by all samples of a search so far."""
    found = ((goal.name, *bounds_so_far(samples, goal, limits)) for goal in goals)
    return BoundsNarrowed(
        test=test,
        parameters=point,
        bounds=tuple(
            GoalBounds(goal=name, passing_frames_per_s=passing, failing_frames_per_s=failing)
            for name, passing, failing in found
        ),
        trials=len(samples),
        maximum_trials=limits.maximum_trials,
    )


class _TrialOrder(NamedTuple):
    """A trial that the search's thread is waiting for."""

    load_frames_per_s: float
    duration_s: float
    answer: concurrent.futures.Future[Sample]


class _SearchAbandonedError(Exception):
    """Thrown into the search's thread, so that it ends when its run does."""


async def run_search(
    search: Search, measure: Callable[[float, float], Awaitable[Sample]], goals: Sequence[Goal], limits: Limits
) -> dict[str, Outcome]:
    """Runs the search to its end. Trials run in the caller's task: cancelling it cancels the trial under way."""
    loop = asyncio.get_running_loop()
    wanted: asyncio.Queue[_TrialOrder | None] = asyncio.Queue()

    def measure_from_thread(load_frames_per_s: float, duration_s: float) -> Sample:
        one = _TrialOrder(load_frames_per_s, duration_s, concurrent.futures.Future())
        loop.call_soon_threadsafe(wanted.put_nowait, one)
        return one.answer.result()

    finished = loop.run_in_executor(None, search.run, measure_from_thread, goals, limits)
    finished.add_done_callback(lambda _: wanted.put_nowait(None))
    one: _TrialOrder | None = None
    try:
        while (one := await wanted.get()) is not None:
            one.answer.set_result(await measure(one.load_frames_per_s, one.duration_s))
        return finished.result()
    except BaseException:
        # The thread waits for an answer, or will: it must not outlive the run.
        while not finished.done():
            if one is not None and not one.answer.done():
                one.answer.set_exception(_SearchAbandonedError())
            one = await wanted.get()
        finished.exception()
        raise
