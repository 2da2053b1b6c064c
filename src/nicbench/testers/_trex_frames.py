"""The frames that TRex is given as bytes, and what of them differs between flows. Pure."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import Final

from nicbench.duts.base import Addressing
from nicbench.model.traffic import Frames

IP_OFFSET: Final = 14  # behind the Ethernet header
_SOURCE_OFFSET, _DESTINATION_OFFSET = IP_OFFSET + 12, IP_OFFSET + 16
_IP_BYTES: Final = 20
_FCS_BYTES: Final = 4
_UDP: Final = 17


def udp_frame(frames: Frames, way: Addressing, frame_bytes: int) -> bytes:
    """Ethernet, IPv4 (RFC 791) and UDP (RFC 768, no checksum), filled with zeros; without the FCS, which TRex adds."""
    link = bytes.fromhex((way.destination_mac + way.source_mac).replace(":", "")) + b"\x08\x00"
    length = frame_bytes - _FCS_BYTES - IP_OFFSET
    ends = IPv4Address(way.source_address).packed + IPv4Address(way.destination_address).packed
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, frames.hop_limit, _UDP, 0) + ends
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    transport = struct.pack("!HHHH", frames.source_port, frames.destination_port, length - _IP_BYTES, 0)
    return (link + header + transport).ljust(frame_bytes - _FCS_BYTES, b"\0")


def flow_program(frames: Frames, way: Addressing) -> tuple[tuple[int, int, int], ...]:
    """The addresses that differ between flows: offset in the frame, the first value, how many follow one another."""
    return (
        (_SOURCE_OFFSET, int(IPv4Address(way.source_address)), min(frames.flows, way.source_address_count)),
        (
            _DESTINATION_OFFSET,
            int(IPv4Address(way.destination_address)),
            min(frames.flows, way.destination_address_count),
        ),
    )


def _checksum(header: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total
