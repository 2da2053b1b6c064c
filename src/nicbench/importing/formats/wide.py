"""Wide tables: what is compared stands across, or the frame sizes do; each becomes rows of one point.

A heading says what its figures are by the name of a column or by a unit ("Card A, throughput [Mpps]"); what is left of
it names what is compared. Where frame sizes stand across, the first cells of a row say that.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Final

from nicbench.core.errors import Position, Problem, WrongFileError, quote
from nicbench.core.table import ImportColumn
from nicbench.importing.cells import Cell, Dialect, Sheet, make_sheet
from nicbench.importing.columns import (
    LINK,
    ImportOptions,
    is_number,
    is_of,
    names_of,
    parse_number,
    parse_unit,
    plain,
)
from nicbench.importing.formats.base import Format, lines_of
from nicbench.importing.results import importable, method_of

CONFIGURATION: Final = "configuration"
_SIZE: Final = "frame size"
_SIZES: Final = range(64, 65_536)
_FEWEST_SIZES: Final = 2
_BRACKETS: Final = re.compile(r"[\[(]([^\[\]()]+)[\])]")
_LONGEST_UNIT: Final = 4
_KINDS: Final = frozenset({"frame_rate", "bit_rate", "percent", "time"})
_OF_SOMETHING_ELSE: Final = frozenset(
    {
        *("drop", "drops", "dropped", "loss", "lost", "jitter", "error", "errors", "sent", "tx", "transmitted"),
        *("offered", "load", "target", "limit", "deviation", "stdev", "cpu", "p50", "p90", "p99", "difference"),
        *("verlust", "verluste", "last", "ziel", "abweichung", "perte", "pertes", "charge"),
    }
)
"""Words with which a unit alone does not say that figures are the result: "drops [Mpps]"."""
_MARKS: Final = " ,;:/|-\u2013\u2014_"


class Wide(Format):
    """Makes a row of each point of what is compared."""

    kind = "wide"
    about = "what is compared, or the frame sizes, stand across"

    @classmethod
    def cells(cls, content: bytes, path: str, dialect: Dialect) -> Sheet:
        return make_sheet(lines_of(content, path, dialect), path, dialect, may_lack_headings=True)

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        table = method_of(method).imports()
        known = [column for column in (*(table.columns if table else ()), LINK) if column.tells_apart or column is LINK]
        if len([head for head in sheet.heads if _size_of(head.text)]) >= _FEWEST_SIZES:
            known = [column for column in known if column.quantity != "frame_size"]
            points = _of_sizes_across(sheet, path, _keys(sheet, known, options), options)
        else:
            points = _of_names_across(sheet, path, _keys(sheet, known, options), options)
        return points.sheet(sheet)


def _keys(sheet: Sheet, known: list[ImportColumn], options: ImportOptions) -> list[int]:
    return [index for index, head in enumerate(sheet.heads) if is_of(known, index, head, options)]


@dataclass(slots=True)
class _Points:
    """The points found so far, by what tells them apart: the cells of keys, a size, and a name."""

    path: str
    keys: tuple[Cell, ...]
    rows: dict[tuple[str, ...], tuple[tuple[Cell, ...], dict[str, Cell]]] = field(default_factory=dict)
    measures: dict[str, Cell] = field(default_factory=dict)

    def add(self, keys: tuple[Cell, ...], measure: str, head: Cell, figure: Cell) -> None:
        texts = tuple(cell.text for cell in keys)
        _, figures = self.rows.setdefault(texts, (keys, {}))
        if measure in figures:
            first = figures[measure].position
            what = f"`{measure}` of this point stands in line {first.line}, column {first.column} already"
            hint = "leave a column out by --ignore COLUMN, or choose rows by --where COLUMN=VALUE"
            raise WrongFileError(self.path, [Problem(figure.position, what, hint)])
        figures[measure] = figure
        self.measures.setdefault(measure, Cell(measure, head.position))

    def sheet(self, sheet: Sheet) -> Sheet:
        """Returns a row of each point; what only names nothing is left out."""
        heads = [*self.keys, *self.measures.values()]
        rows = []
        for keys, figures in self.rows.values():
            place = next(iter(figures.values())).position
            rows.append((*keys, *(figures.get(name, Cell("", place)) for name in self.measures)))
        compared = [head.text for head in self.keys if head.text == CONFIGURATION]
        empty = [at for at, head in enumerate(heads) if head.text in compared and not any(row[at].text for row in rows)]
        kept = [index for index in range(len(heads)) if index not in empty]
        return replace(
            sheet,
            heads=tuple(heads[index] for index in kept),
            rows=tuple(tuple(row[index] for index in kept) for row in rows),
            configurations=() if empty else tuple(compared),
        )


def _of_names_across(sheet: Sheet, path: str, keys: list[int], options: ImportOptions) -> _Points:
    left_out = _left_out(sheet, options)
    texts = [
        index
        for index in range(len(sheet.heads))
        if index not in (*keys, *left_out) and not _is_of_numbers(sheet, index)
    ]
    first = sheet.heads[0].position
    points = _Points(path, (*(sheet.heads[index] for index in keys), Cell(CONFIGURATION, first)))
    problems = []
    for index, head in enumerate(sheet.heads):
        if index in keys or index in texts or index in left_out:
            continue
        name, measure = _split(options.columns.get(head.text, head.text))
        measure = measure or options.cells
        if measure is None:
            problems.append(_unsaid(head))
            continue
        for row in sheet.rows:
            if not row[index].text:
                continue
            named = ", ".join(text for text in (*(row[other].text for other in texts), name) if text)
            place = tuple(row[key] for key in keys)
            points.add((*place, Cell(named, row[index].position)), measure, head, row[index])
    _require(problems, points, path, sheet)
    return points


def _of_sizes_across(sheet: Sheet, path: str, keys: list[int], options: ImportOptions) -> _Points:
    left_out = _left_out(sheet, options)
    sizes = {index: size for index, head in enumerate(sheet.heads) if (size := _size_of(head.text)) is not None}
    labels = [index for index in range(len(sheet.heads)) if index not in (*keys, *sizes, *left_out)]
    first = sheet.heads[0].position
    points = _Points(path, (*(sheet.heads[index] for index in keys), Cell(_SIZE, first), Cell(CONFIGURATION, first)))
    problems = [problem for index in labels if (problem := _find_blank(sheet, index)) is not None]
    corner = next((_split(sheet.heads[index].text)[1] for index in labels), None)
    for row in sheet.rows:
        split = [_split(row[index].text) for index in labels]
        name = ", ".join(text for text, _ in split if text)
        measure = next((found for _, found in split if found), None) or corner or options.cells
        if measure is None:
            problems += [_unsaid(row[labels[0]] if labels else row[0])] if not problems else []
            continue
        for index, size in sizes.items():
            if row[index].text:
                place = row[index].position
                key = (*(row[one] for one in keys), Cell(str(size), place), Cell(name, place))
                points.add(key, measure, row[labels[0]] if labels else sheet.heads[index], row[index])
    _require(problems, points, path, sheet)
    return points


def _require(problems: list[Problem], points: _Points, path: str, sheet: Sheet) -> None:
    if problems:
        raise WrongFileError(path, problems)
    if not points.rows:
        raise WrongFileError(path, [Problem(sheet.heads[0].position, "there is no figure in it", None)])


def _left_out(sheet: Sheet, options: ImportOptions) -> list[int]:
    return [index for index, head in enumerate(sheet.heads) if head.text in options.ignore]


def _unsaid(head: Cell) -> Problem:
    what = f"it is not said what the figures of {quote(head.text)} are"
    hint = "write it, with its unit: --cells 'frame rate [Mpps]'"
    return Problem(head.position, what, hint, ("--cells", "frame rate [UNIT]"))


def _find_blank(sheet: Sheet, index: int) -> Problem | None:
    cells = [row[index] for row in sheet.rows]
    blank = next((cell for cell in cells if not cell.text), None)
    if blank is None or not any(cell.text for cell in cells):
        return None
    head = sheet.heads[index].text
    hint = f"--repeat {shlex.quote(head)} takes the value above for each empty cell"
    return Problem(blank.position, f"{quote(head)} is empty, and tells rows apart", hint, ("--repeat", head))


def _size_of(text: str) -> int | None:
    """Returns the frame size that a heading is: "64", "1518 B", "64 bytes"; None for any other text."""
    words = [word for word in re.split(r"[\s_]+", re.sub(r"[\[\]()]", " ", text)) if word]
    sizes = [index for index, word in enumerate(words) if word[0].isdecimal()]
    if len(sizes) != 1:
        return None
    before, after = words[: sizes[0]], words[sizes[0] :]
    sizes_are = [column for column in _columns() if column.quantity == "frame_size"]
    if before and not is_of(sizes_are, 0, Cell(" ".join(before), Position(1, 1)), ImportOptions()):
        return None
    try:
        number = parse_number(" ".join(after))
    except ValueError:
        return None
    is_size = number.unit is None or number.unit.kind == "size"
    return int(number.value) if is_size and number.value in _SIZES else None


def _is_of_numbers(sheet: Sheet, index: int) -> bool:
    texts = [text for row in sheet.rows if (text := row[index].text)]
    return bool(texts) and all(map(is_number, texts))


def _split(text: str) -> tuple[str, str | None]:
    """Returns the name of what is compared, and what the figures are: a name of a column with its unit, or a unit."""
    unit, left = _take_unit(text)
    words = [word for word in re.split(r"[\s_]+", left) if word]
    names = _measures()
    found = next(
        (
            (start, end)
            for start, end in sorted(combinations(range(len(words) + 1), 2), key=lambda one: one[0] - one[1])
            if plain(" ".join(words[start:end])) in names
        ),
        None,
    )
    if found is None:
        name = " ".join(words).strip(_MARKS)
        is_told = unit is not None and not _OF_SOMETHING_ELSE.intersection(plain(name).split())
        return name, unit if is_told else None
    start, end = found
    measure = " ".join(words[start:end])
    rest = [" ".join(words[:start]).strip(_MARKS), " ".join(words[end:]).strip(_MARKS)]
    return " ".join(part for part in rest if part), f"{measure} [{unit}]" if unit else measure


def _take_unit(text: str) -> tuple[str | None, str]:
    """Returns the unit in a heading, in brackets or as its last or any other words, and the text without it."""
    for match in _BRACKETS.finditer(text):
        if _is_unit(match[1]):
            return match[1], f"{text[: match.start()]} {text[match.end() :]}"
    words = re.split(r"[\s_]+", text.strip())
    for length in range(min(_LONGEST_UNIT, len(words)), 0, -1):
        for start in range(len(words) - length, -1, -1):
            written = " ".join(words[start : start + length]).strip(",;:")
            if _is_unit(written):
                return written, " ".join([*words[:start], *words[start + length :]])
    return None, text


def _is_unit(text: str) -> bool:
    unit = parse_unit(text)
    return unit is not None and unit.kind in _KINDS and (len(text) > 1 or text == "%")


@cache
def _measures() -> frozenset[str]:
    """Returns every name of a column of figures."""
    return frozenset(
        name
        for column in _columns()
        if not column.tells_apart and "{" not in column.value and column.quantity not in ("text", "link")
        for name in names_of(column)
    )


@cache
def _columns() -> tuple[ImportColumn, ...]:
    """Returns the columns of all methods."""
    tables = [method.imports() for method in importable().values()]
    return tuple(column for table in tables if table is not None for column in table.columns)
