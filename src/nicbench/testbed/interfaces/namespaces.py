"""Makes the network namespaces of hosts with ``create: true``, moves interfaces into them and assigns their addresses.

A move takes an interface down and removes its addresses (network_namespaces(7)). So both are recorded before, and an
interface that is in use is refused; the undo returns it as it was. A port may have an address with a prefix length
(``ip: 198.18.0.1/24``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.interfaces.base import Making, place_of
from nicbench.testbed.interfaces.host_interfaces import (
    Interfaces,
    check_free,
    interfaces_of,
    interfaces_on,
    require_no_owner,
)
from nicbench.testbed.interfaces.veth import make_namespace
from nicbench.tuning.undo.network import DeleteIpObject, ReturnLink, SetLinkDown


async def make_namespaces(making: Making) -> None:
    """Makes all of them; NotReadyError where one of that name exists already, for it is somebody else's."""
    for host in making.created:
        if await host.exists():
            raise NotReadyError(
                f"the network namespace {host.namespace} exists already, and `create` asks nicbench to make it",
                place=host.name,
                next_step=f"remove `create`, or delete the namespace: ip netns delete {host.namespace}",
            )
        devices = tuple(device for port in making.ports_in(host).values() for device in port.devices)
        await make_namespace(making.changes, host, holding=devices)
        making.tell("namespaces", host.name, host.namespace)


_CARRIER_TRIES = 80
_CARRIER_STEP_S = 0.25


async def move_interfaces(making: Making) -> None:
    """Checks all interfaces before it moves the first, and waits for carriers last: both ends of a link may move."""
    moves = [
        (namespace, device, place_of(port, name))
        for namespace in making.created
        for name, port in making.ports_in(namespace).items()
        for device in port.devices
    ]
    undos = [await _prepare_return(namespace, device, place) for namespace, device, place in moves]
    for (namespace, device, place), undo in zip(moves, undos, strict=True):
        await _move(making, namespace, undo, place)
        making.tell("moved_interfaces", device, f"into the namespace {namespace.namespace}")
    for namespace, device, _ in moves:
        link = ("ip", "link", "set", "dev", device)
        await namespace.run((*link, "addrgenmode", "none"), check=False)  # a kernel without IPv6 has no such mode
        await namespace.run((*link, "up"))
    for namespace in making.created:
        await wait_for_carrier(namespace, [device for where, device, _ in moves if where is namespace])


async def wait_for_carrier(host: Host, devices: Sequence[str]) -> None:
    """Waits up to 20 s until the interfaces have a carrier. One without is reported by the step that needs it."""
    for _ in range(_CARRIER_TRIES):
        links = json.loads((await host.run(("ip", "-j", "link", "show"))).stdout or "[]")
        up = {link["ifname"] for link in links if "LOWER_UP" in link.get("flags", ())}
        if up.issuperset(devices):
            return
        await asyncio.sleep(_CARRIER_STEP_S)


async def _prepare_return(namespace: NetnsHost, device: str, place: str) -> ReturnLink:
    """The undo that returns the interface as it is now; NotReadyError where it must not be moved."""
    outside = namespace.inner
    interfaces = await interfaces_of(outside)
    link = check_free(interfaces, device, place, for_tester=False)
    require_no_owner(link, device, place)
    await _require_unused(outside, interfaces, device, place)
    shown = json.loads((await outside.run(("ip", "-j", "address", "show", "dev", device))).stdout or "[{}]")
    addresses = [info for each in shown for info in each.get("addr_info", ())]
    return ReturnLink(
        device=device,
        namespace=namespace.namespace,
        up="UP" in link["flags"],
        addresses=tuple(words for info in addresses if (words := address_words(info)) is not None),
    )


async def _require_unused(host: Host, interfaces: Interfaces, device: str, place: str) -> None:
    above = interfaces_on(interfaces.links, device)
    if above:
        raise NotReadyError(
            f"the interface {device} is in use by {', '.join(above)}",
            place=place,
            next_step=f"use another, or remove what uses it: ip link delete {above[0]}",
        )
    for family in ("-4", "-6"):
        shown = await host.run(("ip", "-j", family, "route", "show", "table", "all", "dev", device), check=False)
        given = [route for route in json.loads(shown.stdout or "[]") if route.get("protocol") not in ("kernel", "ra")]
        if shown.status == 0 and given:
            raise NotReadyError(
                f"the interface {device} is in use: a route to {given[0].get('dst')} leads through it",
                place=place,
                next_step=f"use another, or remove it: ip route delete {given[0].get('dst')} dev {device}",
            )
    for address in interfaces.addresses.get(device, ()):
        own = address.partition("/")[0]
        talks = await host.run(("ss", "--no-header", "--tcp", "--numeric", "state", "established", "src", own))
        if talks.stdout.strip():
            peer = talks.stdout.split()[3]
            raise NotReadyError(
                f"the interface {device} is in use: its address {own} has a connection with {peer}",
                place=place,
                next_step="use another; an interface by which a machine is reached is never moved",
            )


async def _move(making: Making, namespace: NetnsHost, undo: ReturnLink, place: str) -> None:
    async def apply() -> None:
        await namespace.inner.run(("ip", "link", "set", "dev", undo.device, "netns", namespace.namespace))

    try:
        await making.changes.make(namespace.inner, undo, apply)
    except HostError as error:
        raise NotReadyError(
            f"the interface {undo.device} cannot be moved into a namespace: {error.message}",
            place=place,
            next_step="use another interface; some kinds (wireless, bridges) cannot be moved",
        ) from error


def address_words(info: Mapping[str, Any]) -> str | None:
    """The arguments of ``ip address add`` for an address; None for one that the kernel or a router assigns itself."""
    if (
        info.get("scope") == "link"
        or info.get("mngtmpaddr")
        or info.get("temporary")
        or "ra" in str(info.get("protocol"))
    ):
        return None
    words = [f"{info['local']}/{info['prefixlen']}"]
    if "address" in info:  # of a point-to-point link: the other end
        words = [str(info["local"]), "peer", f"{info['address']}/{info['prefixlen']}"]
    if info.get("broadcast"):
        words += ["broadcast", str(info["broadcast"])]
    if info.get("label"):
        words += ["label", str(info["label"])]
    if info.get("dynamic"):
        words += ["valid_lft", str(info["valid_life_time"]), "preferred_lft", str(info["preferred_life_time"])]
    if info.get("family") == "inet6":
        words.append("nodad")
    return " ".join(words)


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
