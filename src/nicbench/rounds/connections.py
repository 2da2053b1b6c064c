"""TCP connections of a host, and the payload that each moved, by ``ss -tinpH`` (iproute2). Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

_COUNT: Final = re.compile(r"\b(bytes_sent|bytes_acked|bytes_received):(\d+)")
_PID: Final = re.compile(r"\bpid=(\d+)")
_HAS_COUNTS: Final = re.compile(r"\brto:")
"""The kernel's tcp_info was read: what it lacks in it is zero."""


@dataclass(frozen=True, slots=True)
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

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What tells it from every other."""
        return self.local, self.local_port, self.peer, self.peer_port


def parse_sockets(text: str) -> list[Socket]:
    """Connections that are or were established; lines that are none are left out.

    A connection is a line and, where the kernel has counters, an indented one after it. Older versions of ss leave out
    ``bytes_sent``, which counts what was sent again as well: ``bytes_acked`` then stands for it.
    """
    found: list[Socket] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line[0].isspace():
            if found:
                found[-1] = _with_counts(found[-1], line)
            continue
        socket = _connection(line.split())
        if socket is not None:
            found.append(socket)
    return found


def plain(address: str) -> str:
    """Without a scope, as Python writes it; an IPv4 address in the clothes of IPv6 is that IPv4 address: so frames are.

    ValueError where it is none.
    """
    parsed = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def _connection(fields: list[str]) -> Socket | None:
    """``ESTAB 0 0 LOCAL:PORT PEER:PORT users:(("name",pid=1,fd=4))``."""
    try:
        (local, local_port), (peer, peer_port) = (_end(field) for field in fields[3:5])
    except ValueError:
        return None
    pids = frozenset(int(pid) for pid in _PID.findall(" ".join(fields[5:])))
    return Socket(local, local_port, peer, peer_port, pids=pids)


def _end(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return plain(address), int(port)


def _with_counts(socket: Socket, line: str) -> Socket:
    if _HAS_COUNTS.search(line) is None:
        return socket
    counts = {name: int(value) for name, value in _COUNT.findall(line)}
    sent = counts.get("bytes_sent", counts.get("bytes_acked", 0))
    return Socket(*socket.key, sent, counts.get("bytes_received", 0), socket.pids)
