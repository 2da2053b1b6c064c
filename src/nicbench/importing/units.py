"""Units, link speeds and numbers as tables and testers print them. Nothing that is not named is guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal

from nicbench.core.units import format_bits_per_s, line_rate_frames_per_s, parse_bits_per_s

_LINK: Final = re.compile(r"(?:(?P<ports>\d{1,4})\s*[x\u00d7]\s*)?(?P<speed>[\d.]+\s*[^\d.\s].*)", re.IGNORECASE)
_ETHERNET: Final = re.compile(r"(?P<number>[\d.]+)\s*(?P<prefix>[MGT])b?E", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """The speed of one port in each direction; ``ports`` is the number of ports summed up, None where that is not
    said.
    """

    bits_per_s: float
    ports: int | None = None

    @property
    def scope(self) -> str:
        """What the rates cover: one port, or a sum."""
        return scope_of(self.ports)

    def line_rate_frames_per_s(self, frame_bytes: float) -> float:
        """Returns the line rate for the same ports as the rates."""
        return line_rate_frames_per_s(self.bits_per_s, frame_bytes) * (self.ports or 1)

    def __str__(self) -> str:
        speed = format_bits_per_s(self.bits_per_s)
        return f"{self.ports} x {speed}" if self.ports and self.ports > 1 else speed


def scope_of(ports: int | None) -> str:
    """Describes what rates cover."""
    if ports is None:
        return "as the source gives them (per port or a sum: it is not said)"
    return "per port" if ports == 1 else f"sum of {ports} ports"


def parse_link(text: str) -> Link:
    """Parses a link speed: "25GbE", "2x100GbE", "4 x 25 Gb/s"; ValueError where ``text`` is no speed."""
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


Kind = Literal["frame_rate", "bit_rate", "percent", "time", "clock", "count", "size"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit; ``factor`` converts to frames/s, b/s, percent, ns, Hz, frames or bytes.

    ``layer`` is that of a bit rate, ``of`` the basis of a percentage; None where it is not said.
    """

    name: str
    kind: Kind
    factor: Fraction
    layer: Literal[1, 2] | None = None
    of: str | None = None

    def __str__(self) -> str:
        return f"{self.name} L{self.layer}" if self.layer else f"{self.name} of {self.of}" if self.of else self.name


def _units_of_kind(kind: Kind, rows: Mapping[str, tuple[str, str]]) -> dict[str, Unit]:
    return {
        spelling: Unit(name, kind, Fraction(factor))
        for name, (factor, spellings) in rows.items()
        for spelling in (name, *spellings.split())
    }


_BITS = {
    f"{prefix}b/s": (factor, f"{prefix}bit/s {prefix}bps {prefix}bits/s")
    for prefix, factor in (("", "1"), ("k", "1e3"), ("K", "1e3"), ("M", "1e6"), ("G", "1e9"), ("T", "1e12"))
}
_BYTES = {
    f"{prefix}B/s": (factor, f"{prefix}Bps {prefix}bytes/s")
    for prefix, factor in (("", "8"), ("k", "8e3"), ("K", "8e3"), ("M", "8e6"), ("G", "8e9"))
}
_UNITS: Final = MappingProxyType(
    {
        **_units_of_kind(
            "frame_rate",
            {
                "pps": ("1", "fps frames/s packets/s frames/sec packets/sec"),
                "kpps": ("1e3", "kfps Kpps Kfps"),
                "Mpps": ("1e6", "Mfps"),
                "Gpps": ("1e9", "Gfps"),
            },
        ),
        **_units_of_kind("bit_rate", _BITS),
        **_units_of_kind("bit_rate", _BYTES),
        **_units_of_kind(
            "time", {"ns": ("1", "nsec"), "us": ("1e3", "usec"), "ms": ("1e6", "msec"), "s": ("1e9", "sec seconds")}
        ),
        **_units_of_kind("clock", {"Hz": ("1", ""), "kHz": ("1e3", ""), "MHz": ("1e6", ""), "GHz": ("1e9", "")}),
        **_units_of_kind("count", {"frames": ("1", "packets frame packet")}),
        **_units_of_kind("size", {"bytes": ("1", "byte octets B")}),
    }
)
# Lower-case spellings, as in names of variables; bytes are left out, because "mbps" means bits.
_LOWER_CASE_UNITS: Final = MappingProxyType(
    {name.lower(): unit for name, unit in reversed(list(_UNITS.items())) if "B" not in name}
)
_LAYER: Final = re.compile(r"[\[(]?\b(?:l|layer ?)([12])\b[\])]?", re.IGNORECASE)
_PERCENT: Final = re.compile(r"(?:%|percent)(?: ?of (?:the )?(?P<of>[a-z ]+)| (?P<line>line rate))?", re.IGNORECASE)
FORMS: Final = "fps, pps, kpps, Mpps, Gb/s L1, Gb/s L2, % of line rate, %, ns, us, ms, GHz, bytes, frames"


def parse_unit(text: str) -> Unit | None:
    """Parses a unit of a heading or an option: "Mpps", "Gb/s L2", "% of line rate"; None where it is none."""
    plain = " ".join(text.replace("\u00b5", "u").replace("\u03bc", "u").split())
    layer = _LAYER.search(plain)
    if layer is not None:
        unit = parse_unit(f"{plain[: layer.start()]} {plain[layer.end() :]}")
        if unit is None or unit.kind != "bit_rate":
            return None
        return replace(unit, layer=1 if layer[1] == "1" else 2)
    percent = _PERCENT.fullmatch(plain)
    if percent is not None:
        of = "line rate" if percent["line"] else percent["of"]
        return Unit("%", "percent", Fraction(1), of=of.strip().lower() if of else None)
    known = _UNITS.get(plain)
    return known or (_LOWER_CASE_UNITS.get(plain) if plain == plain.lower() else None)


Decimal = Literal["point", "comma"]
THOUSANDS: Final = {"comma": ",", "point": ".", "blank": " \u00a0\u202f\u2009", "apostrophe": "'\u2019"}
NOTHING: Final = frozenset({"", "-", "--", "\u2013", "\u2014", "n/a", "na", "nan", "null", "none"})
"""How tables write that there is no figure, in lower case."""
_LONGEST_NUMBER: Final = 40
_NUMBER: Final = re.compile(r"(?P<digits>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(?P<unit>[^\d.,\s].*)?")


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A printed number; ``value`` is in the printed unit, and the true value is at most ``rounding`` away."""

    text: str
    value: Fraction
    rounding: Fraction
    unit: Unit | None


def parse_number(text: str, decimal: Decimal = "point", thousands: str | None = None) -> PrintedNumber:
    """Parses a number, with a unit behind it if there is one; ValueError, with what to do, where it is none."""
    written = text.replace("\u2212", "-")
    separators = THOUSANDS[thousands] if thousands else ""
    if separators:
        written = _remove_separators(written, separators, "," if decimal == "comma" else ".")
    if decimal == "comma":
        if "." in written:
            hint = "write --thousands point if points set thousands apart"
            raise ValueError(f"it has a point; {'correct it' if separators == '.' else hint}")
        written = written.replace(",", ".", 1)
    match = _NUMBER.fullmatch(written)
    if match is None or len(match["digits"]) > _LONGEST_NUMBER:
        if "," in written and decimal == "point":
            raise ValueError("write --decimal comma for a decimal comma, --thousands comma for marks between thousands")
        raise ValueError("write a number, or nothing where there is none")
    unit = None
    if match["unit"]:
        unit = parse_unit(match["unit"])
        if unit is None:
            raise ValueError(f"{match['unit'].strip()!r} behind the number is not a known unit")
    digits = match["digits"]
    mantissa, _, exponent = digits.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    rounding = Fraction(1, 2) * Fraction(10) ** (int(exponent or 0) - decimals)
    return PrintedNumber(digits, Fraction(digits), rounding, unit)


def _remove_separators(text: str, separators: str, point: str) -> str:
    """Removes thousands separators where they set groups of three apart, and nowhere else."""
    marks = re.escape(separators)
    whole, mark, rest = text.partition(point)
    if re.fullmatch(rf"[+-]?\d{{1,3}}(?:[{marks}]\d{{3}})+(?:\s*\D.*)?", whole):
        whole = re.sub(rf"(?<=\d)[{marks}](?=\d{{3}})", "", whole)
    return f"{whole}{mark}{rest}"
