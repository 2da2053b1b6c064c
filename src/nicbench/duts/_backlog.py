"""Tells frames that were dropped at a CPU's full backlog from those that a device dropped for another reason.

The kernel counts a frame that finds the backlog full twice: per CPU in ``softnet_stat``, over the whole machine, and in
the receiving device's ``rx_dropped``, together with its other drops. The device's number is exact for this DUT, the
CPU's names the cause; so of each growth of ``rx_dropped`` as much goes to the CPUs as their own counters grew by. No
frame is in two rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from nicbench.duts._drop_counters import read_devices, softnet_dropped
from nicbench.hosts.base import Host

_RECEIVE = "rx_dropped"
Key = TypeVar("Key")


class BacklogLedger:
    """Cumulative rows of a DUT's devices and of the backlogs in front of its CPUs."""

    def __init__(self, host: Host, devices: tuple[str, ...]) -> None:
        self._host = host
        self._devices = devices
        self._rows: dict[str, int] = {}
        self._last_softnet: dict[int, int] | None = None
        self._last_received: dict[str, int] = {}

    async def read(self) -> dict[str, int]:
        """Reads the counters and gives every row so far; the first reading counts from itself on."""
        softnet = softnet_dropped(await self._host.read_file("/proc/net/softnet_stat") or "")
        devices = await read_devices(self._host, self._devices)
        received = {name: count for name, count in devices.items() if name.endswith(f" {_RECEIVE}")}
        before = softnet if self._last_softnet is None else self._last_softnet
        grown = growth(before, softnet)
        backlog, others = attribute(growth(self._last_received or received, received), grown)
        for name, count in {**backlog, **others}.items():
            self._rows[name] = self._rows.get(name, 0) + count
        self._last_softnet, self._last_received = softnet, received
        return {**self._rows, **{name: count for name, count in devices.items() if name not in received}}


def growth(before: Mapping[Key, int], after: Mapping[Key, int]) -> dict[Key, int]:
    """By how much each counter has grown, never below 0 (a CPU that came online, a device that was made anew)."""
    return {name: max(0, count - before.get(name, 0)) for name, count in after.items()}


def attribute(received: Mapping[str, int], softnet: Mapping[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Rows for the backlogs and rows for what else the devices dropped; together they are what the devices dropped."""
    left = sum(received.values())
    backlog: dict[str, int] = {}
    for cpu, count in softnet.items():
        backlog[f"softnet_backlog cpu{cpu}"] = taken = min(count, left)
        left -= taken
    claimed = sum(backlog.values())
    others: dict[str, int] = {}
    for name, count in received.items():
        covered = min(count, claimed)
        claimed -= covered
        others[name] = count - covered
    return backlog, others
