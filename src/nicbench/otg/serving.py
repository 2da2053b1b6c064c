"""The server of ``nicbench serve``: HTTPS, HTTP and gRPC in one process, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import uvicorn

from nicbench.bench_file.models import BenchFile
from nicbench.otg.api import Api
from nicbench.otg.certificate import make_certificate
from nicbench.otg.grpc_front import ADDRESS, serve_grpc
from nicbench.otg.http_front import make_app
from nicbench.otg.sessions import Sessions
from nicbench.web.security import Door
from nicbench.web.serving import Place, listen, server_config

HTTPS_PORT: Final = 8443
HTTP_PORT: Final = 8442
GRPC_PORT: Final = 40051
WHAT: Final = "clients send frames"


@dataclass(frozen=True, slots=True)
class Serving:
    """The addresses of the server. A port of None is the default one, or any if that is taken; HTTP and gRPC are local.

    ``idle_s``: how long a session lasts without a request.
    """

    https: Place
    http_port: int | None = None
    grpc_port: int | None = None
    idle_s: float = 3600.0


async def serve(bench: BenchFile, runs: Path, serving: Serving, tell: Callable[[str], None]) -> None:
    """Serves until it is cancelled; ``tell`` is given the addresses, and a line for each session and report."""
    password = serving.https.check(WHAT, HTTPS_PORT)
    sessions = Sessions(bench, runs, tell, idle_s=serving.idle_s)
    api = Api(sessions)
    with tempfile.TemporaryDirectory(prefix="nicbench-serve-") as folder:
        https = serving.https
        if https.tls_cert is None:
            certificate, key = make_certificate(Path(folder))
            https = replace(https, tls_cert=certificate, tls_key=key)
        http = Place(ADDRESS, serving.http_port)
        async with _http(api, https, HTTPS_PORT, password) as secure, _http(api, http, HTTP_PORT, None) as plain:
            ports = (GRPC_PORT, 0) if serving.grpc_port is None else (serving.grpc_port,)
            grpc_server, grpc_port = await serve_grpc(api, ports)
            try:
                tell(f"{secure}  {plain}  grpc://{ADDRESS}:{grpc_port}\nCtrl-C ends it")
                await asyncio.Event().wait()
            finally:
                await grpc_server.stop(grace=None)
                await sessions.end()


class _Server(uvicorn.Server):
    """Leaves signals to the command, which ends the session before the server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _http(api: Api, place: Place, default_port: int, password: str | None) -> AsyncIterator[str]:
    """Serves HTTP at a place, and gives its address."""
    listening = listen(place, default_port)
    port = listening.getsockname()[1]
    door = Door.of(place.known_as, port, tls=place.tls_cert is not None, password=password)
    server = _Server(server_config(make_app(api, door), place))
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield f"{door.scheme}://{place.shown}:{port}"
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        listening.close()
