"""Units as tables and testers write them. What is not named is never guessed: layer, share of what, bits or bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["frame_rate", "bit_rate", "percent", "time", "clock", "count", "size"]


@dataclass(frozen=True, slots=True)
class Unit:
    """``factor`` leads to frames/s, b/s, percent, ns, Hz, frames or bytes.

    ``layer`` is that of a bit rate, ``of`` says of what a percentage is; None where nobody says.
    """

    name: str
    kind: Kind
    factor: Fraction
    layer: Literal[1, 2] | None = None
    of: str | None = None

    def __str__(self) -> str:
        return f"{self.name} L{self.layer}" if self.layer else f"{self.name} of {self.of}" if self.of else self.name


def _of_kind(kind: Kind, rows: Mapping[str, tuple[str, str]]) -> dict[str, Unit]:
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
_EXACT: Final = MappingProxyType(
    {
        **_of_kind(
            "frame_rate",
            {
                "pps": ("1", "fps frames/s packets/s frames/sec packets/sec"),
                "kpps": ("1e3", "kfps Kpps Kfps"),
                "Mpps": ("1e6", "Mfps"),
                "Gpps": ("1e9", "Gfps"),
            },
        ),
        **_of_kind("bit_rate", _BITS),
        **_of_kind("bit_rate", _BYTES),
        **_of_kind(
            "time", {"ns": ("1", "nsec"), "us": ("1e3", "usec"), "ms": ("1e6", "msec"), "s": ("1e9", "sec seconds")}
        ),
        **_of_kind("clock", {"Hz": ("1", ""), "kHz": ("1e3", ""), "MHz": ("1e6", ""), "GHz": ("1e9", "")}),
        **_of_kind("count", {"frames": ("1", "packets frame packet")}),
        **_of_kind("size", {"bytes": ("1", "byte octets B")}),
    }
)
# In small letters alone, as in the name of a variable: nobody means bytes by "mbps".
_SMALL: Final = MappingProxyType(
    {name.lower(): unit for name, unit in reversed(list(_EXACT.items())) if "B" not in name}
)
_LAYER: Final = re.compile(r"[\[(]?\b(?:l|layer ?)([12])\b[\])]?", re.IGNORECASE)
_PERCENT: Final = re.compile(r"(?:%|percent)(?: ?of (?:the )?(?P<of>[a-z ]+)| (?P<line>line rate))?", re.IGNORECASE)
FORMS: Final = "fps, pps, kpps, Mpps, Gb/s L1, Gb/s L2, % of line rate, %, ns, us, ms, GHz, bytes, frames"


def parse_unit(text: str) -> Unit | None:
    """A unit as it stands in a heading or an option: "Mpps", "Gb/s L2", "% of line rate"; None where it is none."""
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
    known = _EXACT.get(plain)
    return known or (_SMALL.get(plain) if plain == plain.lower() else None)
