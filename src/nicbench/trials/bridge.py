"""Lets a synchronous search ask for asynchronous trials: the search runs in a thread, the trials on the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from nicbench.search.base import Goal, Limits, Outcome, Sample, Search

AsyncMeasure = Callable[[float, float], Coroutine[Any, Any, Sample]]


async def run_search(
    search: Search, measure: AsyncMeasure, goals: Sequence[Goal], limits: Limits
) -> dict[str, Outcome]:
    """Runs the search to its end. When the caller is cancelled, so is the trial under way, and the thread ends."""
    loop = asyncio.get_running_loop()
    under_way: list[concurrent.futures.Future[Sample]] = []

    def measure_from_thread(load_frames_per_s: float, duration_s: float) -> Sample:
        under_way[:] = [asyncio.run_coroutine_threadsafe(measure(load_frames_per_s, duration_s), loop)]
        return under_way[0].result()

    finished: Awaitable[dict[str, Outcome]] = loop.run_in_executor(None, search.run, measure_from_thread, goals, limits)
    try:
        return await asyncio.shield(finished)
    except asyncio.CancelledError:
        for trial in under_way:
            trial.cancel()
        await asyncio.wait([asyncio.ensure_future(finished)])
        raise
