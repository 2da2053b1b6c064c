"""Units, link speeds and numbers as tables and testers print them. Nothing that is not named is guessed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from nicbench.core.errors import Problem, UsageError, nearest_name, quote, suggest
from nicbench.core.frozen import frozen
from nicbench.core.number_reader import POINT, WRITINGS, Decimal, Writing, read_number
from nicbench.core.table import ImportColumn, ImportTable
from nicbench.core.units import format_bits_per_s, line_rate_frames_per_s, parse_bits_per_s
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.languages import in_english, names_abroad

_LINK: Final = re.compile(r"(?:(?P<ports>\d{1,4})\s*[x\u00d7]\s*)?(?P<speed>[\d.]+\s*[^\d.\s].*)", re.IGNORECASE)
_ETHERNET: Final = re.compile(r"(?P<number>[\d.]+)\s*(?P<prefix>[MGT])b?E", re.IGNORECASE)


@frozen
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


def parse_link(text: str, writing: Writing = POINT) -> Link:
    """Parses a link speed: "25GbE", "2x100GbE", "4 x 25 Gb/s"; ValueError for any other text."""
    with suppress(ValueError):
        number = parse_number(text, writing)
        if number.unit is not None and number.unit.kind == "bit_rate" and number.value > 0:
            return Link(float(number.value * number.unit.factor))
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


@frozen
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
                "pps": ("1", "fps frames/s packets/s frames/sec packets/sec pakete/s rahmen/s paquets/s trames/s"),
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
# In any case, as in MPPS and Bytes, but not where the case tells bits from bytes (MBPS).
_UNITS_IN_ANY_CASE: Final = MappingProxyType(
    {name.lower(): unit for name, unit in _UNITS.items() if len(name) > 1 and not name.lower().endswith(("b/s", "bps"))}
)
_LAYER: Final = re.compile(r"[\[(]?\b(?:l|layer ?)([12])\b[\])]?", re.IGNORECASE)
_PERCENT: Final = re.compile(
    r"(?:%|percent|prozent)(?: ?(?:of (?:the )?|der |du |de la )(?P<of>[a-z\u00e9 -]+)| (?P<line>line rate))?",
    re.IGNORECASE,
)
FORMS: Final = "fps, pps, kpps, Mpps, Gb/s L1, Gb/s L2, % of line rate, %, ns, us, ms, GHz, bytes, frames"


def parse_unit(text: str) -> Unit | None:
    """Parses a unit of a heading or an option: "Mpps", "Gb/s L2", "% of line rate"; None for any other text."""
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
        return Unit("%", "percent", Fraction(1), of=in_english(of) if of else None)
    known = _UNITS.get(plain)
    return known or _LOWER_CASE_UNITS.get(plain) or _UNITS_IN_ANY_CASE.get(plain.lower())


NOTHING: Final = frozenset({"", "-", "--", "\u2013", "\u2014", "n/a", "na", "nan", "null", "none"})
"""What tables write in place of a figure, in lower case."""


@frozen
class PrintedNumber:
    """A printed number; ``value`` is in the printed unit, and the true value is at most ``rounding`` away."""

    text: str
    value: Fraction
    rounding: Fraction
    unit: Unit | None
    is_grouped: bool = False
    is_long: bool = False


def parse_number(text: str, writing: Writing = POINT) -> PrintedNumber:
    """Parses a number, with a unit behind it if there is one; ValueError, with what to do, for any other text."""
    read = read_number(text, writing)
    unit = parse_unit(read.rest) if read.rest else None
    if read.rest and unit is None:
        raise ValueError(f"{read.rest!r} behind the number is not a known unit")
    return PrintedNumber(read.digits, read.value, read.rounding, unit, read.is_grouped, read.is_long)


def is_number(text: str) -> bool:
    """Returns whether a cell is a number by any way of writing, with a unit or without, or stands for none."""
    if text.lower() in NOTHING:
        return True
    for writing in WRITINGS:
        with suppress(ValueError):
            parse_number(text, writing)
            return True
    return False


@frozen
class ImportOptions:
    """What the user states about a file; column names are those of the file. No default is a guess.

    ``columns``: the name that a file's column has in nicbench. ``given``: a column that the file lacks, with the value
    of all its rows. ``where``: only rows with this text. ``repeat``: columns whose empty cells have the value above.
    ``cells``: what the figures of a wide table are. ``configurations``: columns that name what is compared.
    ``decimal`` and ``thousands``: the marks in numbers; None where nobody says them. ``loss_ratio``: the share of
    frames that a PDR allows to be lost. ``errata``: implausible figures are taken as printed, and listed.
    """

    link: Link | None = None
    ports: int | None = None
    columns: dict[str, str] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    repeat: tuple[str, ...] = ()
    cells: str | None = None
    configurations: tuple[str, ...] = ()
    decimal: Decimal | None = None
    thousands: str | None = None
    loss_ratio: float | None = None
    errata: bool = False


_BRACKETS: Final = re.compile(
    r"(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]+)[\])]\s*(?P<layer>\(?\bL[12]\)?)?", re.IGNORECASE
)
_LONGEST_UNIT_WORDS: Final = 4
# At the end of a name these are words, not units, as in "offered frames".
_WORDS: Final = frozenset({"frames", "frame", "packets", "packet", "b"})


@frozen
class Heading:
    """A heading; ``name`` is normalised for comparison: lower case and single blanks."""

    name: str
    unit: Unit | None


def parse_heading(text: str) -> Heading:
    """Splits a heading into name and unit; one that is only a unit ("% of line rate") is its own name."""
    bracketed = _BRACKETS.fullmatch(text)
    if bracketed is not None:
        unit = parse_unit(f"{bracketed['unit']} {bracketed['layer'] or ''}".strip())
        if unit is not None:
            return Heading(plain(bracketed["name"]) or plain(text), unit)
    words = re.split(r"[\s_,]+", text.strip())
    for count in range(min(_LONGEST_UNIT_WORDS, len(words)), 0, -1):
        written = " ".join(words[-count:])
        unit = None if written.lower() in _WORDS else parse_unit(written)
        if unit is not None:
            name = " ".join(words[:-count])
            return Heading(plain(name) if name else plain(text), unit)
    return Heading(plain(text), None)


def plain(name: str) -> str:
    """Normalises a name: case, marks between words, and the spelling of "percent" do not matter."""
    folded = unicodedata.normalize("NFKD", name.casefold().replace("\u00b5", "u").replace("\u03bc", "u"))
    small = "".join(sign for sign in folded if not unicodedata.combining(sign)).replace("%", " percent ")
    return " ".join(re.sub(r"(?<!\d)\.|\.(?!\d)|[^a-z0-9.]+", " ", small).split())


LINK: Final = ImportColumn("link", "link", "link", also=("link speed", "port speed", "speed"))
"""The speed of the ports of a row: a column that every method takes."""

_BOUND: Final = r"(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>ns|us|ms|s)"


@frozen
class AssignedColumn:
    """A column of the file (``index``) and its meaning; ``value`` is the column's value, with its bound filled in."""

    column: ImportColumn
    index: int
    head: Cell
    unit: Unit | None
    value: str

    @property
    def key(self) -> str:
        """The value's name, and which part of it (value, lower or upper bound)."""
        part = self.column.bound
        return self.value if part in (None, "value") else f"{self.value}:{part}"


@frozen
class Assignment:
    """The meaning of all columns; ``configurations`` are indices, ``ignored`` the headings not used."""

    columns: tuple[AssignedColumn, ...]
    configurations: tuple[int, ...]
    ignored: tuple[str, ...]
    problems: tuple[Problem, ...]


def choose_rows(sheet: Sheet, options: ImportOptions) -> Sheet:
    """Returns the rows selected by ``where``, empty cells of ``repeat`` filled. UsageError if nothing matches."""
    sheet = _repeat_cells(sheet, options)
    columns = [(_require_column(sheet, name, "--where"), text) for name, text in options.where.items()]
    rows = [row for row in sheet.rows if all(row[index].text == text for index, text in columns)]
    if not rows:
        wanted = " and ".join(f"{name} = {text}" for name, text in options.where.items())
        found = ", ".join(dict.fromkeys(row[columns[0][0]].text for row in sheet.rows))
        raise UsageError(f"no row has {wanted}", next_step=f"its values are: {found[:300]}")
    return replace(sheet, rows=tuple(rows))


def _repeat_cells(sheet: Sheet, options: ImportOptions) -> Sheet:
    """Fills empty cells of the columns in ``repeat`` with the cell above, as merged cells of a spreadsheet mean it."""
    columns = [_require_column(sheet, name, "--repeat") for name in options.repeat]
    if not columns:
        return sheet
    rows: list[tuple[Cell, ...]] = []
    for row in sheet.rows:
        cells = list(row)
        for index in columns:
            if not cells[index].text and rows:
                cells[index] = replace(rows[-1][index], position=cells[index].position)
        rows.append(tuple(cells))
    return replace(sheet, rows=tuple(rows))


def add_given_columns(sheet: Sheet, options: ImportOptions) -> Sheet:
    """Adds the columns that the file lacks; their cells have the position of their row."""
    heads = (*sheet.heads, *(Cell(name, sheet.heads[0].position) for name in options.given))
    given = tuple(options.given.values())
    rows = tuple((*row, *(Cell(text, row[0].position) for text in given)) for row in sheet.rows)
    return replace(sheet, heads=heads, rows=rows)


def assign(sheet: Sheet, table: ImportTable, options: ImportOptions, beside: Sequence[ImportTable] = ()) -> Assignment:
    """Finds the method's column for each heading; what only tables ``beside`` it know is left to them.

    UsageError where an option names a column that is not there.
    """
    compared = dict.fromkeys((*options.configurations, *sheet.configurations))
    configurations = tuple(_require_column(sheet, name, "--configuration") for name in compared)
    ignore = {_require_column(sheet, name, "--ignore") for name in options.ignore}
    for option, names in (("--column", options.columns), ("--unit", options.units)):
        for name in names:
            _require_column(sheet, name, option)
    columns = (*table.columns, LINK)
    found: list[AssignedColumn] = []
    ignored, problems = list(sheet.ignored), []
    for index, head in enumerate(sheet.heads):
        if index in configurations:
            continue
        if index in ignore:
            ignored.append(head.text)
            continue
        one = _find(columns, index, head, options) or _find_by_unit(table, index, head, options)
        taken = next((other for other in found if one and other.key == one.key), None)
        is_of_others = one is None and any(
            _find(other.columns, index, head, options) or _find_by_unit(other, index, head, options) for other in beside
        )
        if one is None and (is_of_others or head.text in options.where):
            ignored.append(head.text)
        elif one is None:
            problems.append(_unknown_column(head, options.columns.get(head.text, head.text), columns))
        elif taken is not None:
            what = f"{quote(head.text)} and {quote(taken.head.text)} are both the {one.column.name}"
            flags = _less_direct(one, taken)
            less = flags[1] if flags else head.text
            problems.append(Problem(head.position, what, f"leave one of them out: --ignore '{less}'", flags))
        else:
            found.append(one)
    if not problems:
        problems += _missing(sheet, table, found)
    return Assignment(tuple(found), configurations, tuple(ignored), tuple(problems))


_DIRECT: Final = ("frame_rate", "bit_rate", "percent")


def _less_direct(one: AssignedColumn, other: AssignedColumn) -> tuple[str, ...]:
    """Returns the option that leaves out the column from which the other's figure would have to be computed."""
    ranks = {each: _DIRECT.index(each.unit.kind) for each in (one, other) if each.unit and each.unit.kind in _DIRECT}
    if len(ranks) < 2 or ranks[one] == ranks[other]:
        return ()
    return "--ignore", max(ranks, key=lambda each: ranks[each]).head.text


def _find(columns: Iterable[ImportColumn], index: int, head: Cell, options: ImportOptions) -> AssignedColumn | None:
    text = options.columns.get(head.text, head.text)
    heading = parse_heading(text)
    whole = plain(text)
    named = options.units.get(head.text)
    for column in columns:
        if "{bound}" in column.value:
            bound_ns = _bound_ns(column, whole)
            if bound_ns is not None:
                return AssignedColumn(column, index, head, None, column.value.format(bound=bound_ns))
        elif whole in names_of(column):  # checked before names without their unit: "PDR % of line rate" is not "PDR"
            is_unit_alone = heading.name == whole
            own = heading.unit if heading.unit and (heading.unit.kind == "percent" or is_unit_alone) else None
            return AssignedColumn(column, index, head, named or own, column.value)
    for column in columns:
        if "{bound}" not in column.value and heading.name in names_of(column):
            return AssignedColumn(column, index, head, named or heading.unit, column.value)
    return None


def is_of(columns: Iterable[ImportColumn], index: int, head: Cell, options: ImportOptions) -> bool:
    """Returns whether a heading names one of these columns."""
    return _find(columns, index, head, options) is not None


_MEASURED_IN: Final = {
    "frame_rate": ("frame_rate", "bit_rate"),
    "payload_rate": ("bit_rate",),
    "time": ("time",),
}


def _find_by_unit(table: ImportTable, index: int, head: Cell, options: ImportOptions) -> AssignedColumn | None:
    """Returns the main column of a method where the heading is only its unit: "Mpps" in a table of throughput."""
    heading = parse_heading(options.columns.get(head.text, head.text))
    if heading.unit is None or heading.name != plain(head.text):
        return None
    for column in table.columns:
        is_main = column.value in table.any_of and column.bound in (None, "value")
        is_plain = column.quantity != "time" or "latency" in column.also
        if is_main and is_plain and heading.unit.kind in _MEASURED_IN.get(column.quantity, ()):
            return AssignedColumn(column, index, head, heading.unit, column.value)
    return None


@cache
def names_of(column: ImportColumn) -> tuple[str, ...]:
    """Returns every name of a column, normalised for comparison."""
    return tuple(plain(name) for name in (column.name, *column.also, *names_abroad(column.name)))


def _bound_ns(column: ImportColumn, heading: str) -> int | None:
    """Returns the bound in the heading of such a column, in ns; None where it has none."""
    for name in (column.name, *column.also):
        before, _, after = name.partition("{bound}")
        pattern = f"{re.escape(plain(before))} ?{_BOUND} ?{re.escape(plain(after))}".rstrip()
        match = re.fullmatch(pattern, heading)
        unit = parse_unit(match["unit"]) if match else None
        if match and unit is not None:
            return round(Fraction(match["number"]) * unit.factor)
    return None


def _require_column(sheet: Sheet, name: str, option: str) -> int:
    index = sheet.index_of(name)
    if index is None:
        raise UsageError(
            f"{option}: the file has no column {quote(name)}", next_step=suggest(name, sheet.texts(), "column")
        )
    return index


def nearest_column(heading: str, columns: Iterable[ImportColumn]) -> str | None:
    """Returns the known column whose name is most similar to a heading; None where none is similar."""
    names = {plain(name): column.name for column in columns for name in (column.name, *column.also)}
    close = nearest_name(parse_heading(heading).name, list(names))
    return names[close] if close else None


def _unknown_column(head: Cell, text: str, columns: Sequence[ImportColumn]) -> Problem:
    """Describes the problem with the nearest name, the expected names, and how to ignore the column."""
    close = nearest_column(text, columns)
    meant = f"did you mean `{close}`? " if close else ""
    expected = f"expected are {expected_columns(columns)}"
    others = f"--column '{head.text}=NAME' names it, --ignore '{head.text}' leaves it out"
    return Problem(head.position, f"unknown column {quote(head.text)}", f"{meant}{expected}; {others}")


def expected_columns(columns: Iterable[ImportColumn]) -> str:
    """Lists the names of columns for a sentence."""
    return ", ".join(f"`{column.name}`" for column in columns)


def _missing(sheet: Sheet, table: ImportTable, found: Sequence[AssignedColumn]) -> list[Problem]:
    values = {one.column.value for one in found}
    names: Mapping[str, str] = {column.value: column.name for column in reversed(table.columns)}
    problems = []
    place = sheet.heads[0].position
    expected = f"expected are {expected_columns((*table.columns, LINK))}"
    for column in table.columns:
        if column.is_required and column.value not in values:
            hint = f"where it is the same in all rows: --set '{column.name}=...'; {expected}"
            flags = ("--set", f"{column.name}={column.name.upper()}")
            problems.append(Problem(place, f"there is no column `{column.name}`", hint, flags))
    if not values.intersection(table.any_of) and not table.shares_of_counts(dict.fromkeys(values, 1.0)):
        either = " or ".join(f"`{names[value]}`" for value in table.any_of)
        problems.append(Problem(place, f"there is no column {either}", expected))
    return problems
