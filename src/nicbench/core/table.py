"""The tables of a method: those that a report shows of its results, and the columns that an import reads for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.units import Form, contradiction, default_form, default_unit, format_digits

Aspect = Literal["value", "rate", "exact", "span", "interval", "limit"]
"""What a cell shows of a value with bounds (``Bounded``): the value, with a sign before one that may be higher; the
rate as a search found it, in words ("line rate, 14.88", "< 0.2", or why it is missing); the value where it cannot
exceed the line rate; the value between its bounds ("0.39 .. 0.40"); the interval that contains it; what limited it.
"""

ValueName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
"""The name of a value, as results have it."""


class Column(Frozen):
    """One column: the ``value`` (from a result's values, else from its parameters), its heading, and its unit.

    Form and unit follow from the value's name where they are not given; those that contradict it are refused. The unit
    may contain ``{name}`` of a parameter that all results of the section share.
    """

    value: str
    head: str
    unit: str | None = None
    form: Form = "number"
    name: str | None = None
    """The column's name where it appears outside of its table; ``head`` where it is ``None``."""
    group: str | None = None
    """A heading above this one, shared with the neighbouring columns of the same group."""
    aspect: Aspect = "value"
    is_main: bool = False
    """Whether this is the main figure of the table, printed bold."""
    is_minor: bool = False
    """Whether this is a minor figure, printed less prominently."""
    is_optional: bool = False
    """Whether the column is omitted where no result has the value."""
    better: Literal["higher", "lower"] | None = None
    """For a main value, which direction is better; None where neither is."""
    adjective: str | None = None
    """What a better value is more of, where there is a word for it: "fast" (as in "1.24 times as fast")."""

    def __init__(self, value: str, head: str, **more: Any) -> None:
        BaseModel.__init__(self, value=value, head=head, **more)

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
    """The results laid out as a matrix: a row for each of ``rows``, a column for each combination of ``across``.

    Each cell shows ``cell``. There is one such table for each value of ``each``.
    """

    rows: Column
    across: tuple[Column, ...]
    cell: Column
    each: Column | None = None
    is_rising: bool = False
    """Whether the lowest row is the first, instead of the highest."""
    compares_rows: bool = False
    """Whether configurations that are compared are rows, instead of the last level of ``across``: where they are what a
    published table has as rows. ``rows`` is the outermost level of ``across`` then."""


class Curve(Frozen):
    """A curve of ``y`` against ``x``, both in percent and drawn from 0 to 100, or further where ``x`` is greater.

    There is one line for each combination of ``lines``. ``clean`` is the ideal ``y`` (0 lost, 100 returned).
    """

    x: Column
    y: Column
    lines: tuple[Column, ...]
    caption: str
    clean: float | None = None


class Plot(Frozen):
    """A plot of every ``y``, all in one unit, against ``x``: frame or message sizes, or intervals of time.

    There is one line of each ``y`` for each combination of ``lines`` that the results have, and one plot for each value
    of ``each``. ``lower`` and ``upper`` name the values between which an error bar extends at each point.
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
    """A goal of a search, and the name of the value that holds the highest rate that met it.

    ``share`` names the value with that rate as a share of the line rate; ``loss_ratio`` is ``None`` where it is
    unknown.
    """

    value: str
    share: str
    name: str
    loss_ratio: float | None = None

    @property
    def clause(self) -> str:
        """The goal in words: "without loss", "with at most 0.5 % lost"."""
        if not self.loss_ratio:
            return f"at the {self.name}" if self.loss_ratio is None else "without loss"
        return f"with at most {format_digits(100 * self.loss_ratio)}\u202f% lost"


class SearchedRates(Frozen):
    """The rates that a search found, one for each goal, the strictest first; one row for each frame size.

    The report derives its first sentence from them, draws them with their intervals, and shows several configurations
    side by side. ``line_rate`` and ``ceiling`` name the values that bound them.
    """

    goals: tuple[Goal, ...]
    line_rate: str
    ceiling: str


class RateBars(Frozen):
    """A bar chart of a rate at each ``x``, with its share of the line rate as a line."""

    x: Column
    rate: Column
    share: Column
    goal: Goal


class FurtherTable(Frozen):
    """A further table of the same rows in other columns, below the table of the section."""

    title: str
    caption: str
    columns: tuple[Column, ...]
    bars: RateBars | None = None


class Statement(Frozen):
    """An answer in a sentence of its own: "At 50 % of the NDR, half of the 64-byte frames pass within 20 µs".

    ``lead`` and ``says`` may contain ``{value_name}``. ``value`` follows ``says``; where ``also`` is known, it follows
    ``also_says`` ("99.9 % within"), or ``both_say`` replaces ``says`` where the two values are equal. ``alone``
    describes the DUT where the run measured nothing else ("was measured for latency only"). The key ``beside`` names a
    value that is stated in a sentence after it, ``beside_says``, wherever it is not zero.
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
    """The section of one method; where it has several, of the results whose parameter ``part`` is this ``part``.

    ``sentences`` are candidate answers in words, with ``{value_name}`` as placeholders. The first one whose values are
    all known is used; it has no subject, which is the DUT. ``clean_sentence`` is about the highest ``x`` of the curve
    up to which every ``y`` was clean. ``sums`` are a column and its content in a row that sums up the others: such a
    row represents them.

    ``notes`` are values that contain words, each with its subject ("Record of cycles"): printed once below the table.
    Where there is a ``grid``, it comes first, and the columns are the details behind it.

    ``apart_by`` names parameters of which each combination has a section of its own; ``title`` may contain them, and
    ``{load}``, which is the load in words.

    ``overview`` has the columns of the summary table with a row for each frame size that ends a run on the terminal,
    joined with those of other tests; of several loads it shows the highest.

    ``editors``: its results are instances against a target, over numbers of instances and runs (stats/frames.py),
    which the report sums up beforehand (report/editors); the table itself has the details.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    sentences: tuple[str, ...] = ()
    clean_sentence: str | None = None
    sums: tuple[str, str] | None = None
    notes: tuple[tuple[ValueName, str], ...] = ()
    grid: Grid | None = None
    curve: Curve | None = None
    plots: tuple[Plot, ...] = ()
    bars: Bars | None = None
    narrowing: Narrowing | None = None
    part: str | None = None
    editors: bool = False
    has_basis: bool = True
    """Whether its rates are of frames on ports, so that the report says whether they are per port or a sum of ports."""
    basis_of: str = "Rates"
    """What is per port, or a sum of ports, as the subject of that statement."""
    caption_beside: str = ""
    """An addition to the caption where configurations stand side by side."""
    apart_by: tuple[str, ...] = ()
    rates: SearchedRates | None = None
    statement: Statement | None = None
    further: tuple[FurtherTable, ...] = ()
    overview: tuple[Column, ...] = ()
    search_notes: str | None = None
    """The prefix ("Search") of a result's disturbances where these are notes that may also apply to a valid result."""
    row_name: str | None = None
    """What a row is called in notes, with ``{value_name}`` as placeholders; None: by its first cell."""
    times_frames: bool = False
    """Whether its rows are trials with timed frames: time stamps, clocks and the tail of each are shown."""


# What a method imports of results that others measured: the columns of a CSV, and the constraints between them.
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
"""What a column contains, which determines the units in which it may be written. ``load`` is a percentage that names
its reference; ``media_rate`` is of media frames in ``fps``, which are files, so that no line rate bounds it;
``bit_rate`` is kept as a layer 2 rate; ``payload_rate`` counts what a tool handed over, above all layers; ``link`` is
the speed of the ports, "2x25GbE"; a ``time`` is kept in the unit at the end of the value's name (``_ns``, ``_us``).
"""


class ImportColumn(Frozen):
    """One imported column: the ``value`` it becomes, its name in the heading without the unit, and alternative names.

    A ``{bound}`` in the name is a latency with its unit ("frames outside 20 us"), and ``{bound}`` in the value is the
    same in nanoseconds. Columns with ``tells_apart`` are parameters: no two rows may agree in all of them.
    """

    value: str
    name: str
    quantity: Quantity
    also: tuple[str, ...] = ()
    tells_apart: bool = False
    is_required: bool = False
    may_be_empty: bool = False
    """Whether an empty cell says something where others are filled: that a row is over all runs, or of a whole port."""
    bound: Literal["value", "lower", "upper"] | None = None
    """Which part of a value with an interval the column is."""
    is_above_zero: bool = False
    most: int | None = None
    """The largest plausible number."""
    words: tuple[str, ...] = ()
    """The allowed words of a ``text``; empty where any text is allowed."""

    def __init__(self, value: str, name: str, quantity: Quantity, **more: Any) -> None:
        BaseModel.__init__(self, value=value, name=name, quantity=quantity, **more)

    @property
    def is_filled(self) -> bool:
        """Whether the cells of the column tell rows apart by what is in them, all of them or none."""
        return (self.tells_apart or self.quantity == "link") and not self.may_be_empty


class ImportStatistics(Frozen):
    """Statistics over several rows that an imported row (a whole) may print.

    The rows behind a whole are its ``parts``, which agree with it in all other columns and whose ``place`` is from 1 to
    ``number``. The other columns are those that tell rows apart, without ``below``. Without a ``number``, the parts are
    complete where their places leave no gap. ``of`` identifies wholes: a row that has it is a whole even if none of its
    parts is in the file. Without a ``part`` the file has no parts, and what a row prints is checked against itself.
    Where the ``place`` is a text, a whole has the word ``named`` there, and all values ``if_said``.
    """

    parts: str
    """The name of the parts: "instances"."""
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
    """A value that is equal for each of ``number``, in all rows of one configuration that agree in ``among``.

    In a row that has a ``place``, the value is of a single one. ``hint`` is the next step where rows contradict each
    other.
    """

    value: str
    place: str
    number: str
    among: tuple[str, ...]
    hint: str


class ImportTable(Frozen):
    """The imported columns of a method, and the constraints on a row; each name is that of a value.

    ``any_of``: a row without any of these says nothing. ``shares``: a rate and its percentage of the line rate.
    ``bit_rates``: a frame rate and the corresponding bit rate on layer 2. ``rising``: values none of which may be
    smaller than the one before it. ``complements``: two percentages that add up to 100. ``percentages``: one that
    follows from two counts, part and whole. ``lossless``: a rate found without loss, and the loss in percent beside it.
    ``sums`` are counts of which the first is the sum of all others. ``statistics`` and ``same_shares`` concern several
    rows; within ``statistics``, those of few rows come before those of their sums.

    ``load_of`` is the meaning of a load of 100 % where the heading does not give it; None where the heading must give
    it.
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
    """Whether a load may exceed 100 %, because several ports may send to one."""
    caption: str = ""
    """Replaces the caption of the method's own table, which describes how nicbench measures."""

    def shares_of_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Returns the ``percentages`` that follow from counts of a row, of which ``sums`` may give one more."""
        known = dict(counts)
        for whole, *parts in self.sums:
            missing = [name for name in (whole, *parts) if name not in known]
            if len(missing) == 1 and missing[0] != whole:
                known[missing[0]] = known[whole] - sum(known[name] for name in parts if name in known)
        return {
            share: 100.0 * known[part] / known[whole]
            for share, part, whole in self.percentages
            if part in known and known.get(whole, 0.0) > 0.0
        }
