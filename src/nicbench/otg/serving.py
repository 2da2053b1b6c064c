"""The process that has the rights: it makes sessions, and has clients heard by one that has none (``fronts.py``)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import HostError
from nicbench.otg.api import handlers_of
from nicbench.otg.line import answer_calls
from nicbench.otg.sessions import Sessions
from nicbench.store.confined import Clerk, Ended, Fence, Limits, start_confined
from nicbench.store.files import make_folder
from nicbench.web.serving import Place

HTTPS_PORT: Final = 8443
_WHAT: Final = "clients send frames"
_LIMITS: Final = Limits(cpu_s=None, open_files=8192)
_ENDS_WITHIN_S: Final = 10.0
_STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class Serving:
    """Where it listens: a port of None is the default one, or any if that is taken; HTTP and gRPC are local."""

    https: Place
    http_port: int | None = None
    grpc_port: int | None = None


@dataclass(frozen=True, slots=True)
class Fronts:
    """The process that hears clients: its clerk, and the line on which it asks."""

    clerk: Clerk
    line: socket.socket


def start_fronts(serving: Serving, runs: Path) -> Fronts:
    """Starts the process, which reads the folder of runs, for reports and captures, and the certificate."""
    password = serving.https.check(_WHAT, HTTPS_PORT)
    make_folder(runs)
    ours, theirs = socket.socketpair()
    given = (runs, serving.https.tls_cert, serving.https.tls_key)
    fence = Fence(reads=tuple(path.resolve() for path in given if path is not None), limits=_LIMITS, listens=True)
    clerk = start_confined(partial(_hear_clients, serving, password, theirs), fence, {theirs.fileno(), _STDERR})
    theirs.close()
    return Fronts(clerk, ours)


def _hear_clients(serving: Serving, password: str | None, line: socket.socket) -> None:
    from nicbench.otg.fronts import serve_fronts  # imported here, in the process without rights

    serve_fronts(serving, password, line)


async def serve(
    bench: BenchFile,
    runs: Path,
    fronts: Fronts,
    idle_s: float,
    tell: Callable[[str], None],
    locations: Mapping[str, str],
) -> None:
    """Serves until it is cancelled; ``tell`` is given the addresses, and a line for each session and report.

    ``idle_s``: how long a session lasts without a request. ``locations`` are the names of ports by further locations.
    """
    ended = asyncio.ensure_future(asyncio.to_thread(fronts.clerk.serve))
    try:
        sessions = Sessions(bench, runs, tell, idle_s=idle_s, locations=locations)
        reader, writer = await asyncio.open_unix_connection(sock=fronts.line)
        try:
            await answer_calls(reader, writer, handlers_of(sessions), lambda at: tell(f"{at}\nCtrl-C ends it"))
        finally:
            writer.close()
            await sessions.end()
        raise (await ended).error or HostError("the process that hears clients has ended", next_step="start it again")
    finally:
        await _end(fronts, ended)


async def _end(fronts: Fronts, ended: asyncio.Future[Ended]) -> None:
    fronts.line.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(ended), _ENDS_WITHIN_S)
    if not ended.done():
        os.kill(fronts.clerk.pid, signal.SIGKILL)
        await ended
