"""The frames of a bench file's tests, and what a tester must be able to do to send them."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import (
    CAPTURE,
    IMIX,
    STREAMS,
    FrameSize,
    Mix,
    MixName,
    MixSizes,
    Size,
    SizeSweep,
    check_mix,
    mean_bytes,
)
from nicbench.core.frozen import frozen
from nicbench.core.headers import LARGEST_PORT, Fields, Tunnels, Vxlan
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import FramesPerSecond, Ratio, Seconds

MOST_FLOWS: Final = 1_000_000
"""The most flows of a stream."""

# The sizes of the frames of a capture, classic pcap or pcapng; the packet engine reads the frames themselves.
#
# Frames may be captured with their FCS: the file says so, or each of them ends with the checksum of the rest, as in the
# captures of ``nicbench serve``. These bytes are no part of what is sent again, which gets an FCS of its own.


LARGEST_FILE_BYTES: Final = 256 * 2**20
"""The largest file that the engine reads."""
_FCS_BYTES: Final = 4
_SMALLEST_FRAME_BYTES: Final = 64  # IEEE 802.3: what is shorter is filled up on the wire
_ETHERNET_HEADER_BYTES: Final = 14
_ETHERNET: Final = 1
_PCAP: Final = {
    struct.pack(order + "I", magic): order for order in "<>" for magic in (0xA1B2C3D4, 0xA1B23C4D)
}  # microseconds, nanoseconds
_PACKED: Final = {
    magic: f"is packed: unpack it with {program}"
    for magic, program in ((b"\x1f\x8b", "gunzip"), (b"\x28\xb5", "unzstd"), (b"\xfd7", "unxz"))
}
_FCS_OPTION: Final = 13  # if_fcslen
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_SECTION_ORDER: Final = {struct.pack(order + "I", 0x1A2B3C4D): order for order in "<>"}


class WrongCaptureError(ValueError):
    """What is wrong with a capture; the message completes a sentence after the name of the file."""


@frozen
class CaptureSizes:
    """How many frames of each size a capture has, in bytes as they are sent, FCS included."""

    frames_of: Mapping[int, int]
    largest_frame: int
    """The number of the first frame of the largest size, from 1."""

    @property
    def smallest(self) -> int:
        """The smallest size."""
        return min(self.frames_of)

    @property
    def largest(self) -> int:
        """The largest size."""
        return max(self.frames_of)

    @property
    def mean_bytes(self) -> float:
        """The mean size."""
        return sum(size * frames for size, frames in self.frames_of.items()) / sum(self.frames_of.values())


def read_sizes(path: Path) -> CaptureSizes:
    """The sizes of the capture at ``path``; OSError where it cannot be read, WrongCaptureError for any other file."""
    with path.open("rb") as stream:
        content = stream.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise WrongCaptureError(f"is larger than {LARGEST_FILE_BYTES // 2**20} MiB")
    return sizes_of_capture(content)


def sizes_of_capture(content: bytes) -> CaptureSizes:
    """The sizes of the frames of a file; WrongCaptureError where it is not a capture of whole Ethernet frames."""
    order = _PCAP.get(content[:4])
    if order is None and struct.pack(">I", _SECTION) != content[:4]:
        raise WrongCaptureError(_PACKED.get(content[:2], "is neither pcap nor pcapng"))
    lengths: list[int] = []
    fcs_are_undeclared = True
    try:
        for frame in _frames_of_pcapng(content) if order is None else _frames_of_pcap(content, order):
            _check(len(lengths) + 1, frame)
            lengths.append(frame.original - frame.fcs_bytes)
            fcs_are_undeclared &= not frame.fcs_bytes and _ends_with_fcs(content, frame)
    except struct.error as error:
        raise WrongCaptureError(f"is broken after frame {len(lengths)}") from error
    if not lengths:
        raise WrongCaptureError("holds no frame")
    sent = 0 if fcs_are_undeclared else _FCS_BYTES
    sizes = [max(_SMALLEST_FRAME_BYTES, length + sent) for length in lengths]
    return CaptureSizes(Counter(sizes), sizes.index(max(sizes)) + 1)


class _Frame(NamedTuple):
    """Where the bytes of a frame begin, how many the file has, how many it had, and how many of them are its FCS.

    What the file has beyond the frame's own length is filling.
    """

    at: int
    captured: int
    original: int
    link: int
    fcs_bytes: int


class _Interface(NamedTuple):
    link: int
    fcs_bytes: int


def _check(number: int, frame: _Frame) -> None:
    captured, original, without_fcs = frame.captured, frame.original, frame.original - frame.fcs_bytes
    if frame.link != _ETHERNET:
        raise WrongCaptureError(f"holds no Ethernet: frame {number} is of the link type {frame.link}")
    if captured < original:
        raise WrongCaptureError(f"is cut: of frame {number} it has {captured} of {original} bytes")
    if without_fcs < _ETHERNET_HEADER_BYTES:
        raise WrongCaptureError(
            f"holds no Ethernet: frame {number} has {without_fcs} bytes, and a header alone {_ETHERNET_HEADER_BYTES}"
        )


def _ends_with_fcs(content: bytes, frame: _Frame) -> bool:
    """Whether the last bytes of a frame are the checksum of those before (IEEE 802.3 section 3.2.9)."""
    end = frame.at + frame.original - _FCS_BYTES
    if frame.original < _ETHERNET_HEADER_BYTES + _FCS_BYTES:
        return False
    return struct.pack("<I", zlib.crc32(memoryview(content)[frame.at : end])) == content[end : end + _FCS_BYTES]


def _frames_of_pcap(content: bytes, order: str) -> Iterator[_Frame]:
    """Yields the frames; the link type has the length of the FCS in its upper bits (draft-ietf-opsawg-pcap)."""
    (link,) = struct.unpack_from(order + "I", content, 20)
    fcs_bytes = 2 * (link >> 28) if link & 0x0400_0000 else 0
    record, place = struct.Struct(order + "8xII"), 24
    while place < len(content):
        captured, original = record.unpack_from(content, place)
        place += record.size + captured
        if place > len(content):
            raise struct.error
        yield _Frame(place - captured, captured, original, link & 0xFFFF, fcs_bytes)


def _fcs_bytes_of_interface(content: bytes, order: str, place: int, end: int) -> int:
    """The length of the FCS on an interface, by its options; some write it in bits, and some in bytes."""
    while place + 4 <= end:
        option, length = struct.unpack_from(order + "HH", content, place)
        if option == _FCS_OPTION and length == 1:
            said = content[place + 4]
            return said if said < 8 else said // 8
        place += 4 + length + -length % 4
    return 0


def _frames_of_pcapng(content: bytes) -> Iterator[_Frame]:
    """Yields the same of the blocks of packets (draft-ietf-opsawg-pcapng)."""
    order, place = "<", 0
    interfaces: list[_Interface] = []
    while place < len(content):
        if content[place : place + 4] == struct.pack(">I", _SECTION):
            order = _SECTION_ORDER.get(content[place + 8 : place + 12], order)
            interfaces = []
        kind, length = struct.unpack_from(order + "II", content, place)
        if length < 12 or place + length > len(content):
            raise struct.error
        if kind == _INTERFACE:
            (link,) = struct.unpack_from(order + "H", content, place + 8)
            interfaces.append(_Interface(link, _fcs_bytes_of_interface(content, order, place + 16, place + length - 4)))
        elif kind in (_PACKET, _OLD_PACKET):
            number = struct.unpack_from(order + ("I" if kind == _PACKET else "H"), content, place + 8)[0]
            captured, original = struct.unpack_from(order + "II", content, place + 20)
            if number >= len(interfaces):
                raise struct.error
            yield _Frame(place + 28, captured, original, *interfaces[number])
        elif kind == _SIMPLE_PACKET:
            (original,) = struct.unpack_from(order + "I", content, place + 8)
            if not interfaces:
                raise struct.error
            yield _Frame(place + 12, min(original, length - 16), original, *interfaces[0])
        place += length


MOST_STREAMS: Final = 16
ETHERNET_HEADER_BYTES: Final = 14

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""A name given by the bench file's author, which becomes part of trial keys and file names."""

VlanId = Annotated[int, Field(ge=0, le=4095)]


def _tags(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _whole_bytes(text: str) -> str:
    digits = "".join(text.split())
    if len(digits) % 2 or any(character not in "0123456789abcdefABCDEF" for character in digits):
        raise ValueError("these are no bytes: write pairs of hexadecimal digits")
    return digits.lower()


def _has_an_ethernet_header(digits: str) -> str:
    if len(digits) < 2 * ETHERNET_HEADER_BYTES:
        raise ValueError(f"{len(digits) // 2} bytes are no frame: an Ethernet header alone has {ETHERNET_HEADER_BYTES}")
    return digits


Tags = Annotated[tuple[VlanId, ...], BeforeValidator(_tags), Field(min_length=1, max_length=2)]
"""One identifier (802.1Q) or two, the outer one first (802.1ad, QinQ)."""

HexBytes = Annotated[str, AfterValidator(_whole_bytes)]


class FilterBytes(Frozen):
    """Bytes that a frame has at a place; it is counted where it has all of them."""

    at: int = Field(ge=0, le=9000)
    """The place of the first byte, from 0, the Ethernet header included."""
    hex: HexBytes = Field(min_length=2)
    """The bytes in hexadecimal, in quotes."""
    mask: HexBytes | None = None
    """The bits that count, as many bytes; without it all."""

    @model_validator(mode="after")
    def _is_as_long(self) -> FilterBytes:
        if self.mask is not None and len(self.mask) != len(self.hex):
            raise ValueError(f"{len(self.hex) // 2} bytes need a mask of as many, not {len(self.mask) // 2}")
        return self


class Frames(Frozen):
    """The content of one stream's frames."""

    protocol: Literal["udp", "tcp"] = "udp"
    """`tcp` sends headers with correct checksums; no connections are made."""
    flows: int = Field(default=256, ge=1, le=MOST_FLOWS)
    """Number of flows. They differ in addresses, and in the `fields` for which that is declared."""
    addresses: int | None = Field(default=None, ge=1, le=65_536)
    """The most addresses that flows have at each end, where they are to differ in `fields` alone, or more."""
    source_port: int = Field(default=49_184, ge=1, le=LARGEST_PORT)
    """The first source port."""
    destination_port: int = Field(default=7, ge=1, le=LARGEST_PORT)  # RFC 2544 C.2.6.4: UDP Echo
    """The destination port; the default is the one of RFC 2544 C.2.6.4."""
    hop_limit: int = Field(default=64, ge=2, le=255)
    """Hop limit of IPv6, time to live of IPv4."""
    vlan: Tags | None = None
    """`100`: one 802.1Q tag. `[200, 100]`: two tags (QinQ), the outer one of 802.1ad."""
    vxlan: Vxlan | None = None
    """`{vni: 5000}`: the frames carry Ethernet, IPv4 and the protocol inside VXLAN. The DUT forwards by the outer
    header.
    """
    tunnels: Tunnels = ()
    """Headers of tunnels around the frames, outermost first: `[{kind: gre, key: 7}]`."""
    arrives: Tunnels | None = None
    """The headers of tunnels in which the frames come back, where one begins or ends in the DUT; `[]`: in none."""
    udp_checksum: bool = False
    """A UDP checksum over IPv4 too. Over IPv6 there always is one."""
    fields: Fields = Fields()
    """Header fields by name: a fixed value, or one for each flow."""
    raw: HexBytes | None = None
    """Bytes in hexadecimal between the headers and the signature."""
    raw_frame: Annotated[HexBytes, AfterValidator(_has_an_ethernet_header)] | None = None
    """The beginning of every frame in hexadecimal, from the Ethernet header on, in quotes. It replaces all headers and
    is sent as it stands, followed by the signature.
    """
    signature: bool = True
    """With `raw_frame` or `pcap`, `false` sends the frames as they are. They are recognised by their bytes, without
    latency.
    """
    filter: tuple[FilterBytes, ...] = Field(default=(), max_length=8)
    """With `raw_frame` and `signature: false`: by which bytes a frame that comes back is counted. Without it by all but
    those that a router changes.
    """
    pcap: str | None = Field(default=None, min_length=1)
    """A capture (pcap or pcapng) on the tester's host that replaces all headers. Its frames are sent one after
    another, with the sizes that they have there.
    """
    signature_offset: int | None = Field(default=None, ge=14, le=65_535)
    """With `pcap`: where in each frame the signature is written; without it at the end."""
    burst_frames: int | None = Field(default=None, ge=1, le=2**20)
    """Frames that are sent back to back; then none until the mean rate allows the next burst. Without it frames are
    evenly spaced.
    """
    frames: int | None = Field(default=None, ge=1, le=10**12)
    """The most frames of each stream in a trial. When every stream has sent them, the transmission ends."""

    def is_plain(self) -> bool:
        """Whether the frames have only Ethernet, IP and UDP headers."""
        return (
            self.protocol == "udp"
            and not self.udp_checksum
            and not self.fields.given_fields()
            and not self.tunnels
            and not self.arrives
            and all(part is None for part in (self.vlan, self.vxlan, self.raw, self.raw_frame, self.pcap))
        )


class StreamSpec(Frames):
    """One of several streams of a port; options that it omits are those of the traffic.

    ``share`` is of the load that remains to the port after the streams with a ``rate`` of their own.
    """

    name: Name
    """The name of the stream."""
    frame_bytes: FrameSize | None = None
    """The frame size or mix of this stream. All streams have one, or a `pcap`, or none has; the tests then name
    `streams` for a size. Not with `rate`.
    """
    share: Ratio | None = None
    """The share of the port's load after the streams with a `rate`. All shares add up to 100 %."""
    rate: Annotated[FramesPerSecond, Field(gt=0.0, le=1e9)] | None = None
    """A frame rate that the stream keeps at every load. Give this or `share`."""

    @model_validator(mode="after")
    def _has_one_of_them(self) -> StreamSpec:
        if (self.share is None) == (self.rate is None):
            raise ValueError(f"the stream {self.name} needs either a `share` of the load or a `rate` of its own")
        return self


class Learning(Frozen):
    """How the DUT is taught the flows before a trial counts anything (RFC 2544 section 23: learning frames)."""

    flows: Literal["all", "few"] = "all"
    """`all`: frames of every flow. `few`: 8 frames of each way, which only prove that it passes any."""
    rate: Annotated[FramesPerSecond, Field(gt=0.0, le=1e9)] = 10_000.0
    """Rate of each sending port, divided among its streams by their flows. Lower it for a DUT that sets up flows
    slowly.
    """
    attempts: int = Field(default=3, ge=1, le=8)
    """The most attempts. Each sends twice as many frames of every flow as the one before."""
    again_after: Annotated[Seconds, Field(ge=0.0, le=86_400.0)] = 10.0
    """A flow without a frame for longer is taught again before the next trial. Keep it shorter than the shortest
    timeout of the DUT; `0 s` teaches before every trial.
    """


class Traffic(Frames):
    """The frames of every test. Flows differ in addresses, and in the fields for which that is declared."""

    ip: Literal[4, 6] = 4
    """The IP version."""
    bidirectional: bool = False
    """Both directions at once (RFC 2285 section 3.2.2)."""
    pattern: Pattern = Pattern.ONE_TO_ONE
    """Which port sends to which."""
    broadcasts: Annotated[Ratio, Field(gt=0.0, le=0.5)] | None = None
    """The share of each port's frames that are broadcasts, evenly spread (RFC 2544 section 11.1: `1 %`). A load
    includes them; loss and latency are of the other frames alone. For `throughput`, `latency` and `frame-loss`.
    """
    learning: Learning = Learning()
    """How the DUT is taught the flows before a trial."""
    mixes: dict[MixName, MixSizes] = Field(default_factory=dict)
    """Mixes of frame sizes, by name. `imix` (7 x 64, 4 x 570, 1 x 1518 bytes) always exists."""
    streams: tuple[StreamSpec, ...] = Field(default=(), max_length=MOST_STREAMS)
    """Several streams on each port; without it there is one."""
    _captures: Mapping[str, CaptureSizes] = PrivateAttr(default_factory=dict)

    @field_validator("streams")
    @classmethod
    def _shares_are_the_whole(cls, streams: tuple[StreamSpec, ...]) -> tuple[StreamSpec, ...]:
        shares = [stream.share for stream in streams if stream.share is not None]
        if streams and not shares:
            raise ValueError(
                "all of them have a `rate` of their own: one at least needs a `share`, or no load could vary"
            )
        if streams and abs(sum(shares) - 1.0) > 1e-9:
            raise ValueError(f"their shares add up to {100 * sum(shares):g} %: make them 100 %")
        names = [stream.name for stream in streams]
        if len(set(names)) < len(names):
            raise ValueError("two streams have the same name")
        return streams

    @model_validator(mode="after")
    def _mixes_are_whole(self) -> Traffic:
        for name, sizes in self.mixes.items():
            check_mix(name, sizes)
        return self

    def port_streams(self) -> tuple[StreamSpec, ...]:
        """The streams of one port, every key filled in: one stream with the whole rate where none are declared."""
        own = {name: getattr(self, name) for name in Frames.model_fields}
        if not self.streams:
            return (StreamSpec.model_construct(name="all", share=1.0, **own),)  # checked when the traffic was read
        return tuple(
            StreamSpec(**{**own, **{name: getattr(stream, name) for name in stream.model_fields_set}})
            for stream in self.streams
        )

    def mix(self, name: str) -> Mix | None:
        """Returns the mix of this name: from the bench file, ``imix``, ``streams`` where streams have own sizes, or
        ``capture`` where those of the frames are known.
        """
        if name == STREAMS:
            return self._mix_of_streams()
        if name == CAPTURE:
            known = None if self.streams else self.sizes_of_capture(self)
            return None if known is None else Mix(name=CAPTURE, mean_of_capture_bytes=known.mean_bytes)
        sizes = self.mixes.get(name)
        if isinstance(sizes, SizeSweep):
            return Mix(name=name, sweep=sizes) if sizes.frame_bytes else None
        if sizes is not None:
            return Mix(name=name, sizes=sizes)
        return IMIX if name == IMIX.name else None

    def with_captures(self, sizes: Mapping[str, CaptureSizes]) -> Self:
        """Returns the traffic that knows the sizes of the frames of these files."""
        known = self.model_copy()
        known._captures = sizes
        return known

    @property
    def known_captures(self) -> Mapping[str, CaptureSizes]:
        """Returns the sizes of the captures that were read, by file."""
        return self._captures

    def captures(self) -> tuple[str, ...]:
        """Returns the files whose frames are sent, each once."""
        return tuple(dict.fromkeys(stream.pcap for stream in self.port_streams() if stream.pcap is not None))

    def sizes_of_capture(self, frames: Frames) -> CaptureSizes | None:
        """Returns the sizes of the capture that is sent; None without a capture, and before it was read."""
        return None if frames.pcap is None else self._captures.get(frames.pcap)

    def size_of(self, stream: StreamSpec) -> Size | None:
        """Returns the stream's own size; None where it has none, names an unknown mix, or its capture is not read."""
        if stream.pcap is not None:
            known = self.sizes_of_capture(stream)
            return None if known is None else Mix(name=CAPTURE, mean_of_capture_bytes=known.mean_bytes)
        return self.mix(stream.frame_bytes) if isinstance(stream.frame_bytes, str) else stream.frame_bytes

    def _mix_of_streams(self) -> Mix | None:
        every = self.port_streams() if self.streams else ()
        parts = [(stream.share, self.size_of(stream)) for stream in every if stream.frame_bytes != STREAMS]
        if not parts or len(parts) < len(self.streams):
            return None
        mean = 0.0
        for share, size in parts:
            if share is None or size is None:
                return None
            mean += share * mean_bytes(size)
        return Mix(name=STREAMS, mean_of_streams_bytes=mean)


# What a test may require of a tester beyond loads and counts; a tester declares which of these it lacks, and why.


class Ability(StrEnum):
    """What a test may require of a tester; each value completes the sentence "the test needs ..."."""

    LATENCY = "the latency of frames"
    FRAME_COUNT = "a trial of exactly so many frames"
    BURSTS = "bursts of frames with the smallest gap of the link"
    PHASES = "loads one after another in one transmission"
    ARRIVALS = "the time at which each frame arrives"
    BESIDE = "a command that runs while frames are sent"
    MIX = "frames of several sizes in one stream"
    CARRIED_MIX = "frames of several sizes in tunnels"
    STREAMS = "several streams of a port"
    STREAM_LOADS = "a load of its own for each stream of a port"
    MAC_ADDRESSES = "frames from and to many MAC addresses"
    HEADERS = "headers other than Ethernet, IP and UDP, or frames given as a whole"
    FILE = "frames of a file, or without a signature"
    FIELDS = "header fields that differ between flows"
    IPV6 = "IPv6"
    STREAM_BURSTS = "streams in bursts, or with an end of their own"
    COPIES = "frames that arrive at several ports"
    TRAFFIC_CLASSES = "the ECN marks of frames that arrive"
    WAY_LOADS = "a load of its own for each way"
    MANY_WAYS = "ports that send to, or receive from, several others"
    LEARNING = "learning frames of every flow"
    NEIGHBOURS = "ports that answer ARP and neighbour discovery"


# How a kernel interface is used: by XDP programs in the kernel (`xdp`), or opened by DPDK.


KernelDriver = Literal["xdp", "net_af_xdp", "net_af_packet", "net_pcap"]


class StreamLoad(Frozen):
    """The load of one stream of a port in a trial, and the size of its frames, whatever the traffic gives it."""

    stream: str
    load_frames_per_s: float = Field(gt=0.0)
    size: Size


class MacTable(Frozen):
    """Frames from ``addresses`` MAC addresses behind one port, then ``pause_s``, then a frame to each of them."""

    addresses: int = Field(ge=1, le=2**24)
    learning_frames_per_s: float = Field(gt=0.0)
    pause_s: float


class ReplayedCapture(Frozen):
    """One capture of a trial, and the numbers of the tester's ports that send it and receive it."""

    file: str
    from_port: int = Field(ge=0)
    to_port: int = Field(ge=0)


class Replay(Frozen):
    """Captures in step with their own timing, in place of the traffic's streams; ``signed``: with our signature."""

    captures: tuple[ReplayedCapture, ...]
    speed: float = Field(gt=0.0)
    together: bool
    signed: bool
    keeps_macs: bool


# What each stream of a port sends: a share of the port's load, or a rate of its own whatever the load is.


MOST_OF_A_LOAD: Final = 0.99
"""The share of a load that streams with own rates get where their rates exceed it; the other streams get the rest."""


def stream_rates_frames_per_s(traffic: Traffic, load_frames_per_s: float | None) -> tuple[float, ...]:
    """Returns the rate of each stream, in order. With a load of None, rates are 0: as fast as the port takes frames."""
    streams = traffic.port_streams()
    if load_frames_per_s is None:
        return tuple(0.0 for _ in streams)
    own = sum(stream.rate or 0.0 for stream in streams)
    scale = min(1.0, MOST_OF_A_LOAD * load_frames_per_s / own) if own else 1.0
    rest = load_frames_per_s - own * scale
    return tuple(stream.rate * scale if stream.rate is not None else rest * (stream.share or 0.0) for stream in streams)
