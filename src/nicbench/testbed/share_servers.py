"""Starts the servers of shares in the background, each with its undo, and waits until clients can connect to them.

They may be restarted between rounds. Whether one ended during a round is found by comparing before and after: its
process, and the inode of the socket that it listens on, which changes with a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.testbed.share_mounts import place_of
from nicbench.testbed.shares.base import Command, Server
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.processes import EndServer, end_server, is_alive, start_command
from nicbench.workloads.base import Listening, last_words
from nicbench.workloads.processes import inode_of, is_open, listeners_of, sockets_of

_READY_S: Final = 30.0
_LOOK_S: Final = 0.1


class Servers:
    """The servers of one host; ``folder`` is the run's folder there for their logs and pids."""

    def __init__(self, host: Host, changes: Changes, folder: str) -> None:
        self._host = host
        self._place = place_of(host)
        self._changes = changes
        self._folder = folder
        self._names: dict[str, int] = {}
        self._servers: tuple[Server, ...] = ()
        self._seen: dict[str, str | None] = {}

    async def start(self, servers: Sequence[Server]) -> None:
        """Starts the servers; NotReadyError where a port is in use or a server not ready in time, with its output."""
        taken = await sockets_of(self._host)
        for server in servers:
            if is_open(_socket(server), taken):
                raise NotReadyError(
                    f"another process listens on TCP port {server.tcp_port}, which the {server.name} needs",
                    place=self._host.name,
                    next_step="find the process with `ss -lntp` on that host and end it, or choose another port",
                )
        for server in servers:
            self._servers = (*self._servers, server)
            await self._start(server)
        await self._wait(servers)

    async def restart(self) -> None:
        """Ends all servers and starts them again; the recorded undo stays valid. NotReadyError as in ``start``."""
        for server in self._servers:
            if server.stop is not None:
                await self._host.run(server.stop)
            await end_server(self._place.host, self._pid_file(server.name))
        for server in self._servers:
            await self._place.host.run(self._command(server))
        await self._wait(self._servers)

    async def look(self) -> None:
        """Remembers the sockets that the servers listen on now, for ``failure``."""
        self._seen = await self._inodes()

    async def failure(self) -> str | None:
        """How a server ended since ``look``, with its last output; None where all still run."""
        now = await self._inodes()
        for server in self._servers:
            if not await is_alive(self._place.host, self._pid_file(server.name)):
                return f"the {server.name} has ended{await self.last_words(server.name)}"
            if now[server.name] is None:
                return f"the {server.name} no longer listens on TCP port {server.tcp_port}"
            if now[server.name] != self._seen.get(server.name):
                return f"the {server.name} was restarted by another program"
        return None

    async def _inodes(self) -> dict[str, str | None]:
        sockets = await listeners_of(self._host)
        return {server.name: inode_of(_socket(server), sockets) for server in self._servers}

    async def last_words(self, name: str) -> str:
        """The last output of the server of this name, as the end of a sentence."""
        text = await self._place.host.read_file(self._log(name)) or ""
        return f"; the {name} says: {last_words(text)}" if text.strip() else ""

    async def _start(self, server: Server) -> None:
        self._names[server.name] = len(self._names) + 1
        place, pid_file, command = self._place, self._pid_file(server.name), self._command(server)

        async def apply() -> None:
            await place.host.run(command)

        if server.undo is not None:
            await self._changes.make(self._host, server.undo, _nothing)
        await self._changes.make(place.host, EndServer(known_by=pid_file), apply)

    async def _wait(self, servers: Sequence[Server]) -> None:
        """Waits until each server has its socket; NotReadyError where one ends or is too slow."""
        waiting = list(servers)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_S):
                while True:
                    sockets = await sockets_of(self._host)
                    waiting = [server for server in waiting if not is_open(_socket(server), sockets)]
                    if not waiting:
                        return
                    for server in waiting:
                        if not await is_alive(self._place.host, self._pid_file(server.name)):
                            await self._refuse(server, "ended at once")
                    await asyncio.sleep(_LOOK_S)
        await self._refuse(waiting[0], f"did not listen on TCP port {waiting[0].tcp_port} within {_READY_S:g} s")

    async def _refuse(self, server: Server, what: str) -> None:
        raise NotReadyError(
            f"the {server.name} {what}{await self.last_words(server.name)}",
            place=self._host.name,
            next_step=f"run it by hand for more output: {server.words}",
        )

    def _command(self, server: Server) -> Command:
        pid_file, log = self._pid_file(server.name), self._log(server.name)
        return self._place.inside(start_command(pid_file, log, server.command))

    def _pid_file(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.pid"

    def _log(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.log"


def _socket(server: Server) -> Listening:
    return Listening("tcp", server.tcp_port, server.address)


async def _nothing() -> None:
    """Does nothing: the server itself makes the change."""
