"""Pause frames (IEEE 802.3 annex 31B), PFC frames (IEEE 802.1Q clause 36) and ECN codepoints (RFC 3168 section 5)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen

PRIORITIES: Final = 8
QUANTUM_BITS: Final = 512
"""A pause quantum is so many bit times of the link."""
MOST_QUANTA: Final = 65_535
MAC_CONTROL: Final = 0x8808
PAUSE_OPCODE, PFC_OPCODE = 0x0001, 0x0101
_TO: Final = "0180c2000001"
# What a port's MAC address takes the place of: a MAC control frame has the smallest size, without FCS.
_FRAME_BYTES: Final = 60


class Codepoint(IntEnum):
    """The two bits of ECN."""

    NOT_ECT = 0
    ECT_1 = 1
    ECT_0 = 2
    CE = 3

    @property
    def words(self) -> str:
        """Its name in RFC 3168."""
        return {0: "Not-ECT", 1: "ECT(1)", 2: "ECT(0)", 3: "CE"}[self]


class PauseTrain(Frozen):
    """Equal pause frames at a rate."""

    priority: int | None = Field(default=None, ge=0, lt=PRIORITIES)
    """The priority that PFC frames pause; without it PAUSE frames, which pause the whole link."""
    quanta: int = Field(ge=0, le=MOST_QUANTA)
    """For how long they pause; 0 ends a pause."""
    frames: int = Field(ge=1)
    frames_per_s: float = Field(gt=0.0)
    begins_s: float = Field(ge=0.0)
    """When the first one is due, from the beginning of the transmission."""

    @property
    def ends_s(self) -> float:
        """When the last one is due."""
        return self.begins_s + (self.frames - 1) / self.frames_per_s


class Pausing(Frozen):
    """Pause frames that the receiving port of the first way sends, beside the load in the other direction."""

    trains: tuple[PauseTrain, ...]
    load_begins_s: float = 0.0
    """When the first frame of the load is due."""
    priority: int | None = Field(default=None, ge=0, lt=PRIORITIES)
    """The priority whose PFC frames from the DUT are counted at the sending port; without it PAUSE frames are."""


def pause_seconds(quanta: int, bits_per_s: float) -> float:
    """Returns how long a pause lasts on a link of this speed."""
    return quanta * QUANTUM_BITS / bits_per_s


def pause_frame(source_mac: str, priority: int | None, quanta: int) -> bytes:
    """Returns the frame without FCS: of 802.1Qbb for a priority, else of 802.3x."""
    head = bytes.fromhex(_TO + source_mac.replace(":", "")) + MAC_CONTROL.to_bytes(2)
    if priority is None:
        body = PAUSE_OPCODE.to_bytes(2) + quanta.to_bytes(2)
    else:
        times = b"".join((quanta if one == priority else 0).to_bytes(2) for one in range(PRIORITIES))
        body = PFC_OPCODE.to_bytes(2) + (1 << priority).to_bytes(2) + times
    return (head + body).ljust(_FRAME_BYTES, b"\0")
