"""Tables: plain ones, those with one figure in each row, and the CSV files of IxNetwork and TestCenter."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import Final

from nicbench.core.errors import Problem, WrongFileError, quote
from nicbench.core.number_reader import POINT
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.columns import ImportOptions, parse_number
from nicbench.importing.formats.base import Format, rename_columns
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
