"""Starts the servers of shares in the background, each with its undo, and waits until clients can connect."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.shares._place import place_of
from nicbench.shares.base import Server
from nicbench.tuning.changes import Changes
from nicbench.tuning.detached import is_alive, start_command
from nicbench.tuning.undo import EndServer
from nicbench.workloads.base import Listening, last_words
from nicbench.workloads.ports import is_open, sockets_of

_READY_S: Final = 30.0
_LOOK_S: Final = 0.1


class Servers:
    """Those of one host; ``folder`` is one of ours there, for their logs and pids."""

    def __init__(self, host: Host, changes: Changes, folder: str) -> None:
        self._host = host
        self._place = place_of(host)
        self._changes = changes
        self._folder = folder
        self._names: dict[str, int] = {}

    async def start(self, servers: Sequence[Server]) -> None:
        """NotReadyError where a port is taken, or one is not ready in time, with its last words."""
        taken = await sockets_of(self._host)
        for server in servers:
            if is_open(_socket(server), taken):
                raise NotReadyError(
                    f"somebody listens on TCP port {server.tcp_port}, where the {server.name} is to be",
                    place=self._host.name,
                    next_step="`ss -lntp` there names the process: end it, or choose another port",
                )
        for server in servers:
            await self._start(server)
        await self._wait(servers)

    async def last_words(self, name: str) -> str:
        """What the server of this name wrote last, as the end of a sentence."""
        text = await self._place.host.read_file(self._log(name)) or ""
        return f"; the {name} says: {last_words(text)}" if text.strip() else ""

    async def _start(self, server: Server) -> None:
        self._names[server.name] = len(self._names) + 1
        place, known_by = self._place, self._known_by(server.name)
        command = place.inside(start_command(known_by, self._log(server.name), server.command))

        async def apply() -> None:
            await place.host.run(command)

        if server.undo is not None:
            await self._changes.make(self._host, server.undo, _nothing)
        await self._changes.make(place.host, EndServer(known_by=known_by), apply)

    async def _wait(self, servers: Sequence[Server]) -> None:
        """Until each has its socket; one that died is waited for no longer."""
        waiting = list(servers)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_S):
                while True:
                    sockets = await sockets_of(self._host)
                    waiting = [server for server in waiting if not is_open(_socket(server), sockets)]
                    if not waiting:
                        return
                    for server in waiting:
                        if not await is_alive(self._place.host, self._known_by(server.name)):
                            await self._refuse(server, "has ended at once")
                    await asyncio.sleep(_LOOK_S)
        await self._refuse(waiting[0], f"did not listen on TCP port {waiting[0].tcp_port} within {_READY_S:g} s")

    async def _refuse(self, server: Server, what: str) -> None:
        raise NotReadyError(
            f"the {server.name} {what}{await self.last_words(server.name)}",
            place=self._host.name,
            next_step=f"run it by hand to see more: {server.words}",
        )

    def _known_by(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.pid"

    def _log(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.log"


def _socket(server: Server) -> Listening:
    return Listening("tcp", server.tcp_port, server.address)


async def _nothing() -> None:
    """The server does it."""
