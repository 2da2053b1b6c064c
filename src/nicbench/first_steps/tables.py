"""How a table of results becomes a datasheet: the options of ``nicbench import`` that it needs, found by trying.

Each format of tables is tried on each way in which the headings can lie; of those the one is proposed that leaves the
fewest questions open and the fewest columns out. What only the table's author knows stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from nicbench.core.errors import Problem, UsageError, WrongFileError
from nicbench.core.frozen import frozen
from nicbench.core.registry import find
from nicbench.importing.cells import PLAIN, Cell, Dialect, Sheet, read_bytes, unpack
from nicbench.importing.columns import LINK, Assignment, ImportOptions, assign, is_number
from nicbench.importing.folder import GivenFile, import_files
from nicbench.importing.formats.base import Format, lines_of
from nicbench.importing.results import importable, method_of
from nicbench.importing.workbook import is_workbook, sheet_names

_MOST_TRIES: Final = 8
_GUESSED: Final = ("--column", "--configuration", "--ignore", "--repeat", "--thousands", "--decimal", "--set")
"""Options that a table's content suggests; what needs a value of its author is left open."""
_FORMATS: Final = ("testcenter", "ixnetwork", "long", "plain", "wide")
"""The formats of tables, of equals the first is taken."""
_TOGETHER: Final = ("throughput", "latency", "frame-loss", "back-to-back")
"""Methods whose figures stand in one table."""
_OFTEN: Final = ("throughput", "stream")
"""Of methods with the same columns, those that most tables are of."""
_ENCODING: Final = "cp1252"
"""What spreadsheets of Western Europe write where they do not write UTF-8."""
_LOAD: Final = "load [% of throughput]"
_AT_LINE_RATE: Final = "load [% of line rate]"
_LOAD_NOTE: Final = (
    "The latency is taken to be that at the throughput, as RFC 2544 section 26.2 asks; where it is not, correct --set."
)
_OPEN_WORDS: Final = ("NAME", "UNIT", "LAYER", "SPEED")


@frozen
class HowToImport:
    """The options, what only the table's author knows (problems that are left), and what was assumed."""

    options: tuple[str, ...] = ()
    open: tuple[Problem, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())


@dataclass(slots=True)
class _Way:
    """One way to read a file: a format, the methods, and the options so far."""

    form: str
    dialect: Dialect
    methods: list[str] = field(default_factory=list)
    options: ImportOptions = field(default_factory=ImportOptions)
    flags: list[tuple[str, ...]] = field(default_factory=list)
    open: tuple[Problem, ...] = ()
    left_out: int = 0

    @property
    def rank(self) -> tuple[int, int]:
        """The questions that it leaves open, and the columns that it leaves out."""
        return len(self.open), self.left_out


def how_to_import(path: Path) -> HowToImport:
    """The options by which the file can be imported. UsageError if no method has such results."""
    content = read_bytes(path)
    ways = [way for way in _ways(path, content) if _try(way, path, content)]
    if not ways:
        step = f"see the columns of each method in docs/import.md, then: nicbench import {path} --method NAME"
        raise UsageError("its columns are those of no method", place=str(path), next_step=step)
    best = min(ways, key=lambda way: way.rank)
    assumed = (_LOAD_NOTE,) if ("--set", f"{_LOAD}=100") in best.flags else ()
    return HowToImport(_words(best), best.open, assumed)


def _ways(path: Path, content: bytes) -> Iterator[_Way]:
    formats = find("nicbench.importing.formats", Format)
    if not unpack(content, str(path)).lstrip().startswith((b"{", b"[")):
        for dialect in _dialects(path, content):
            for name in _FORMATS:
                yield _Way(name, dialect, _methods(formats[name], path, content, dialect))
    for name in (name for name, form in formats.items() if name not in _FORMATS):
        for method in importable():
            yield _Way(name, PLAIN, [method])


def _dialects(path: Path, content: bytes) -> Iterator[Dialect]:
    """Yields the ways in which headings can lie, in each sheet of a workbook."""
    sheets: tuple[str | None, ...] = (None,)
    if is_workbook(content):
        names = sheet_names(content, str(path))
        sheets = names if len(names) > 1 else (None,)
    for sheet in sheets:
        dialect = Dialect(sheet=sheet)
        try:
            lines = lines_of(content, str(path), dialect)
        except WrongFileError:
            dialect = replace(dialect, encoding=_ENCODING)
            lines = lines_of(content, str(path), dialect)
        yield from _layouts(lines, dialect)


def _layouts(lines: Sequence[Sequence[Cell]], dialect: Dialect) -> Iterator[Dialect]:
    """Yields one heading line, and two where the line above can be headings too; notes below are left out."""
    data = next((at for at, cells in enumerate(lines) if at and _is_data(cells)), None)
    if data is None:
        yield dialect
        return
    end = next((at for at in range(data, len(lines)) if not _is_data(lines[at], fewest=1)), len(lines))
    last_line = lines[end - 1][0].position.line if end < len(lines) else None
    heading = lines[data - 1][0].position.line
    one = replace(dialect, last_line=last_line, heading_lines=(1, 1) if data == 1 else (heading, heading))
    yield one
    if data > 1 and len({cell.text for cell in lines[data - 2] if cell.text}) > 1:
        yield replace(one, heading_lines=(lines[data - 2][0].position.line, heading))


def _is_data(cells: Sequence[Cell], fewest: int = 2) -> bool:
    """Whether a line has figures that are not the frame sizes above columns."""
    texts = [cell.text for cell in cells if cell.text]
    numbers = [text for text in texts if any(sign.isdecimal() for sign in text) and is_number(text)]
    if len(numbers) < min(fewest, max(1, len(cells) - 1)) or 2 * len(numbers) < len(texts) - 1:
        return False
    rest = [text for text in texts[-len(numbers) :] if text.isdecimal()]
    are_sizes = len(rest) == len(numbers) > 1 and all(int(a) < int(b) for a, b in pairwise(rest))
    return not (are_sizes and int(rest[0]) >= 64 and len(texts) >= len(numbers) and not texts[0].isdecimal())


def _methods(form: type[Format], path: Path, content: bytes, dialect: Dialect) -> list[str]:
    """Returns the method with the most columns of this table, and others that have further ones; none if none has."""
    found = {}
    for name, method in importable().items():
        table = method.imports()
        assigned = _assigned(form, path, content, dialect, name)
        if table is None or assigned is None:
            continue
        own = [one for one in assigned.columns if one.column is not LINK]
        values = {one.column.value for one in own}
        has_main = values.intersection(table.any_of) or table.shares_of_counts(dict.fromkeys(values, 1.0))
        missing = [column.name for column in table.columns if column.is_required and column.value not in values]
        if has_main and missing in ([], ["load"]):
            mains = {one.head.position for one in own if one.column.value in table.any_of}
            found[name] = ({one.head.position for one in own}, mains, not missing)
    if not found:
        return []
    first = max(found, key=lambda name: (len(found[name][0]), found[name][2], name in _OFTEN))
    chosen, known = [first], set(found[first][0])
    for name in _TOGETHER:
        if first in _TOGETHER and name in found and name != first and found[name][1] - known:
            chosen.append(name)
            known |= found[name][0]
    return sorted(chosen, key=lambda name: name != "throughput")


def _assigned(form: type[Format], path: Path, content: bytes, dialect: Dialect, name: str) -> Assignment | None:
    """Returns what the columns are to a method; None where the file is not of the format, or has nothing of it."""
    table = method_of(name).imports()
    for options in (ImportOptions(), ImportOptions(decimal="comma")):
        with suppress(UsageError):
            sheet = form.sheet(form.cells(content, str(path), dialect), str(path), name, options)
            return assign(sheet, table, options) if table else None
    return None


def _try(way: _Way, path: Path, content: bytes) -> bool:
    """Adds the options that problems suggest until only those are left that the author knows; False if nothing fits."""
    form = find("nicbench.importing.formats", Format)[way.form]
    if way.form == "wide" and not way.methods:
        way.methods = ["throughput"]
        if not _would_do(way, path, content):
            return False
    for _ in range(_MOST_TRIES if way.methods else 0):
        methods = [method_of(name) for name in way.methods]
        try:
            import_files((GivenFile(path, content),), form, methods, way.options, way.dialect)
        except WrongFileError as error:
            added = [flags for one in error.problems if (flags := _answer(way, one))]
            if not added:
                way.open += error.problems
                way.flags += dict.fromkeys(one.flags for one in error.problems if one.flags)
                if len(way.open) == 1 and way.open[0].flags == ("--set", "load=LOAD"):
                    way.options = replace(way.options, given={_AT_LINE_RATE: "100"})  # what else is to be asked?
                    continue
                return any(one.flags for one in way.open) or way.form == "plain"
            way.flags += (flags for flags in dict.fromkeys(added) if flags not in way.flags)
            way.options = _with(way.options, dict.fromkeys(added))
        except UsageError:
            return False
        else:
            way.left_out = _figures_left_out(form.cells(content, str(path), way.dialect), way.options)
            return True
    return False


def _would_do(way: _Way, path: Path, content: bytes) -> bool:
    """Whether nothing is missing but what the figures are: whether the table fits if they are rates."""
    known = replace(way.options, cells="frame rate [Mpps]")
    tried = _Way(way.form, way.dialect, list(way.methods), known)
    return _try(tried, path, content) and not tried.open


def _figures_left_out(sheet: Sheet, options: ImportOptions) -> int:
    """Returns how many columns of numbers are left out; columns of remarks do not count."""
    columns = [sheet.index_of(name) for name in options.ignore]
    return sum(index is None or all(is_number(row[index].text) for row in sheet.rows) for index in columns)


def _answer(way: _Way, problem: Problem) -> tuple[str, ...]:
    """Returns the options that settle a problem without its author; none where they have a word to fill in."""
    flags = problem.flags
    if flags and flags[0] == "--set" and flags[1].startswith("load=") and "throughput" in way.methods:
        return "--set", f"{_LOAD}=100"
    is_open = not flags or flags[0] not in _GUESSED or flags[0] == "--set" or flags[1].endswith(_OPEN_WORDS)
    return () if is_open or flags in way.flags else flags


def _words(way: _Way) -> tuple[str, ...]:
    dialect = way.dialect
    first, last = dialect.heading_lines
    words = [word for name in way.methods for word in ("--method", name)]
    words += ["--from", way.form] if way.form != "plain" else []
    words += ["--sheet", dialect.sheet] if dialect.sheet else []
    words += ["--encoding", dialect.encoding] if dialect.encoding else []
    if (first, last) != PLAIN.heading_lines:
        words += ["--heading-line", str(first) if first == last else f"{first}-{last}"]
    words += ["--last-line", str(dialect.last_line)] if dialect.last_line else []
    return (*words, *(word for flags in dict.fromkeys(way.flags) for word in flags))


def _with(options: ImportOptions, flags: Sequence[tuple[str, ...]] | dict[tuple[str, ...], None]) -> ImportOptions:
    """The options as if these were given too."""
    words = [pair for several in flags for pair in zip(several[::2], several[1::2], strict=True)]
    said = {option: [value for name, value in words if name == option] for option in _GUESSED}

    def named(option: str) -> dict[str, str]:
        return {head: value for head, _, value in (one.rpartition("=") for one in said[option])}

    return replace(
        options,
        columns={**options.columns, **named("--column")},
        given={**options.given, **named("--set")},
        configurations=(*options.configurations, *said["--configuration"]),
        ignore=(*options.ignore, *said["--ignore"]),
        repeat=(*options.repeat, *said["--repeat"]),
        thousands=next(iter(said["--thousands"]), options.thousands),
        decimal="comma" if "comma" in said["--decimal"] else options.decimal,
    )
