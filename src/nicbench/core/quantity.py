"""Quantities in options: annotated types that read "200 ms" or "0.5 %" and hold plain numbers in the base unit.

A value made in Python is already in the base unit (``duration=1.0`` is one second). A bench file must write the unit:
its loader validates with ``context={UNITS_REQUIRED: True}``, and then a bare number other than zero is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from nicbench.core import units
from nicbench.core.described import Unit

UNITS_REQUIRED: Final = "units_required"

_FORMS = re.compile(r"[:;]? ?write (?P<forms>[^;]*)$")
_BARE_NUMBER = re.compile(r"[-+0-9._'eE\s]*")


def _reader(what: str, example: str, parse: Callable[[str], float]) -> BeforeValidator:
    """Returns a validator for one quantity: parses text, passes numbers; its errors name the accepted forms."""

    def refuse(why: str, accepted: str | None = None) -> PydanticCustomError:
        forms = (accepted or f"{what} with its unit, for example {example}").split(", or a number")[0]
        return PydanticCustomError("quantity", "{why}", {"why": why, "accepted": forms})

    def read(value: Any, information: ValidationInfo) -> float:
        units_required = bool((information.context or {}).get(UNITS_REQUIRED))
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise refuse(
                f"{type(value).__name__} given where {what} is needed" if value is not None else "nothing is given"
            )
        if units_required and value != 0 and value != "0" and _BARE_NUMBER.fullmatch(str(value)):
            raise refuse(f"{value} has no unit")
        if isinstance(value, str):
            try:
                return float(parse(value))
            except ValueError as error:
                forms = _FORMS.search(str(error))
                raise refuse(_FORMS.sub("", str(error)), forms["forms"] if forms else None) from error
        if not math.isfinite(value) or value < 0:
            raise refuse(f"{value} is not {what}: it must be finite and not negative")
        return float(value)

    return BeforeValidator(read)


def _whole(number: float) -> int | float:
    return int(number) if number == int(number) else number


MOST_LOAD_PERCENT: Final = 6300.0
"""The highest load in percent of a port's line rate: all others of the largest possible number of ports send to it."""


Seconds = Annotated[float, Unit.SECONDS, _reader("a duration", '"200 ms"', units.parse_duration_s)]
"""Seconds, from "200 ms", "1 s", "2 min"."""

Ratio = Annotated[float, Unit.RATIO, Field(le=1.0), _reader("a share", '"0.5 %"', units.parse_ratio)]
"""A share, 0..1, from "0.5 %"."""

Confidence = Annotated[float, Unit.RATIO, Field(ge=0.5, le=0.9999), _reader("a share", '"95 %"', units.parse_ratio)]
"""Confidence of an interval, from "95 %". Below a half an interval says nothing, and near 1 it covers everything."""

Percent = Annotated[
    float, Unit.PERCENT, Field(gt=0.0, le=100.0), _reader("a percentage", '"50 %"', units.parse_percent)
]
"""A percentage above 0 and at most 100: "50 %" is 50.0."""

LoadPercent = Annotated[
    float, Unit.PERCENT, Field(gt=0.0, le=MOST_LOAD_PERCENT), _reader("a percentage", '"50 %"', units.parse_percent)
]
"""A percentage of a load, above 100 where several senders overload one port (RFC 2285 section 3.5.4)."""

PercentOver = Annotated[
    float, Unit.PERCENT, Field(gt=100.0, le=1000.0), _reader("a percentage", '"110 %"', units.parse_percent)
]
"""A percentage above 100: "110 %" is 110.0."""

FramesPerSecond = Annotated[float, Unit.FRAMES_PER_S, _reader("a frame rate", '"200 kpps"', units.parse_frames_per_s)]
"""Frames per second, from "200 kpps", "1.5 Mpps"."""

FilmRate = Annotated[float, _reader("a frame rate", '"24 fps"', units.parse_frames_per_s)]
"""Video frames per second, from "24 fps"."""

BitsPerSecond = Annotated[float, Unit.BITS_PER_S, _reader("a bit rate", '"10 Gb/s"', units.parse_bits_per_s)]
"""Bits per second, from "10 Gb/s"."""

Bytes = Annotated[int, Unit.BYTES, BeforeValidator(_whole), _reader("a size", '"512 MiB"', units.parse_bytes)]
"""Whole bytes, from "512 MiB" or "64 kB"."""

SomeBytes = Annotated[
    int, Unit.BYTES, Field(ge=1), BeforeValidator(_whole), _reader("a size", '"512 MiB"', units.parse_bytes)
]
"""Whole bytes, at least one, because 0 has a special meaning to some tools."""

FrameBytes = Annotated[int, Unit.BYTES, Field(strict=True, ge=64, le=65_535)]
"""The size of an Ethernet frame including its 4-byte FCS: at least 64 bytes (IEEE 802.3)."""


# Numbers that several methods ask for.

Repetitions = Annotated[int, Field(ge=1, le=1000)]
"""How many times a point is measured."""

LossVerification = Annotated[int, Field(ge=0, le=10)]
"""How many times a trial that lost frames is repeated before its load counts as failed (ETSI GS NFV-TST 009)."""

RoundSeconds = Annotated[Seconds, Field(ge=1.0, le=86_400.0)]
"""How long the tools of a round work."""
