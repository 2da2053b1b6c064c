"""The kernel's clock source: other than the TSC, reading the clock is slow and the engine's time is doubtful."""

from __future__ import annotations

from typing import TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import part_of

_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class _ClockSource(TypedDict):
    """The clock source in use, and those that there are."""

    current: str
    available: str


def _tell_clock_source(facts: Facts, write: Write) -> str | None:
    return part_of(facts, "clock_source").get("current")


class ClockSource(Fact):
    """From ``/sys/devices/system/clocksource``."""

    kind = "clock_source"
    shape = _ClockSource
    of_machine = True
    subjects = (Subject("Clock source", 270, _tell_clock_source),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return {
            "current": (await text_of(host, f"{_FOLDER}current_clocksource")).strip(),
            "available": (await text_of(host, f"{_FOLDER}available_clocksource")).strip(),
        }
