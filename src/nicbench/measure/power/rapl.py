"""Energy counters of processors (RAPL, ``/sys/class/powercap``): one parser, for the health gate and for meters.

Only root may read them, since CVE-2020-8694. A package contains its cores and its uncore; its memory (``dram``) is
apart; ``psys`` contains packages and memory (Intel SDM volume 3, "Platform Specific Power Management Support").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nicbench.core.machine import PowerPart
from nicbench.measure.health.base import number_of, paths_and_values
from nicbench.measure.power.base import Sensed

_ZONE = "/sys/class/powercap/*-rapl:*"
SCRIPT: Final = f'grep -sH "" {_ZONE}/name {_ZONE}/energy_uj {_ZONE}/max_energy_range_uj'
METHOD: Final = "RAPL"
AVERAGING_S: Final = 0.001
"""The counters are updated about every millisecond (Intel SDM volume 3, section "RAPL Interfaces")."""
_MOST_ZONES: Final = 256
_PARTS: Final = {"package": PowerPart.PACKAGES, "dram": PowerPart.MEMORY, "psys": PowerPart.PLATFORM}


@dataclass(frozen=True, slots=True)
class Zone:
    """A domain that is not part of another of its kind; ``joules`` is None where the counter cannot be read."""

    part: PowerPart
    where: str
    joules: float | None
    range_j: float | None


def read_zones(text: str) -> tuple[Zone, ...]:
    """The zones in what ``SCRIPT`` printed; cores and uncores are parts of their package and are left out."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, lines in paths_and_values(text).items():
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, {})[name] = lines
    return tuple(_zones(dict(list(found.items())[:_MOST_ZONES])))


def _zones(found: dict[str, dict[str, list[str]]]) -> Iterator[Zone]:
    for folder, files in found.items():
        name = (files.get("name") or [""])[0]
        part = next((part for begin, part in _PARTS.items() if name.startswith(begin)), None)
        numbers = folder.rpartition("/")[2].split(":")
        if part is None or len(numbers) < 2:
            continue
        used, largest = number_of(files.get("energy_uj", [])), number_of(files.get("max_energy_range_uj", []))
        where = name if part is PowerPart.PACKAGES else f"{name} of package {numbers[1]}"
        yield Zone(part, where, None if used is None else used / 1e6, largest / 1e6 if largest else None)


def parse_rapl(text: str) -> tuple[Sensed, ...]:
    """The counters of a machine that can be read."""
    return tuple(
        Sensed(METHOD, zone.part, zone.where, joules=zone.joules, range_j=zone.range_j, averaging_s=AVERAGING_S)
        for zone in read_zones(text)
        if zone.joules is not None
    )


def is_refused(text: str) -> bool:
    """Whether there are zones of which none can be read: the controller is not root there."""
    zones = read_zones(text)
    return bool(zones) and all(zone.joules is None for zone in zones)
