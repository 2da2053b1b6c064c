"""Main values as quantities: unit, factor and direction are those that methods declare."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.compare.points import comparable_number, main_values_of, quantity_of
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, Result, Spread, Value
from nicbench.core.units import Quantity
from nicbench.methods.base import Method

NEITHER = {"ratio", "requests", "throughput_and_cpu", "information_rate_bits_per_s", "outcome"}
"""A service's rate should be what was agreed, neither less nor more."""


def result(method: str, values: dict[str, Value], **parameters: Any) -> Result:
    return Result(id="a", test="a", method=method, parameters=parameters, values=values)


def test_every_method_says_which_way_its_main_columns_are_better() -> None:
    silent = {
        column.value
        for method in find("nicbench.methods", Method).values()
        for table in method.tables()
        for column in table.columns
        if column.is_main and column.better is None
    }
    assert silent <= NEITHER


@pytest.mark.parametrize(
    ("method", "values", "parameters", "number", "quantity"),
    [
        ("throughput", {"ndr_frames_per_s": Bounded(value=2.5e6)}, {}, 2.5, Quantity("NDR", "Mpps", True, "faster")),
        ("latency", {"latency_p50_ns": 1500.0}, {}, 1.5, Quantity("median latency", "µs", False)),
        ("frames", {"sum_frames_per_s": 24.0}, {"part": "runs"}, 24.0, Quantity("sum", "fps", True, "faster")),
        (
            "request-response",
            {"transactions_per_s": 9e3},
            {"part": "rates"},
            9e3,
            Quantity("rate", "transactions/s", True, "faster"),
        ),
        ("back-to-back", {"back_to_back_frames": 12}, {}, 12.0, Quantity("back-to-back value", "frames", True)),
        ("soak", {"loss_percent": 0.5}, {}, 0.5, Quantity("loss", "%", False)),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_values_come_in_the_unit_of_the_methods_column(
    method: str, values: dict[str, Value], parameters: dict[str, Any], number: float, quantity: Quantity
) -> None:
    found = result(method, values, **parameters)
    main = {value.name: value for value in main_values_of(found)}
    (name,) = values
    if name in main:
        assert main[name].number_of(found) == pytest.approx(number)
    assert quantity_of(found, name) == quantity


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (Bounded(value=None, upper=1.0, reason_null=f"{PASSES_NOTHING} at any load", passes_nothing=True), 0.0),
        (Bounded(value=None, reason_null="every trial was disturbed"), None),
        (Spread(median=2.0, minimum=1.0, maximum=3.0, n=3, runs=3), 2.0),
        ("words", None),
        (float("nan"), None),
        (7, 7.0),
    ],
)
def test_what_is_a_number(value: Value, number: float | None) -> None:
    assert comparable_number(value) == number


def test_a_method_that_is_not_known_has_no_main_values() -> None:
    found = result("of-tomorrow", {"rate_frames_per_s": 1.0})
    assert main_values_of(found) == ()
    assert quantity_of(found, "rate_frames_per_s") == Quantity("rate frames per s", "")
