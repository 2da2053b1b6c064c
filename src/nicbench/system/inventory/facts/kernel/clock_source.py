"""The kernel's clock source: other than the TSC, reading the clock is slow and the engine's time is doubtful."""

from __future__ import annotations

from typing import TypedDict

from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class _ClockSource(TypedDict):
    """The clock source in use, and those that there are."""

    current: str
    available: str


class ClockSource(Fact):
    """From ``/sys/devices/system/clocksource``."""

    kind = "clock_source"
    shape = _ClockSource
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return {
            "current": (await text_of(host, f"{_FOLDER}current_clocksource")).strip(),
            "available": (await text_of(host, f"{_FOLDER}available_clocksource")).strip(),
        }
