"""The conversations with guests of an event loop: one for each guest, whichever parts of a run ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

from nicbench.errors import HostError
from nicbench.hosts._agent_connection import AgentConnection

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Port]] = WeakKeyDictionary()


class Port:
    """The one of this path. Once a conversation was lost, everything in that guest is over, until ``reopen``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: AgentConnection | None = None
        self._opening = asyncio.Lock()

    async def connection(self, host: str, gone: Callable[[], bool], timeout_s: float) -> AgentConnection:
        """HostError where an earlier one was lost, or none comes about in time."""
        async with self._opening:
            if self._connection is None:
                try:
                    self._connection = await AgentConnection.open(self._path, host, gone=gone, timeout_s=timeout_s)
                except TimeoutError:
                    message = f"the guest does not answer within {timeout_s:g} s"
                    raise HostError(message, place=host) from None
            if self._connection.lost is not None:
                raise self._connection.lost
            return self._connection

    async def reopen(self) -> None:
        """Forgets that a conversation was lost; the next command begins another."""
        if self._connection is not None and self._connection.lost is not None:
            await self.close()

    async def close(self) -> None:
        """What still runs in the guest by this conversation is killed; a later command begins another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def port(path: str) -> Port:
    """In the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), {}).setdefault(path, Port(path))


async def close_ports() -> None:
    """Those of the running event loop."""
    await asyncio.gather(*(each.close() for each in _pools.pop(asyncio.get_running_loop(), {}).values()))
