"""Assigns the address of a port with a prefix length (``ip: 198.18.0.1/24``) to its interface."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.testbed.interfaces.base import Making, place_of
from nicbench.testbed.interfaces.host_interfaces import check_free, interfaces_of
from nicbench.testbed.interfaces.namespaces import wait_for_carrier
from nicbench.tuning.undo.delete_ip_object import DeleteIpObject
from nicbench.tuning.undo.set_link_down import SetLinkDown


async def assign_addresses(making: Making) -> None:
    """Assigns the addresses of all ports and waits for their links.

    NotReadyError where an interface leads out of the machine, or another interface is in the same network.
    """
    waiting: dict[str, tuple[Host, list[str]]] = {}
    for name, port in making.ports.items():
        if port.given_ip is None or port.device is None:
            continue
        network = making.network_of(port)
        if await _assign(making, network, port.device, port.given_ip, place_of(port, name)):
            making.tell("given_addresses", name, str(port.given_ip))
        waiting.setdefault(repr(network.spec()), (network, []))[1].append(port.device)
    for host, devices in waiting.values():
        await wait_for_carrier(host, devices)


async def _assign(making: Making, host: Host, device: str, wanted: IPv4Interface | IPv6Interface, place: str) -> bool:
    """Assigns the address where the interface does not have it; says whether that was so."""
    interfaces = await interfaces_of(host)
    link = check_free(interfaces, device, place, for_tester=False)
    if "UP" not in link["flags"]:
        up = ("ip", "link", "set", "dev", device, "up")
        await making.changes.make(host, SetLinkDown(device=device), lambda: _run(host, up))
    shown = await host.run(("ip", "-j", "address", "show"))
    if _has_address(json.loads(shown.stdout or "[]"), device, wanted, place):
        return False
    if isinstance(wanted, IPv6Interface):
        disabled = f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"
        if (await host.read_file(disabled) or "0").strip() != "0":
            await making.changes.set_file(host, disabled, "0")
    words = (str(wanted), "dev", device)
    # This is a link of the test, where no one else has the address: duplicate address detection would only cost time.
    more = ("nodad",) if isinstance(wanted, IPv6Interface) else ("broadcast", "+")
    undo = DeleteIpObject(arguments=("address", "delete", *words))
    await making.changes.make(host, undo, lambda: _run(host, ("ip", "address", "add", *words, *more)))
    return True


def _has_address(
    every: Sequence[Mapping[str, Any]], device: str, wanted: IPv4Interface | IPv6Interface, place: str
) -> bool:
    """Whether the interface has the address; NotReadyError where another interface is in the same network."""
    for entry in every:
        for info in entry.get("addr_info", ()):
            if info.get("scope") == "link" or info.get("local") is None:
                continue
            there = ip_interface(f"{info['local']}/{info['prefixlen']}")
            if entry["ifname"] == device and there == wanted:
                return True
            if there.version == wanted.version and there.network.overlaps(wanted.network):
                raise NotReadyError(
                    f"{wanted} is in the network of {there}, an address of the interface {entry['ifname']}",
                    place=place,
                    next_step="give the port an address of a network of its own, such as 198.18.0.0/24 (RFC 2544)",
                )
    return False


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)
