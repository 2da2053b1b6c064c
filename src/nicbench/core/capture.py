"""The sizes of the frames of a capture, classic pcap or pcapng; the packet engine reads the frames themselves."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LARGEST_FILE_BYTES: Final = 256 * 2**20
"""The largest file that the engine reads."""
_FCS_BYTES: Final = 4
_SMALLEST_FRAME_BYTES: Final = 64  # IEEE 802.3: what is shorter is filled up on the wire
_ETHERNET_HEADER_BYTES: Final = 14
_ETHERNET: Final = 1
_PCAP: Final = {
    struct.pack(order + "I", magic): order for order in "<>" for magic in (0xA1B2C3D4, 0xA1B23C4D)
}  # microseconds, nanoseconds
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
    frames_of: Counter[int] = Counter()
    largest, largest_frame, number = 0, 0, 0
    try:
        for captured, original in _lengths_of_pcapng(content) if order is None else _lengths_of_pcap(content, order):
            number += 1
            _check(number, captured, original)
            size = max(_SMALLEST_FRAME_BYTES, captured + _FCS_BYTES)
            frames_of[size] += 1
            if size > largest:
                largest, largest_frame = size, number
    except struct.error as error:
        raise WrongCaptureError(f"is broken after frame {number}") from error
    if not frames_of:
        raise WrongCaptureError("holds no frame")
    return CaptureSizes(frames_of, largest_frame)


def _check(number: int, captured: int, original: int) -> None:
    if captured < original:
        raise WrongCaptureError(f"is cut: of frame {number} it has {captured} of {original} bytes")
    if captured > original:
        raise WrongCaptureError(f"is broken: of frame {number} it has {captured} bytes, and the frame had {original}")
    if captured < _ETHERNET_HEADER_BYTES:
        raise WrongCaptureError(
            f"holds no Ethernet: frame {number} has {captured} bytes, and a header alone {_ETHERNET_HEADER_BYTES}"
        )


def _lengths_of_pcap(content: bytes, order: str) -> Iterator[tuple[int, int]]:
    """Yields how many bytes of each frame the file has, and how many the frame had."""
    _check_link(*struct.unpack_from(order + "I", content, 20))
    record, place = struct.Struct(order + "8xII"), 24
    while place < len(content):
        captured, original = record.unpack_from(content, place)
        place += record.size + captured
        if place > len(content):
            raise struct.error
        yield captured, original


def _lengths_of_pcapng(content: bytes) -> Iterator[tuple[int, int]]:
    """Yields the same of the blocks of packets (draft-ietf-opsawg-pcapng)."""
    order, place = "<", 0
    while place < len(content):
        if content[place : place + 4] == struct.pack(">I", _SECTION):
            order = _SECTION_ORDER.get(content[place + 8 : place + 12], order)
        kind, length = struct.unpack_from(order + "II", content, place)
        if length < 12 or place + length > len(content):
            raise struct.error
        if kind == _INTERFACE:
            _check_link(*struct.unpack_from(order + "H", content, place + 8))
        elif kind in (_PACKET, _OLD_PACKET):
            yield struct.unpack_from(order + "II", content, place + 20)
        elif kind == _SIMPLE_PACKET:
            (original,) = struct.unpack_from(order + "I", content, place + 8)
            yield min(original, length - 16), original
        place += length


def _check_link(kind: int) -> None:
    if kind != _ETHERNET:
        raise WrongCaptureError(f"holds frames of the link type {kind}, and not Ethernet")
