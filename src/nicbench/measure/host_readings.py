"""What is asked of hosts around and within a round, and what their answers mean: counters, connections, mounts, bonds.

All of it is pure: scripts of a line, and functions of what these printed.
"""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nicbench.core.bond import Bond
from nicbench.core.frozen import frozen
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.measure.round_verdict import CARRIER_CHANGES
from nicbench.stats.rounds import REPEATED
from nicbench.system.adapters.links import bond_under, parse_links, parse_order, parse_speeds

COUNTERS_SCRIPT: Final = (
    "soft() {{ for file in $(grep -lsx $1 /sys/class/infiniband/*/parent); do basename ${{file%/*}}; done; }}; "
    'grep -H "" /sys/class/net/{device}/statistics/*_bytes /sys/class/net/{device}/statistics/*_packets '
    "/sys/class/net/{device}/statistics/*_dropped /sys/class/net/{device}/statistics/*_errors; "
    'grep -sH "" /sys/class/net/{device}/carrier_changes /sys/class/net/{device}/lower_*/carrier_changes '
    "/sys/class/net/{device}/lower_*/lower_*/carrier_changes; "
    "ethtool -S {device}; "
    "for link in $(ls /sys/class/net/{device}/device/infiniband) $(soft {device}); do "
    'grep -H "" /sys/class/infiniband/$link/ports/1/hw_counters/*; done'
)
_FILE: Final = re.compile(r"^/sys/\S*/(?P<name>[^/:]+):(?P<value>\d+)$")
_CARRIER: Final = re.compile(r"/(?:lower_)?(?P<device>[^/]+)/carrier_changes:(?P<value>\d+)$")
_STATISTIC: Final = re.compile(r"^\s+(?P<name>[^\s:][^:]*):\s+(?P<value>\d+)$")
_TELLING: Final = re.compile(
    r"pause|pfc|ecn|cnp|discard|drop|out_of_buffer|no_buffer|roce|prio\d+_(?:rx|tx)_", re.IGNORECASE
)
"""Of a driver's hundreds of statistics, those that say why something was slow or lost."""


_COUNT: Final = re.compile(r"\b(bytes_sent|bytes_acked|bytes_received):(\d+)")
_PID: Final = re.compile(r"\bpid=(\d+)")
_HAS_COUNTS: Final = re.compile(r"\brto:")
_SENDER: Final = re.compile(r"\b(bytes_acked|delivered|delivered_ce|cwnd):(\d+)")
_ROUND_TRIP: Final = re.compile(r" rtt:(\d{1,12}(?:\.\d{1,12})?)/")
_RESENT: Final = re.compile(r" retrans:\d+/(\d+)")
_FLAGS: Final = frozenset({"ts", "sack", "ecn", "ecnseen", "fastopen"})
"""What stands before the name of the congestion control in a line of ``ss -i``."""
"""The kernel's tcp_info was read: what it lacks in it is zero."""
_MOUNT_PORTS: Final = {"nfs": 2049, "nfs4": 2049, "cifs": 445, "smb3": 445}
_XPRT: Final = "xprt:"
# $1 is the directory. A FUSE mount's process has the mount point among its arguments, whole.
MOUNT_SCRIPT: Final = r"""
section() { echo; echo "=== nicbench section $1"; }
section mount; findmnt -J -T "$1" -o TARGET,SOURCE,FSTYPE,OPTIONS
target=$(findmnt -n -o TARGET -T "$1")
section pids
case $(findmnt -n -o FSTYPE -T "$1") in fuse*)
  grep -lzxF -- "$target" /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3;; esac
section mountstats; cat /proc/self/mountstats 2>/dev/null
section tcp; ss -tinpH
"""
_BONDS: Final = {
    "uname": "uname -rm",
    "links": "ip -j -d link show",
    "order": 'grep -sH "" /sys/class/net/*/bonding/slaves',
    "speeds": 'grep -sH "" /sys/class/net/*/speed',
}
BONDS_SCRIPT: Final = f"test -s /sys/class/net/bonding_masters && {{ {join_scripts(_BONDS)}; }}"
"""A host without the driver answers nothing."""
_PORT_BYTES: Final = re.compile(r"^/sys/class/net/([^/]+)/statistics/([rt]x)_bytes:(\d+)$", re.MULTILINE)


def is_telling(name: str) -> bool:
    """Whether that it did not rise is worth a word: pauses, marks, drops, what RDMA repeated."""
    return _TELLING.search(name) is not None or REPEATED.search(name) is not None


def parse_counters(text: str) -> dict[str, int]:
    """What ``COUNTERS_SCRIPT`` printed: counters by name, as kernel and driver write them; other lines are left out."""
    found = {}
    for line in text.splitlines():
        of_carrier = _CARRIER.search(line)
        if of_carrier is not None:
            found[CARRIER_CHANGES + of_carrier["device"]] = int(of_carrier["value"])
            continue
        of_file, of_driver = _FILE.match(line), _STATISTIC.match(line)
        if of_file is not None:
            found[of_file["name"]] = int(of_file["value"])
        elif of_driver is not None and _TELLING.search(of_driver["name"]):
            found[of_driver["name"].strip()] = int(of_driver["value"])
    return found


@frozen
class SenderCounts:
    """A connection as its sender's kernel counts it, since it began; see ``core.sender.SenderLook``."""

    acked_bytes: int
    delivered: int | None
    delivered_marked: int | None
    resent: int
    round_trip_ns: float | None
    window: int | None
    congestion_control: str | None
    ecn: bool


@frozen
class Socket:
    """A connection as its own host sees it. Bytes are of payload since it began; None where ``ss`` did not tell."""

    local: str
    local_port: int
    peer: str
    peer_port: int
    sent_bytes: int | None = None
    received_bytes: int | None = None
    pids: frozenset[int] = frozenset()
    """Of the processes that hold it; none of a connection of the kernel's own (an NFS mount's)."""
    sender: SenderCounts | None = None

    @property
    def key(self) -> tuple[str, int, str, int]:
        """The addresses and ports, which tell it from every other connection."""
        return self.local, self.local_port, self.peer, self.peer_port


def parse_sockets(text: str) -> list[Socket]:
    """Connections that are or were established; other lines are left out.

    A connection is a line and, where the kernel has counters, an indented one after it. Older versions of ss leave out
    ``bytes_sent``, which counts what was sent again as well: ``bytes_acked`` then stands for it.
    """
    found: list[Socket] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line[0].isspace():
            if found:
                found[-1] = _add_counts(found[-1], line)
            continue
        socket = _connection(line.split())
        if socket is not None:
            found.append(socket)
    return found


def plain_address(address: str) -> str:
    """Without a scope, as Python writes it; an IPv4 address in the clothes of IPv6 is that IPv4 address: so frames are.

    ValueError for any other text.
    """
    parsed = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def _connection(fields: list[str]) -> Socket | None:
    """A line of ``ss``: ``ESTAB 0 0 LOCAL:PORT PEER:PORT users:(("name",pid=1,fd=4))``."""
    try:
        (local, local_port), (peer, peer_port) = (_end(field) for field in fields[3:5])
    except ValueError:
        return None
    pids = frozenset(int(pid) for pid in _PID.findall(" ".join(fields[5:])))
    return Socket(local, local_port, peer, peer_port, pids=pids)


def _end(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return plain_address(address), int(port)


def _add_counts(socket: Socket, line: str) -> Socket:
    if _HAS_COUNTS.search(line) is None:
        return socket
    counts = {name: int(value) for name, value in _COUNT.findall(line)}
    sent = counts.get("bytes_sent", counts.get("bytes_acked", 0))
    return Socket(*socket.key, sent, counts.get("bytes_received", 0), socket.pids, _sender_counts(line))


def _sender_counts(line: str) -> SenderCounts:
    """``ss`` leaves out what is zero: ``delivered_ce`` is known to be zero where there is ``delivered``."""
    counts = {name: int(value) for name, value in _SENDER.findall(line)}
    words = line.split()
    trip, resent = _ROUND_TRIP.search(line), _RESENT.search(line)
    name = next((word for word in words if word not in _FLAGS), "")
    delivered = counts.get("delivered")
    return SenderCounts(
        acked_bytes=counts.get("bytes_acked", 0),
        delivered=delivered,
        delivered_marked=None if delivered is None else counts.get("delivered_ce", 0),
        resent=0 if resent is None else int(resent[1]),
        round_trip_ns=None if trip is None else float(trip[1]) * 1e6,
        window=counts.get("cwnd"),
        congestion_control=name if name.replace("_", "").isalnum() else None,
        ecn="ecn" in words,
    )


@frozen
class Mount:
    """Of a directory: where it is mounted, by which file system, and its own TCP connections as the client has them.

    ``shared``: connections of other mounts of this client may be among them.
    """

    target: str
    kind: str
    connections: tuple[Socket, ...]
    shared: bool = False


def mount_of(text: str) -> Mount | None:
    """What ``MOUNT_SCRIPT`` printed; None where the directory lies on no network file system that is known here."""
    parts = split_sections(text)
    mounted = _mount_entry(parts.get("mount", ""))
    if mounted is None:
        return None
    target, kind = str(mounted.get("target")), str(mounted.get("fstype"))
    sockets = parse_sockets(parts.get("tcp", ""))
    if kind.startswith("fuse"):
        pids = {int(line) for line in parts.get("pids", "").split() if line.isdecimal()}
        return Mount(target, kind, tuple(socket for socket in sockets if pids & socket.pids))
    if kind not in _MOUNT_PORTS:
        return None
    options = dict(option.partition("=")[::2] for option in str(mounted.get("options")).split(","))
    try:
        server, port = plain_address(options.get("addr", "")), int(options.get("port", _MOUNT_PORTS[kind]))
    except ValueError:
        return None
    there = [one for one in sockets if (one.peer, one.peer_port) == (server, port)]
    own = own_ports(parts.get("mountstats", ""), target)
    if own:
        return Mount(target, kind, tuple(one for one in there if one.local_port in own))
    return Mount(target, kind, tuple(there), shared=len(there) > 1)


def own_ports(mountstats: str, target: str) -> frozenset[int]:
    """The client's ports of an NFS mount's connections, by ``/proc/self/mountstats``; 0 there is unknown."""
    found = set()
    here = False
    for line in mountstats.splitlines():
        words = line.split()
        if words[:1] == ["device"]:
            here = len(words) > 4 and words[4] == target
        elif here and words[:2] == [_XPRT, "tcp"] and len(words) > 2:
            found.add(int(words[2]))
    return frozenset(found - {0})


def _mount_entry(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)["filesystems"]
    except (ValueError, KeyError, TypeError):
        return None
    return found[0] if found else None


def parse_bonds(text: str, devices: Iterable[str]) -> dict[str, Bond]:
    """The bond under each of these interfaces, where there is one, by what ``BONDS_SCRIPT`` printed."""
    parts = split_sections(text)
    try:
        links = parse_links(parts.get("links", ""))
    except ValueError:
        return {}
    release, _, machine = parts.get("uname", "").strip().partition(" ")
    order, speeds = parse_order(parts.get("order", "")), parse_speeds(parts.get("speeds", ""))
    found = {device: bond_under(device, links, order, speeds, release or None, machine) for device in devices}
    return {device: bond for device, bond in found.items() if bond is not None}


@frozen
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
    """Counters first and connections right after them. ``peers`` are those whose next hop is asked for."""
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
    return join_scripts(wanted)


def parse_moment(text: str) -> Moment:
    """What ``moment_script`` printed; what a host lacks is missing in it."""
    parts = split_sections(text)
    counts: dict[str, dict[str, int]] = {}
    for port, way, value in _PORT_BYTES.findall(parts.get("ports", "")):
        counts.setdefault(port, {})[way] = int(value)
    neighbours = {
        plain_address(str(one["dst"])): str(one["lladdr"]) for one in _rows(parts.get("neighbours")) if "lladdr" in one
    }
    gateways = {
        name.removeprefix("route "): plain_address(str(one["gateway"]))
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
