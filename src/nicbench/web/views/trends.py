"""Trends: a value over the years, in series, with the changes that may be claimed and what differed then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nicbench.compare.history.selection import Series
from nicbench.compare.history.trends import TOLERANCE_RATIO, Change, explain, find_trend
from nicbench.compare.run_differences import shorten_apart
from nicbench.core.errors import UsageError
from nicbench.web.answers import csv_download, json_answer, json_download
from nicbench.web.history import (
    COLUMNS,
    MOST_POINTS,
    MOST_SERIES,
    about,
    asked_of,
    keys_of,
    not_ready,
    points,
    rows,
    series_of,
    still_reading,
    thin,
    uncollected,
)
from nicbench.web.site import Link, View

_MOST_EXPLAINED: Final = 12
"""Changes for which the runs are opened: the newest of each series."""
_MOST_DIFFERENCES: Final = 8
_NOT_COMPARABLE: Final = "not comparable"


class TrendsView(View):
    """The page, its points, the changes among them, and the numbers as files."""

    kind = "trends"
    link = Link("/trends", "Trends")
    place = 3

    def routes(self) -> Sequence[BaseRoute]:
        return (
            Route("/trends", self._page),
            Route("/api/trends", self._points),
            Route("/api/trends/changes", self._changes),
            Route("/api/trends.csv", self._csv),
            Route("/api/trends.json", self._json),
        )

    async def _page(self, request: Request) -> Response:
        return self.site.page("Trends", self.kind, here="/trends")

    async def _points(self, request: Request) -> Response:
        return json_answer(await run_in_threadpool(self._answer, request.query_params.multi_items()))

    async def _changes(self, request: Request) -> Response:
        return json_answer(await run_in_threadpool(self._answer_changes, request.query_params.multi_items()))

    async def _csv(self, request: Request) -> Response:
        return csv_download("trends", COLUMNS, rows(await self._whole(request)))

    async def _json(self, request: Request) -> Response:
        return json_download("trends", COLUMNS, rows(await self._whole(request)))

    async def _whole(self, request: Request) -> list[Series]:
        """Returns all series for a file. BusyError as long as figures are missing."""
        series, reading = await run_in_threadpool(self._series, request.query_params.multi_items())
        if reading:
            raise still_reading()
        return series

    @uncollected()
    def _answer(self, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
        asked, history = asked_of(query), self.site.history
        _tolerance_of(query)
        if not history.is_ready():
            return not_ready(history)
        selected = history.select(asked, first=True)
        series = series_of(selected, keys_of(asked, selected.choice))
        shown = series[:MOST_SERIES]
        most = max(2, MOST_POINTS // max(1, len(shown)))
        return {
            **about(asked, selected),
            "left_out": len(series) - len(shown),
            "series": [
                {"name": each.name, "count": len(each.entries), **points(thin(each.entries, most))} for each in shown
            ],
        }

    def _answer_changes(self, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
        tolerance = _tolerance_of(query)
        series, reading = self._series(query)
        return {"reading": reading, "series": [self._trend(each, tolerance) for each in series[:MOST_SERIES]]}

    @uncollected()
    def _series(self, query: Sequence[tuple[str, str]]) -> tuple[list[Series], bool]:
        """Returns the series that are asked for, and whether figures may be missing, as runs are still being read."""
        asked, history = asked_of(query), self.site.history
        if not history.is_ready():
            return [], True
        selected = history.select(asked, first=True)
        return series_of(selected, keys_of(asked, selected.choice)), selected.reading is not None

    def _trend(self, series: Series, tolerance_ratio: float) -> dict[str, Any]:
        entries = [entry for entry in series.entries if entry.at_s is not None]
        told = entries[0].measure.told if entries else None
        found = find_trend(
            [entry.figure for entry in entries],
            higher_is_better=told.higher_is_better if told else None,
            tolerance_ratio=tolerance_ratio,
        )
        return {
            "name": series.name,
            "levels": [
                {
                    "from": entries[level.first].at_s,
                    "to": entries[level.last].at_s,
                    "median": level.median,
                    "below": level.is_only_below,
                }
                for level in found.levels
            ],
            "changes": [self._change(series, change) for change in found.changes[-_MOST_EXPLAINED:]],
            "earlier": max(0, len(found.changes) - _MOST_EXPLAINED),
            "recent": found.recent,
            "needed": found.needed,
        }

    def _change(self, series: Series, change: Change) -> dict[str, Any]:
        entries = [entry for entry in series.entries if entry.at_s is not None]
        before, after = entries[change.last_before], entries[change.first_after]
        why = explain(before.run.path, after.run.path)
        judgement = change.judgement
        ratio = judgement.change_ratio
        return {
            "at": after.at_s,
            "run": after.run.name,
            "run_before": before.run.name,
            "outcome": _NOT_COMPARABLE if why.objections else judgement.outcome.value,
            "before": judgement.before,
            "after": judgement.after,
            "before_below": judgement.before_below,
            "after_below": judgement.after_below,
            "change_percent": None if ratio is None else 100.0 * ratio,
            "why": judgement.why,
            "between": change.first_after - change.last_before - 1,
            "objections": list(why.objections),
            "trouble": why.trouble,
            "differences": [
                {
                    "path": row.path,
                    "before": texts[0],
                    "after": texts[1],
                    "why": row.why,
                }
                for row in why.settings[:_MOST_DIFFERENCES]
                for texts in (shorten_apart(row.values, row.path, 60),)
            ],
            "more": max(0, len(why.settings) - _MOST_DIFFERENCES),
        }


def _tolerance_of(query: Sequence[tuple[str, str]]) -> float:
    """Reads the tolerance of an address, in percent. UsageError unless it lies between 0 and 100."""
    text = next((value for name, value in query if name == "tolerance" and value.strip()), None)
    if text is None:
        return TOLERANCE_RATIO
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= 100.0:
        raise UsageError(f"{text[:40]!r} is no percentage", place="tolerance", next_step="a number from 0 to 100")
    return found / 100.0
