"""Frame sizes that cannot be sent: too small to hold the signature of the traffic, or too large for the lab's MTU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem

ETHERNET_HEADER_BYTES: Final = 14
FCS_BYTES: Final = 4
UDP_HEADER_BYTES: Final = 8
SIGNATURE_BYTES: Final = 16
IP_HEADER_BYTES: Final = {4: 20, 6: 40}
SMALLEST_ETHERNET_FRAME_BYTES: Final = 64  # IEEE 802.3


def smallest_frame_bytes(ip: int) -> int:
    """The smallest frame whose UDP payload holds the signature: 64 bytes with IPv4, 82 with IPv6."""
    filled = ETHERNET_HEADER_BYTES + IP_HEADER_BYTES[ip] + UDP_HEADER_BYTES + SIGNATURE_BYTES + FCS_BYTES
    return max(SMALLEST_ETHERNET_FRAME_BYTES, filled)


def largest_frame_bytes(bench: BenchFile) -> int | None:
    """The largest frame the lab's links carry, None where only the machine knows."""
    mtu = getattr(bench.lab.options, "mtu", None) if bench.lab else None
    return mtu + ETHERNET_HEADER_BYTES + FCS_BYTES if isinstance(mtu, int) else None


def frame_size_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """One problem for each frame size that cannot be sent."""
    smallest = smallest_frame_bytes(bench.traffic.ip)
    largest = largest_frame_bytes(bench)
    for index, test in enumerate(bench.tests):
        for number, frame_bytes in enumerate(test.build().frame_sizes()):
            why = _why_not(frame_bytes, bench.traffic.ip, smallest, largest)
            if why is not None:
                yield Problem(_position(root, index, number), *why)


def _why_not(frame_bytes: int, ip: int, smallest: int, largest: int | None) -> tuple[str, str] | None:
    """What is wrong with a frame size, and what to do; None where it can be sent."""
    if frame_bytes < smallest:
        room = f"{frame_bytes} bytes are too few for IPv{ip}, UDP and a signature: the minimum is {smallest} bytes"
        return room, f"use frames of {smallest} bytes or more" + (", or `traffic: {ip: 4}`" if ip == 6 else "")
    if largest is not None and frame_bytes > largest:
        mtu = largest - ETHERNET_HEADER_BYTES - FCS_BYTES
        room = f"{frame_bytes} bytes are too many for the lab's MTU of {mtu}: the maximum is {largest} bytes with FCS"
        return room, "use smaller frames, or raise the lab's `mtu`"
    return None


def _position(root: Node, test: int, number: int) -> Position:
    """Where the size stands; the whole test's place where the sizes are the method's defaults."""
    return root.position_of(("tests", test, "frame_bytes", number))
