"""What a chart's axis shows is what the table beside it prints."""

from __future__ import annotations

from typing import get_args

import pytest

from nicbench.core.forms import SCALES
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column, Form
from nicbench.report.cells import text_of


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
