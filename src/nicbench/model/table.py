"""A table of results that a method brings along: the report knows nothing of the method beyond it."""

from __future__ import annotations

from typing import Literal

from nicbench.model.base import Frozen

Form = Literal["mpps", "gigabits", "percent", "gigahertz", "number", "whole", "text"]
"""How a value is written: ``gigahertz`` of Hz, ``number`` with three significant digits."""


class Column(Frozen):
    """One column: the ``value`` (of a result's values, else of its parameters), its heading, and its unit."""

    value: str
    head: str
    unit: str | None = None
    form: Form = "number"
    is_main: bool = False
    """The figure that the table is about, printed bold."""


class ResultTable(Frozen):
    """The section of one method. ``sentences`` answer in words what it found, with ``{value_name}`` in places.

    The first is said of which every value is known; it has no subject, for that is the DUT.
    ``notes`` are values that hold words, each with what it is about ("Record of cycles"): said once below the table.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    sentences: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
