"""Badges: the newest figure of a test as an SVG, for a README or a page of another team."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nicbench.compare.history.figures import median_figure
from nicbench.core.errors import UsageError
from nicbench.export.formats.badge import badge_of
from nicbench.web.history import asked_of
from nicbench.web.history_answers import still_reading
from nicbench.web.views.base import View


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
