"""All runs: a table with filters that live in the address, and what is seen of it as CSV or JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from nicbench.compare.history.figures import median_figure
from nicbench.core.errors import UsageError
from nicbench.export.formats.reports import badge_of
from nicbench.store.listing import RunHeadline
from nicbench.web.answers import csv_download, json_answer, json_download
from nicbench.web.catalogue import MOST_ROWS, SORTS, state_of, wish_of
from nicbench.web.history import asked_of, still_reading
from nicbench.web.security import SANDBOX
from nicbench.web.site import Link, View

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
