"""How the tests make a connection by ssh go silent: sshd is there, every pipe is, and no word comes through."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from nicbench.hosts.base import Host
from nicbench.hosts.kinds.ssh import SshHost, machine
from nicbench.hosts.ssh_lease import LeasedConnection


@dataclass
class There:
    """What stands behind a host's first connection."""

    connection: LeasedConnection

    @property
    def lost(self) -> Exception | None:
        return self.connection.lost

    @property
    def sshds(self) -> list[int]:
        """The processes of sshd between the controller and the keeper."""
        found, pid = [], self.connection.keeper.pid
        while pid > 1:
            fields = Path(f"/proc/{pid}/stat").read_text()
            if "(sshd" in fields:
                found.append(pid)
            pid = int(fields.rpartition(")")[2].split()[1])
        return found


def machine_of(host: Host) -> There:
    assert isinstance(host, SshHost)
    return There(machine(host.options)._connections[0])


@contextlib.asynccontextmanager
async def silence(host: Host) -> AsyncIterator[None]:
    """Nothing comes through in between; afterwards the connection is dead."""
    there = machine_of(host)
    sshds = there.sshds
    for pid in sshds:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in sshds:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def until(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    """Waits until it holds."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.02)


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits until it holds, outside of a loop."""
    asyncio.run(until(condition))
