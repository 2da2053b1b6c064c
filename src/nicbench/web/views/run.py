"""Server-sent events of one run: what the journal has said, in pieces, then what it says, and how the run stands."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from nicbench.core.errors import UsageError
from nicbench.store import files
from nicbench.web.answers import json_answer, json_line
from nicbench.web.controller import stop_after_test, stop_now
from nicbench.web.security import SANDBOX
from nicbench.web.site import Site, View
from nicbench.web.watched_run import REPORT, WatchedRun, title_of

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
                yield f"event: bye\ndata: {json_line({'for_good': site.ends_with_run})}\n\n"
                return
            if time.monotonic() - spoke > _KEPT_ALIVE_S:
                spoke = time.monotonic()
                yield ": still here\n\n"
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(site.ending.wait(), POLL_S)
    finally:
        site.streams -= 1


_AT_ONCE: Final = 2**20
_NEVER_SENT: Final = frozenset({"undo.json"})
_PAGES: Final = frozenset({REPORT})


class RunView(View):
    """The page of a run, its events, and two buttons."""

    kind = "run"
    place = 1

    def routes(self) -> Sequence[BaseRoute]:
        return (
            Route("/runs/{run}", self._page),
            Route("/api/runs/{run}/events", self._events),
            Route("/api/runs/{run}/cpus", self._cpus),
            Route("/api/runs/{run}/stop", self._stop, methods=["POST"]),
            Route("/api/runs/{run}/stop-after-test", self._stop_after_test, methods=["POST"]),
            Route("/runs/{run}/{name:path}", self._file),
        )

    async def _page(self, request: Request) -> Response:
        folder = self._folder(request)
        title = await run_in_threadpool(title_of, folder)
        return self.site.page(title, self.kind, run=quote(folder.name, safe="", errors="surrogateescape"))

    async def _events(self, request: Request) -> Response:
        if self.site.streams >= MOST_STREAMS:
            return PlainTextResponse("nicbench: too many pages are open\n", 503)
        begun = place_of(request.headers.get("last-event-id") or request.query_params.get("after"))
        stream = stream_run(self.site, self.site.watched.of(self._folder(request)), begun)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _cpus(self, request: Request) -> Response:
        run = self.site.watched.of(self._folder(request))
        return json_answer({"machines": await run_in_threadpool(run.machines)})

    async def _stop(self, request: Request) -> Response:
        return await self._ask(request, stop_now)

    async def _stop_after_test(self, request: Request) -> Response:
        return await self._ask(request, stop_after_test)

    async def _ask(self, request: Request, stop: Callable[[Path], None]) -> Response:
        await run_in_threadpool(stop, self._folder(request))
        return json_answer({"asked": True})

    async def _file(self, request: Request) -> Response:
        """Sends a file of the run folder: the report to be looked at, all others to be kept."""
        folder, asked = self._folder(request), request.path_params["name"]
        parts = Path(asked).parts
        name = "/".join(parts)  # "undo.json/" and "./undo.json" are that file, too
        path = folder / name
        hidden = any(part.startswith(".") for part in parts) or name in _NEVER_SENT or asked.startswith("/")
        linked = any((folder / Path(*parts[:number])).is_symlink() for number in range(1, len(parts) + 1))
        if hidden or linked or not parts or "\0" in name:
            raise UsageError("there is no such file in this run", place=folder.name)
        try:
            stream = await run_in_threadpool(files.open_file, path)
        except FileNotFoundError as error:
            raise UsageError("there is no such file in this run", place=folder.name) from error
        is_page = name in _PAGES
        headers = {"Content-Security-Policy": SANDBOX}
        if not is_page:
            headers["Content-Disposition"] = "attachment"
        media_type = "text/html; charset=utf-8" if is_page else "application/octet-stream"

        def pieces() -> object:
            with stream:
                while piece := stream.read(_AT_ONCE):
                    yield piece

        return StreamingResponse(pieces(), media_type=media_type, headers=headers)  # type: ignore[arg-type]

    def _folder(self, request: Request) -> Path:
        return self.site.run_folder(request.path_params["run"])
