"""Which interfaces a frame can come to from another one, inside this machine. Pure, from the objects of ``ip -j link``.

A macvlan sends through its parent, the two ends of a veth pair are one wire, a bridge sends to all its members: a test
on one of them is a test on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Links = Mapping[str, Mapping[str, Any]]

# What `ip` calls the link of these is the other end of their wire; of all others it is the interface they stand on.
_PAIRS = frozenset({"veth", "netkit", "vxcan"})


def carriers(routes: Sequence[Mapping[str, Any]], links: Links) -> frozenset[str]:
    """Devices of default routes, and what lies under them: members of a bridge or bond, the parent of a VLAN."""
    found: set[str] = set()
    waiting = [device for route in routes if route.get("dst") == "default" for device in _route_devices(route)]
    while waiting:
        device = waiting.pop()
        if device in found:
            continue
        found.add(device)
        waiting += [name for name, link in links.items() if link.get("master") == device]
        link = links.get(device, {})
        if not _is_pair(link):
            waiting += _linked(link, links)
    return frozenset(found)


def joined_with(links: Links, device: str) -> frozenset[str]:
    """Every interface that frames of ``device`` can come to: parents, children, peers, bridges and their members."""
    neighbours: dict[str, set[str]] = {name: set() for name in links}
    for name, link in links.items():
        master = link.get("master")
        for other in [*_linked(link, links), *([master] if master else [])]:
            neighbours[name].add(other)
            neighbours.setdefault(other, set()).add(name)
    found: set[str] = set()
    waiting = [device]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += neighbours.get(name, ())
    return frozenset(found - {device})


def standing_on(links: Links, device: str) -> list[str]:
    """Interfaces that are made on this one (a VLAN, a macvlan): they end where it goes to another namespace."""
    return [name for name, link in links.items() if not _is_pair(link) and device in _linked(link, links)]


def stands_on_another_namespace(link: Mapping[str, Any]) -> bool:
    """Whether the interface under this one is in another namespace. The far end of a veth pair is nothing under it."""
    return "link_netnsid" in link and not _is_pair(link)


def _is_pair(link: Mapping[str, Any]) -> bool:
    return link.get("linkinfo", {}).get("info_kind") in _PAIRS


def _linked(link: Mapping[str, Any], links: Links) -> list[str]:
    """The interface that ``ip`` names as the link of this one, by name or number; none where it is elsewhere."""
    if "link_netnsid" in link:
        return []
    if link.get("link"):
        return [str(link["link"])]
    number = link.get("link_index")
    return [name for name, other in links.items() if number is not None and other.get("ifindex") == number]


def _route_devices(route: Mapping[str, Any]) -> list[str]:
    """One device, or those of a route over several paths."""
    hops = [hop["dev"] for hop in route.get("nexthops", ()) if "dev" in hop]
    return hops + ([route["dev"]] if "dev" in route else [])
