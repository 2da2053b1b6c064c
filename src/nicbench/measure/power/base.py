"""One reading of one meter, and what a window of readings comes to: pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.core.machine import PowerOver, PowerPart, PowerSource
from nicbench.core.units import format_digits
from nicbench.measure.health.base import number_of, paths_and_values

LARGEST_WATTS: Final = 1e6
"""No machine of a lab draws more: a larger reading is a fault of the meter."""


@frozen
class Sensed:
    """What a meter says at one moment: watts, or joules since some time that wrap at ``range_j``.

    An ``averaging_s`` of None means that the meter does not tell over how long its reading averages.
    """

    method: str
    part: PowerPart
    name: str
    watts: float | None = None
    joules: float | None = None
    range_j: float | None = None
    averaging_s: float | None = None
    resolution_watts: float = 0.0

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a machine's meters apart."""
        return self.method, self.part.value, self.name

    def source(self, machine: str, assumed_s: float, has_dut: bool = True) -> PowerSource:
        """The meter itself; ``assumed_s`` is its averaging time where it tells none."""
        return PowerSource(
            machine=machine,
            method=self.method,
            part=self.part,
            name=self.name,
            counts_energy=self.joules is not None,
            averaging_s=assumed_s if self.averaging_s is None else self.averaging_s,
            averaging_is_told=self.averaging_s is not None,
            resolution_watts=self.resolution_watts,
            has_dut=has_dut,
        )


@frozen
class Look:
    """All meters of one machine at one moment (seconds)."""

    at_s: float
    sensed: tuple[Sensed, ...]


def is_plausible(watts: float) -> bool:
    """Whether a meter may say this of a machine."""
    return math.isfinite(watts) and 0.0 <= watts <= LARGEST_WATTS


def over_window(sources: Sequence[PowerSource], looks: Sequence[Look]) -> tuple[PowerOver, ...]:
    """What each source of a machine says of the time between the first look and the last.

    An energy counter is followed from look to look. Of power readings those count that average over nothing before the
    first look.
    """
    return tuple(_over(source, looks) for source in sources)


def _over(source: PowerSource, looks: Sequence[Look]) -> PowerOver:
    key = source.method, source.part.value, source.name
    seen = [(look.at_s, each) for look in looks for each in look.sensed if each.key == key]
    began_s, ended_s = (looks[0].at_s, looks[-1].at_s) if looks else (0.0, 0.0)
    watts, readings, why = (_by_energy if source.counts_energy else _by_power)(source, seen, began_s)
    if watts is not None and not is_plausible(watts):
        watts, why = None, f"{watts:g} W are no power of a machine"
    return PowerOver(
        source=source,
        at_s=(began_s + ended_s) / 2.0,
        window_s=ended_s - began_s,
        readings=readings,
        watts=watts,
        why=why,
    )


_Found = tuple[float | None, int, str | None]


def _by_energy(source: PowerSource, seen: Sequence[tuple[float, Sensed]], began_s: float) -> _Found:
    known = [(at_s, each.joules, each.range_j) for at_s, each in seen if each.joules is not None]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return None, len(known), "it was not read at both ends of the window"
    used_j = 0.0
    for (_, before_j, _), (_, after_j, range_j) in itertools.pairwise(known):
        step_j = after_j - before_j
        if step_j < 0.0:
            if not range_j or range_j < before_j:
                fell = f"from {format_digits(before_j, 6)} J to {format_digits(after_j, 6)} J"
                return None, len(known), f"its counter fell {fell} and does not tell where it wraps"
            step_j += range_j
        used_j += step_j
    if used_j == 0.0:
        return None, len(known), "its counter stood still"
    return used_j / (known[-1][0] - known[0][0]), len(known), None


def _by_power(source: PowerSource, seen: Sequence[tuple[float, Sensed]], began_s: float) -> _Found:
    # A little earlier than the averaging time is soon enough: looks are not exactly on time.
    first_s = began_s + 0.95 * source.averaging_s
    known = [each.watts for at_s, each in seen if each.watts is not None and at_s >= first_s]
    if not known:
        return None, 0, f"it said nothing later than its averaging time of {source.averaging_s:g} s"
    return math.fsum(known) / len(known), len(known), None


# Energy counters of processors (RAPL, ``/sys/class/powercap``): one parser, for the health gate and for meters.  Only
# root may read them, since CVE-2020-8694. A package contains its cores and its uncore; its memory (``dram``) is
# apart; ``psys`` contains packages and memory (Intel SDM volume 3, "Platform Specific Power Management Support").

_ZONE = "/sys/class/powercap/*-rapl:*"
RAPL_SCRIPT: Final = f'grep -sH "" {_ZONE}/name {_ZONE}/energy_uj {_ZONE}/max_energy_range_uj'
RAPL_METHOD: Final = "RAPL"
AVERAGING_S: Final = 0.001
"""The counters are updated about every millisecond (Intel SDM volume 3, section "RAPL Interfaces")."""
_MOST_ZONES: Final = 256
_PARTS: Final = {"package": PowerPart.PACKAGES, "dram": PowerPart.MEMORY, "psys": PowerPart.PLATFORM}


@frozen
class Zone:
    """A domain that is not part of another of its kind; ``joules`` of None means that the counter cannot be read."""

    part: PowerPart
    where: str
    joules: float | None
    range_j: float | None


def read_zones(text: str) -> tuple[Zone, ...]:
    """The zones in what ``HWMON_SCRIPT`` printed; cores and uncores are parts of their package and are left out."""
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
        Sensed(RAPL_METHOD, zone.part, zone.where, joules=zone.joules, range_j=zone.range_j, averaging_s=AVERAGING_S)
        for zone in read_zones(text)
        if zone.joules is not None
    )


def is_refused(text: str) -> bool:
    """Whether there are zones of which none can be read: the controller is not root there."""
    zones = read_zones(text)
    return bool(zones) and all(zone.joules is None for zone in zones)


# Power and energy sensors of hwmon: millionths of a watt and of a joule (Documentation/hwmon/sysfs-interface.rst).
# ``power_meter`` is the machine, as ACPI says it (ACPI 6.5 section 10.4); ``pin`` is what PMBus calls the input of a
# power supply. All others are of one component: a graphics card, a regulator, a network adapter.

HWMON_SCRIPT: Final = (
    "for h in /sys/class/hwmon/hwmon*; do "
    'grep -sH "" "$h"/power*_input "$h"/power*_average "$h"/energy*_input && '
    'grep -sH "" "$h"/name "$h"/power*_average_interval "$h"/power*_label "$h"/energy*_label; done'
)
HWMON_METHOD: Final = "hwmon"
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
                yield Sensed(HWMON_METHOD, part, name, joules=value / 1e6)
        elif is_plausible(value / 1e6):
            interval_ms = number_of(files.get(f"power{number}_average_interval", []))
            averaging_s = interval_ms / 1e3 if interval_ms and reading == "average" and 0 < interval_ms < 1e7 else None
            yield Sensed(HWMON_METHOD, _part(chip, label), name, watts=value / 1e6, averaging_s=averaging_s)


def _part(chip: str, label: str) -> PowerPart:
    if chip == _WHOLE_MACHINE:
        return PowerPart.MACHINE
    return PowerPart.SUPPLIES if re.fullmatch(r"pin\d*", label) else PowerPart.COMPONENT


# What a machine draws by its own management controller: ``ipmitool dcmi power reading`` (DCMI 1.5 section 6.6.1).
# The command "Get Power Reading" gives whole watts. The "sampling period" that ipmitool prints is that of minimum,
# maximum and average; over how long the instantaneous reading averages is not in the answer.

IPMI_SCRIPT: Final = "timeout 10 ipmitool dcmi power reading"
IPMI_METHOD: Final = "IPMI"
_LARGEST: Final = 4096
_NOW = re.compile(r"^\s*Instantaneous power reading\s*:\s*(\d{1,9})\s+Watts\s*$", re.MULTILINE)
_STATE = re.compile(r"^\s*Power reading state is\s*:\s*activated\s*$", re.MULTILINE)


def parse_dcmi(text: str) -> tuple[Sensed, ...]:
    """The reading; none where the controller has power measurement switched off, or says nothing of the kind."""
    text = text[:_LARGEST]
    now = _NOW.search(text)
    if now is None or _STATE.search(text) is None or not is_plausible(float(now[1])):
        return ()
    return (Sensed(IPMI_METHOD, PowerPart.MACHINE, "dcmi", watts=float(now[1]), resolution_watts=1.0),)
