"""Server-sent events of one run: what the journal has said, in pieces, then what it says, and how the run stands."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from nicbench.web.answers import json_line
from nicbench.web.site import Site
from nicbench.web.watched_run import WatchedRun

POLL_S: Final = 0.5
"""How often a journal is looked at: a page is never older than this."""
MOST_STREAMS: Final = 64
_ITEMS: Final = 1000
"""The most items of one piece: a page draws the first while the next are read."""
_KEPT_ALIVE_S: Final = 15.0
_AGAIN_MS: Final = 1000
"""How long a page waits before it connects again."""


def place_of(last_event_id: str | None) -> tuple[int, int]:
    """Reads generation and number of items that a page has, from what it was sent last; (0, 0) where it has none."""
    first, _, second = (last_event_id or "").partition(".")
    known = first.isdecimal() and second.isdecimal() and len(first) < 10 and len(second) < 10
    return (int(first), int(second)) if known else (0, 0)


async def stream_run(site: Site, run: WatchedRun, begun: tuple[int, int]) -> AsyncIterator[str]:
    """Gives the events of a run until the page leaves or the server ends; ``begun`` is what the page has already."""
    generation, sent = begun
    state: dict[str, Any] | None = None
    spoke = time.monotonic()
    site.streams += 1
    try:
        while True:
            ending = site.ending.is_set()
            more, now = await run_in_threadpool(partial(run.look, now=ending))
            if generation != run.generation or (not more and sent > len(run.items)):
                generation, sent = run.generation, 0
                yield "event: reset\ndata: {}\n\n"
            while sent < len(run.items):
                piece = run.items[sent : sent + _ITEMS]
                sent += len(piece)
                spoke = time.monotonic()
                yield f"id: {generation}.{sent}\nevent: items\ndata: [{','.join(piece)}]\n\n"
            if more:
                continue
            if now != state:
                state, spoke = now, time.monotonic()
                yield f"event: state\nretry: {_AGAIN_MS}\ndata: {json_line(now)}\n\n"
            if ending:
                yield "event: bye\ndata: {}\n\n"
                return
            if time.monotonic() - spoke > _KEPT_ALIVE_S:
                spoke = time.monotonic()
                yield ": still here\n\n"
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(site.ending.wait(), POLL_S)
    finally:
        site.streams -= 1
