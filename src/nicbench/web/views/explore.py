"""Explore: a chart of any value against anything that runs or their results differ in; the address holds all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nicbench.compare.history.selection import (
    CONFIGURATION,
    PARAMETER,
    SCOPE,
    SETTING,
    TIME,
    VALUE,
    Axis,
    Entry,
    Series,
    axis_of,
    check_key,
    divide,
    divided_by,
    label_of,
    parameters_of,
)
from nicbench.core.frozen import frozen
from nicbench.web.answers import csv_download, json_answer, json_download
from nicbench.web.history import (
    COLUMNS,
    DEFAULT_KEYS,
    MOST_POINTS,
    MOST_SERIES,
    Asked,
    Selected,
    about,
    asked_of,
    not_ready,
    points,
    rows,
    still_reading,
    thin,
    uncollected,
)
from nicbench.web.site import Link, View

_FIRST: Final = PARAMETER + "frame_bytes"
_COLUMNS: Final = ("x", "x_upper", *COLUMNS)


@frozen
class _Chart:
    """What is drawn. ``places`` are those of the entries on the axis, by the identity of each entry in ``selected``;
    ``below`` has the identities of those whose place is a bound, below which the true one lies.
    """

    asked: Asked
    selected: Selected
    x: str
    axis: Axis
    by: tuple[str, ...]
    series: Sequence[Series]
    places: dict[int, float | None]
    below: frozenset[int]

    def is_below(self, entry: Entry) -> bool:
        """Whether a figure stands at a bound, below which its place lies."""
        return id(entry) in self.below

    def place_of(self, entry: Entry) -> float | None:
        """Where a figure stands on the axis."""
        return self.places[id(entry)]


class ExploreView(View):
    """The page, its points, and the numbers as files."""

    kind = "explore"
    link = Link("/explore", "Explore")
    place = 4

    def routes(self) -> Sequence[BaseRoute]:
        return (
            Route("/explore", self._page),
            Route("/api/explore", self._points),
            Route("/api/explore.csv", self._csv),
            Route("/api/explore.json", self._json),
        )

    async def _page(self, request: Request) -> Response:
        return self.site.page("Explore", self.kind, here="/explore")

    async def _points(self, request: Request) -> Response:
        return json_answer(await run_in_threadpool(self._answer, request.query_params.multi_items()))

    async def _csv(self, request: Request) -> Response:
        return csv_download("explore", _COLUMNS, _rows(await self._whole(request)))

    async def _json(self, request: Request) -> Response:
        return json_download("explore", _COLUMNS, _rows(await self._whole(request)))

    async def _whole(self, request: Request) -> _Chart:
        """Returns the chart for a file. BusyError as long as figures are missing."""
        chart = await run_in_threadpool(self._chart, request.query_params.multi_items())
        if chart is None or chart.selected.reading is not None:
            raise still_reading()
        return chart

    @uncollected()
    def _answer(self, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
        chart = self._chart(query)
        history = self.site.history
        if chart is None:
            return not_ready(history)
        told = about(chart.asked, chart.selected)
        shown = chart.series[:MOST_SERIES]
        most = max(2, MOST_POINTS // max(1, len(shown)))
        heads = {VALUE + value["name"]: value["label"] for value in told["values"] if value["name"] != told["value"]}
        values = [{"key": key, "label": label} for key, label in heads.items()]
        return {
            **told,
            "by": list(chart.by),
            "x": chart.x,
            "x_kind": chart.axis.kind,
            "x_words": list(chart.axis.words),
            "x_label": heads.get(chart.x) or label_of(chart.x),
            "x_keys": [{"key": TIME, "label": label_of(TIME)}, *values, *told["keys"]],
            "left_out": len(chart.series) - len(shown),
            "series": [
                {"name": each.name, "count": len(each.entries), **self._points_of(chart, each, most)} for each in shown
            ],
        }

    @staticmethod
    def _points_of(chart: _Chart, series: Series, most: int) -> dict[str, Any]:
        """Returns at most this many points of a series, and how many of its figures have no place on the axis."""
        placed = [entry for entry in series.entries if chart.place_of(entry) is not None]
        shown = thin(placed, most)
        return {
            "unplaced": len(series.entries) - len(placed),
            "x": [chart.place_of(entry) for entry in shown],
            "x_below": [chart.is_below(entry) for entry in shown],
            **points(shown),
        }

    def _chart(self, query: Sequence[tuple[str, str]]) -> _Chart | None:
        """Returns the chart that an address asks for; None as long as nothing is known."""
        asked, history = asked_of(query), self.site.history
        x = next((value for name, value in query if name == "x" and value), None)
        if x is not None:
            check_key(x, "x", also=(TIME, VALUE))
        by = None if asked.by is None else tuple(check_key(key, "by") for key in asked.by)
        if not history.is_ready():
            return None
        selected = history.select(asked, first=False)
        entries, setting_of = selected.entries, selected.known.setting_of
        if x is None:
            differ = [PARAMETER + name for name in parameters_of(selected.measures.values())]
            x = _FIRST if _FIRST in differ else next(iter(differ), TIME)
        others = history.figures_of(selected.choice.test, x.removeprefix(VALUE)) if x.startswith(VALUE) else {}
        axis = axis_of(x, entries, setting_of, lambda entry: others.get((entry.run.name, entry.place)))
        if by is None:
            by = tuple(key for key in DEFAULT_KEYS if key != x)
        apart = (*by, *divided_by(x, entries), SCOPE)
        path = x.removeprefix(SETTING)
        if path == x or not selected.known.tells_configurations(path, entries):
            apart = (*apart, CONFIGURATION)
        keys = tuple(dict.fromkeys(key for key in apart if key != x))
        places = dict(zip(map(id, entries), axis.places, strict=True))
        below = frozenset(id(entry) for entry, is_below in zip(entries, axis.below, strict=False) if is_below)
        return _Chart(asked, selected, x, axis, by, divide(entries, keys, setting_of), places, below)


def _rows(chart: _Chart) -> Iterator[dict[str, Any]]:
    """Yields every figure of a chart with its place on the axis: a number, a word, or a bound below which it lies."""
    for each in chart.series:
        for entry, row in zip(each.entries, rows([each]), strict=True):
            at = chart.place_of(entry)
            if chart.is_below(entry):
                yield {"x": None, "x_upper": at, **row}
            else:
                is_word = chart.axis.kind == "words" and at is not None
                yield {"x": chart.axis.words[int(at)] if is_word and at is not None else at, "x_upper": None, **row}
