"""What a chart's axis shows is what the table beside it prints."""

from __future__ import annotations

from typing import get_args

import pytest

from nicbench.model.result import Result, ResultVerdict
from nicbench.model.table import Column, Form
from nicbench.report.cells import SCALES, text_of


@pytest.mark.parametrize("form", [form for form in get_args(Form) if form != "text"])
def test_an_axis_is_in_the_unit_of_its_column(form: Form) -> None:
    value = 40.0 / SCALES.get(form, 1.0)
    result = Result(
        id="r", test="t", method="m", parameters={}, values={"it": value}, verdict=ResultVerdict.VALID, trials=()
    )
    assert float(text_of(Column(value="it", head="It", form=form), result)) == pytest.approx(40.0)
