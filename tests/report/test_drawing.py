"""What a chart says: marks in words, the table behind it, axes, and intervals that are cut."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import SCALES, Form
from nicbench.report.cells import text_of
from nicbench.report.document.blocks import plain
from nicbench.report.drawing.charts import rates_by_size_chart
from nicbench.report.drawing.kit import NARROW, WIDE, Format, Spec, channel, finish_chart, marks
from nicbench.report.drawing.svg import Head, number, read, svg
from nicbench.report.layouts.datasheet import _stacked
from nicbench.report.model import Report
from nicbench.report.numbers import significant
from nicbench.report.tables import scale_units, sections

from ._sections import rate_of, searched

ROWS = [
    {"size": "64", "rate": 0.40237266, "goal": "NDR", "lower": 0.4, "upper": 0.41},
    {"size": "128", "rate": 0.5, "goal": "PDR | half", "lower": 0.5, "upper": 0.5},
]


def chart(mark: str, rows: list[dict[str, Any]] = ROWS, form: Format = WIDE, **more: Any) -> Spec:
    channels = {
        "x": channel("size:N", title="frame size [bytes, with FCS]"),
        "y": channel("rate:Q", title="frame rate [Mpps]"),
        "color": "goal:N",
    }
    return finish_chart(form, marks(rows, mark, **{**channels, **more}))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (0.387002347, "0.38700"),
        (0.1 + 0.2, "0.3"),
        (0.40237266, "0.40237"),
        (12.0, "12"),
        (1_488_095.2, "1\u202f488\u202f095"),
        (-0.00012, "-0.00012"),
    ],
)
def test_numbers_have_five_digits_and_no_empty_ones(value: float, said: str) -> None:
    assert number(value) == said


def test_the_title_of_an_axis_is_a_name_and_a_unit() -> None:
    assert Head.of("frame size [bytes, with FCS]").pattern == "frame size: # bytes"
    assert Head.of("% of line rate").pattern == "% of line rate: #"


def test_a_mark_says_its_series_its_key_and_its_value_in_the_words_of_the_axes() -> None:
    drawing = svg(chart("point"), 1, "a chart")

    assert 'data-heads="|frame size: # bytes|frame rate: # Mpps"' in drawing
    assert 'data-series="NDR|PDR | half"' not in drawing, "what parts the names must not be in them"
    assert re.findall(r'<path data-says="([^"]*)"', drawing) == ["0|64|0.40237", "1|128|0.5"]
    assert "aria-label" not in drawing.replace('aria-label="a chart"', "")


def test_a_range_is_said_where_it_is_no_point() -> None:
    shown = chart("point")
    upper = {"x": shown["encoding"]["x"], "y": {"field": "lower", "type": "quantitative"}, "y2": {"field": "upper"}}
    layers = [{key: shown.pop(key) for key in ("mark", "encoding")}, {"mark": {"type": "rule"}, "encoding": upper}]
    drawing = svg({**shown, "layer": layers}, 1, "a chart")

    assert "|from # Mpps" in drawing
    assert re.findall(r'data-says="([^"]*)"', drawing) == ["0|64|0.40237|0.4 to 0.41", "1|128|0.5"]


def test_a_note_of_a_row_is_said_last_whether_or_not_there_is_a_range() -> None:
    shown = chart("point")
    rows = [{**ROWS[0], "note": "valid, limited by the DUT"}, ROWS[1]]
    drawing = svg({**shown, "datasets": dict.fromkeys(shown["datasets"], rows)}, 1, "a chart")

    assert '|frame rate: # Mpps|from # Mpps|#"' in drawing
    assert re.findall(r'data-says="([^"]*)"', drawing) == ["0|64|0.40237||valid, limited by the DUT", "1|128|0.5"]


def test_a_row_may_say_its_value_itself() -> None:
    rows = [{**ROWS[0], "words": "below 0.41"}, ROWS[1]]

    assert "0|64|below 0.41" in svg(chart("point", rows), 1, "a chart")


@pytest.mark.parametrize("form", [WIDE, NARROW])
def test_a_line_without_points_has_places_that_are_not_drawn(form: Format) -> None:
    rows = [{"size": place, "rate": place**0.5, "goal": f"g{place % 2}"} for place in range(2000)]
    x = channel("size:Q", title="time [s]")
    plain = chart("line", rows, form, x=x)
    drawing = svg(plain, 1, "a chart")
    points = next(iter(re.findall(r'data-points="([^"]*)"', drawing))).split("\n")

    assert len(points) == (240 if form is WIDE else 120)
    assert points[-1].endswith("|1|1\u202f999|44.710"), "the last one is kept"
    assert drawing.count('data-of="') == 2, "both lines can be hidden"


def test_a_stack_says_all_its_parts_at_once() -> None:
    rows = [
        {"t": t, "part": part, "share": share} for t in (0.0, 1.5) for part, share in (("kernel", 20.0), ("idle", 70.0))
    ]
    stack = chart(
        "area",
        rows,
        x=channel("t:Q", title=None),
        y=channel("share:Q", title="CPU 0 [%]", stack="zero"),
        color="part:N",
        tooltip=[channel("t:Q", title="time [s]"), channel("share:Q", title="CPU 0 [%]")],
    )
    drawing = svg(stack, 1, "a chart")

    assert 'data-heads="|time: # s|kernel: # %|idle: # %" data-across=""' in drawing
    assert [line.partition("|")[2] for line in re.findall(r'data-points="([^"]*)"', drawing)[0].split("\n")] == [
        "|0|20|70",
        "|1.5|20|70",
    ]


def test_names_that_are_markup_stay_text() -> None:
    drawing = svg(chart("point", [{**ROWS[0], "goal": '"><script>alert(1)</script>'}, ROWS[1]]), 1, "a chart")

    assert "<script" not in drawing
    assert 'data-series="&#34;&gt;&lt;script' in drawing


def test_layers_that_are_no_values_say_nothing() -> None:
    for silent in (chart("text"), chart("rect"), chart("point") | {"mark": {"type": "point", "aria": False}}):
        assert not read(silent)
        assert "data-says" not in svg(silent, 1, "a chart")


def test_every_rate_of_a_page_is_told_by_its_chart(view: Report) -> None:
    section = searched(view)
    assert section.table.rates is not None
    specification = rates_by_size_chart(section, WIDE)
    assert specification is not None
    said = {(row.series, row.key, row.value) for one in read(specification) for row in one.rows}

    for row in section.rows:
        for goal in section.table.rates.goals:
            rate = rate_of(row, goal.value).value
            assert rate is not None
            assert (goal.name, row.cells[0], number(rate / 1e3)) in said


def test_each_drawing_of_a_page_answers(page: str) -> None:
    for drawing in re.findall(r'<svg role="img".*?</svg>', page, flags=re.DOTALL):
        assert "data-heads" in drawing


@pytest.mark.parametrize("form", [form for form in get_args(Form) if form != "text"])
def test_an_axis_is_in_the_unit_of_its_column(form: Form) -> None:
    name, value = "it", 40.0
    if form in SCALES:
        name, value = f"it_{SCALES[form].suffix.lstrip('_')}", 40.0 / SCALES[form].factor
    result = Result(
        id="r", test="t", method="m", parameters={}, values={name: value}, verdict=ResultVerdict.VALID, trials=()
    )
    text = text_of(Column(name, "It", form=form), result)
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
    """A p99 that no tool reported, next to a median and a greatest in milliseconds."""
    values = {"latency_p50_ns": 31e6, "latency_p99_ns": None, "latency_maximum_ns": 2.9e9, "other_bits_per_s": None}
    result = Result(id="r", test="t", method="m", parameters={}, values=values, verdict=ResultVerdict.VALID, trials=())
    heads = tuple(Column(name, name) for name in values)
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
    table = ResultTable(title="Latency", caption="", columns=(Column("p50_ns", "Median latency"),))
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
