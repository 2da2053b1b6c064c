"""What a method takes of results that somebody else measured: the columns of a CSV, and what must hold among them.

It stands beside the method's result table; the import (``nicbench.importing``) knows nothing of the method beyond it.
"""

from __future__ import annotations

from typing import Literal

from nicbench.model.base import Frozen

Quantity = Literal[
    "frame_size",
    "frame_rate",
    "media_rate",
    "bit_rate",
    "payload_rate",
    "percent",
    "load",
    "time",
    "count",
    "number",
    "clock",
    "link",
    "text",
]
"""What a column holds, which says in which units it may be written. ``load`` is a percentage that says of what;
``media_rate`` is of frames of film in ``fps``, which are files, so that no line rate bounds it; ``bit_rate`` is kept on
layer 2; ``payload_rate`` counts what a tool handed over, above all layers; ``link`` is the speed of the ports,
"2x25GbE"; the unit of a ``time`` that is kept is the end of the value's name (``_ns``, ``_us``)."""


class ImportColumn(Frozen):
    """One column: the ``value`` it becomes, its name as a heading says it, without the unit, and other names for it.

    A ``{bound}`` in the name is a latency with its unit ("frames outside 20 us"), and ``{bound}`` in the value is the
    same in nanoseconds. What ``tells_apart`` are parameters: two rows may not agree in all of them.
    """

    value: str
    name: str
    quantity: Quantity
    also: tuple[str, ...] = ()
    tells_apart: bool = False
    is_required: bool = False
    bound: Literal["value", "lower", "upper"] | None = None
    """Which part it is of a value with an interval."""
    is_above_zero: bool = False
    most: int | None = None
    """No number above it can be."""
    words: tuple[str, ...] = ()
    """What a ``text`` may be, where that is bounded."""


class ImportTotal(Frozen):
    """``total`` is the sum of ``part`` over the rows, alike in all else, whose ``place`` is from 1 to ``number``.

    Else is what tells rows apart.
    """

    total: str
    part: str
    place: str
    number: str


class ImportShare(Frozen):
    """``value`` is the same for each of ``number``, in all rows that agree in ``among`` and are of one configuration.

    On a row that has a ``place`` it is of one alone. ``hint`` is the next step where rows contradict one another.
    """

    value: str
    place: str
    number: str
    among: tuple[str, ...]
    hint: str


class ImportTable(Frozen):
    """The columns of a method, and what cannot be otherwise in a row; each name is that of a value.

    ``any_of``: a row without any of these says nothing. ``shares``: a rate and its percentage of the line rate.
    ``bit_rates``: a frame rate and the bit rate on layer 2 that it makes. ``rising``: values none of which may be
    smaller than the one before it. ``complements``: two percentages that make 100. ``percentages``: one that follows
    from two counts, part and whole. ``lossless``: a rate found without loss, and the loss in percent beside it.
    ``totals`` and ``same_shares`` are about several rows.
    ``load_of`` is what 100 % of a load is where the heading does not say; None where it must say.
    """

    columns: tuple[ImportColumn, ...]
    any_of: tuple[str, ...]
    line_rate: str | None = None
    shares: tuple[tuple[str, str], ...] = ()
    bit_rates: tuple[tuple[str, str], ...] = ()
    rising: tuple[tuple[str, ...], ...] = ()
    complements: tuple[tuple[str, str], ...] = ()
    percentages: tuple[tuple[str, str, str], ...] = ()
    lossless: tuple[tuple[str, str], ...] = ()
    totals: tuple[ImportTotal, ...] = ()
    same_shares: tuple[ImportShare, ...] = ()
    load_of: str | None = None
    overload: bool = False
    """Whether a load may be above 100 %: several ports may send to one."""
    caption: str = ""
    """In place of the caption of the method's own table, which says how nicbench measures."""
