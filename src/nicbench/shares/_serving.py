"""Starts the servers of shares in the background, each with its undo, and waits until clients can connect.

Between rounds they may be restarted; whether one ended in the midst of a round is seen before and after it alone: by
its process, and by the inode of the socket that it listens on, which is another after a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.shares._place import place_of
from nicbench.shares.base import Command, Server
from nicbench.tuning.changes import Changes
from nicbench.tuning.detached import end_server, is_alive, start_command
from nicbench.tuning.undo import EndServer
from nicbench.workloads.base import Listening, last_words
from nicbench.workloads.ports import inode_of, is_open, listeners_of, sockets_of

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
        self._servers: tuple[Server, ...] = ()
        self._seen: dict[str, str | None] = {}

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
            self._servers = (*self._servers, server)
            await self._start(server)
        await self._wait(servers)

    async def restart(self) -> None:
        """Ends what is left of them and starts them anew, with the undo that is on record. NotReadyError as before."""
        for server in self._servers:
            if server.stop is not None:
                await self._host.run(server.stop)
            await end_server(self._place.host, self._known_by(server.name))
        for server in self._servers:
            await self._place.host.run(self._command(server))
        await self._wait(self._servers)

    async def look(self) -> None:
        """Remembers by which sockets they listen now."""
        self._seen = await self._inodes()

    async def failure(self) -> str | None:
        """How one ended since ``look``, with its last words, where it did."""
        now = await self._inodes()
        for server in self._servers:
            if not await is_alive(self._place.host, self._known_by(server.name)):
                return f"the {server.name} has ended{await self.last_words(server.name)}"
            if now[server.name] is None:
                return f"the {server.name} no longer listens on TCP port {server.tcp_port}"
            if now[server.name] != self._seen.get(server.name):
                return f"the {server.name} was restarted by somebody"
        return None

    async def _inodes(self) -> dict[str, str | None]:
        sockets = await listeners_of(self._host)
        return {server.name: inode_of(_socket(server), sockets) for server in self._servers}

    async def last_words(self, name: str) -> str:
        """What the server of this name wrote last, as the end of a sentence."""
        text = await self._place.host.read_file(self._log(name)) or ""
        return f"; the {name} says: {last_words(text)}" if text.strip() else ""

    async def _start(self, server: Server) -> None:
        self._names[server.name] = len(self._names) + 1
        place, known_by, command = self._place, self._known_by(server.name), self._command(server)

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

    def _command(self, server: Server) -> Command:
        known_by, log = self._known_by(server.name), self._log(server.name)
        return self._place.inside(start_command(known_by, log, server.command))

    def _known_by(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.pid"

    def _log(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.log"


def _socket(server: Server) -> Listening:
    return Listening("tcp", server.tcp_port, server.address)


async def _nothing() -> None:
    """The server does it."""
