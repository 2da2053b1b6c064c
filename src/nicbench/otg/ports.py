"""The server's ports, as far as configurations need them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServedPort:
    """A port of the bench file: the engine's ``number`` for it, its name there, and the rate of its link.

    ``link_bits_per_s`` is L1; None where it is not known: a percentage is then refused. ``largest_frame_bytes``, with
    FCS, is what the port takes; None where it is not known. A frame with a VLAN tag may be ``tag_bytes`` longer.
    """

    number: int
    location: str
    link_bits_per_s: float | None
    largest_frame_bytes: int | None = None
    tag_bytes: int = 0
