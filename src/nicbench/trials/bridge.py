"""Lets a synchronous search ask for asynchronous trials: the search runs in a thread, the trials on the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from nicbench.search.base import CeilingReached, Goal, Limits, Outcome, Sample, Search

AsyncMeasure = Callable[[float, float], Awaitable[Sample]]


class _Wish(NamedTuple):
    """A trial that the search's thread is waiting for."""

    load_frames_per_s: float
    duration_s: float
    answer: concurrent.futures.Future[Sample]


class _SearchAbandonedError(Exception):
    """Thrown into the search's thread, so that it ends when its run does."""


async def run_search(
    search: Search, measure: AsyncMeasure, goals: Sequence[Goal], limits: Limits
) -> dict[str, Outcome]:
    """Runs the search to its end. Trials run in the caller's task: cancelling it cancels the trial under way."""
    loop = asyncio.get_running_loop()
    wishes: asyncio.Queue[_Wish | None] = asyncio.Queue()

    def measure_from_thread(load_frames_per_s: float, duration_s: float) -> Sample:
        wish = _Wish(load_frames_per_s, duration_s, concurrent.futures.Future())
        loop.call_soon_threadsafe(wishes.put_nowait, wish)
        return wish.answer.result()

    finished = loop.run_in_executor(None, search.run, measure_from_thread, goals, limits)
    finished.add_done_callback(lambda _: wishes.put_nowait(None))
    wish: _Wish | None = None
    try:
        while (wish := await wishes.get()) is not None:
            try:
                wish.answer.set_result(await measure(wish.load_frames_per_s, wish.duration_s))
            except CeilingReached as ceiling:
                wish.answer.set_exception(ceiling)
        return finished.result()
    except BaseException:
        # The thread waits for an answer, or will: it must not outlive the run.
        while not finished.done():
            if wish is not None and not wish.answer.done():
                wish.answer.set_exception(_SearchAbandonedError())
            wish = await wishes.get()
        finished.exception()
        raise
