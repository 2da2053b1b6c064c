"""A probe: one line of shell, one pure parser. Counters rise, levels are as they are.

To add one:

1. Add a subclass of ``nicbench.measure.health.base.Probe`` to the file of its theme in
   ``src/nicbench/measure/health/probes``: a line of shell, and a pure ``read()`` that gives counters, levels, speeds
   or energies. What a host lacks prints nothing, and is not asked for again. Mark what takes milliseconds ``slow``.
2. A counter's ``Measure`` names its row in ``core/judging.py``: a rise above it makes a trial invalid, a smaller one
   is a warning in the report.
3. Put recorded outputs of several vendors into ``tests/measure/health/golden``.
"""

from __future__ import annotations

import math
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from nicbench.core.frozen import frozen
from nicbench.core.reading import Measure


@frozen
class HealthView:
    """A host as a probe sees it: its interfaces on the path, their drivers, PCI addresses of other ports."""

    host: str
    devices: tuple[str, ...] = ()
    drivers: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()


@frozen
class Counter:
    """A cumulative counter; a fall counts as nothing."""

    where: str
    what: str
    value: float
    measure: Measure
    unit: str = "errors"


@frozen
class Level:
    """A value of now, with the limit that the part itself tells."""

    where: str
    value: float
    unit: str
    limit: float | None = None


@frozen
class Speed:
    """What must not become less: the bandwidth of a PCIe link, bits/s."""

    where: str
    what: str
    value: float
    measure: Measure


@frozen
class Energy:
    """Joules since some time; it wraps at ``range_j``."""

    where: str
    joules: float
    range_j: float | None = None


Value = Counter | Level | Speed | Energy


class Probe(ABC):
    """``kind`` is its name. ``script`` prints, ``read`` understands: bounded, pure, a ValueError where it does not.

    What a host does not have prints nothing: after the first reading it is not asked again. ``slow`` probes take
    milliseconds each (a module's memory over I2C): they are read seldom, and the trials between have the last value.
    """

    kind: ClassVar[str]
    slow: ClassVar[bool] = False
    of_machine: ClassVar[bool] = False
    """Not of the interfaces of the path: read once where both sides are one machine."""

    @abstractmethod
    def script(self, view: HealthView) -> str:
        """The shell's line; "" where this host can have nothing of the kind."""

    @abstractmethod
    def read(self, text: str, view: HealthView) -> tuple[Value, ...]:
        """The values in what ``script`` printed."""


_MARK = "@ "


def script_for_devices(view: HealthView, command: str) -> str:
    """The command for every interface (``{}``), each after a line with its name."""
    names = ((device, shlex.quote(device)) for device in view.devices)
    return "; ".join(f"echo {shlex.quote(_MARK + device)}; {command.format(quoted)}" for device, quoted in names)


def split_by_device(text: str) -> dict[str, list[str]]:
    """Splits the output of a loop over devices into the lines of each device."""
    found: dict[str, list[str]] = {}
    lines = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            lines = found.setdefault(line.removeprefix(_MARK).strip(), [])
        else:
            lines.append(line)
    return found


def paths_and_values(text: str) -> dict[str, list[str]]:
    """``grep -H ""`` over small files: lines by path. The path ends at the first colon after the last slash."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        slash = _end_of_folders(line)
        colon = line.find(":", slash)
        if colon > 0:
            found.setdefault(line[:colon], []).append(line[colon + 1 :].strip())
    return found


def _end_of_folders(line: str) -> int:
    """PCI addresses in paths hold colons; the value may hold a slash only after a blank."""
    blank = line.find(" ")
    return line.rfind("/", 0, blank if blank > 0 else len(line))


def number_of(texts: list[str]) -> float | None:
    """Returns the only line as a number; None if it is not a finite number."""
    try:
        number = float(texts[0]) if len(texts) == 1 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# Sensors of hwmon: thousandths of a degree Celsius (Documentation/hwmon/sysfs-interface.rst).  ``temp*_crit`` is
# where a part protects itself, ``temp*_max`` where it should not stay.

LARGEST = 32


def chips(text: str) -> dict[str, tuple[str, float, float | None]]:
    """By folder: the chip's name, and of its sensors the one nearest to its limit: degrees, limit."""
    files: dict[str, dict[str, list[str]]] = {}
    for path, lines in paths_and_values(text).items():
        folder, _, name = path.rpartition("/")
        files.setdefault(folder, {})[name] = lines
    found = {}
    for folder, chip in list(files.items())[:LARGEST]:
        hottest = _hottest(chip)
        if hottest is not None:
            found[folder] = ((chip.get("name") or ["sensor"])[0], *hottest)
    return found


def _hottest(files: dict[str, list[str]]) -> tuple[float, float | None] | None:
    found = []
    for name, lines in files.items():
        value = number_of(lines)
        if not name.endswith("_input") or value is None or not -100_000 < value < 300_000:
            continue
        limits = (number_of(files.get(name.replace("_input", end), [])) for end in ("_crit", "_max"))
        limit = next((limit / 1000 for limit in limits if limit and 0 < limit < 300_000), None)
        found.append((value / 1000, limit))
    return max(found, key=lambda sensor: (sensor[0] / sensor[1] if sensor[1] else 0.0, sensor[0]), default=None)


# Where adapters hang on the PCI bus: by their interface, or by the address of a port that a driver of DPDK has.


def script_for_functions(view: HealthView, command: str) -> str:
    """The command for every adapter's folder ``$p`` under /sys/devices; virtual interfaces have none."""
    places = [f"/sys/class/net/{shlex.quote(device)}/device" for device in view.devices]
    places += [f"/sys/bus/pci/devices/{shlex.quote(address)}" for address in view.addresses]
    if not places:
        return ""
    return f'for d in {" ".join(places)}; do [ -e "$d" ] || continue; p=$(readlink -f "$d"); {command}; done'
