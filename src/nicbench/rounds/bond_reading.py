"""What is asked of a host about its bonds: scripts of a line, and what their outputs mean. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.adapters.bonding import bond_under, parse_order, parse_speeds
from nicbench.adapters.links import parse_links
from nicbench.hosts._sections import in_sections, sections
from nicbench.model.bond import Bond
from nicbench.rounds.connections import Socket, parse_sockets, plain

_FACTS: Final = {
    "uname": "uname -rm",
    "links": "ip -j -d link show",
    "order": 'grep -sH "" /sys/class/net/*/bonding/slaves',
    "speeds": 'grep -sH "" /sys/class/net/*/speed',
}
FACTS: Final = f"test -s /sys/class/net/bonding_masters && {{ {in_sections(_FACTS)}; }}"
"""A host without the driver answers nothing."""
_COUNTER: Final = re.compile(r"^/sys/class/net/([^/]+)/statistics/([rt]x)_bytes:(\d+)$", re.MULTILINE)


def bonds_in(text: str, devices: Iterable[str]) -> dict[str, Bond]:
    """The bond under each of these interfaces, where there is one, by what ``FACTS`` printed."""
    parts = sections(text)
    try:
        links = parse_links(parts.get("links", ""))
    except ValueError:
        return {}
    release, _, machine = parts.get("uname", "").strip().partition(" ")
    order, speeds = parse_order(parts.get("order", "")), parse_speeds(parts.get("speeds", ""))
    found = {device: bond_under(device, links, order, speeds, release or None, machine) for device in devices}
    return {device: bond for device, bond in found.items() if bond is not None}


@dataclass(frozen=True, slots=True)
class Moment:
    """A host at one moment: bytes ``(sent, received)`` of ports, its connections, the neighbours it knows by address.

    ``gateways`` has the next hop to an address that is not on a network of its own.
    """

    ports: Mapping[str, tuple[int, int]]
    tcp: tuple[Socket, ...] = ()
    udp: tuple[Socket, ...] = ()
    neighbours: Mapping[str, str] | None = None
    gateways: Mapping[str, str] | None = None

    def mac_towards(self, address: str) -> str | None:
        """Of the next hop; None where it is not known."""
        hop = (self.gateways or {}).get(address, address)
        return (self.neighbours or {}).get(hop)


def moment_script(ports: Iterable[str], peers: Iterable[str], *, connections: bool, udp: bool) -> str:
    """Counters first and connections right after them. ``peers`` are those whose next hop is to be told."""
    files = " ".join(f"/sys/class/net/{shlex.quote(port)}/statistics/[rt]x_bytes" for port in ports)
    wanted = {"ports": f'grep -sH "" {files}'}
    if connections:
        wanted["tcp"] = "ss -tinH"
    if connections and udp:
        wanted["udp"] = "ss -unH"
    peers = tuple(peers)
    if peers:
        wanted["neighbours"] = "ip -j neigh show"
        wanted.update({f"route {peer}": f"ip -j route get {shlex.quote(peer)}" for peer in peers})
    return in_sections(wanted)


def moment_in(text: str) -> Moment:
    """What ``moment_script`` printed; what a host lacks is missing in it."""
    parts = sections(text)
    counts: dict[str, dict[str, int]] = {}
    for port, way, value in _COUNTER.findall(parts.get("ports", "")):
        counts.setdefault(port, {})[way] = int(value)
    neighbours = {
        plain(str(one["dst"])): str(one["lladdr"]) for one in _rows(parts.get("neighbours")) if "lladdr" in one
    }
    gateways = {
        name.removeprefix("route "): plain(str(one["gateway"]))
        for name, output in parts.items()
        if name.startswith("route ")
        for one in _rows(output)[:1]
        if "gateway" in one
    }
    return Moment(
        ports={port: (ways["tx"], ways["rx"]) for port, ways in counts.items() if len(ways) == len(("tx", "rx"))},
        tcp=tuple(parse_sockets(parts.get("tcp", ""))),
        udp=tuple(parse_sockets(parts.get("udp", ""))),
        neighbours=neighbours,
        gateways=gateways,
    )


def _rows(text: str | None) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text or "[]")
    except ValueError:
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
