"""What commands load and call stays within budgets, so that waiting for nicbench does not become longer unnoticed."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .counted import Cost, costs_in

BUDGETS = Path(__file__).with_name("budgets.toml")
TOLERANCE = 0.05
MOST_NAMED = 8


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the budgets are for Python 3.11")
def test_no_command_loads_or_calls_more_than_its_budget(tmp_path: Path) -> None:
    budgets = tomllib.loads(BUDGETS.read_text())
    costs = costs_in(tmp_path)
    assert set(costs) == set(budgets)
    grown = [line for name, cost in costs.items() for line in growth(name, cost, budgets[name])]
    assert not grown, "\n".join([f"more is loaded or called than {BUDGETS} allows:", *grown])


def growth(name: str, cost: Cost, budget: Mapping[str, Any]) -> Iterator[str]:
    """Yields what grew: the sum, then the packages that have most to do with it, then the functions of the first."""
    for kind, numbers in (("modules", cost.modules), ("calls", cost.calls)):
        count = sum(numbers.values())
        allowed = budget.get(kind, 0)
        if count <= allowed * (1 + TOLERANCE):
            continue
        yield f"{name}: {count} {kind}, {allowed} budgeted"
        before = budget.get(f"{kind}_of", {})
        more = {package: number - before.get(package, 0) for package, number in numbers.items()}
        most = sorted(more, key=lambda package: -more[package])[:MOST_NAMED]
        yield from (f"    {package}: {numbers[package]}, {before.get(package, 'few')} budgeted" for package in most)
        if kind == "calls":
            functions = [one for one in cost.functions if one.startswith(f"{most[0]}: ")]
            called = sorted(functions, key=lambda one: -cost.functions[one])[:MOST_NAMED]
            yield from (f"        {cost.functions[one]} calls of {one}" for one in called)


def test_what_grew_is_named() -> None:
    cost = Cost({"a": 3, "b": 1}, {"a": 10, "b": 200}, {"b: f in b.py": 190, "b: g in b.py": 10, "a: h in a.py": 10})
    budget = {"modules": 4, "calls": 110, "calls_of": {"a": 10, "b": 100}}
    said = list(growth("list", cost, budget))
    assert said[0] == "list: 210 calls, 110 budgeted"
    assert said[1] == "    b: 200, 100 budgeted"
    assert said[3:] == ["        190 calls of b: f in b.py", "        10 calls of b: g in b.py"]
