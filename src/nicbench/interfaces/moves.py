"""Interfaces are moved into the namespaces that nicbench made, and come back as they were.

A move takes an interface down, and takes its addresses (network_namespaces(7)). So it is told beforehand what it had,
and an interface that somebody uses is refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.interfaces.base import Making, place_of
from nicbench.labs._host_interfaces import interfaces_of
from nicbench.labs._interfaces import Interfaces, check_free, require_no_owner
from nicbench.labs._joined import standing_on
from nicbench.tuning.undo import ReturnLink

_CARRIER_TRIES = 80
_CARRIER_STEP_S = 0.25


async def move_interfaces(making: Making) -> None:
    """Looks at all of them before it moves the first; waits a while for links, of which both ends may be among them."""
    moves = [
        (namespace, device, place_of(port, name))
        for namespace in making.created
        for name, port in making.ports_in(namespace).items()
        for device in port.devices
    ]
    undos = [await _looked_at(namespace, device, place) for namespace, device, place in moves]
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
    """A link of a card takes seconds to come up. One that does not is told of by whoever needs it."""
    for _ in range(_CARRIER_TRIES):
        links = json.loads((await host.run(("ip", "-j", "link", "show"))).stdout or "[]")
        up = {link["ifname"] for link in links if "LOWER_UP" in link.get("flags", ())}
        if up.issuperset(devices):
            return
        await asyncio.sleep(_CARRIER_STEP_S)


async def _looked_at(namespace: NetnsHost, device: str, place: str) -> ReturnLink:
    """What brings the interface back as it is now; NotReadyError where it must not be moved."""
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
    above = standing_on(interfaces.links, device)
    if above:
        raise NotReadyError(
            f"the interface {device} is in use: {', '.join(above)} stands on it",
            place=place,
            next_step=f"use another, or remove what stands on it: ip link delete {above[0]}",
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
                next_step="use another; the one by which a machine is reached is never moved",
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
            next_step="use an interface of its own; some (wireless ones, bridges) stay where they are",
        ) from error


def address_words(info: Mapping[str, Any]) -> str | None:
    """How ``ip address add`` takes it; None of one that comes by itself: of the link alone, or told by a router."""
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
