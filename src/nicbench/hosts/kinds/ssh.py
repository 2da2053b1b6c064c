"""Another machine, reached by ssh with keys or an agent, over jump hosts; host keys are always checked.

The machine needs a shell, util-linux and coreutils, no Python. Nothing there survives the controller: ``ssh_lease``
has the scripts that end its processes when contact is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from nicbench.core.errors import HostError, NicbenchError
from nicbench.hosts.base import Host, Presence
from nicbench.hosts.channel import ChannelHost
from nicbench.hosts.options import SshOptions

if TYPE_CHECKING:
    from nicbench.hosts.channel import Channel
    from nicbench.hosts.ssh_lease import LeasedConnection


class SshHost(ChannelHost):
    """Runs commands on another machine. They share one connection; beyond eight at once, several."""

    kind = "ssh"
    Options = SshOptions

    def __init__(self, options: SshOptions, name: str | None = None) -> None:
        self.options = options
        self.name = name or options.address

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> SshHost:
        return cls(SshOptions.model_validate({key: value for key, value in spec.items() if key != "kind"}), name)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.options.model_dump(mode="json", exclude_defaults=True)}

    async def close(self) -> None:
        # A held connection stays until the undo was done over it: its end would make the host restore its settings.
        # So does one with a lease until that is given back: between two turns another run would take the host.
        if not self._machine.held and not self._machine.leases:
            await self._machine.close()

    async def reconnect(self) -> None:
        await self._machine.reconnect(self.name)

    async def when_unheard(self, script: str) -> Presence:
        keeper = (await self._machine.with_room(self.name)).keeper
        self._machine.held = True
        presence = Presence(keeper.pid, keeper.start_ticks, keeper.boot_id)
        await self.write_file(f"{keeper.folder}/guard", f"sh {shlex.quote(script)} {presence.name}\n")
        return presence

    @property
    def _machine(self) -> Machine:
        return machine(self.options)

    async def _start(
        self, command: Sequence[str], environment: Mapping[str, str] | None
    ) -> tuple[LeasedConnection, Channel, int]:
        from nicbench.hosts.ssh_lease import FullError  # loads asyncssh, see with_room

        while True:
            connection = await self._machine.with_room(self.name)
            with contextlib.suppress(FullError):
                return connection, *await connection.start(command, environment)


# The connections of an event loop, one set for each host, shared by all parts of a run. Hosts are made again from their
# specs in many places (monitor, undo), so they cannot own the connections. These are kept by event loop, and closed at
# its end by ``close_connections``.

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Machine]] = WeakKeyDictionary()


class Machine:
    """The connections to one host. After one was lost, every use of the host fails until ``reconnect``."""

    def __init__(self, options: SshOptions) -> None:
        self._options = options
        self._connections: list[LeasedConnection] = []
        self._opening = asyncio.Lock()
        self._failed: HostError | None = None
        self.held = False
        """Whether the host restores its settings when the connection ends, so that it must stay open."""
        self.leases = 0
        """How many leases of the host end with the connection, so that it must stay open."""

    @property
    def proxy_command(self) -> tuple[str, ...]:
        """The command through which the host is reached; empty where it is reached directly."""
        return tuple(self._options.proxy_command or ())

    async def with_room(self, host: str) -> LeasedConnection:
        """Returns a connection with room for one more command. HostError where one was lost, or none can be made."""
        async with self._opening:
            self._see_lost()
            for connection in self._connections:
                if connection.has_room:
                    return connection
            # Imported here: every nicbench command loads all kinds of hosts, and asyncssh is slow to load.
            from nicbench.hosts.ssh_lease import LeasedConnection

            connection = await LeasedConnection.open(self._options, host)
            connection.on_lost = self._give_up
            self._connections.append(connection)
            return connection

    async def reconnect(self, host: str) -> None:
        """Connects again after a connection was lost. HostError where no new one can be made."""
        if self._failed is None and all(connection.lost is None for connection in self._connections):
            return
        await self.close()
        self._failed = None
        try:
            await self.with_room(host)
        except NicbenchError as error:
            self._failed = HostError(error.message, place=error.place, next_step=error.next_step)
            raise self._failed from error

    async def close(self) -> None:
        """Closes the connections; a later command opens one again, unless one was lost."""
        for connection in self._connections:
            self._failed = self._failed or connection.lost
        connections, self._connections = self._connections, []
        await asyncio.gather(*(connection.close() for connection in connections))

    def _give_up(self) -> None:
        """Ends all connections when one is lost: the host then restores its settings, so nothing may continue."""
        for connection in self._connections:
            connection.give_up("another connection to the same host was lost")

    def _see_lost(self) -> None:
        for connection in self._connections:
            if connection.lost is not None and self._failed is None:
                self._failed = connection.lost
        if self._failed is not None:
            failed = self._failed
            raise HostError(failed.message, place=failed.place, next_step=failed.next_step)


def machine(options: SshOptions) -> Machine:
    """Returns the machine with these options in the running event loop."""
    pool = _pools.setdefault(asyncio.get_running_loop(), {})
    return pool.setdefault(json.dumps(options.model_dump(mode="json"), sort_keys=True), Machine(options))


async def close_connections(through: str | None = None) -> None:
    """Closes the connections of the running event loop: all, or those whose proxy command has the word ``through``.

    A lab closes the connections through its namespace this way, and the machine that it is on stays connected.
    """
    pool = _pools.get(asyncio.get_running_loop(), {})
    chosen = [key for key, each in pool.items() if through is None or through in each.proxy_command]
    await asyncio.gather(*(pool.pop(key).close() for key in chosen))
