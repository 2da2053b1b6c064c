"""What a chart's axis shows is what the table beside it prints."""

from __future__ import annotations

from typing import get_args

import pytest

from nicbench.core.forms import SCALES
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column, Form
from nicbench.report.cells import text_of
from nicbench.report.numbers import significant


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
