"""A column's form and unit follow from the name of its value; what contradicts it is refused."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from nicbench.core.errors import NicbenchError
from nicbench.core.registry import find
from nicbench.core.table import Column
from nicbench.core.units import Form, suitable_form
from nicbench.methods.base import Method


@pytest.mark.parametrize(
    ("value", "form", "unit"),
    [
        ("rate_frames_per_s", "mpps", "Mpps"),
        ("throughput_bits_per_s", "gigabits", "Gb/s"),
        ("bytes_per_s", "megabytes", "MB/s"),
        ("core_clock_hz", "gigahertz", "GHz"),
        ("latency_p50_ns", "microseconds", "µs"),
        ("reset_time_ms", "number", "ms"),
        ("repetitions", "number", None),
    ],
)
def test_form_and_unit_follow_from_the_name(value: str, form: Form, unit: str | None) -> None:
    column = Column(value, "x")
    assert (column.form, column.unit) == (form, unit)


@pytest.mark.parametrize(
    ("value", "form", "unit"),
    [
        ("latency_ns", "microseconds", "ms"),
        ("latency_ns", "mpps", "Mpps"),
        ("latency_ns", "number", "µs"),
        ("latency_us", "microseconds", "µs"),
        ("reset_time_ms", "number", "s"),
        ("rate_frames_per_s", "gigabits", "Gb/s"),
        ("rate_frames_per_s", "number", "Mpps"),
        ("rate", "mpps", "Mpps"),
        ("rate_bits_per_s", "of_frames", "%"),
        ("buffer_bytes", "whole", "frames"),
    ],
)
def test_a_unit_that_contradicts_the_name_is_refused(value: str, form: Form, unit: str) -> None:
    with pytest.raises(ValidationError, match=f"column '{value}'"):
        Column(value, "x", form=form, unit=unit)


@pytest.mark.parametrize(
    ("form", "greatest", "suits"),
    [
        ("mpps", 14.88e6, "mpps"),
        ("mpps", 200e3, "kpps"),
        ("mpps", 950.0, "pps"),
        ("mpps", 0.0, "mpps"),
        ("microseconds", 9_257_000.0, "milliseconds"),
        ("microseconds", 20_000.0, "microseconds"),
        ("microseconds", 2e9, "seconds"),
        ("gigabits", 0.94e9, "gigabits"),
        ("gigabits", 94e6, "megabits"),
        ("whole", 1e9, "whole"),
    ],
)
def test_the_unit_of_a_column_suits_its_greatest_value(form: Form, greatest: float, suits: Form) -> None:
    assert suitable_form(form, greatest) == suits


METHOD_WITH_A_WRONG_UNIT = '''
"""A method whose table prints nanoseconds as milliseconds."""

from typing import ClassVar

from nicbench.core.base import Frozen
from nicbench.core.table import Column, ResultTable
from nicbench.methods.base import Context, FrameMethod


class Wrong(FrameMethod):
    """It."""

    kind: ClassVar[str] = "wrong"

    class Options(Frozen):
        """None."""

    def points(self):
        return 1

    def estimate_s(self):
        return 1.0

    def frame_sizes(self):
        return (64,)

    async def run(self, context: Context):
        return ()

    @classmethod
    def table(cls):
        return ResultTable(title="Wrong", caption="", columns=(Column(value="latency_ns", head="Latency", unit="ms"),))
'''


def test_a_method_with_a_wrong_unit_is_refused_and_its_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "wrong_methods"
    package.mkdir()
    (package / "__init__.py").write_text('"""Methods of a test."""\n')
    (package / "wrong.py").write_text(METHOD_WITH_A_WRONG_UNIT.lstrip())
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    with pytest.raises(NicbenchError, match="latency_ns") as refused:
        dict(find("wrong_methods", Method))
    assert str(refused.value.place).endswith("wrong.py")
    for name in [name for name in sys.modules if name.startswith("wrong_methods")]:
        del sys.modules[name]
