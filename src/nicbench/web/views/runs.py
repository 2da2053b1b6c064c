"""All runs: a table with filters that live in the address, and what is seen of it as CSV or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nicbench.store.listing import RunHeadline
from nicbench.web.answers import json_answer
from nicbench.web.catalogue import MOST_ROWS, SORTS, Wish, state_of, wish_of
from nicbench.web.downloads import csv_download, json_download
from nicbench.web.site import Link
from nicbench.web.views.base import View

_ROWS: Final = 100


class RunsView(View):
    """The table of runs, which is the first page."""

    kind = "runs"
    link: ClassVar[Link | None] = Link("/", "All runs")

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
        wish: Wish = wish_of(request.query_params.multi_items())
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
