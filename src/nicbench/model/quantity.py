"""Quantities in options: annotated types that read "200 ms" or "0.5 %" and hold plain numbers in the base unit.

A value made in Python is already in the base unit (``duration=1.0`` is one second). A bench file must write the unit: its loader
validates with ``context={UNITS_REQUIRED: True}``, and then a bare number is refused where a unit would be needed to understand it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from nicbench import units

UNITS_REQUIRED: Final = "units_required"


def _reader(what: str, example: str, parse: Callable[[str], float]) -> BeforeValidator:
    """A validator for one quantity: text through ``parse``, numbers as they are, everything refused by one sentence."""

    def refuse(value: object, why: str) -> PydanticCustomError:
        return PydanticCustomError(
            "quantity", "{why}", {"why": why, "accepted": f"a {what}, for example {example}", "given": repr(value)}
        )

    def read(value: Any, information: ValidationInfo) -> float:
        if isinstance(value, str):
            try:
                number = float(parse(value))
            except ValueError as error:
                raise refuse(value, f"{value!r} is not a {what}: {error}") from error
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise refuse(value, f"{value!r} is not a {what}")
        elif (information.context or {}).get(UNITS_REQUIRED) and value != 0:
            raise refuse(value, f"{value!r} has no unit")
        else:
            number = float(value)
        if not math.isfinite(number):
            raise refuse(value, f"{value!r} is not a finite {what}")
        if number < 0:
            raise refuse(value, f"{value!r} is below zero")
        return number

    return BeforeValidator(read)


def _whole(number: float) -> int:
    return math.floor(number + 0.5)


def _parse_percent(text: str) -> float:
    return units.parse_ratio(text) * 100.0


Seconds = Annotated[float, _reader("duration", '"200 ms" or "1 s"', units.parse_duration_s)]
"""Seconds, from "200 ms", "1 s", "2 min"."""

Ratio = Annotated[float, Field(le=1.0), _reader("share", '"0.5 %"', units.parse_ratio)]
"""A share, 0..1, from "0.5 %"."""

Percent = Annotated[float, _reader("percentage", '"50 %"', _parse_percent)]
"""A percentage: "50 %" is 50.0."""

FramesPerSecond = Annotated[float, _reader("frame rate", '"200 kpps"', units.parse_frame_rate)]
"""Frames per second, from "200 kpps", "1.5 Mpps"."""

BitsPerSecond = Annotated[float, _reader("bit rate", '"10 Gb/s"', units.parse_bit_rate)]
"""Bits per second, from "10 Gb/s"."""

Bytes = Annotated[int, BeforeValidator(_whole), _reader("size", '"512 MiB"', units.parse_size_bytes)]
"""Bytes, from "512 MiB" or "64 kB"."""

FrameBytes = Annotated[int, Field(strict=True, ge=64, le=65_535)]
"""An Ethernet frame, counting its 4-byte FCS: at least 64 bytes (IEEE 802.3)."""
