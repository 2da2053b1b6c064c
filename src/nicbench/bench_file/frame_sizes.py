"""Frame sizes of a bench file: what `minimum` and `maximum` come to, and sizes that cannot be sent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from nicbench.bench_file.models import BenchFile, Choice, TestSpec
from nicbench.bench_file.reader import Node, WrongBenchFileError, read
from nicbench.bench_file.sections import Step
from nicbench.core.errors import BenchFileError, Position, Problem, nearest_name, quote, suggest
from nicbench.core.frame_size import CAPTURE, IMIX, MAXIMUM, MINIMUM, STREAMS, Size, SizeSweep, WeightedSize
from nicbench.core.frozen import frozen
from nicbench.core.headers import Tunnel, inner_version, tunnel_bytes, tunnel_words
from nicbench.core.lists import without_none
from nicbench.core.traffic import (
    ETHERNET_HEADER_BYTES,
    CaptureSizes,
    Frames,
    StreamSpec,
    Traffic,
    WrongCaptureError,
    read_sizes,
)
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host

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
# Live frames of the kernel: a page less its headroom and what it keeps behind each frame (protocol: `max_frame_bytes`).
LARGEST_XDP_FRAME_BYTES: Final = 3396
_IN_A_PAGE: Final = f"the kernel makes them in one page: the maximum is {LARGEST_XDP_FRAME_BYTES} bytes with FCS"


def sizes_of(size: int | str, traffic: Traffic) -> tuple[int, ...]:
    """The sizes in bytes that an entry of ``frame_bytes`` stands for; none for an unknown name."""
    if isinstance(size, int):
        return (size,)
    return tuple(frame_bytes for frame_bytes, _ in _cases(size, traffic))


def _cases(size: int | str, traffic: Traffic) -> Iterator[tuple[int, tuple[StreamSpec, ...]]]:
    """Each size of an entry of ``frame_bytes`` with the streams that send it; of a sweep only both its ends."""
    every = traffic.port_streams()
    found = size if isinstance(size, int) else traffic.mix(size)
    if isinstance(found, int):
        yield found, every
    elif found is not None and size in (STREAMS, CAPTURE):
        for stream in every:
            known = traffic.sizes_of_capture(stream)
            own = sizes_of(stream.frame_bytes or 0, traffic) if known is None else (known.smallest, known.largest)
            yield from ((frame_bytes, (stream,)) for frame_bytes in own)
    elif found is not None and found.sweep is not None:
        yield from ((frame_bytes, every) for frame_bytes in (found.sweep.frame_bytes[0], found.sweep.frame_bytes[-1]))
    elif found is not None:
        yield from ((one.frame_bytes, every) for one in found.sizes)


def list_frame_sizes(bench: BenchFile, *, of: Callable[[Any], bool] = lambda _: True) -> tuple[Size, ...]:
    """Every frame size and mix of the tests, or ``of`` some methods, each once, in the order in which they are sent."""
    methods = [method for test in bench.tests if of(method := test.build())]
    written = dict.fromkeys(size for method in methods for size in method.frame_sizes())
    sizes = (size if isinstance(size, int) else bench.traffic.mix(size) for size in written)
    return tuple(without_none(sizes))


def smallest_frame_bytes(traffic: Traffic, streams: tuple[StreamSpec, ...] = ()) -> int:
    """The smallest frame that holds headers and signature of these streams, or of all: 64 bytes with IPv4 and UDP."""
    every = streams or traffic.port_streams()
    needed = max(_header_bytes(stream, traffic.ip) + SIGNATURE_BYTES * stream.signature for stream in every)
    # Ethernet would fill up what leaves a tunnel smaller.
    behind = max(SMALLEST_ETHERNET_FRAME_BYTES - growth_bytes(stream, traffic.ip) for stream in every)
    return max(SMALLEST_ETHERNET_FRAME_BYTES, behind, needed + FCS_BYTES)


def growth_bytes(frames: Frames, ip: int) -> int:
    """How many bytes more frames have when they come back; negative where a tunnel ends in the DUT."""
    if frames.arrives is None:
        return 0
    return _bytes_within(frames.arrives, ip) - _bytes_within(frames.tunnels, ip)


def describe_headers(frames: Frames, ip: int) -> str:
    """The headers of the frames in words, as in "802.1Q, IPv4, UDP"."""
    tags = ("802.1Q",) if frames.vlan and len(frames.vlan) == 1 else ("802.1ad", "802.1Q") if frames.vlan else ()
    carrier: tuple[str, ...] = (f"IPv{ip}", "UDP", "VXLAN", "Ethernet", "IPv4") if frames.vxlan else (f"IPv{ip}",)
    if frames.tunnels:
        carrier = (*tunnel_words(frames.tunnels), f"IPv{inner_version(frames.tunnels, ip)}")
    raw = (f"{len(frames.raw) // 2} raw bytes",) if frames.raw else ()
    if frames.pcap is not None:
        return f"the frames of {frames.pcap}"
    if frames.raw_frame is not None:
        return f"a raw frame of {len(frames.raw_frame) // 2} bytes"
    return ", ".join((*tags, *carrier, frames.protocol.upper(), *raw))


def is_tagged(streams: Iterable[Frames]) -> bool:
    """Whether the frames of each stream have one VLAN tag, which the MTU of an interface does not count."""
    return all(len(stream.vlan or ()) == 1 for stream in streams)


def largest_frame_bytes(lab: Choice | None, streams: Iterable[Frames] | None = None) -> int | None:
    """The largest frame of ``streams`` that the lab's links carry, in bytes with FCS; None: only the machine knows it.

    Without ``streams`` the frames are taken to have no tag.
    """
    if lab is None:
        return None
    mtu = getattr(lab.options, "mtu", None)
    largest: int | None = lab.plugin.largest_frame_bytes
    tag_bytes = TAG_BYTES if streams is not None and is_tagged(streams) else 0
    return mtu + ETHERNET_HEADER_BYTES + tag_bytes + FCS_BYTES if isinstance(mtu, int) else largest


def check_frame_sizes(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields one problem for each frame size that cannot be sent."""
    for index, test in enumerate(bench.tests):
        every = test.build().frame_sizes()
        for number, size in enumerate(every):
            if size in every[:number]:
                what = f"{size} bytes are" if isinstance(size, int) else f"{quote(size)} is"
                message = f"{what} given twice among the frame sizes of {quote(test.name)}"
                yield Problem(_position(root, index, number), message, "remove one of them")
                continue
            cases = list(_cases(size, bench.traffic))
            if not cases and size in (STREAMS, CAPTURE) and bench.traffic.captures():
                continue  # they lie on another machine, or what is wrong with a stream is said of it
            if not cases:
                yield Problem(_position(root, index, number), *_explain_unknown(bench, str(size)))
            elif size != STREAMS and _has_own_sizes(bench.traffic):
                message = "the streams have frame sizes of their own, so a test can send no other"
                yield Problem(_position(root, index, number), message, f"write `frame_bytes: [{STREAMS}]`")
                break
            elif (other := _explain_other_than_captured(size, bench.traffic)) is not None:
                yield Problem(_position(root, index, number), *other)
                continue
            for frame_bytes, streams in cases:
                why = _explain_refusal(bench, frame_bytes, streams)
                if why is not None:
                    of_mix = "" if isinstance(size, int) else f"{quote(size)}: "
                    yield Problem(_position(root, index, number), of_mix + why[0], why[1])
                    break


def _has_own_sizes(traffic: Traffic) -> bool:
    """Whether each of several streams has sizes of its own, so that tests can name no others."""
    every = traffic.port_streams() if traffic.streams else ()
    return any(stream.frame_bytes is not None or stream.pcap is not None for stream in every)


def _explain_other_than_captured(size: int | str, traffic: Traffic) -> tuple[str, str] | None:
    """Message and next step for a size of a test that is not that of its frames, which are a capture's."""
    known = None if traffic.streams else traffic.sizes_of_capture(traffic)
    if known is None or size == CAPTURE:
        return None
    named = {size: 1} if isinstance(size, int) else _frames_of(traffic.mixes.get(size, IMIX.sizes))
    shares = {each: Fraction(frames, sum(named.values())) for each, frames in named.items()}
    if shares == {each: Fraction(frames, sum(known.frames_of.values())) for each, frames in known.frames_of.items()}:
        return None
    of_file = f"{known.smallest}" if known.smallest == known.largest else f"{known.smallest} to {known.largest}"
    other = str(size) if isinstance(size, int) else quote(size)
    mean = "" if known.smallest == known.largest else f" (mean {known.mean_bytes:.1f})"
    message = f"the frames of {traffic.pcap} have {of_file} bytes with FCS{mean}, and the test sends {other}"
    return message, "leave `frame_bytes` out: the sizes are then those of the capture"


def _frames_of(sizes: tuple[WeightedSize, ...] | SizeSweep) -> dict[int, int]:
    """How many frames of each size a mix has."""
    if isinstance(sizes, SizeSweep):
        return dict.fromkeys(sizes.frame_bytes, 1)
    return {one.frame_bytes: one.weight for one in sizes}


def _header_bytes(frames: Frames, ip: int) -> int:
    """The bytes of a frame before the signature."""
    if frames.pcap is not None:
        return 0
    if frames.raw_frame is not None:
        return len(frames.raw_frame) // 2
    tags = ETHERNET_HEADER_BYTES + TAG_BYTES * len(frames.vlan or ())
    outer = tags + _bytes_within(frames.tunnels, ip)
    carrier = UDP_HEADER_BYTES + VXLAN_BYTES + ETHERNET_HEADER_BYTES + IP_HEADER_BYTES[4] if frames.vxlan else 0
    transport = TCP_HEADER_BYTES if frames.protocol == "tcp" else UDP_HEADER_BYTES
    return outer + carrier + transport + len(frames.raw or "") // 2


def _bytes_within(tunnels: Sequence[Tunnel], ip: int) -> int:
    """The bytes of tunnels and of the IP header that they carry."""
    return tunnel_bytes(tunnels, ip) + IP_HEADER_BYTES[inner_version(tunnels, ip)]


def _explain_unknown(bench: BenchFile, name: str) -> tuple[str, str]:
    """Message and next step for a name among the sizes that stands for no size."""
    sweep = bench.traffic.mixes.get(name)
    if name == MAXIMUM or isinstance(sweep, SizeSweep):
        end = "" if name == MAXIMUM else f", so {quote(name)} has no end"
        instead = "write the size in bytes" if name == MAXIMUM else f"write `mixes: {{{name}: {{largest: 1518}}}}`"
        return f"only the ports themselves know how large their frames can be{end}", instead
    if name == STREAMS:
        why = "the mix `streams` needs the size and the share of every stream, and not every stream has both"
        return why, "give each stream `share` and `frame_bytes`, or each test its own sizes"
    if name == CAPTURE:
        why = "`capture` stands for the sizes of the traffic's capture, and there is none"
        return why, "write `traffic: {pcap: FILE}`, or a size in bytes; of several streams it is `streams`"
    known = [IMIX.name, *bench.traffic.mixes]
    step = f"write a size in bytes, or a mix: {', '.join(map(quote, known))}"
    close = nearest_name(name, known) is not None
    return f"there is no mix of sizes called {quote(name)}", suggest(name, known, "mix") if close else step


def _explain_refusal(bench: BenchFile, frame_bytes: int, streams: tuple[StreamSpec, ...]) -> tuple[str, str] | None:
    """Message and next step for a frame size that these streams cannot send; None where they can."""
    traffic = bench.traffic
    smallest, largest = smallest_frame_bytes(traffic, streams), largest_frame_bytes(bench.lab, streams)
    if frame_bytes < smallest:
        stream = max(streams, key=lambda stream: _header_bytes(stream, traffic.ip))
        headers = describe_headers(stream, traffic.ip)
        and_signature = " and a signature" if stream.signature else ""
        room = f"{frame_bytes} bytes are too few for {headers}{and_signature}: the minimum is {smallest} bytes"
        instead = ", or `traffic: {ip: 4}`" if traffic.ip == 6 else ""
        return room, f"use frames of {smallest} bytes or more{instead}"
    if largest is not None and frame_bytes > largest and not hasattr(bench.lab and bench.lab.options, "mtu"):
        room = f"{frame_bytes} bytes are too many for the ports of this lab: the maximum is {largest} bytes with FCS"
        return room, "use smaller frames"
    grown = max(frame_bytes + growth_bytes(stream, traffic.ip) for stream in streams)
    if largest is not None and frame_bytes <= largest < grown:
        room = f"frames of {frame_bytes} bytes come back with {grown}, and the lab's ports take at most {largest}"
        return room, f"use frames of {largest - grown + frame_bytes} bytes or fewer, or raise the lab's `mtu`"
    if largest is not None and frame_bytes > largest:
        mtu = getattr(bench.lab and bench.lab.options, "mtu", None)
        room = f"{frame_bytes} bytes are too many for the lab's MTU of {mtu}: the maximum is {largest} bytes with FCS"
        return room, "use smaller frames, or raise the lab's `mtu`"
    af_xdp = _af_xdp_port(bench)
    if af_xdp is not None and frame_bytes > LARGEST_AF_XDP_FRAME_BYTES:
        room = f"{frame_bytes} bytes are too many for AF_XDP at port {quote(af_xdp)}, which holds a frame in one page: "
        return (
            f"{room}the maximum is {LARGEST_AF_XDP_FRAME_BYTES} bytes with FCS",
            "use smaller frames, `driver: net_af_packet`, or the card's own driver",
        )
    if bench.tester_kind().driver == "xdp" and frame_bytes > LARGEST_XDP_FRAME_BYTES:
        return (
            f"{frame_bytes} bytes are too many for a program in the kernel: {_IN_A_PAGE}",
            "use smaller frames, or leave `driver: xdp` out",
        )
    return None


def explain_no_room(bench: BenchFile, driver: str) -> str | None:
    """Why `xdp` or `net_af_xdp` cannot make the tests' frames for want of room; None where it can."""
    sizes = (size for test in bench.tests for size in test.build().frame_sizes())
    largest = max((each for size in sizes for each in sizes_of(size, bench.traffic)), default=0)
    most, page = (
        (LARGEST_XDP_FRAME_BYTES, _IN_A_PAGE)
        if driver == "xdp"
        else (
            LARGEST_AF_XDP_FRAME_BYTES,
            f"AF_XDP holds a frame in one page: the maximum is {LARGEST_AF_XDP_FRAME_BYTES}",
        )
    )
    return None if largest <= most else f"frames have up to {largest} bytes, and {page}"


def _af_xdp_port(bench: BenchFile) -> str | None:
    """The name of a tester's port that is to be driven by AF_XDP, None without one; a lab's MTU bounds its frames.

    Where the run chooses the driver, it chooses one that has room.
    """
    tester = bench.tester_kind()
    driver = None if tester.leaves_driver else tester.driver
    for name, port in bench.ports.items():
        if port.device is not None and port.host == "tester" and (port.driver or driver) == "net_af_xdp":
            return name
    return None


def _position(root: Node, test: int, number: int) -> Position:
    """Where the size stands in the file; the position of the test where the sizes are the method's defaults."""
    return root.position_of(("tests", test, "frame_bytes", number))


# What `minimum` and `maximum` among frame sizes, and the open ends of sweeps, come to for the frames of this traffic.


@frozen
class Extremes:
    """Frame sizes in bytes: the smallest that holds headers and signature, the largest of the ports (None: unknown)."""

    smallest: int
    largest: int | None
    of_captures: str | None
    """The size of a test that names none, where the frames come from captures."""

    @classmethod
    def of(cls, traffic: Traffic, lab: Choice | None) -> Extremes:
        """The extremes of this traffic in this lab; without a lab the largest frame is unknown."""
        of_captures = (STREAMS if traffic.streams else CAPTURE) if traffic.captures() else None
        return cls(smallest_frame_bytes(traffic), largest_frame_bytes(lab), of_captures)

    def resolve_traffic(self, traffic: Traffic) -> Traffic:
        """The traffic with both ends filled in for every sweep, as far as they are known."""
        mixes = {
            name: sizes.fill_ends(self.smallest, self.largest) if isinstance(sizes, SizeSweep) else sizes
            for name, sizes in traffic.mixes.items()
        }
        return traffic.replace(mixes=mixes)

    def resolve_test(self, test: TestSpec) -> TestSpec:
        """The test with numbers in place of `minimum` and `maximum` among its frame sizes, as far as they are known."""
        written: Iterable[Any] = getattr(test.options, "frame_bytes", ())
        if self.of_captures is not None and written and "frame_bytes" not in test.options.model_fields_set:
            return replace(test, options=test.options.replace(frame_bytes=(self.of_captures,)))
        numbers = {MINIMUM: self.smallest, MAXIMUM: self.largest or MAXIMUM}
        if not any(size in numbers for size in written):
            return test
        sizes = tuple(numbers.get(size, size) for size in written)
        return replace(test, options=test.options.replace(frame_bytes=sizes))


_TESTER: Final = "tester"
_NEXT_STEP: Final = "give a capture of whole Ethernet frames, pcap or pcapng, on the tester's host"


def with_sizes(bench: BenchFile, known: Mapping[str, CaptureSizes]) -> BenchFile:
    """The configuration that knows the sizes of its captures; a test of one with a single size has that size."""
    traffic = bench.traffic.with_captures(known)
    sizes = None if traffic.streams else traffic.sizes_of_capture(traffic)
    if sizes is None or sizes.smallest < sizes.largest:
        return replace(bench, traffic=traffic)
    return replace(bench, traffic=traffic, tests=tuple(_of_one_size(test, sizes.smallest) for test in bench.tests))


def _of_one_size(test: TestSpec, frame_bytes: int) -> TestSpec:
    if CAPTURE not in getattr(test.options, "frame_bytes", ()):
        return test
    return replace(test, options=test.options.replace(frame_bytes=(frame_bytes,)))


def read_captures(bench: BenchFile, root: Node, problems: list[Problem]) -> BenchFile:
    """The configuration with the sizes of the captures on this machine; what is wrong with them goes to ``problems``.

    Those of a tester on another machine are read when the run begins.
    """
    if not _is_tester_here(bench):
        return bench
    places = dict(_places(bench))
    known: dict[str, CaptureSizes] = {}
    for place, file in places.items():
        try:
            known[file] = known.get(file) or read_sizes(Path(file))
        except OSError as error:
            message = f"the capture {file} cannot be read: {error.strerror}"
            problems.append(Problem(root.position_of(place), message, _NEXT_STEP))
        except WrongCaptureError as error:
            problems.append(Problem(root.position_of(place), f"the capture {file} {error}", _NEXT_STEP))
    problems += _check_largest(bench, root, places, known)
    return with_sizes(bench, known)


async def settle_captures(bench: BenchFile, tester: Host) -> BenchFile:
    """The configuration with the sizes of captures that lie on another machine; WrongBenchFileError as ever."""
    missing = [file for file in bench.traffic.captures() if file not in bench.traffic.known_captures]
    known = dict(bench.traffic.known_captures)
    for file in missing:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "capture"
            await tester.get(file, copy)
            try:
                known[file] = read_sizes(copy)
            except WrongCaptureError as error:
                message = f"the capture {file} {error}"
                raise BenchFileError(message, place=f"{bench.path}, traffic", next_step=_NEXT_STEP) from error
    if not missing:
        return bench
    settled = with_sizes(bench, known)
    root = read(bench.source.encode(), str(bench.path))
    if problems := list(check_frame_sizes(settled, root)):
        raise WrongBenchFileError(str(bench.path), problems)
    return settled


def _is_tester_here(bench: BenchFile) -> bool:
    """Whether the machine that sends is this one, so far as is known before a host is touched."""
    if bench.lab is not None:
        return bench.lab.on is None
    tester = build_hosts(bench.hosts).get(_TESTER)
    return tester is None or tester.shares_files


def _places(bench: BenchFile) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yields where each capture is named, in the traffic, its streams and the tests."""
    if bench.traffic.pcap is not None:
        yield ("traffic", "pcap"), bench.traffic.pcap
    for index, stream in enumerate(bench.traffic.streams):
        if stream.pcap is not None:
            yield ("traffic", "streams", index, "pcap"), stream.pcap
    for index, test in enumerate(bench.tests):
        captures: Any = getattr(test.options, "captures", ())
        for number, capture in enumerate(captures):
            yield ("tests", index, "captures", number, "file"), capture.file


def _check_largest(
    bench: BenchFile, root: Node, places: Mapping[tuple[Step, ...], str], known: Mapping[str, CaptureSizes]
) -> Iterator[Problem]:
    """Yields each capture with a frame that is larger than the lab's links carry."""
    most = largest_frame_bytes(bench.lab)
    for place, file in places.items():
        sizes = known.get(file)
        if most is not None and sizes is not None and sizes.largest > most:
            message = (
                f"frame {sizes.largest_frame} of {quote(file)} has {sizes.largest} bytes with FCS, and the lab's ports "
                f"take {most}"
            )
            yield Problem(root.position_of(place), message, "raise the lab's `mtu`, or leave such frames out")
