"""An examination looks at one side of a machine and gives checks; those of a theme share a file in ``checks/``.

What several checks read is here, too: files, the CPUs that nicbench would measure on, interfaces and adapters.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import NicbenchError, UnknownFactError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.registry import find
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.system.adapters.pci import PATTERNS, parse_pci
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.cores import make_core_map
from nicbench.testbed.duts import l3fwd


class State(StrEnum):
    """``missing`` keeps nicbench from working, ``warning`` keeps it from working well."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


class Check(Frozen):
    """One line of the doctor's answer; ``mend_command`` is exact where a command can fix it.

    ``details`` are for those who ask for them (``--verbose``, ``--json``): plain data by names in words, None where a
    value is not known.
    """

    name: str
    state: State
    text: str
    mend_command: str | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class Examination(ABC):
    """Subclasses define ``kind`` and ``examine``. They run commands and read, and change nothing."""

    kind: ClassVar[str]

    @abstractmethod
    async def examine(self, host: Host) -> tuple[Check, ...]:
        """The checks of this side. An error of the host (nicbench.core.errors) becomes a check of its own."""


def ok(name: str, text: str, details: Mapping[str, Any] | None = None) -> Check:
    """A check that found what is needed."""
    return Check(name=name, state=State.OK, text=text, details=dict(details or {}))


def warning(name: str, text: str, mend_command: str | None = None, details: Mapping[str, Any] | None = None) -> Check:
    """A check that found something worse than it could be."""
    return Check(name=name, state=State.WARNING, text=text, mend_command=mend_command, details=dict(details or {}))


def missing(name: str, text: str, mend_command: str | None = None) -> Check:
    """A check that found something lacking."""
    return Check(name=name, state=State.MISSING, text=text, mend_command=mend_command)


# Runs every examination on a host and gives its checks; builds what no package holds and a DUT needs.  Checks stand
# in the order of the files' names. ``nicbench doctor --build l3fwd`` builds.


async def diagnose_this_machine() -> tuple[Check, ...]:
    """``diagnose`` for the machine that nicbench runs on."""
    return await diagnose(LocalHost("local"))


async def diagnose(host: Host) -> tuple[Check, ...]:
    """Never fails: what cannot even be looked at is a check that says so."""
    checks: list[Check] = []
    for kind, examination in find("nicbench.doctor.checks", Examination).items():
        try:
            checks += await examination().examine(host)
        except NicbenchError as error:
            checks.append(missing(kind.replace("_", " "), error.message, error.next_step))
        except (OSError, *NOT_UNDERSTOOD) as error:  # a machine stranger than anybody thought of
            checks.append(missing(kind.replace("_", " "), f"cannot be looked at: {error}"))
    return tuple(checks)


async def build_on_this_machine(name: str) -> str:
    """A sentence on what was built and where; UsageError where nothing is known by this name."""
    if name != "l3fwd":
        raise UsageError(f"nicbench cannot build {name}", place="--build", next_step="write --build l3fwd")
    done = await l3fwd.build(LocalHost())
    return f"built l3fwd from {l3fwd.PACKAGE} {done.sources} with DPDK {done.library}: {l3fwd.program()} ({done.patch})"


# What several checks read: many small files at once, and the CPUs that nicbench would measure on.


async def values(host: Host, *patterns: str) -> dict[str, str]:
    """Returns path and value of each file that can be read, of possibly no file at all."""
    try:
        return await values_of(host, patterns)
    except UnknownFactError:
        return {}


async def measuring_cpus(host: Host) -> tuple[int, ...]:
    """Those of tester and DUT in a lab that nicbench would make in this process."""
    cores = await make_core_map(host)
    return tuple(dict.fromkeys(without_none((cores.worker, *cores.dut))))


# The network interfaces and adapters of a machine that stand for a device.  Interfaces with their drivers, and which
# of them the machine is reached by; adapters on the PCI bus, also those that DPDK has taken, with what they are
# called.

# A card's interface has a device, a bridge or veth has none; names in /sys hold neither blanks nor slashes.
_LIST = (
    'for d in /sys/class/net/*/device; do [ -e "$d/driver" ] && '
    'echo "$d $(readlink "$d/driver") $(readlink -f "$d")"; done; true'
)
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NO_MASK = "00000000"


@frozen
class Interface:
    """``reaches_others``: it carries a default route, so the machine is reached by it and nothing is measured there."""

    name: str
    driver: str
    pci_address: str | None
    reaches_others: bool


async def interfaces(host: Host) -> tuple[Interface, ...]:
    """Those of the namespace that nicbench was started in."""
    routed = default_routes(await host.read_file("/proc/net/route") or "")
    routed |= default_routes_6(await host.read_file("/proc/net/ipv6_route") or "")
    found = parse_interfaces((await host.run(("sh", "-c", _LIST), check=False)).stdout)
    return tuple(Interface(name, driver, address, name in routed) for name, driver, address in sorted(found))


async def select_measurable(host: Host) -> tuple[Interface, ...]:
    """Those that the machine is not reached by."""
    return tuple(one for one in await interfaces(host) if not one.reaches_others)


def parse_interfaces(text: str) -> list[tuple[str, str, str | None]]:
    """Name, driver, PCI address, from rows of ``/sys/class/net/NAME/device``, its driver's link, and its true path.

    The address is the last of the path: a virtio device lies below its PCI function.
    """
    rows = (row.split() for row in text.splitlines())
    return [
        (row[0].split("/")[4], row[1].rpartition("/")[2], next(reversed(_PCI_ADDRESS.findall(row[2])), None))
        for row in rows
        if len(row) == 3 and row[0].count("/") > 4
    ]


def default_routes(text: str) -> set[str]:
    """Interfaces of default routes in ``/proc/net/route``: interface, destination, .., mask is the eighth."""
    rows = (row.split() for row in text.splitlines()[1:])
    return {row[0] for row in rows if len(row) > 7 and row[1] == _NO_MASK and row[7] == _NO_MASK}


def default_routes_6(text: str) -> set[str]:
    """Returns the interfaces of default routes in ``/proc/net/ipv6_route``, without the kernel's own refusal on lo."""
    rows = (row.split() for row in text.splitlines())
    return {row[9] for row in rows if len(row) > 9 and row[0] == "0" * 32 and row[1] == "00" and row[9] != "lo"}


Adapters = dict[str, dict[str, Any]]


async def adapters(host: Host) -> Adapters:
    """Returns the adapters by address, as ``nicbench.system.adapters.pci`` parses them; empty without a PCI bus."""
    done = await host.run(("sh", "-c", f'grep -sH "" {" ".join(PATTERNS)}; true'), check=False)
    return parse_pci(done.stdout)


def drop_way_out(found: Adapters, interfaces: Iterable[Interface]) -> Adapters:
    """Those that the machine is not reached by."""
    taken = {one.pci_address for one in interfaces if one.reaches_others}
    return {address: adapter for address, adapter in found.items() if address not in taken}


def name_adapter(address: str, interfaces: Iterable[Interface]) -> str:
    """``eth1 (0000:03:00.1)``, or the address alone."""
    names = [one.name for one in interfaces if one.pci_address == address]
    return f"{', '.join(names)} ({address})" if names else address
