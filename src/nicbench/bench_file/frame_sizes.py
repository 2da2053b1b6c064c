"""Frame sizes that cannot be sent: too small for the headers and the signature, too large for the link, or no size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile, Choice
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, quote, suggest
from nicbench.model.frame_size import IMIX, MAXIMUM, STREAMS, Size, SizeSweep
from nicbench.model.traffic import ETHERNET_HEADER_BYTES, Frames, StreamSpec, Traffic

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
    return tuple(frame_bytes for frame_bytes, _ in _cases(size, traffic))


def _cases(size: int | str, traffic: Traffic) -> Iterator[tuple[int, tuple[StreamSpec, ...]]]:
    """The same, each with the streams that send it; a sweep is known by its ends."""
    every = traffic.each_stream()
    found = size if isinstance(size, int) else traffic.mix(size)
    if isinstance(found, int):
        yield found, every
    elif found is not None and found.mean_of_streams_bytes is not None:
        for stream in every:
            for frame_bytes in sizes_of(stream.frame_bytes or 0, traffic):
                yield frame_bytes, (stream,)
    elif found is not None and found.sweep is not None:
        yield from ((frame_bytes, every) for frame_bytes in (found.sweep.frame_bytes[0], found.sweep.frame_bytes[-1]))
    elif found is not None:
        yield from ((one.frame_bytes, every) for one in found.sizes)


def planned_sizes(bench: BenchFile) -> tuple[Size, ...]:
    """Every frame size and mix of the tests, once, in the order in which they come."""
    written = dict.fromkeys(size for test in bench.tests for size in test.build().frame_sizes())
    sizes = (size if isinstance(size, int) else bench.traffic.mix(size) for size in written)
    return tuple(size for size in sizes if size is not None)


def smallest_frame_bytes(traffic: Traffic, streams: tuple[StreamSpec, ...] = ()) -> int:
    """The smallest frame that holds headers and signature of these streams, or of all: 64 bytes with IPv4 and UDP."""
    needed = max(_header_bytes(stream, traffic.ip) for stream in streams or traffic.each_stream())
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


def largest_frame_bytes(lab: Choice | None) -> int | None:
    """The largest frame the lab's links carry, None where only the machine knows."""
    if lab is None:
        return None
    mtu = getattr(lab.options, "mtu", None)
    largest: int | None = lab.plugin.largest_frame_bytes
    return mtu + ETHERNET_HEADER_BYTES + FCS_BYTES if isinstance(mtu, int) else largest


def frame_size_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """One problem for each frame size that cannot be sent."""
    for index, test in enumerate(bench.tests):
        every = test.build().frame_sizes()
        for number, size in enumerate(every):
            if size in every[:number]:
                what = f"{size} bytes are" if isinstance(size, int) else f"{quote(size)} is"
                message = f"{what} among the frame sizes of {quote(test.name)} twice"
                yield Problem(_position(root, index, number), message, "remove one of them")
                continue
            cases = list(_cases(size, bench.traffic))
            if not cases:
                yield Problem(_position(root, index, number), *_unknown(bench, str(size)))
            elif size != STREAMS and any(stream.frame_bytes is not None for stream in bench.traffic.streams):
                message = "the streams have frames of their own sizes, so a test can send no other"
                yield Problem(_position(root, index, number), message, f"write `frame_bytes: [{STREAMS}]`")
                break
            for frame_bytes, streams in cases:
                why = _why_not(bench, frame_bytes, streams)
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


def _unknown(bench: BenchFile, name: str) -> tuple[str, str]:
    """Why a word among the sizes says no size, and what to do."""
    sweep = bench.traffic.mixes.get(name)
    if name == MAXIMUM or isinstance(sweep, SizeSweep):
        end = "" if name == MAXIMUM else f", so {quote(name)} has no end"
        instead = "write the size in bytes" if name == MAXIMUM else f"write `mixes: {{{name}: {{largest: 1518}}}}`"
        return f"how large a frame of these ports can be is known to the ports alone{end}", instead
    if name == STREAMS:
        why = "the mix `streams` is made of the sizes and the shares of the streams, and not every stream has both"
        return why, "give each stream `share` and `frame_bytes`, or each test its own sizes"
    return f"there is no mix of sizes called {quote(name)}", suggest(name, [IMIX.name, *bench.traffic.mixes], "mix")


def _why_not(bench: BenchFile, frame_bytes: int, streams: tuple[StreamSpec, ...]) -> tuple[str, str] | None:
    """What is wrong with a frame size, and what to do; None where these streams can send it."""
    traffic = bench.traffic
    smallest, largest = smallest_frame_bytes(traffic, streams), largest_frame_bytes(bench.lab)
    if frame_bytes < smallest:
        stream = max(streams, key=lambda stream: _header_bytes(stream, traffic.ip))
        headers = headers_in_words(stream, traffic.ip)
        room = f"{frame_bytes} bytes are too few for {headers} and a signature: the minimum is {smallest} bytes"
        instead = ", or `traffic: {ip: 4}`" if traffic.ip == 6 else ""
        return room, f"use frames of {smallest} bytes or more{instead}"
    if largest is not None and frame_bytes > largest and not hasattr(bench.lab and bench.lab.options, "mtu"):
        room = f"{frame_bytes} bytes are too many for the ports of this lab: the maximum is {largest} bytes with FCS"
        return room, "use smaller frames"
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
    driver = bench.tester_kind().driver
    for name, port in bench.ports.items():
        if port.device is not None and port.host == "tester" and (port.driver or driver) == "net_af_xdp":
            return name
    return None


def _position(root: Node, test: int, number: int) -> Position:
    """Where the size stands; the whole test's place where the sizes are the method's defaults."""
    return root.position_of(("tests", test, "frame_bytes", number))
