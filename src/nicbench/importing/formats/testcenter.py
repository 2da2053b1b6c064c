"""RFC 2544 results of Spirent TestCenter: its detailed summary view as CSV, a row for each iteration of a search.

The headings are those that OPNFV's vswitchperf, to which Spirent contributed, writes from that view and reads again.
The throughput is the iteration of highest load that TestCenter passed; a frame size of which none passed has no rate.
Of several trials one must be chosen: --where TrialNumber=1.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final

from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats._shared import Names, rename_columns
from nicbench.importing.formats.base import Format

_SIZES: Final = {"ConfiguredFrameSize": "frame size", "FrameSize": "frame size"}
_LOSSES: Final = dict.fromkeys(("PercentLoss", "PercentLoss(%)", "PercentFrameLoss(%)"), "loss [%]")
_LOADS: Final = ("OfferedLoad(%)", "Load(%)")
_LOADED: Final = {**_SIZES, **dict.fromkeys(_LOADS, "load [% of line rate]"), **_LOSSES}
_NAMES: Final[Names] = MappingProxyType(
    {
        "throughput": {
            **_SIZES,
            "ForwardingRate(fps)": "frame rate [fps]",
            "Throughput(%)": "% of line rate",
            **_LOSSES,
        },
        "latency": {
            **_LOADED,
            "MinimumLatency(us)": "minimum latency [us]",
            "AverageLatency(us)": "average latency [us]",
            "MaximumLatency(us)": "maximum latency [us]",
        },
        "frame-loss": {**_LOADED, "TxFrameCount": "offered frames", "RxFrameCount": "returned frames"},
    }
)
_PDR_NAMES: Final = MappingProxyType({"ForwardingRate(fps)": "PDR [fps]", "Throughput(%)": "PDR % of line rate"})
_FIGURES: Final = ("frame rate [fps]", "% of line rate", "PDR [fps]", "PDR % of line rate", "loss [%]")
_RESULT: Final = "Result"
_TRIAL: Final = "TrialNumber"
_PASSED: Final = "passed"


class TestCenter(Format):
    """Reads TestCenter's table; where a loss was allowed (``--pdr-loss``), the rates of a throughput test are a PDR."""

    kind: ClassVar[str] = "testcenter"
    about: ClassVar[str] = "RFC 2544 results of Spirent TestCenter, its detailed summary view"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        names = {kind: dict(of_kind) for kind, of_kind in _NAMES.items()}
        if options.loss_ratio:
            names["throughput"] |= _PDR_NAMES
        if method != "throughput" or sheet.index_of(_RESULT) is None:
            return rename_columns(sheet, path, names, method, "TestCenter")
        chosen, passed = _best(sheet)
        found = rename_columns(chosen, path, names, method, "TestCenter")
        figures = [number for number, head in enumerate(found.heads) if head.text in _FIGURES]
        rows = [
            row
            if row_passed
            else tuple(Cell("", cell.position) if number in figures else cell for number, cell in enumerate(row))
            for row, row_passed in zip(found.rows, passed, strict=True)
        ]
        return Sheet(found.heads, tuple(rows), found.ignored)


def _best(sheet: Sheet) -> tuple[Sheet, list[bool]]:
    """Returns, for each trial and frame size, the passed iteration of highest load (or any), and whether it passed."""
    size = next((index for name in _SIZES if (index := sheet.index_of(name)) is not None), None)
    load = next((index for name in _LOADS if (index := sheet.index_of(name)) is not None), None)
    result = sheet.index_of(_RESULT)
    if size is None or load is None or result is None:
        return sheet, [True] * len(sheet.rows)
    trial = sheet.index_of(_TRIAL)
    best: dict[tuple[str, str], tuple[tuple[bool, float], tuple[Cell, ...]]] = {}
    for row in sheet.rows:
        rank = (row[result].text.lower() == _PASSED, _load(row[load].text))
        point = ("" if trial is None else row[trial].text, row[size].text)
        if point not in best or rank > best[point][0]:
            best[point] = (rank, row)
    rows = tuple(row for _, row in best.values())
    return Sheet(sheet.heads, rows, sheet.ignored), [rank[0] for rank, _ in best.values()]


def _load(text: str) -> float:
    """Returns the load for comparison; invalid numbers are reported where the cell is read."""
    try:
        return float(text)
    except ValueError:
        return float("-inf")
