"""The application: every view of ``views`` behind the guard, and the errors of nicbench as answers."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import platform
import socket
import stat
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from nicbench.core.errors import BusyError, HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.machine import is_loopback
from nicbench.core.redaction import make_visible
from nicbench.core.registry import find
from nicbench.lake.place import Lake
from nicbench.store import files
from nicbench.store.index import IndexedRuns, newest_known
from nicbench.web.answers import json_answer
from nicbench.web.catalogue import Catalogue
from nicbench.web.security import TOKEN_PATH, Door, Guard
from nicbench.web.site import Site, View

STATIC: Final = Path(str(resources.files("nicbench.web"))) / "static"
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
    text = resources.files("nicbench.report").joinpath("style.css").read_text(encoding="utf-8")
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


DEFAULT_PORT: Final = 8425
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
_LAST_WORDS_S: Final = 3
"""How long streams have to say their last when the server ends."""
_SHORTEST_PASSWORD: Final = 12


@frozen
class Place:
    """Where to listen. ``port`` None: the usual one, or any where that is taken. ``names``: further names of it."""

    host: str = "127.0.0.1"
    port: int | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    password_file: Path | None = None
    names: tuple[str, ...] = ()

    @property
    def known_as(self) -> tuple[str, ...]:
        """The names and addresses by which the server is known."""
        return (*self._own_names, *self.names)

    @property
    def shown(self) -> str:
        """The name in an address that is printed."""
        first = self._own_names[0]
        return first if ":" not in first else f"[{first}]"

    @property
    def _own_names(self) -> tuple[str, ...]:
        return _LOOPBACK_NAMES if is_loopback(self.host) else (self.host, platform.node(), socket.getfqdn())

    def check(self, what: str = "the page can stop runs", default_port: int = DEFAULT_PORT) -> str | None:
        """Returns the password, None where none is set. UsageError where others could do ``what`` without it."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("--tls-cert and --tls-key belong together", next_step="give both, or neither")
        if not is_loopback(self.host):
            missing = [
                option
                for option, value in (("--tls-cert", self.tls_cert), ("--password-file", self.password_file))
                if value is None
            ]
            if missing:
                raise UsageError(
                    f"others can reach {self.host}, and {what}: {' and '.join(missing)} must be given",
                    place="--host",
                    next_step="give a certificate, its key and a password file; or leave --host out and use "
                    f"`ssh -L {default_port}:127.0.0.1:{default_port} THIS_MACHINE` from the other machine",
                )
        return None if self.password_file is None else read_password(self.password_file)


def read_password(path: Path) -> str:
    """Reads a password from a file that only its owner may read. UsageError for any other file."""
    step = f"write one line to it, and `chmod 600 {path}`"
    try:
        with files.open_file(path) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            text = stream.read(1000).decode("utf-8", errors="replace").strip()
    except FileNotFoundError as error:
        raise UsageError("there is no such file", place=str(path), next_step=step) from error
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError("others may read the password", place=str(path), next_step=step)
    if len(text) < _SHORTEST_PASSWORD:
        raise UsageError(f"a password has at least {_SHORTEST_PASSWORD} characters", place=str(path), next_step=step)
    return text


def serve(
    folder: Path,
    read: Callable[[Path], IndexedRuns],
    place: Place,
    tell: Callable[[str], None],
    *,
    lake: Lake | None = None,
    until_eof: bool = False,
) -> None:
    """Serves the runs of a folder, and of a lake, until a signal ends it; ``tell`` is given the address.

    ``read`` is given the folder with links and relative parts resolved: the headlines of its runs name that folder, by
    which a reader distinguishes them from the runs of the lake.

    ``until_eof``: also until standard input ends, so that the server of a run ends with it.
    """
    password = place.check()
    listening = listen(place, DEFAULT_PORT)
    port = listening.getsockname()[1]
    folder = folder.resolve()
    catalogue = Catalogue(partial(read, folder), partial(newest_known, folder), lake)
    door = Door.of(place.known_as, port, tls=place.tls_cert is not None, password=password)
    site = Site(folder, catalogue, door, lake, ends_with_run=until_eof)
    server = _Server(server_config(make_app(site), place), site)
    shown = place.shown
    if not until_eof:  # beside a run nothing is read before somebody asks
        site.catalogue.warm()
    tell(f"{site.door.scheme}://{shown}:{port}/")
    if until_eof:
        threading.Thread(target=_end_at_eof, args=(server,), daemon=True, name="stdin").start()
    server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends streams in order before it ends itself; a signal is then done with, and is not raised again."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.end()

    def end(self) -> None:
        """Ends the server; from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._site.ending.set)
        self.should_exit = True


def _end_at_eof(server: _Server) -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.buffer.read(4096):
            pass
    server.end()


def server_config(app: ASGIApp, place: Place) -> uvicorn.Config:
    """Returns how an application is served, over TLS where the place has a certificate."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_WORDS_S,
        ssl_certfile=place.tls_cert,
        ssl_keyfile=place.tls_key,
    )


def listen(place: Place, default_port: int) -> socket.socket:
    """Binds the address. NotReadyError where it is in use, or does not belong to this machine."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(place.host).version == 6 else socket.AF_INET
    except ValueError:
        family = socket.AF_INET
    last: OSError | None = None
    for port in (default_port, 0) if place.port is None else (place.port,):
        try:
            return socket.create_server((place.host, port), family=family)
        except OSError as error:
            last = error
    raise NotReadyError(
        f"cannot listen there: {last.strerror if last else 'no port'}",
        place=f"{place.host}:{place.port if place.port is not None else default_port}",
        next_step="name another port by --port, or 0 for any",
    )
