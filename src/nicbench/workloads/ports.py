"""Which ports of a host somebody listens on, from ``/proc/net``: a server that is ready is seen, and not disturbed."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Literal

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.workloads.base import Listening

_FILES: Final = ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6")
_LISTEN: Final = "0A"
_LOOKS_PER_S: Final = 10
Protocol = Literal["tcp", "udp"]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Socket = tuple[Protocol, int, Address]
Sockets = Collection[Socket]


async def sockets_of(host: Host) -> Sockets:
    """The sockets of the host that take connections or datagrams from anybody."""
    return await listeners_of(host)


async def listeners_of(host: Host) -> Mapping[Socket, str]:
    """The same with their inodes, by which a socket is told from one that came in its place."""
    # One command, because each costs a host that is reached over a network a round trip.
    script = 'for file; do echo "@$file"; cat "$file" 2>/dev/null; done'
    done = await host.network.run(("sh", "-c", script, "sh", *_FILES), check=False, timeout_s=20.0)
    if done.status != 0 and not done.stdout:
        raise HostError(f"its sockets cannot be read from /proc/net: {done.stderr.strip()[-200:]}", place=host.name)
    return parse_listeners(done.stdout)


def parse_listeners(text: str) -> Mapping[Socket, str]:
    """The files one after the other, each after a line ``@NAME``. proc_net_tcp of the kernel's documentation."""
    found: dict[Socket, str] = {}
    protocol: Protocol = "tcp"
    for line in text.splitlines():
        if line.startswith("@"):
            protocol = "udp" if "/udp" in line else "tcp"
            continue
        fields = line.split()
        if len(fields) < 4 or not fields[0].endswith(":") or (protocol == "tcp" and fields[3] != _LISTEN):
            continue
        address, _, port = fields[1].partition(":")
        try:
            found[protocol, int(port, 16), _address(address)] = fields[9] if len(fields) > 9 else ""
        except (ValueError, struct.error):
            continue
    return found


def is_open(wanted: Listening, sockets: Sockets) -> bool:
    """Whether somebody listens there: on that very address, or on all of them."""
    return any(_fits(wanted, one) for one in sockets)


def inode_of(wanted: Listening, listeners: Mapping[Socket, str]) -> str | None:
    """Of the socket that ``is_open`` means; None where there is none."""
    return next((inode for one, inode in listeners.items() if _fits(wanted, one)), None)


def _fits(wanted: Listening, one: Socket) -> bool:
    protocol, port, bound = one
    address = None if wanted.address is None else _plain(ipaddress.ip_address(wanted.address.partition("%")[0]))
    return (
        protocol == wanted.protocol
        and port == wanted.port
        and (address is None or bound.is_unspecified or _plain(bound) == address)
    )


async def wait_until_open(
    host: Host, waiting: Mapping[int, Iterable[Listening]], is_gone: Callable[[int], bool], timeout_s: float
) -> frozenset[int]:
    """Waits until each number's sockets are open, and gives those whose are. One that is gone is waited for no longer.

    One look serves all servers of the host.
    """
    clock = asyncio.get_running_loop().time
    end_s = clock() + timeout_s
    pending, ready = dict(waiting), set()
    while pending:
        sockets = await sockets_of(host)
        here = {number for number, wanted in pending.items() if all(is_open(one, sockets) for one in wanted)}
        ready |= here
        pending = {number: wanted for number, wanted in pending.items() if number not in here and not is_gone(number)}
        if not pending or clock() >= end_s:
            break
        await asyncio.sleep(1 / _LOOKS_PER_S)
    return frozenset(ready)


def _address(text: str) -> Address:
    """As the kernel prints it: words of 32 bits in the byte order of the machine, which is little-endian here."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    raw = b"".join(struct.pack("<I", word) for word in words)
    return ipaddress.ip_address(socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw))


def _plain(address: Address) -> Address:
    """An IPv4 address that an IPv6 socket is bound to is that IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
