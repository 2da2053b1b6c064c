"""How values are written: the unit, the scale factor, and the unit that suits a whole column.

The name of a value carries its base unit (``latency_ns``). A form that contradicts the name is refused, so that no
table can print nanoseconds under a heading of microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Form = Literal[
    "pps",
    "kpps",
    "mpps",
    "gigabits",
    "megabits",
    "megabytes",
    "gigahertz",
    "microseconds",
    "milliseconds",
    "seconds",
    "uncertainty",
    "percent",
    "trimmed",
    "of_frames",
    "number",
    "whole",
    "text",
]
"""How a value is written: ``pps`` to ``mpps`` for frames per second, ``gigahertz`` for Hz, ``microseconds`` to
``seconds`` for ns, ``megabytes`` (10^6) for bytes, ``uncertainty`` for a time that is written as "± 0.35"; ``number``
with three significant digits, ``trimmed`` with at most three decimals and no trailing zeros; ``of_frames`` is like
``trimmed``, for a percentage that shows 0 only for no frames and 100 only for all of them.
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """A form with its own unit: values whose name ends with ``suffix`` are multiplied by ``factor`` into ``unit``.

    ``base_unit`` is that of the values themselves.
    """

    suffix: str
    unit: str
    factor: float
    base_unit: str


SCALES: Final[Mapping[Form, Scale]] = MappingProxyType(
    {
        "pps": Scale("_frames_per_s", "pps", 1.0, "frames/s"),
        "kpps": Scale("_frames_per_s", "kpps", 1e-3, "frames/s"),
        "mpps": Scale("_frames_per_s", "Mpps", 1e-6, "frames/s"),
        "megabits": Scale("_bits_per_s", "Mb/s", 1e-6, "b/s"),
        "gigabits": Scale("_bits_per_s", "Gb/s", 1e-9, "b/s"),
        "megabytes": Scale("bytes_per_s", "MB/s", 1e-6, "B/s"),
        "gigahertz": Scale("_hz", "GHz", 1e-9, "Hz"),
        "microseconds": Scale("_ns", "µs", 1e-3, "ns"),
        "milliseconds": Scale("_ns", "ms", 1e-6, "ns"),
        "seconds": Scale("_ns", "s", 1e-9, "ns"),
        "uncertainty": Scale("_ns", "µs", 1e-3, "ns"),
    }
)

_PLAIN_FORMS: Final = frozenset({"number", "trimmed", "whole"})
_UNITS: Final[Mapping[str, frozenset[str | None]]] = MappingProxyType(
    {
        "_frames_per_s": frozenset({"fps", "frames/s"}),
        "_bits_per_s": frozenset({"b/s"}),
        "_bytes_per_s": frozenset({"B/s"}),
        "_hz": frozenset({"Hz"}),
        "_ns": frozenset({"ns"}),
        "_us": frozenset({"µs"}),
        "_ms": frozenset({"ms"}),
        "_bytes": frozenset({"bytes"}),
    }
)
"""The allowed units of values that are written unscaled, by the suffix of their name."""
_DEFAULTS: Final[tuple[tuple[str, Form], ...]] = (
    ("_frames_per_s", "mpps"),
    ("_bits_per_s", "gigabits"),
    ("bytes_per_s", "megabytes"),
    ("_hz", "gigahertz"),
    ("_ns", "microseconds"),
)
_LADDERS: Final[Mapping[Form, tuple[tuple[Form, float], ...]]] = MappingProxyType(
    {
        "mpps": (("pps", 0.0), ("kpps", 1e3), ("mpps", 1e6)),
        "gigabits": (("megabits", 0.0), ("gigabits", 1e8)),
        "microseconds": (("microseconds", 0.0), ("milliseconds", 1e6), ("seconds", 1e9)),
        "milliseconds": (("milliseconds", 0.0), ("seconds", 1e9)),
    }
)
"""The forms that a column may have instead of a declared form, each with the magnitude from which it applies.

Links of 1 Gb/s and more are compared in Gb/s, so the step to Gb/s is at a tenth of one.
"""


def name_in_words(value: str) -> str:
    """Returns the name of a value without its unit, as it stands in a sentence: "recovery time", "NDR"."""
    units = ("_frames_per_s", "_bits_per_s", "_bytes_per_s", "_transactions_per_s", "_percent", "_ratio", "_ns", "_ms")
    unit = next((unit for unit in (*units, "_us", "_hz", "_s") if value.endswith(unit)), "")
    words = value.removesuffix(unit).replace("_", " ")
    return words.upper() if words in ("ndr", "pdr") else words


def uncapitalise(head: str) -> str:
    """Returns a heading as it reads inside a sentence: in lower case, unless its first word is written in capitals."""
    return head if head[1:2].isupper() else f"{head[:1].lower()}{head[1:]}"


def default_form(value: str, unit: str | None) -> Form:
    """Returns the form of a column without one, by the suffix of the value's name unless another unit is given."""
    form: Form = next((form for suffix, form in _DEFAULTS if value.endswith(suffix)), "number")
    return form if unit is None or form not in SCALES or SCALES[form].unit == unit else "number"


def default_unit(value: str, form: Form) -> str | None:
    """Returns the unit of a form that has one, else the unit that the value's name ends with."""
    if form in SCALES:
        return SCALES[form].unit
    return {"_us": "µs", "_ms": "ms"}.get(value[-3:])


def contradiction(value: str, form: Form, unit: str | None) -> str | None:
    """Describes how a column contradicts the suffix of its value's name; None where name, form and unit agree."""
    scale = SCALES.get(form)
    if scale is not None:
        if not value.endswith(scale.suffix):
            return f"the form {form!r} is of values whose name ends with {scale.suffix!r}"
        return None if unit == scale.unit else f"the form {form!r} prints {scale.unit}, the heading says {unit}"
    suffix = next((suffix for suffix in _UNITS if value.endswith(suffix)), None)
    if suffix is None or form == "text" or form in ("percent", "of_frames"):
        wrong = suffix is not None and form != "text"
        return f"the form {form!r} is of percentages, the name ends with {suffix!r}" if wrong else None
    if form in _PLAIN_FORMS and unit not in _UNITS[suffix]:
        allowed = " or ".join(sorted(filter(None, _UNITS[suffix])))
        return f"a value whose name ends with {suffix!r} is written as it is in {allowed}, the heading says {unit}"
    return None


def suitable_form(form: Form, greatest: float) -> Form:
    """Returns the form for a whole column by its greatest value in the base unit: kpps where that is below 1 Mpps."""
    steps = _LADDERS.get(form)
    if steps is None or greatest <= 0.0:
        return form
    return next(candidate for candidate, least in reversed(steps) if greatest >= least)
