"""What a chart's axis shows is what the table beside it prints."""

from __future__ import annotations

from typing import get_args

import pytest

from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import SCALES, Form
from nicbench.report.cells import text_of
from nicbench.report.document.blocks import plain
from nicbench.report.numbers import significant
from nicbench.report.sections.compact import _stacked
from nicbench.report.tables import scale_units, sections


@pytest.mark.parametrize("form", [form for form in get_args(Form) if form != "text"])
def test_an_axis_is_in_the_unit_of_its_column(form: Form) -> None:
    name, value = "it", 40.0
    if form in SCALES:
        name, value = f"it_{SCALES[form].suffix.lstrip('_')}", 40.0 / SCALES[form].factor
    result = Result(
        id="r", test="t", method="m", parameters={}, values={name: value}, verdict=ResultVerdict.VALID, trials=()
    )
    text = text_of(Column(value=name, head="It", form=form), result)
    assert float(text.removeprefix("± ")) == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (21.95, "22.0"),
        (2.675, "2.68"),
        (0.125, "0.125"),
        (-21.95, "-22.0"),
        (1234.5, "1\u202f235"),
        (219.5, "220"),
        (0.0, "0"),
    ],
)
def test_a_tie_is_rounded_away_from_zero(value: float, text: str) -> None:
    assert significant(value) == text


def test_a_column_that_nobody_fills_has_the_unit_of_the_one_beside_it() -> None:
    """A p99 that no tool told, beside a median and a greatest in milliseconds."""
    values = {"latency_p50_ns": 31e6, "latency_p99_ns": None, "latency_maximum_ns": 2.9e9, "other_bits_per_s": None}
    result = Result(id="r", test="t", method="m", parameters={}, values=values, verdict=ResultVerdict.VALID, trials=())
    heads = tuple(Column(value=name, head=name) for name in values)
    scaled = scale_units(ResultTable(title="It", caption="It.", columns=heads, sentences=()), [result])
    assert [column.unit for column in scaled.columns] == ["ms", "ms", "s", "Gb/s"]


@pytest.mark.parametrize(
    ("latencies_ns", "texts"),
    [
        ((4_880.0, 6_210_000.0), ("4.88", "6\u202f210")),
        ((488_000.0, 6_210_000.0), ("0.488", "6.21")),
        ((6_210_000.0,), ("6.21",)),
    ],
)
def test_the_least_of_a_column_is_readable_beside_the_greatest(
    latencies_ns: tuple[float, ...], texts: tuple[str, ...]
) -> None:
    results = [
        Result(
            id="r", test="t", method="m", parameters={}, values={"p50_ns": ns}, verdict=ResultVerdict.VALID, trials=()
        )
        for ns in latencies_ns
    ]
    table = ResultTable(title="Latency", caption="", columns=(Column(value="p50_ns", head="Median latency"),))
    (column,) = scale_units(table, results).columns
    assert tuple(text_of(column, result) for result in results) == texts


def test_loads_one_above_the_other_have_one_unit_for_a_column() -> None:
    def latency(percent: float, median_ns: float) -> Result:
        names = ("minimum", "mean", "p50", "p99", "p99_9", "maximum")
        return Result(
            id=f"latency/64/{percent:g}",
            test="latency",
            method="latency",
            scope="per port",
            parameters={"frame_bytes": 64, "load_percent": percent, "load_of": "NDR"},
            values={f"latency_{name}_ns": median_ns for name in names},
            trials=(f"t{percent:g}",),
        )

    shown = sections([latency(100.0, 25e6), latency(50.0, 93e3)], {})
    assert {column.unit for section in shown for column in section.table.columns if column.head == "p50"} == {
        "ms",
        "µs",
    }
    stacked = _stacked(shown)
    heads = [plain(cell.inlines) for cell in stacked.head[-1].cells]
    (at,) = (number for number, text in enumerate(heads) if text.startswith("p50"))
    cells = [plain(row.cells[at].inlines) for row in stacked.body if len(row.cells) == len(heads)]
    assert ("ms" in heads[at], cells) == (True, ["25.0", "0.0930"])
