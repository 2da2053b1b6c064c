"""All runs: a table with filters that live in the address, as CSV or JSON too; and one run, as it is measured.

Server-sent events say what the journal of the run has said, in pieces, then what it says, and how the run stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from nicbench.compare.history.figures import median_figure
from nicbench.core.errors import UsageError
from nicbench.export.formats.reports import badge_of
from nicbench.store import files
from nicbench.store.listing import RunHeadline
from nicbench.web.answers import csv_download, json_answer, json_download, json_line
from nicbench.web.catalogue import MOST_ROWS, SORTS, state_of, wish_of
from nicbench.web.controller import stop_after_test, stop_now
from nicbench.web.history import asked_of, still_reading
from nicbench.web.security import SANDBOX
from nicbench.web.site import Link, Site, View
from nicbench.web.watched_run import REPORT, WatchedRun, title_of

_ROWS: Final = 100


class RunsView(View):
    """The table of runs, which is the first page."""

    kind = "runs"
    link = Link("/", "All runs")

    def routes(self) -> Sequence[BaseRoute]:
        return (
            Route("/", self._page),
            Route("/api/runs", self._rows),
            Route("/api/runs.csv", self._csv),
            Route("/api/runs.json", self._json),
        )

    async def _page(self, request: Request) -> Response:
        return self.site.page("Runs", self.kind, here="/")

    async def _rows(self, request: Request) -> Response:
        wish = wish_of(request.query_params.multi_items())
        first, most = _whole(request, "from", 0, 10**9), _whole(request, "rows", _ROWS, MOST_ROWS)
        catalogue = self.site.catalogue
        if first == 0:
            found = await run_in_threadpool(catalogue.first_page, wish, most)
        else:
            found = await run_in_threadpool(catalogue.find, wish)
        rows = [row_of(run) for run in found.runs[first : first + most]]
        count = found.every if found.reading else len(found.runs)
        about = {"every": found.every, "found": count, "from": first, "reading": found.reading}
        return json_answer({**about, "rows": rows})

    async def _csv(self, request: Request) -> Response:
        columns, runs = await self._wanted(request)
        return csv_download("runs", columns, (row_of(run) for run in runs))

    async def _json(self, request: Request) -> Response:
        columns, runs = await self._wanted(request)
        return json_download("runs", columns, (row_of(run) for run in runs))

    async def _wanted(self, request: Request) -> tuple[tuple[str, ...], Sequence[RunHeadline]]:
        wish = wish_of(request.query_params.multi_items())
        named = request.query_params.get("columns", "").split(",")
        columns = tuple(name for name in SORTS if name in named) or SORTS
        return columns, (await run_in_threadpool(self.site.catalogue.find, wish)).runs


def row_of(run: RunHeadline) -> dict[str, Any]:
    """Returns what the table shows of a run, by the names of its columns."""
    return {
        "run": run.name,
        "at": run.at,
        "title": run.title,
        "verdict": state_of(run),
        "trials": run.trials,
        "results": run.results,
        "tags": list(run.tags),
        "cards": list(run.cards),
        "kernels": list(run.kernels),
        "drivers": list(run.drivers),
        "methods": list(run.methods),
        "headline": run.trouble or run.headline,
    }


def _whole(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, "")
    return min(int(text), most) if text.isdecimal() and len(text) < 10 else default


class CompareView(View):
    """The comparison of the runs that the address names."""

    kind = "compare"
    place = 2

    def routes(self) -> Sequence[BaseRoute]:
        return (Route("/compare", self._page),)

    async def _page(self, request: Request) -> Response:
        runs = sorted(request.query_params.getlist("run"))  # an id begins with its time: the older is the baseline
        if len(runs) != 2:
            raise UsageError("two runs are compared", place="run", next_step="select two in the list of runs")
        try:
            text = await run_in_threadpool(_compare, [self.site.run_folder(run) for run in runs])
        except UsageError as error:  # its next step is for the command line
            step = error.next_step or ""
            for option in ("--force", "--per-port"):
                step = step.replace(option, f"`{shlex.join(['nicbench', 'compare', *runs, option])}`")
            raise UsageError(error.message, place=error.place, next_step=step or None) from error
        return HTMLResponse(text, headers={"Content-Security-Policy": SANDBOX})


def _compare(folders: Sequence[Path]) -> str:
    from nicbench.report.comparison_page import (
        compare,
        document,  # imported here, as charts take a second to load
    )
    from nicbench.report.html import write_html

    command = shlex.join(["nicbench", "compare", *(str(folder) for folder in folders)])
    page = compare([str(folder) for folder in folders], folders[0].parent, lambda _: [], command=command)
    return write_html(document(page))


class BadgeView(View):
    """`/badges/TEST/VALUE.svg`, with the filters and parameters of trends behind it."""

    kind = "badge"
    place = 5

    def routes(self) -> Sequence[BaseRoute]:
        return (Route("/badges/{test}/{value}.svg", self._badge),)

    async def _badge(self, request: Request) -> Response:
        text = await run_in_threadpool(self._draw, request)
        return Response(text, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})

    def _draw(self, request: Request) -> str:
        path = request.path_params
        query = [("test", path["test"]), ("value", path["value"]), *request.query_params.multi_items()]
        asked, history = asked_of(query), self.site.history
        if not history.is_ready():
            raise still_reading()
        selected = history.select(asked, first=True)
        entries = selected.entries
        if not entries and selected.reading is not None:
            raise still_reading()
        if not entries:
            raise UsageError(
                "no run that meets the filters has it", place=path["value"], next_step="name other filters"
            )
        newest = max(entries, key=lambda entry: (entry.run.at, entry.run.run_id, -entry.place))
        same = [one.figure for one in entries if (one.run, one.measure) == (newest.run, newest.measure)]
        return badge_of(newest.measure, median_figure(same))


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
