"""Frame sizes that cannot be sent: too small for the headers and the signature, too large for the link, or no size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, quote, suggest
from nicbench.model.frame_size import IMIX, Size
from nicbench.model.traffic import ETHERNET_HEADER_BYTES, Frames, Traffic

FCS_BYTES: Final = 4
TAG_BYTES: Final = 4
VXLAN_BYTES: Final = 8
UDP_HEADER_BYTES: Final = 8
TCP_HEADER_BYTES: Final = 20
SIGNATURE_BYTES: Final = 16
IP_HEADER_BYTES: Final = {4: 20, 6: 40}
SMALLEST_ETHERNET_FRAME_BYTES: Final = 64  # IEEE 802.3
# DPDK 22.11 has no multi-buffer for AF_XDP: a frame lies in one page, less the headroom and what DPDK keeps there.
LARGEST_AF_XDP_FRAME_BYTES: Final = 3516


def sizes_of(size: int | str, traffic: Traffic) -> tuple[int, ...]:
    """The sizes that an entry of ``frame_bytes`` stands for; none for an unknown name."""
    if isinstance(size, int):
        return (size,)
    mix = traffic.mix(size)
    return tuple(one.frame_bytes for one in mix.sizes) if mix else ()


def planned_sizes(bench: BenchFile) -> tuple[Size, ...]:
    """Every frame size and mix of the tests, once, in the order in which they come."""
    written = dict.fromkeys(size for test in bench.tests for size in test.build().frame_sizes())
    sizes = (size if isinstance(size, int) else bench.traffic.mix(size) for size in written)
    return tuple(size for size in sizes if size is not None)


def smallest_frame_bytes(traffic: Traffic) -> int:
    """The smallest frame that holds the headers and the signature of every stream: 64 bytes with IPv4 and UDP."""
    needed = max(_header_bytes(stream, traffic.ip) for stream in traffic.each_stream())
    return max(SMALLEST_ETHERNET_FRAME_BYTES, needed + SIGNATURE_BYTES + FCS_BYTES)


def headers_in_words(frames: Frames, ip: int) -> str:
    """What the frames are made of: "802.1Q, IPv4, UDP"."""
    tags = ("802.1Q",) if frames.vlan and len(frames.vlan) == 1 else ("802.1ad", "802.1Q") if frames.vlan else ()
    carrier = (f"IPv{ip}", "UDP", "VXLAN", "Ethernet", "IPv4") if frames.vxlan else (f"IPv{ip}",)
    raw = (f"{len(frames.raw) // 2} raw bytes",) if frames.raw else ()
    if frames.pcap is not None:
        return f"the frames of {frames.pcap}"
    if frames.raw_frame is not None:
        return f"a raw frame of {len(frames.raw_frame) // 2} bytes"
    return ", ".join((*tags, *carrier, frames.protocol.upper(), *raw))


def largest_frame_bytes(bench: BenchFile) -> int | None:
    """The largest frame the lab's links carry, None where only the machine knows."""
    mtu = getattr(bench.lab.options, "mtu", None) if bench.lab else None
    return mtu + ETHERNET_HEADER_BYTES + FCS_BYTES if isinstance(mtu, int) else None


def frame_size_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """One problem for each frame size that cannot be sent."""
    for index, test in enumerate(bench.tests):
        for number, size in enumerate(test.build().frame_sizes()):
            sizes = sizes_of(size, bench.traffic)
            if not sizes:
                known = [IMIX.name, *bench.traffic.mixes]
                message = f"there is no mix of sizes called {quote(size)}"
                yield Problem(_position(root, index, number), message, suggest(str(size), known, "mix"))
            for frame_bytes in sizes:
                why = _why_not(bench, frame_bytes)
                if why is not None:
                    of_mix = "" if isinstance(size, int) else f"{quote(size)}: "
                    yield Problem(_position(root, index, number), of_mix + why[0], why[1])
                    break


def _header_bytes(frames: Frames, ip: int) -> int:
    """Everything before the signature."""
    if frames.pcap is not None:
        return 0
    if frames.raw_frame is not None:
        return len(frames.raw_frame) // 2
    outer = ETHERNET_HEADER_BYTES + TAG_BYTES * len(frames.vlan or ()) + IP_HEADER_BYTES[ip]
    carrier = UDP_HEADER_BYTES + VXLAN_BYTES + ETHERNET_HEADER_BYTES + IP_HEADER_BYTES[4] if frames.vxlan else 0
    transport = TCP_HEADER_BYTES if frames.protocol == "tcp" else UDP_HEADER_BYTES
    return outer + carrier + transport + len(frames.raw or "") // 2


def _why_not(bench: BenchFile, frame_bytes: int) -> tuple[str, str] | None:
    """What is wrong with a frame size, and what to do; None where it can be sent."""
    traffic = bench.traffic
    smallest, largest = smallest_frame_bytes(traffic), largest_frame_bytes(bench)
    if frame_bytes < smallest:
        stream = max(traffic.each_stream(), key=lambda stream: _header_bytes(stream, traffic.ip))
        headers = headers_in_words(stream, traffic.ip)
        room = f"{frame_bytes} bytes are too few for {headers} and a signature: the minimum is {smallest} bytes"
        instead = ", or `traffic: {ip: 4}`" if traffic.ip == 6 else ""
        return room, f"use frames of {smallest} bytes or more{instead}"
    if largest is not None and frame_bytes > largest:
        mtu = largest - ETHERNET_HEADER_BYTES - FCS_BYTES
        room = f"{frame_bytes} bytes are too many for the lab's MTU of {mtu}: the maximum is {largest} bytes with FCS"
        return room, "use smaller frames, or raise the lab's `mtu`"
    af_xdp = _af_xdp_port(bench)
    if af_xdp is not None and frame_bytes > LARGEST_AF_XDP_FRAME_BYTES:
        room = f"{frame_bytes} bytes are too many for AF_XDP at port {quote(af_xdp)}, which holds a frame in one page: "
        return (
            f"{room}the maximum is {LARGEST_AF_XDP_FRAME_BYTES} bytes with FCS",
            "use smaller frames, `driver: net_af_packet`, or the card's own driver",
        )
    return None


def _af_xdp_port(bench: BenchFile) -> str | None:
    """The name of a port that AF_XDP drives; a lab's own MTU bounds its frames already."""
    for name, port in bench.ports.items():
        if port.device is not None and port.host == "tester" and (port.driver or bench.tester.driver) == "net_af_xdp":
            return name
    return None


def _position(root: Node, test: int, number: int) -> Position:
    """Where the size stands; the whole test's place where the sizes are the method's defaults."""
    return root.position_of(("tests", test, "frame_bytes", number))
