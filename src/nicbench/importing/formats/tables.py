"""Tables: plain ones, those with one figure in each row, and the CSV files of IxNetwork, TestCenter and tframetest."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from nicbench.core.errors import Problem, UsageError, WrongFileError, quote
from nicbench.core.number_reader import POINT, plain_number
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.columns import ImportOptions, parse_number
from nicbench.importing.formats.base import FILE_NUMBER, FILES, Format, rename_columns
from nicbench.importing.marks import NumberColumn, settle


class Plain(Format):
    """Takes the table unchanged."""

    kind = "plain"
    about = "headings name the columns and their units"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        return sheet


class Long(Format):
    """Pivots the table: rows that agree in the other columns become one row, each metric a column."""

    kind = "long"
    about = "columns metric, value and unit: a figure on each row"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        metric, value, unit = (sheet.index_of(name) for name in ("metric", "value", "unit"))
        metric = sheet.index_of("statistic") if metric is None else metric
        if metric is None or value is None:
            missing = "metric" if metric is None else "value"
            raise WrongFileError(
                path, [Problem(sheet.heads[0].position, f"there is no column `{missing}`", "is it --from plain?")]
            )
        keys = [number for number in range(len(sheet.heads)) if number not in (metric, value, unit)]
        points: dict[tuple[str, ...], dict[str, Cell]] = {}
        first_cells: dict[tuple[str, ...], list[Cell]] = {}
        heads: dict[str, Cell] = {}
        problems = []
        for row in sheet.rows:
            texts = tuple(row[key].text for key in keys)
            point = points.setdefault(texts, {})
            first_cells.setdefault(texts, [row[key] for key in keys])  # keeps the first row's cells
            name, cell = row[metric].text, row[value]
            if name in point:
                first = point[name].position.line
                problems.append(Problem(row[metric].position, f"`{name}` stands on line {first} already", None))
            written = f"{cell.text} {row[unit].text}".strip() if unit is not None and cell.text else cell.text
            point[name] = Cell(written, cell.position)
            heads.setdefault(name, row[metric])
        if problems:
            raise WrongFileError(path, problems)
        rows = []
        for texts, figures in points.items():
            place = next(iter(figures.values())).position
            rows.append((*first_cells[texts], *(figures.get(name, Cell("", place)) for name in heads)))
        return Sheet((*(sheet.heads[key] for key in keys), *heads.values()), tuple(rows))


_IXNETWORK_LOADED: Final = {
    "Framesize": "frame size",
    "Frame Size": "frame size",
    "Tx Rate (% Line Rate)": "load [% of line rate]",
    "Frame Loss (%)": "loss [%]",
}
_IXNETWORK_NAMES: Final = MappingProxyType(
    {
        "throughput": {
            "Framesize": "frame size",
            "Frame Size": "frame size",
            "Rx Throughput (fps)": "frame rate [fps]",
            "Rx Throughput (% Line Rate)": "% of line rate",
            "Frame Loss (%)": "loss [%]",
        },
        "latency": {
            **_IXNETWORK_LOADED,
            "Min Latency (ns)": "minimum latency [ns]",
            "Avg Latency (ns)": "average latency [ns]",
            "Max Latency (ns)": "maximum latency [ns]",
        },
        "frame-loss": {
            **_IXNETWORK_LOADED,
            "Tx Count (frames)": "offered frames",
            "Rx Count (frames)": "returned frames",
            "Frame Loss (frames)": "lost frames",
        },
    }
)
_IXNETWORK_PDR_NAMES: Final = MappingProxyType(
    {"Rx Throughput (fps)": "PDR [fps]", "Rx Throughput (% Line Rate)": "PDR % of line rate"}
)


class IxNetwork(Format):
    """Reads IxNetwork's table; where a loss was allowed (``--pdr-loss``), the rates of a throughput test are a PDR."""

    kind = "ixnetwork"
    about = "AggregateResults.csv of an RFC 2544 QuickTest (Keysight, Ixia)"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        names = {kind: dict(of_kind) for kind, of_kind in _IXNETWORK_NAMES.items()}
        if options.loss_ratio:
            names["throughput"] |= _IXNETWORK_PDR_NAMES
        return rename_columns(sheet, path, names, method, "IxNetwork", lambda head: head.removeprefix("Agg "))


_SIZES: Final = {"ConfiguredFrameSize": "frame size", "FrameSize": "frame size"}
_LOSSES: Final = dict.fromkeys(("PercentLoss", "PercentLoss(%)", "PercentFrameLoss(%)"), "loss [%]")
_LOADS: Final = ("OfferedLoad(%)", "Load(%)")
_TESTCENTER_LOADED: Final = {**_SIZES, **dict.fromkeys(_LOADS, "load [% of line rate]"), **_LOSSES}
_TESTCENTER_NAMES: Final = MappingProxyType(
    {
        "throughput": {
            **_SIZES,
            "ForwardingRate(fps)": "frame rate [fps]",
            "Throughput(%)": "% of line rate",
            **_LOSSES,
        },
        "latency": {
            **_TESTCENTER_LOADED,
            "MinimumLatency(us)": "minimum latency [us]",
            "AverageLatency(us)": "average latency [us]",
            "MaximumLatency(us)": "maximum latency [us]",
        },
        "frame-loss": {**_TESTCENTER_LOADED, "TxFrameCount": "offered frames", "RxFrameCount": "returned frames"},
    }
)
_TESTCENTER_PDR_NAMES: Final = MappingProxyType(
    {"ForwardingRate(fps)": "PDR [fps]", "Throughput(%)": "PDR % of line rate"}
)
_FIGURES: Final = ("frame rate [fps]", "% of line rate", "PDR [fps]", "PDR % of line rate", "loss [%]")
_RESULT: Final = "Result"
_TRIAL: Final = "TrialNumber"
_PASSED: Final = "passed"


class TestCenter(Format):
    """Reads TestCenter's table; where a loss was allowed (``--pdr-loss``), the rates of a throughput test are a PDR."""

    kind = "testcenter"
    about = "RFC 2544 results of Spirent TestCenter, its detailed summary view"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        names = {kind: dict(of_kind) for kind, of_kind in _TESTCENTER_NAMES.items()}
        if options.loss_ratio:
            names["throughput"] |= _TESTCENTER_PDR_NAMES
        if method != "throughput" or sheet.index_of(_RESULT) is None:
            return rename_columns(sheet, path, names, method, "TestCenter")
        chosen, passed = _best(sheet, path, options)
        found = rename_columns(chosen, path, names, method, "TestCenter")
        figures = [number for number, head in enumerate(found.heads) if head.text in _FIGURES]
        rows = [
            row
            if row_passed
            else tuple(Cell("", cell.position) if number in figures else cell for number, cell in enumerate(row))
            for row, row_passed in zip(found.rows, passed, strict=True)
        ]
        return Sheet(found.heads, tuple(rows), found.ignored)


def _best(sheet: Sheet, path: str, options: ImportOptions) -> tuple[Sheet, list[bool]]:
    """Returns, for each trial and frame size, the passed iteration of highest load (or any), and whether it passed."""
    size = next((index for name in _SIZES if (index := sheet.index_of(name)) is not None), None)
    load = next((index for name in _LOADS if (index := sheet.index_of(name)) is not None), None)
    result = sheet.index_of(_RESULT)
    if size is None or load is None or result is None:
        return sheet, [True] * len(sheet.rows)
    trial = sheet.index_of(_TRIAL)
    best: dict[tuple[str, str], tuple[tuple[bool, Fraction], tuple[Cell, ...]]] = {}
    for row, load_percent in zip(sheet.rows, _loads(sheet, load, path, options), strict=True):
        rank = (row[result].text.lower() == _PASSED, load_percent)
        point = ("" if trial is None else row[trial].text, row[size].text)
        if point not in best or rank > best[point][0]:
            best[point] = (rank, row)
    rows = tuple(row for _, row in best.values())
    return Sheet(sheet.heads, rows, sheet.ignored), [rank[0] for rank, _ in best.values()]


def _loads(sheet: Sheet, index: int, path: str, options: ImportOptions) -> list[Fraction]:
    """Returns the loads, by which iterations are chosen. WrongFileError where one cannot be read without doubt."""
    name = sheet.heads[index].text
    cells = tuple(row[index] for row in sheet.rows)
    column = NumberColumn(name, cells, lambda number: number.value <= 100)
    writing, asked = settle([column], options.decimal, options.thousands)
    problems = [] if asked is None else [asked]
    found = []
    for cell in cells:
        try:
            found.append(parse_number(cell.text, POINT if cell.is_typed else writing).value)
        except ValueError as error:
            problems.append(Problem(cell.position, f"{name} {quote(cell.text)}: it is no number", str(error)))
    if problems:
        raise WrongFileError(path, problems)
    return found


_COLUMNS: Final = ("case", "profile", "frames", "time", "fps")
_KEPT: Final = ("case", "profile", "threads")
_CLOSE: Final = 0.01
"""The relative error of a rate that was printed with a few digits."""


class Tframetest(Format):
    """Makes a row of each case: what was read or written, and how many frames a second."""

    kind = "tframetest"
    about = "CSV of tframetest (-c), a file for each instance of one run"
    of_files = (FILE_NUMBER, FILES)

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        if method != "frames":
            raise UsageError(
                f"tframetest measures frames of film, not what `{method}` does",
                place="--from",
                next_step="write --method frames",
            )
        places = {name: sheet.index_of(name) for name in _COLUMNS}
        missing = [name for name, place in places.items() if place is None]
        if missing:
            problem = f"this is no table of tframetest: it has no column {quote(missing[0])}"
            raise WrongFileError(path, [Problem(sheet.heads[0].position, problem, "is it what `tframetest -c` wrote?")])
        of_runs = options.columns.get(FILE_NUMBER) == "run"
        asked = {*options.configurations, *options.columns, *options.where}
        kept = [index for index, head in enumerate(sheet.heads) if head.text in ("case", "fps") or head.text in asked]
        heads = tuple(
            replace(sheet.heads[index], text={"case": "direction", "fps": "rate [fps]"}.get(name, name))
            for index in kept
            if (name := sheet.heads[index].text)
        )
        problems: list[Problem] = []
        rows = []
        for row in sheet.rows:
            _check(row, places, problems)
            rows.append((*(replace(row[index], is_typed=True) for index in kept), *_place(sheet, row, of_runs=of_runs)))
        if problems:
            raise WrongFileError(path, problems)
        more = tuple(
            Cell(name, sheet.heads[0].position) for name in ("instances", "instance", "run")[: 2 if of_runs else 3]
        )
        ignored = tuple(
            head.text
            for index, head in enumerate(sheet.heads)
            if index not in kept and head.text not in (FILE_NUMBER, FILES)
        )
        return replace(sheet, heads=(*heads, *more), rows=tuple(rows), ignored=(*sheet.ignored, *ignored))


def _place(sheet: Sheet, row: tuple[Cell, ...], *, of_runs: bool) -> tuple[Cell, ...]:
    """Returns the cells of instances, instance and run."""
    number, files = (sheet.index_of(name) for name in (FILE_NUMBER, FILES))
    place = row[0].position
    if of_runs or number is None or files is None:
        return Cell("1", place, is_typed=True), Cell("1", place, is_typed=True)
    return replace(row[files], position=place), replace(row[number], position=place), Cell("1", place, is_typed=True)


def _check(row: tuple[Cell, ...], places: dict[str, int | None], problems: list[Problem]) -> None:
    """Adds a problem where the rate is not that of frames and time beside it."""
    cells = [row[places[name] or 0] for name in ("frames", "time", "fps")]
    figures = []
    for cell in cells:
        try:
            figures.append(plain_number(cell.text))
        except ValueError:
            problems.append(Problem(cell.position, f"{quote(cell.text)} is no number as tframetest prints it", None))
            return
    frames, time_ns, rate = figures
    if time_ns <= 0 or not math.isclose(frames * 1e9 / time_ns, rate, rel_tol=_CLOSE):
        what = f"fps {cells[2].text} cannot be: {cells[0].text} frames in {cells[1].text} ns make another"
        problems.append(Problem(cells[2].position, what, "correct it, or leave the row out by --where"))
