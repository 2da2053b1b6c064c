"""Fans: how many, and how fast they turn. A slow fan is why a card is hot; fans at full speed shake drives."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of, values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts.machine._ipmi import parse_sensors
from nicbench.system.inventory.subjects import join_texts, part_of

_SPEED = re.compile(r"(\d{1,6}) RPM")


class _Fans(TypedDict):
    """How fast each fan turns, by its name."""

    count: int
    speed_per_minute: dict[str, int | None]


def _tell_fans(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "fans")
    speeds = [speed for speed in part_of(found, "speed_per_minute").values() if speed is not None]
    turning = f"{min(speeds)} to {max(speeds)} per minute" if speeds else None
    return join_texts(str(found["count"]), turning) if found.get("count") else None


class Fans(Fact):
    """From ``ipmitool sdr type Fan``; where there is no such controller, from ``/sys/class/hwmon``."""

    kind = "fans"
    shape = _Fans
    of_machine = True
    subjects = (Subject("Fans", 240, _tell_fans),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        try:
            return parse_fans(await output_of(host, "ipmitool", "sdr", "type", "Fan"))
        except UnknownFactError:
            return parse_hwmon_fans(await values_of(host, ["/sys/class/hwmon/hwmon*/fan*_input"]))


def parse_fans(text: str) -> dict[str, Any]:
    """Rows with a speed; a fan that gives no reading is counted and its speed is null."""
    found = {
        row.name: int(speed[1]) if (speed := _SPEED.fullmatch(row.reading)) else None
        for row in parse_sensors(text)
        if _SPEED.fullmatch(row.reading) or row.reading == "No Reading"
    }
    return {"count": len(found), "speed_per_minute": found}


def parse_hwmon_fans(values: dict[str, str]) -> dict[str, Any]:
    """Each ``fanN_input`` is in revolutions per minute (Documentation/hwmon/sysfs-interface.rst)."""
    found = {
        path.split("/")[-2] + " " + path.split("/")[-1].removesuffix("_input"): int(v) for path, v in values.items()
    }
    return {"count": len(found), "speed_per_minute": found}
