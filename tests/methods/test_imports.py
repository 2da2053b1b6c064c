"""Every method that takes imports declares values that its tables know, and rules about columns that it has."""

from __future__ import annotations

import pytest

from nicbench.core.table import ImportTable
from nicbench.importing.columns import plain
from nicbench.importing.results import importable


def table_of(kind: str) -> ImportTable:
    table = importable()[kind].imports()
    assert table is not None
    return table


def test_these_methods_take_imports() -> None:
    of_frames = {"back-to-back", "frame-loss", "latency", "load-sweep", "single-core", "throughput"}
    assert set(importable()) == of_frames | {"forwarding", "frames", "stream", "transfer"}


@pytest.mark.parametrize("kind", importable())
def test_every_rule_is_about_a_column_there_is(kind: str) -> None:
    table = table_of(kind)
    values = {column.value for column in table.columns}
    rules = (table.shares, table.bit_rates, table.rising, table.complements, table.percentages, table.lossless)
    named = {name for rule in rules for names in rule for name in names}
    assert not named - values
    assert not set(table.any_of) - values
    assert table.line_rate is None or table.line_rate in values


@pytest.mark.parametrize("kind", importable())
def test_no_two_columns_answer_to_one_name(kind: str) -> None:
    columns = table_of(kind).columns
    names = [name for column in columns for name in {plain(name) for name in (column.name, *column.also)}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", importable())
def test_every_main_column_of_its_own_table_can_be_imported(kind: str) -> None:
    own = importable()[kind].table()
    values = {column.value for column in table_of(kind).columns}
    assert all(column.value in values for column in own.columns if column.is_main) if own else True
