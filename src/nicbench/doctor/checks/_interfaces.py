"""The interfaces of a machine that stand for a device: their drivers, and which of them it is reached by."""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.hosts.base import Host

# A card's interface has a device, a bridge or veth has none; names in /sys hold neither blanks nor slashes.
_LIST = 'for d in /sys/class/net/*/device/driver; do [ -e "$d" ] && echo "$d $(readlink "$d")"; done; true'
_NO_MASK = "00000000"


@dataclass(frozen=True, slots=True)
class Interface:
    """``reaches_others``: it carries a default route, so the machine is reached by it and nothing is measured there."""

    name: str
    driver: str
    reaches_others: bool


async def interfaces(host: Host) -> tuple[Interface, ...]:
    """Those of the namespace that nicbench was started in."""
    routed = default_routes(await host.read_file("/proc/net/route") or "")
    routed |= default_routes_6(await host.read_file("/proc/net/ipv6_route") or "")
    drivers = parse_drivers((await host.run(("sh", "-c", _LIST), check=False)).stdout)
    return tuple(Interface(name, driver, name in routed) for name, driver in sorted(drivers.items()))


def parse_drivers(text: str) -> dict[str, str]:
    """Rows of a path in ``/sys/class/net`` and where it leads."""
    rows = (row.split() for row in text.splitlines())
    return {row[0].split("/")[4]: row[1].rpartition("/")[2] for row in rows if len(row) == 2 and row[0].count("/") > 4}


def default_routes(text: str) -> set[str]:
    """Interfaces of default routes in ``/proc/net/route``: interface, destination, .., mask is the eighth."""
    rows = (row.split() for row in text.splitlines()[1:])
    return {row[0] for row in rows if len(row) > 7 and row[1] == _NO_MASK and row[7] == _NO_MASK}


def default_routes_6(text: str) -> set[str]:
    """The same of ``/proc/net/ipv6_route``; the kernel's own refusal, on lo, is none."""
    rows = (row.split() for row in text.splitlines())
    return {row[9] for row in rows if len(row) > 9 and row[0] == "0" * 32 and row[1] == "00" and row[9] != "lo"}
