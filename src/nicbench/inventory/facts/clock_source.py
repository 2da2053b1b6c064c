"""The kernel's clock source: other than the TSC, reading the clock is slow and the engine's time is doubtful."""

from __future__ import annotations

from nicbench.hosts.base import Host
from nicbench.inventory._asking import text_of
from nicbench.inventory.base import Fact

_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class ClockSource(Fact):
    """From ``/sys/devices/system/clocksource``."""

    kind = "clock_source"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return {
            "current": (await text_of(host, f"{_FOLDER}current_clocksource")).strip(),
            "available": (await text_of(host, f"{_FOLDER}available_clocksource")).strip(),
        }
