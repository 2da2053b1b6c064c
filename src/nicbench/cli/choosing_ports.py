"""The two ports of this machine for a first bench file: named, found by their cable, or chosen from a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.output import say
from nicbench.cli.questions import ask_text, ask_yes, can_ask
from nicbench.core.errors import NotReadyError, UsageError, suggest
from nicbench.core.units import format_bits_per_s
from nicbench.first_steps.ports import Cabling, FoundPort, find_cabling, free_ports, ports_of_this_machine

_PCI: Final = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_PCI_DEVICES: Final = Path("/sys/bus/pci/devices")


class TwoPorts(NamedTuple):
    """The names of two ports, and whether one is of a veth pair, so that tester and device share a machine."""

    one: str
    other: str
    are_virtual: bool


def choose_two(given: str | None, *, probe: bool) -> TwoPorts:
    """The two ports, of which neither leads out of the machine.

    UsageError where they are not given and cannot be asked for; NotReadyError where one may not be used.
    """
    found = run_to_the_end(ports_of_this_machine())
    show_ports(found)
    cabled = _look_for_cables(found, asked=probe or (given is None and can_ask() and _consent(found)))
    if given is None and cabled:
        given = f"{cabled[0].one},{cabled[0].other}"
        say(f"using the ports {given}")
    if given is None:
        given = _ask_for_two(found)
    names = [part.strip() for part in given.split(",")]
    if len(names) != 2 or names[0] == names[1] or not all(names):
        step = "write two different ports with a comma between them: --ports eth1,eth2"
        raise UsageError(f"{given!r} is not a pair of ports", place="--ports", next_step=step)
    for name in names:
        _require(found, name)
    return TwoPorts(names[0], names[1], any(port.driver == "veth" for port in found if port.name in names))


def require_usable(name: str, *, serves: bool = False) -> None:
    """Looks at one port of this machine; with ``serves`` it may have addresses, and is used where it is."""
    _require(run_to_the_end(ports_of_this_machine()), name, serves=serves)


def show_ports(found: Sequence[FoundPort]) -> None:
    """Prints each port, and why not to use it."""
    say("ports of this machine:")
    width = max((len(port.name) for port in found), default=0)
    for port in found:
        say(f"  {port.name:<{width}}  {describe(port)}")
    if not found:
        say("  none")


def describe(port: FoundPort) -> str:
    """A port in words."""
    link = "link unknown" if port.has_link is None else "link up" if port.has_link else "no link"
    parts = [port.driver or "driver unknown", "down" if not port.is_up else link]
    if port.speed_bits_per_s:
        parts.append(format_bits_per_s(port.speed_bits_per_s))
    if port.neighbour:
        parts.append(f"cabled to {port.neighbour} (LLDP)")
    if port.never or port.warning:
        parts.append(f"{'NOT FOR TESTS' if port.never else 'in use'}: {port.never or port.warning}")
    return ", ".join(parts)


def _consent(found: Sequence[FoundPort]) -> bool:
    names = [port.name for port in free_ports(found) if port.has_link]
    if len(names) < 2:
        return False
    return ask_yes(f"Send a test frame from each of {', '.join(names)}, to see which are cabled to each other?")


def _look_for_cables(found: Sequence[FoundPort], *, asked: bool) -> tuple[Cabling, ...]:
    if not asked:
        return ()
    names = [port.name for port in free_ports(found) if port.has_link]
    if len(names) < 2:
        say("no test frames sent: fewer than two free ports have a link (`ip link set dev NAME up`)")
        return ()
    cabled = find_cabling(names)
    for one in cabled:
        say(f"  {one}")
    if not cabled:
        say("no test frame arrived: the free ports are not connected, or only through a router")
    return cabled


def _ask_for_two(found: Sequence[FoundPort]) -> str:
    names = [port.name for port in free_ports(found)]
    if can_ask():
        return ask_text("two ports, separated by a comma", ",".join(names[:2]) if len(names) == 2 else None)
    free = f"free are {', '.join(names)}" if names else "none is free"
    step = "write --ports A,B, or --probe to find two that are cabled to each other"
    if len(names) < 2:
        step = "free two, or measure without: `nicbench demo`, or `nicbench init streams --namespaces`"
    raise UsageError(f"two ports are needed, and {free}", place="--ports", next_step=step)


def _require(found: Sequence[FoundPort], name: str, *, serves: bool = False) -> None:
    """Refuses a port that leads out of the machine, unless bytes of tools only use it, and warns of one in use."""
    if _PCI.fullmatch(name):
        # A card that DPDK drives has no interface to look at; the run looks at it.
        if not (_PCI_DEVICES / name.lower()).exists():
            step = "`lspci -D` lists the devices of this machine"
            raise UsageError(f"there is no PCI device {name}", place="--ports", next_step=step)
        return
    port = next((port for port in found if port.name == name), None)
    if port is None:
        usable = [port.name for port in found if serves or port.never is None]
        step = suggest(name, usable, "port") if usable else "no port of this machine is free for tests: `nicbench demo`"
        raise UsageError(f"there is no port {name}", place="--ports", next_step=step)
    if serves:
        return
    if port.never:
        step = "choose another port: nicbench never measures on the way out of a machine"
        raise NotReadyError(f"the port {port.never}", place=name, next_step=step)
    if port.warning:
        say(f"warning: {name} is in use: {port.warning}. A run will refuse it in this state")
