"""Processes, recognised by pid and start time: for undos that end them."""

from __future__ import annotations

import asyncio

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.hosts.owner import start_ticks_of_stat

_END_TRIES = 100
_END_STEP_S = 0.05


async def is_running(host: Host, pid: int, ticks: int) -> bool:
    """Whether the process of this number is the one that was started then."""
    stat = await host.read_file(f"/proc/{pid}/stat")
    return stat is not None and start_ticks_of_stat(stat) == ticks


async def kill(host: Host, pid: int, ticks: int) -> None:
    """Kill it and wait for its end; HostError where it does not die."""
    await host.run(("sh", "-c", 'kill -KILL "$1"', "kill", str(pid)), check=False)
    for _ in range(_END_TRIES):
        if not await is_running(host, pid, ticks):
            return
        await asyncio.sleep(_END_STEP_S)
    raise HostError(f"process {pid} does not die", place=host.name)
