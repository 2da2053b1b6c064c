"""The tables of a method: those that every report prints of its results, and the columns that an import reads into
them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from nicbench.core.base import Frozen
from nicbench.core.forms import Form, contradiction, default_form, default_unit

Aspect = Literal["value", "rate", "exact", "span", "interval", "limit"]
"""What of a value with bounds (``Bounded``) a cell shows: the value, with a sign before one that may be higher; the
same as a search found it, in words ("line rate, 14.88", "< 0.2", or why there is none); the value where no more than
the line rate is possible; the value between its bounds ("0.39 .. 0.40"); the interval that is known to hold it; what
limited it."""


class Column(Frozen):
    """One column: the ``value`` (of a result's values, else of its parameters), its heading, and its unit.

    Form and unit follow from the value's name where they are not given; those that contradict it are refused. The unit
    may hold ``{name}`` of a parameter that all results of the section share.
    """

    value: str
    head: str
    unit: str | None = None
    form: Form = "number"
    name: str | None = None
    """What it is called where its table does not stand around it; ``head`` where it is None."""
    group: str | None = None
    """A heading above this one, shared with the neighbouring columns of the same group."""
    aspect: Aspect = "value"
    is_main: bool = False
    """The figure that the table is about, printed bold."""
    is_minor: bool = False
    """Printed quietly: what only the curious look for."""
    is_optional: bool = False
    """Left out where no result has it."""
    better: Literal["higher", "lower"] | None = None
    """Of a main value: which way it is better; None where neither way is."""
    comparative: str | None = None
    """What the better one is, where there is a word for it: "faster" (then "1.24 times faster")."""

    @model_validator(mode="before")
    @classmethod
    def _follow_the_name(cls, given: Any) -> Any:
        """Fills in form and unit from the value's name."""
        if not isinstance(given, dict) or not isinstance(given.get("value"), str):
            return given
        value, aspect = given["value"], given.get("aspect", "value")
        form = given.get("form") or ("text" if aspect == "limit" else default_form(value, given.get("unit")))
        unit = given.get("unit") or (None if aspect == "limit" else default_unit(value, form))
        return {**given, "form": form, "unit": unit}

    @model_validator(mode="after")
    def _refuse_a_wrong_unit(self) -> Column:
        wrong = contradiction(self.value, self.form, self.unit)
        if wrong is not None:
            raise ValueError(
                f"column {self.value!r}: {wrong}; leave `form` and `unit` out, or name the value otherwise"
            )
        return self


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


class Goal(Frozen):
    """A goal of a search, and the value of the highest rate that met it.

    ``share`` is the value of what that is of the line rate; ``loss_ratio`` is None where it is unknown.
    """

    value: str
    share: str
    name: str
    loss_ratio: float | None = None

    @property
    def clause(self) -> str:
        """In words: "without loss", "with at most 0.5 % lost"."""
        if self.loss_ratio is None:
            return f"at the {self.name}"
        return "without loss" if self.loss_ratio == 0 else f"with at most {100 * self.loss_ratio:.3g}\u202f% lost"


class SearchedRates(Frozen):
    """Rates that a search found, one for each goal, the strictest first; a row for each frame size.

    The report makes the first sentence of them, draws them with their intervals, and lays those of several
    configurations side by side. ``line_rate`` and ``ceiling`` name the values that bound them. Those that are
    ``estimated`` rest on a model of all trials, and no single trial passed them.
    """

    goals: tuple[Goal, ...]
    line_rate: str
    ceiling: str
    estimated: bool = False


class RateBars(Frozen):
    """A bar of a rate at each ``x``, and beside it its share of the line rate as a line."""

    x: Column
    rate: Column
    share: Column


class FurtherTable(Frozen):
    """The same rows in other columns, below the table of the section."""

    title: str
    caption: str
    columns: tuple[Column, ...]
    bars: RateBars | None = None


class Statement(Frozen):
    """An answer that is a sentence of its own: "At 50 % of the NDR, half of the 64-byte frames pass within 20 µs".

    ``lead`` and ``says`` may hold ``{value_name}``. ``value`` follows ``says``; where ``also`` is known, it follows
    ``also_says`` ("99.9 % within"), or ``both_say`` stands in the place of ``says`` where the two are the same.
    ``alone`` is said of the DUT where the run measured nothing else ("was measured for latency only"). ``beside`` names
    a value that is said in a sentence behind it, ``beside_says``, wherever it is not zero.
    """

    lead: str
    says: str
    value: str
    also_says: str
    also: str
    both_say: str
    alone: str
    beside: str | None = None
    beside_says: str = ""


class ResultTable(Frozen):
    """The section of one method; where it has several, of the results whose parameter is this ``part``.

    ``sentences`` answer in words what it found, with ``{value_name}`` in places.

    The first is said of which every value is known; it has no subject, for that is the DUT. ``clean_sentence`` is of
    the highest ``x`` of the curve up to which every ``y`` was clean. ``sums`` are a column and what stands in it where
    a row sums up the others: such a row answers for them.
    ``notes`` are values that hold words, each with what it is about ("Record of cycles"): said once below the table.
    Where there is a ``grid``, it comes first, and the columns are the details behind it.
    ``apart_by`` names parameters of which each combination has a section of its own; ``title`` may hold them, and
    ``{load}``, which says the load in words.
    ``overview`` has the columns of the one table with a row for each frame size that ends a run on the terminal, joined
    with those of other tests; of several loads it has the highest.
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
    basis_of: str = "Rates"
    """What is per port, or a sum of ports."""
    caption_beside: str = ""
    """Said after the caption where configurations stand side by side."""
    apart_by: tuple[str, ...] = ()
    rates: SearchedRates | None = None
    statement: Statement | None = None
    further: tuple[FurtherTable, ...] = ()
    overview: tuple[Column, ...] = ()
    search_notes: str | None = None
    """Where the disturbances of a result are notes that hold of a valid one, too: what they begin with ("Search")."""
    times_frames: bool = False
    """Whether its rows are trials whose frames were timed: time stamps, clocks and the tail of each are shown."""


# What a method takes of results that somebody else measured: the columns of a CSV, and what must hold among them.
#
# It stands beside the method's result table; the import (``nicbench.importing``) knows nothing of the method beyond
# it.


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


class ImportStatistics(Frozen):
    """What a row (a whole) may print of others: its ``parts``, alike in all else, whose ``place`` is from 1 to
    ``number``.

    Else is what tells rows apart, without ``below``. Without a ``number`` the parts are all there where their places
    leave no gap. ``of`` tells wholes apart: a row that has it is one although none of its parts is in the file. Without
    a ``part`` the file has no parts, and what a row prints is held against itself. Where the ``place`` is a text, a
    whole has the word ``named`` there, and all values ``if_said``.
    """

    parts: str
    """What the parts are called: "instances"."""
    part: str | None = None
    place: str | None = None
    number: str | None = None
    of: str | None = None
    below: tuple[str, ...] = ()
    named: str | None = None
    if_said: tuple[str, ...] = ()
    total: str | None = None
    average: str | None = None
    median: str | None = None
    deviation: str | None = None
    minimum: str | None = None
    maximum: str | None = None


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
    ``sums`` are counts of which the first is that of all others. ``statistics`` and ``same_shares`` are about several
    rows; of ``statistics``, those of few rows stand before those of their sums.
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
    sums: tuple[tuple[str, ...], ...] = ()
    statistics: tuple[ImportStatistics, ...] = ()
    same_shares: tuple[ImportShare, ...] = ()
    load_of: str | None = None
    overload: bool = False
    """Whether a load may be above 100 %: several ports may send to one."""
    caption: str = ""
    """In place of the caption of the method's own table, which says how nicbench measures."""
