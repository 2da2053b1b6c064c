"""A site over a folder of runs, and a client that speaks to it as its own page does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web._folders import begun, make_run, started

from nicbench.store.index import list_indexed_runs
from nicbench.web.catalogue import Catalogue
from nicbench.web.security import Door
from nicbench.web.serving import make_app
from nicbench.web.site import Site

ADDRESS = "http://127.0.0.1:8425"
CONTROLLER = """
import fcntl, os, signal, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("holds", flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
signal.pause()
"""


class Client:
    """Asks an application, as a browser at ``address`` would."""

    def __init__(self, site: Site, address: str = ADDRESS) -> None:
        self._app = make_app(site)
        self._address = address

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("POST", path, **options)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self._address) as client:
                return await client.request(method, path, **options)

        return asyncio.run(send())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def site(runs: Path) -> Site:
    catalogue = Catalogue(lambda: list_indexed_runs(runs, lambda _: None))
    return Site(runs, catalogue, Door.of(("127.0.0.1", "localhost", "::1"), 8425, tls=False))


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site)


@pytest.fixture
def post(client: Client, site: Site) -> Callable[[str], int]:
    """Posts as a page of this server does; returns the status."""

    def send(path: str) -> int:
        headers = {"Origin": ADDRESS, "X-Nicbench-Token": site.door.token}
        return client.post(path, json={}, headers=headers).status_code

    return send


@pytest.fixture
def conducted(runs: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A run folder, and a process that holds its journal as a controller does."""
    folder = make_run(runs, "one", started() + begun())
    command = [sys.executable, "-c", CONTROLLER, str(folder / "journal.ndjson")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    yield folder, process
    process.kill()
    process.wait()
    process.stdout.close()
