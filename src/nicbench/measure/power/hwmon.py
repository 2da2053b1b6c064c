"""Power and energy sensors of hwmon: millionths of a watt and of a joule (Documentation/hwmon/sysfs-interface.rst).

``power_meter`` is the machine, as ACPI says it (ACPI 6.5 section 10.4); ``pin`` is what PMBus calls the input of a
power supply. All others are of one component: a graphics card, a regulator, a network adapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from nicbench.core.machine import PowerPart
from nicbench.measure.health.base import number_of, paths_and_values
from nicbench.measure.power.base import Sensed, is_plausible

SCRIPT: Final = (
    "for h in /sys/class/hwmon/hwmon*; do "
    'grep -sH "" "$h"/power*_input "$h"/power*_average "$h"/energy*_input && '
    'grep -sH "" "$h"/name "$h"/power*_average_interval "$h"/power*_label "$h"/energy*_label; done'
)
METHOD: Final = "hwmon"
_MOST_CHIPS, _MOST_SENSORS = 64, 64
_SENSOR = re.compile(r"(power|energy)(\d{1,3})_(input|average)")
_WHOLE_MACHINE: Final = "power_meter"
_SOCKET = re.compile(r"Esocket\d+")  # amd_energy: the sum of the cores of a socket and what is around them
_CORE = re.compile(r"Ecore\d+")  # a part of its socket


def parse_hwmon(text: str) -> tuple[Sensed, ...]:
    """The sensors of a machine; of a sensor with both, the average is taken, which tells its own interval."""
    chips: dict[str, dict[str, list[str]]] = {}
    for path, lines in paths_and_values(text).items():
        folder, _, name = path.rpartition("/")
        chips.setdefault(folder, {})[name] = lines
    found = (each for folder, files in list(chips.items())[:_MOST_CHIPS] for each in _sensors(folder, files))
    return tuple({each.key: each for each in found}.values())


def _sensors(folder: str, files: Mapping[str, list[str]]) -> Iterator[Sensed]:
    chip = (files.get("name") or ["sensor"])[0][:64] or "sensor"
    for file in list(files)[: 4 * _MOST_SENSORS]:
        matched = _SENSOR.fullmatch(file)
        value = number_of(files[file]) if matched else None
        if matched is None or value is None or value < 0:
            continue
        kind, number, reading = matched.groups()
        label = (files.get(f"{kind}{number}_label") or [""])[0][:64]
        if reading == "input" and f"{kind}{number}_average" in files:
            continue
        name = f"{chip} {label or kind + number} ({folder.rpartition('/')[2]})"
        if kind == "energy":
            if not _CORE.fullmatch(label):
                part = PowerPart.PACKAGES if _SOCKET.fullmatch(label) else PowerPart.COMPONENT
                yield Sensed(METHOD, part, name, joules=value / 1e6)
        elif is_plausible(value / 1e6):
            interval_ms = number_of(files.get(f"power{number}_average_interval", []))
            averaging_s = interval_ms / 1e3 if interval_ms and reading == "average" and 0 < interval_ms < 1e7 else None
            yield Sensed(METHOD, _part(chip, label), name, watts=value / 1e6, averaging_s=averaging_s)


def _part(chip: str, label: str) -> PowerPart:
    if chip == _WHOLE_MACHINE:
        return PowerPart.MACHINE
    return PowerPart.SUPPLIES if re.fullmatch(r"pin\d*", label) else PowerPart.COMPONENT
