"""The ports of this machine that a test could use: driver, speed, link, neighbour, and why not to use one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.system.adapters.ethtool import parse_driver, parse_link_settings
from nicbench.system.adapters.links import parse_neighbours
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.interfaces.host_interfaces import Interfaces, check_free, interfaces_of

_KINDS: Final = frozenset({None, "veth"})
"""Of ``ip -d link``: cards have none, and a veth is the port of a lab; bridges, bonds and VLANs are no ports."""


@dataclass(frozen=True, slots=True)
class FoundPort:
    """A port of this machine.

    ``never`` says why no test may use it (it leads out of the machine), ``warning`` why one had better not (it serves
    somebody). Speed in bits per second; what is not known is None.
    """

    name: str
    driver: str | None = None
    bus: str | None = None
    speed_bits_per_s: int | None = None
    is_up: bool = False
    has_link: bool | None = None
    neighbour: str | None = None
    never: str | None = None
    warning: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing speaks against using it."""
        return self.never is None and self.warning is None


async def ports_of_this_machine() -> tuple[FoundPort, ...]:
    """Every port of this machine, in the order of the kernel. NotReadyError where they cannot be listed."""
    return await look_at_ports(LocalHost("this machine"))


async def look_at_ports(host: Host) -> tuple[FoundPort, ...]:
    """Every port of the host. Changes nothing and needs no root; what a driver or a tool does not say is None."""
    found = await interfaces_of(host)
    names = [name for name, link in found.links.items() if _is_port(link)]
    neighbours = await _neighbours(host)
    return tuple([await _look_at(host, name, found, neighbours.get(name)) for name in names])


def free_ports(ports: Iterable[FoundPort]) -> tuple[FoundPort, ...]:
    """Those that a test may use, the ones with a link first."""
    return tuple(sorted((port for port in ports if port.is_free), key=lambda port: port.has_link is not True))


def _is_port(link: Mapping[str, Any]) -> bool:
    return link.get("link_type") == "ether" and link.get("linkinfo", {}).get("info_kind") in _KINDS


async def _look_at(host: Host, name: str, found: Interfaces, neighbour: str | None) -> FoundPort:
    flags = found.links[name].get("flags", ())
    driver = await _asked(host, ("ethtool", "-i", name), parse_driver)
    link = await _asked(host, ("ethtool", name), parse_link_settings)
    never = _objection(found, name, for_tester=False)
    return FoundPort(
        name=name,
        driver=driver.get("name"),
        bus=driver.get("bus"),
        speed_bits_per_s=link.get("speed_bits_per_s"),
        is_up="UP" in flags,
        has_link="LOWER_UP" in flags if "UP" in flags else link.get("link"),
        neighbour=neighbour,
        never=never,
        warning=None if never else _objection(found, name, for_tester=True),
    )


def _objection(found: Interfaces, name: str, *, for_tester: bool) -> str | None:
    """Why a run would refuse the port, by the rule that runs have themselves."""
    try:
        check_free(found, name, name, for_tester=for_tester)
    except NotReadyError as error:
        return error.message.removeprefix(f"the interface {name} ").removeprefix("is in use: ")
    return None


async def _asked(host: Host, command: tuple[str, ...], parse: Any) -> Mapping[str, Any]:
    try:
        return dict(parse((await host.run(command)).stdout))
    except (NicbenchError, *NOT_UNDERSTOOD):  # the program is not installed, or the driver does not say
        return {}


async def _neighbours(host: Host) -> dict[str, str]:
    """What announces itself at the other end of each cable; nothing where no LLDP daemon runs."""
    try:
        found = parse_neighbours((await host.run(("lldpcli", "-f", "json", "show", "neighbors"))).stdout)
    except (NicbenchError, *NOT_UNDERSTOOD):
        return {}
    return {
        name: ", port ".join(filter(None, (entries[0]["name"] or entries[0]["chassis"], entries[0]["port"])))
        for name, entries in found.items()
        if entries
    }
