"""The speed of the ports as tables name it: "25GbE", "2x100GbE", "4 x 25 Gb/s", or a number with its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nicbench.units import format_bits_per_s, line_rate_frames_per_s, parse_bits_per_s

_LINK: Final = re.compile(r"(?:(?P<ports>\d{1,4})\s*[x\u00d7]\s*)?(?P<speed>[\d.]+\s*\D.*)", re.IGNORECASE)
_ETHERNET: Final = re.compile(r"(?P<number>[\d.]+)\s*(?P<prefix>[MGT])b?E", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """The speed of one port in each direction; ``ports`` how many ports' rates are summed, None where nobody says."""

    bits_per_s: float
    ports: int | None = None

    @property
    def scope(self) -> str:
        """The basis of rates."""
        return scope_of(self.ports)

    def line_rate_frames_per_s(self, frame_bytes: float) -> float:
        """On the same basis as the rates."""
        return line_rate_frames_per_s(self.bits_per_s, frame_bytes) * (self.ports or 1)

    def __str__(self) -> str:
        speed = format_bits_per_s(self.bits_per_s)
        return f"{self.ports} x {speed}" if self.ports and self.ports > 1 else speed


def scope_of(ports: int | None) -> str:
    """What rates are of."""
    if ports is None:
        return "as the source gives them (per port or a sum: it is not said)"
    return "per port" if ports == 1 else f"sum of {ports} ports"


def parse_link(text: str) -> Link:
    """ValueError where ``text`` is no speed."""
    match = _LINK.fullmatch(text.strip())
    if match is None:
        raise ValueError('write it with its unit: "25GbE", "2x25GbE", "25 Gb/s"')
    speed = match["speed"].strip()
    ethernet = _ETHERNET.fullmatch(speed)
    bits_per_s = parse_bits_per_s(f"{ethernet['number']} {ethernet['prefix'].upper()}b/s" if ethernet else speed)
    ports = int(match["ports"]) if match["ports"] else None
    if bits_per_s <= 0 or ports == 0:
        raise ValueError("a link without speed carries nothing")
    return Link(bits_per_s, ports)
