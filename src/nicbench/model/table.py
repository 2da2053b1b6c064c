"""A table of results that a method brings along: the report knows nothing of the method beyond it."""

from __future__ import annotations

from typing import Literal

from nicbench.model.base import Frozen

Form = Literal[
    "mpps",
    "gigabits",
    "megabits",
    "megabytes",
    "percent",
    "trimmed",
    "of_frames",
    "gigahertz",
    "microseconds",
    "milliseconds",
    "number",
    "whole",
    "text",
]
"""How a value is written: ``gigahertz`` of Hz, ``microseconds`` and ``milliseconds`` of ns, ``megabytes`` (10^6) of
bytes, ``number`` with three significant digits,
``trimmed`` with at most three decimals and no zero at their end; ``of_frames`` likewise, a percentage that is 0 only of
none and 100 only of all."""


class Column(Frozen):
    """One column: the ``value`` (of a result's values, else of its parameters), its heading, and its unit.

    The unit may hold ``{name}`` of a parameter that all results of the section share.
    """

    value: str
    head: str
    unit: str | None = None
    form: Form = "number"
    is_main: bool = False
    """The figure that the table is about, printed bold."""
    is_optional: bool = False
    """Left out where no result has it."""
    better: Literal["higher", "lower"] | None = None
    """Of a main value: which way it is better; None where neither way is."""
    comparative: str | None = None
    """What the better one is, where there is a word for it: "faster" (then "1.24 times faster")."""


class Grid(Frozen):
    """The same results laid out across: a row for each of ``rows``, a column for each combination of ``across``.

    In the crossing stands ``cell``. There is one such table for each value of ``each``.
    """

    rows: Column
    across: tuple[Column, ...]
    cell: Column
    each: Column | None = None


class Curve(Frozen):
    """``y`` against ``x``, both in percent and drawn from 0 to 100, ``x`` further where there is more.

    There is one line for each combination of ``lines``. ``clean`` is the best ``y`` there is (0 lost, 100 returned).
    """

    x: Column
    y: Column
    lines: tuple[Column, ...]
    caption: str
    clean: float | None = None


class Plot(Frozen):
    """Every ``y``, all of one unit, against ``x``: frame or message sizes, or intervals of time.

    There is one line of each ``y`` for each combination of ``lines`` that the results have, and one plot for each value
    of ``each``. ``lower`` and ``upper`` name the values between which a bar behind each point reaches.
    """

    x: Column
    y: tuple[Column, ...]
    caption: str
    lower: str | None = None
    upper: str | None = None
    logarithmic: bool = False
    lines: tuple[Column, ...] = ()
    each: Column | None = None


class Bars(Frozen):
    """A bar of height ``y`` at each ``x``; one in each group for each combination of ``lines``."""

    x: Column
    y: Column
    lines: tuple[Column, ...]
    caption: str


class Narrowing(Frozen):
    """An estimate ``y`` over ``x``, in a band from the value ``lower`` to ``upper``; one line for each of ``lines``."""

    x: Column
    y: Column
    lower: str
    upper: str
    lines: Column
    caption: str


class ResultTable(Frozen):
    """The section of one method; where it has several, of the results whose parameter is this ``part``.

    ``sentences`` answer in words what it found, with ``{value_name}`` in places.

    The first is said of which every value is known; it has no subject, for that is the DUT. ``clean_sentence`` is of
    the highest ``x`` of the curve up to which every ``y`` was clean. ``sums`` are a column and what stands in it where
    a row sums up the others: such a row answers for them.
    ``notes`` are values that hold words, each with what it is about ("Record of cycles"): said once below the table.
    Where there is a ``grid``, it comes first, and the columns are the details behind it.
    ``editors``: its results are instances against a target, over numbers of instances and runs (stats/frames_runs.py),
    which the report sums up beforehand (report/editors); what is here are the details.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    sentences: tuple[str, ...] = ()
    clean_sentence: str | None = None
    sums: tuple[str, str] | None = None
    notes: tuple[tuple[str, str], ...] = ()
    grid: Grid | None = None
    curve: Curve | None = None
    plots: tuple[Plot, ...] = ()
    bars: Bars | None = None
    narrowing: Narrowing | None = None
    part: str | None = None
    editors: bool = False
    has_basis: bool = True
    """Whether its rates are of frames on ports, so that it is said whether they are per port or a sum of ports."""
