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
    app = Starlette(routes=routes, exception_handlers={NicbenchError: _explain, OSError: _explain})
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


async def _explain(request: Request, error: Exception) -> Response:
    """Answers with an error's own words."""
    status = 404 if isinstance(error, UsageError) and request.method in ("GET", "HEAD") else 409
    status = 500 if isinstance(error, OSError) else status
    if isinstance(error, HostError) and request.method in ("GET", "HEAD"):
        status = 403
    headers = None
    if isinstance(error, BusyError) and request.method in ("GET", "HEAD"):
        status, headers = 503, {"Retry-After": str(_RETRY_AFTER_S)}
    words = _sentences(error) if isinstance(error, NicbenchError) else (error.strerror or "cannot be read")  # type: ignore[attr-defined]
    return json_answer({"error": make_visible(words)}, status, headers)


def _sentences(error: NicbenchError) -> str:
    """Returns an error as sentences: pages show it in one paragraph, where a terminal has lines."""
    told, _, step = str(error).partition("\n  next: ")
    return f"{told.rstrip('.')}. Next: {step.rstrip('.')}." if step else told
