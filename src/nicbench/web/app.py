"""The application: every view of ``views`` behind the guard, and the errors of nicbench as answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from nicbench.core.errors import BusyError, HostError, NicbenchError, UsageError
from nicbench.core.redaction import make_visible
from nicbench.core.registry import find
from nicbench.web.answers import json_answer
from nicbench.web.security import TOKEN_PATH, Door, Guard
from nicbench.web.site import Site
from nicbench.web.views.base import View

STATIC: Final = Path(str(files("nicbench.web"))) / "static"
_RETRY_AFTER_S: Final = 5


def make_app(site: Site) -> ASGIApp:
    """Makes the application of a site."""
    views = sorted((view(site) for view in find("nicbench.web.views", View).values()), key=lambda view: view.place)
    site.links = [view.link for view in views if view.link is not None]
    routes = [
        Route("/static/report.css", _report_style),
        Route(TOKEN_PATH, _token_of(site.door)),
        Mount("/static", StaticFiles(directory=STATIC)),
        *(route for view in views for route in view.routes()),
    ]
    explain = _explainer(site)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys((NicbenchError, OSError, 404), explain))
    return Guard(app, site.door)


def _token_of(door: Door) -> Callable[[Request], Awaitable[Response]]:
    """Makes the answer to a page of an earlier server at this address, which goes on with the token of this one."""

    async def answer(request: Request) -> Response:
        return json_answer({"token": door.token})

    return answer


async def _report_style(request: Request) -> Response:
    """The style of reports, so that pages look like them."""
    text = files("nicbench.report").joinpath("style.css").read_text(encoding="utf-8")
    return Response(text, media_type="text/css")


def _explainer(site: Site) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Makes the answer to what fails: in the error's own words, as a page to somebody who opened an address."""

    async def explain(request: Request, error: Exception) -> Response:
        if isinstance(error, OSError):
            error = NicbenchError(error.strerror or "cannot be read")
            status, headers = 500, None
        elif isinstance(error, NicbenchError):
            status, headers = _status_of(error, request.method in ("GET", "HEAD"))
        else:
            error, status, headers = UsageError("there is nothing at this address"), 404, None
        is_page = not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")
        if is_page:
            return site.refusal(error, status, headers)
        return json_answer({"error": make_visible(_sentences(error))}, status, headers)

    return explain


def _status_of(error: NicbenchError, is_reading: bool) -> tuple[int, dict[str, str] | None]:
    if isinstance(error, BusyError) and is_reading:
        return 503, {"Retry-After": str(_RETRY_AFTER_S)}
    if isinstance(error, HostError) and is_reading:
        return 403, None
    return (404 if isinstance(error, UsageError) and is_reading else 409), None


def _sentences(error: NicbenchError) -> str:
    """Returns an error as sentences: pages show it in one paragraph, where a terminal has lines."""
    told, _, step = str(error).partition("\n  next: ")
    return f"{told.rstrip('.')}. Next: {step.rstrip('.')}." if step else told
