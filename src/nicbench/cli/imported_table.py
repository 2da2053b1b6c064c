"""Imported results on the terminal, as their source prints them: the columns that are known, in its units."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from nicbench.cli.fitting import Shown, escaped, print_fitted
from nicbench.core.result import Result
from nicbench.report.imported import value_name


def print_imported_table(console: Console, results: Sequence[Result]) -> None:
    """One row for each result of a section none of whose columns its source has."""
    columns = [
        Shown(escaped("frame", "[bytes]"), escaped(*(str(result.parameters.get("size", "-")) for result in results)), 0)
    ]
    if len({result.configuration for result in results}) > 1:
        names = escaped(*(result.configuration for result in results))
        columns.insert(0, Shown(escaped("configuration"), names, 0, right=False))
    values = list(dict.fromkeys(value for result in results if result.imported for value in result.imported.printed))
    for value in values:
        printed = [result.imported.printed.get(value) if result.imported else None for result in results]
        columns.append(Shown(_head(value, results), escaped(*(one.text if one else "-" for one in printed)), 1))
    bases = ", ".join(dict.fromkeys(result.scope for result in results))
    print_fitted(console, columns, caption=escape(f"Rates are {bases}"))


def _head(value: str, results: Sequence[Result]) -> tuple[str, ...]:
    """With the unit that all of them are printed in."""
    name = value_name(results[0].method, value)
    units = {
        result.imported.printed[value].unit
        for result in results
        if result.imported and value in result.imported.printed
    }
    unit = next(iter(units)) if len(units) == 1 else None
    return escaped(name) if unit is None or unit in name.split() else escaped(name, f"[{unit}]")
