"""The sizes of the frames of a capture, classic pcap or pcapng; the packet engine reads the frames themselves.

Frames may be captured with their FCS: the file says so, or each of them ends with the checksum of the rest, as in the
captures of ``nicbench serve``. These bytes are no part of what is sent again, which gets an FCS of its own.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

LARGEST_FILE_BYTES: Final = 256 * 2**20
"""The largest file that the engine reads."""
_FCS_BYTES: Final = 4
_SMALLEST_FRAME_BYTES: Final = 64  # IEEE 802.3: what is shorter is filled up on the wire
_ETHERNET_HEADER_BYTES: Final = 14
_ETHERNET: Final = 1
_PCAP: Final = {
    struct.pack(order + "I", magic): order for order in "<>" for magic in (0xA1B2C3D4, 0xA1B23C4D)
}  # microseconds, nanoseconds
_FCS_OPTION: Final = 13  # if_fcslen
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_SECTION_ORDER: Final = {struct.pack(order + "I", 0x1A2B3C4D): order for order in "<>"}


class WrongCaptureError(ValueError):
    """What is wrong with a capture; the message completes a sentence after the name of the file."""


@dataclass(frozen=True, slots=True)
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
    """The sizes of the capture at ``path``; OSError where it cannot be read, WrongCaptureError where it is none."""
    with path.open("rb") as stream:
        content = stream.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise WrongCaptureError(f"is larger than {LARGEST_FILE_BYTES // 2**20} MiB")
    return sizes_of_capture(content)


def sizes_of_capture(content: bytes) -> CaptureSizes:
    """The sizes of the frames of a file; WrongCaptureError where it is no capture of whole Ethernet frames."""
    order = _PCAP.get(content[:4])
    if order is None and struct.pack(">I", _SECTION) != content[:4]:
        raise WrongCaptureError("is neither pcap nor pcapng")
    lengths: list[int] = []
    fcs_are_undeclared = True
    try:
        for frame in _frames_of_pcapng(content) if order is None else _frames_of_pcap(content, order):
            _check(len(lengths) + 1, frame)
            lengths.append(frame.captured - frame.fcs_bytes)
            fcs_are_undeclared &= not frame.fcs_bytes and _ends_with_fcs(content, frame)
    except struct.error as error:
        raise WrongCaptureError(f"is broken after frame {len(lengths)}") from error
    if not lengths:
        raise WrongCaptureError("holds no frame")
    sent = 0 if fcs_are_undeclared else _FCS_BYTES
    sizes = [max(_SMALLEST_FRAME_BYTES, length + sent) for length in lengths]
    return CaptureSizes(Counter(sizes), sizes.index(max(sizes)) + 1)


class _Frame(NamedTuple):
    """Where the bytes of a frame begin, how many the file has, how many it had, and how many of them are its FCS."""

    at: int
    captured: int
    original: int
    fcs_bytes: int


def _check(number: int, frame: _Frame) -> None:
    captured, original, without_fcs = frame.captured, frame.original, frame.captured - frame.fcs_bytes
    if captured < original:
        raise WrongCaptureError(f"is cut: of frame {number} it has {captured} of {original} bytes")
    if captured > original:
        raise WrongCaptureError(f"is broken: of frame {number} it has {captured} bytes, and the frame had {original}")
    if without_fcs < _ETHERNET_HEADER_BYTES:
        raise WrongCaptureError(
            f"holds no Ethernet: frame {number} has {without_fcs} bytes, and a header alone {_ETHERNET_HEADER_BYTES}"
        )


def _ends_with_fcs(content: bytes, frame: _Frame) -> bool:
    """Whether the last bytes of a frame are the checksum of those before (IEEE 802.3 section 3.2.9)."""
    end = frame.at + frame.captured - _FCS_BYTES
    if frame.captured < _ETHERNET_HEADER_BYTES + _FCS_BYTES:
        return False
    return struct.pack("<I", zlib.crc32(memoryview(content)[frame.at : end])) == content[end : end + _FCS_BYTES]


def _frames_of_pcap(content: bytes, order: str) -> Iterator[_Frame]:
    """Yields the frames; the link type has the length of the FCS in its upper bits (draft-ietf-opsawg-pcap)."""
    (link,) = struct.unpack_from(order + "I", content, 20)
    _check_link(link & 0xFFFF)
    fcs_bytes = 2 * (link >> 28) if link & 0x0400_0000 else 0
    record, place = struct.Struct(order + "8xII"), 24
    while place < len(content):
        captured, original = record.unpack_from(content, place)
        place += record.size + captured
        if place > len(content):
            raise struct.error
        yield _Frame(place - captured, captured, original, fcs_bytes)


def _fcs_bytes_of_interface(content: bytes, order: str, place: int, end: int) -> int:
    """The length of the FCS on an interface, by its options; some write it in bits, and some in bytes."""
    while place + 4 <= end:
        option, length = struct.unpack_from(order + "HH", content, place)
        if option == _FCS_OPTION and length == 1:
            said: int = content[place + 4]
            return said if said < 8 else said // 8
        place += 4 + length + -length % 4
    return 0


def _frames_of_pcapng(content: bytes) -> Iterator[_Frame]:
    """Yields the same of the blocks of packets (draft-ietf-opsawg-pcapng)."""
    order, place = "<", 0
    fcs_bytes: list[int] = []
    while place < len(content):
        if content[place : place + 4] == struct.pack(">I", _SECTION):
            order = _SECTION_ORDER.get(content[place + 8 : place + 12], order)
            fcs_bytes = []
        kind, length = struct.unpack_from(order + "II", content, place)
        if length < 12 or place + length > len(content):
            raise struct.error
        if kind == _INTERFACE:
            _check_link(*struct.unpack_from(order + "H", content, place + 8))
            fcs_bytes.append(_fcs_bytes_of_interface(content, order, place + 16, place + length - 4))
        elif kind in (_PACKET, _OLD_PACKET):
            number = struct.unpack_from(order + ("I" if kind == _PACKET else "H"), content, place + 8)[0]
            captured, original = struct.unpack_from(order + "II", content, place + 20)
            yield _Frame(place + 28, captured, original, fcs_bytes[number] if number < len(fcs_bytes) else 0)
        elif kind == _SIMPLE_PACKET:
            (original,) = struct.unpack_from(order + "I", content, place + 8)
            yield _Frame(place + 12, min(original, length - 16), original, fcs_bytes[0] if fcs_bytes else 0)
        place += length


def _check_link(kind: int) -> None:
    if kind != _ETHERNET:
        raise WrongCaptureError(f"holds frames of the link type {kind}, and not Ethernet")
