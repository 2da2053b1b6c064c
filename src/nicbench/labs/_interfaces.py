"""Whether an interface may be used for a test. Pure: the answers of ``ip -j`` in, an error with its next step out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from nicbench.errors import NotReadyError
from nicbench.labs._joined import carriers, joined_with, stands_on_another_namespace
from nicbench.tuning.bpf import program_of_link


@dataclass(frozen=True, slots=True)
class Interfaces:
    """What a host says of its interfaces. ``elsewhere`` maps names seen in other namespaces to those namespaces."""

    links: Mapping[str, Mapping[str, Any]]
    addresses: Mapping[str, Sequence[str]]
    default_route_devices: frozenset[str]
    elsewhere: Mapping[str, str]

    @classmethod
    def parse(
        cls, links: str, addresses: str, routes: Iterable[str], elsewhere: Mapping[str, str] | None = None
    ) -> Self:
        """From ``ip -d -j link show``, ``ip -j address show`` and ``ip -j [-4|-6] route show table all``."""
        by_name = {link["ifname"]: link for link in json.loads(links or "[]")}
        return cls(
            links=by_name,
            addresses={entry["ifname"]: _addresses_of(entry) for entry in json.loads(addresses or "[]") if entry},
            default_route_devices=carriers([route for text in routes for route in json.loads(text or "[]")], by_name),
            elsewhere=elsewhere or {},
        )

    def name_of(self, text: str) -> str | None:
        """The interface that the kernel takes ``text`` for, None where it knows none: alternative names, `eth0:1`."""
        name = text.partition(":")[0]
        if name in self.links:
            return name
        return next((own for own, link in self.links.items() if name in link.get("altnames", ())), None)


def check_interface(interfaces: Interfaces, device: str, place: str, *, for_tester: bool) -> Mapping[str, Any]:
    """The interface's object of ``ip -j link``; NotReadyError where it must not or cannot be used.

    A DUT's interface may have addresses and an XDP program of its own; the tester takes every frame of its interface.
    """
    link = check_free(interfaces, device, place, for_tester=for_tester)
    if "UP" not in link["flags"]:
        raise NotReadyError(f"the interface {device} is down", place=place, next_step=f"ip link set dev {device} up")
    if "LOWER_UP" not in link["flags"]:
        raise NotReadyError(
            f"the interface {device} is up but has no carrier",
            place=place,
            next_step="check the cable, and that the interface at the other end is up",
        )
    return link


def check_free(interfaces: Interfaces, device: str, place: str, *, for_tester: bool) -> Mapping[str, Any]:
    """The part of ``check_interface`` that holds for an interface which is down as well: that it may be taken."""
    link = interfaces.links.get(device)
    if link is None:
        raise _missing(interfaces, device, place)
    # First of all: no test may ever take this machine off the network.
    _require_no_way_out(interfaces, device, place)
    if "LOOPBACK" in link["flags"]:
        raise NotReadyError(f"{device} is the loopback interface", place=place, next_step="use a port with a link")
    if for_tester:
        _require_unused(interfaces, link, device, place)
    return link


def _require_no_way_out(interfaces: Interfaces, device: str, place: str) -> None:
    """Neither the interface nor any that its frames can come to carries a default route."""
    never = "use another interface; nicbench never sends test traffic through the one that leads out"
    if device in interfaces.default_route_devices:
        raise NotReadyError(
            f"the interface {device} carries the default route of this machine", place=place, next_step=never
        )
    joined = joined_with(interfaces.links, device)
    ways_out = sorted(joined & interfaces.default_route_devices)
    if ways_out:
        raise NotReadyError(
            f"the interface {device} is joined with {ways_out[0]}, which carries the default route of this machine",
            place=place,
            next_step=never,
        )
    for name in sorted({device, *joined}):
        if stands_on_another_namespace(interfaces.links.get(name, {})):
            raise NotReadyError(
                f"the interface {device} stands on one in another network namespace, and whether that one "
                "carries a default route cannot be seen from here",
                place=place,
                next_step="use an interface of its own: a port of a card, or one end of a veth pair",
            )


def require_no_owner(link: Mapping[str, Any], device: str, place: str) -> None:
    """NotReadyError where the interface is a member of another, or a program sits on it."""
    master = link.get("master")
    if master is not None:
        kind = link.get("linkinfo", {}).get("info_slave_kind", "group")
        raise NotReadyError(
            f"the interface {device} is in use: it is a member of the {kind} {master}",
            place=place,
            next_step=f"use another, or take it out: ip link set dev {device} nomaster",
        )
    program = program_of_link(link)
    if program is not None:
        raise NotReadyError(
            f"the interface {device} is in use: it has an XDP program (id {program})",
            place=place,
            next_step=f"see whose it is: bpftool prog show id {program}; detach it: ip link set dev {device} xdp off",
        )


def _require_unused(interfaces: Interfaces, link: Mapping[str, Any], device: str, place: str) -> None:
    require_no_owner(link, device, place)
    addresses = interfaces.addresses.get(device, ())
    if addresses:
        raise NotReadyError(
            f"the interface {device} is in use: it has the address {addresses[0]}",
            place=place,
            next_step=f"use another, or remove its addresses: ip address flush dev {device}",
        )


def _missing(interfaces: Interfaces, device: str, place: str) -> NotReadyError:
    namespace = interfaces.elsewhere.get(device)
    if namespace is not None:
        return NotReadyError(
            f"there is no interface {device} here; one is in the network namespace {namespace}",
            place=place,
            next_step=f"give its host as `{{kind: netns, namespace: {namespace}}}` in the bench file",
        )
    present = ", ".join(sorted(interfaces.links)) or "none"
    return NotReadyError(
        f"there is no interface {device}", place=place, next_step=f"choose one of those that are there: {present}"
    )


def _addresses_of(entry: Mapping[str, Any]) -> list[str]:
    """Addresses that somebody gave; a link-local one comes by itself and leads nowhere."""
    given = (info for info in entry.get("addr_info", ()) if info.get("scope") != "link")
    return [f"{info['local']}/{info['prefixlen']}" for info in given]
