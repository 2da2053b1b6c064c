"""Parts of a test that take turns, so that each sees the whole of the test's time.

They run one at a time in a fixed order, each until it gives way: the same trials lead to the same order, also where a
run is resumed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from nicbench.methods.base import GiveWay

PartT = TypeVar("PartT")


async def take_turns(parts: Sequence[Callable[[GiveWay], Awaitable[PartT]]]) -> list[PartT]:
    """Runs parts by turns and returns what they return, in their order; where the run is interrupted, of those that
    have something to return by then.
    """
    loop = asyncio.get_running_loop()
    waiting = deque(loop.create_future() for _ in parts)

    def wake() -> None:
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def give_way() -> None:
        turn = loop.create_future()
        waiting.append(turn)
        wake()
        await turn

    async def play(part: Callable[[GiveWay], Awaitable[PartT]], turn: asyncio.Future[None]) -> PartT:
        try:
            await turn
            return await part(give_way)
        finally:
            wake()

    tasks = [asyncio.create_task(play(part, turn)) for part, turn in zip(parts, list(waiting), strict=True)]
    wake()
    stopped: asyncio.CancelledError | None = None
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError as cancelled:
        stopped = cancelled
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    done = [task.result() for task in tasks if not task.cancelled()]
    if stopped is not None and not done:
        raise stopped
    return done
