"""Programs that tell what only a report needs: memory modules, fans and power supplies, what a cable ends at.

Each is missed only where something would come of it. Sources: Documentation/ABI/testing/sysfs-firmware-dmi-entries of
the kernel; SMBIOS 3.7 section 7.39 (type 38, a management controller by IPMI).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from nicbench.core.shipped import shipped
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._interfaces import select_measurable
from nicbench.doctor.checks.packages import parse_packages
from nicbench.hosts.base import Host

_NAME = "facts of the report"
_SOURCES = (
    ("dmidecode", "dmidecode", ("/sys/firmware/dmi/tables/DMI",)),
    ("ipmitool", "ipmitool", ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0", "/sys/firmware/dmi/entries/38-0")),
)
"""Package, program, and the paths of which one is there where the program has something to tell."""
# The other end of these is a program of the host, which sends no LLDP.
_EMULATED = frozenset({"virtio_net", "hv_netvsc", "xen_netfront", "vmxnet3", "ena", "gve"})
_ASK = 'for p in "$@"; do [ -e "$p" ] && echo "$p"; done; for p in dmidecode ipmitool lldpcli; do command -v "$p"; done'


@dataclass(frozen=True, slots=True)
class Lack:
    """A package that is not there, and what it would tell."""

    package: str
    why: str


class ReportFacts(Examination):
    """From the paths of the firmware's tables, of the management controller, and of the cards."""

    kind = "report_facts"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        paths = [path for _, _, places in _SOURCES for path in places]
        there = set((await host.run(("sh", "-c", f"{_ASK}; true", "sh", *paths), check=False)).stdout.split())
        cabled = [one.name for one in await select_measurable(host) if one.driver not in _EMULATED]
        return (judge(there, cabled, _reasons()),)


def judge(there: Collection[str], cabled: Collection[str], reasons: dict[str, str]) -> Check:
    """``there``: paths and programs that were found; ``cabled``: interfaces whose cable ends at another machine."""
    programs = {path.rpartition("/")[2] for path in there}
    telling = {package: any(path in there for path in places) for package, _, places in _SOURCES}
    telling["lldpd"] = bool(cabled)
    names = {package: program for package, program, _ in _SOURCES} | {"lldpd": "lldpcli"}
    absent = [package for package, tells in telling.items() if tells and names[package] not in programs]
    if absent:
        why = "; ".join(f"{package} ({reasons.get(package, 'facts of the machine')})" for package in absent)
        command = f"apt-get install --no-install-recommends {' '.join(absent)}"
        return warning(_NAME, f"not installed, so the report will lack: {why}", command)
    silent = [package for package, tells in telling.items() if not tells]
    if silent:
        return ok(_NAME, f"nothing is missing; {', '.join(silent)} would add nothing on this machine")
    return ok(_NAME, f"{', '.join(telling)} are installed")


def _reasons() -> dict[str, str]:
    path = shipped("packages.debian")
    rows = parse_packages(path.read_text(encoding="utf-8")) if path.exists() else ()
    return {row.name: row.why for row in rows if row.needed_for == "facts"}
