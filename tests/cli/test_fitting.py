"""Tables on a terminal of 80 columns: whatever does not fit, no number is cut short."""

from __future__ import annotations

import io

from rich.console import Console

from nicbench.cli.summary_table import ShownColumn, print_fitted

HEADS = ("Frame", "Throughput", "Overload", "Afterwards", "Recovery time", "Minimum", "Maximum", "Resolution", "Lost")


def printed(rows: int, width: int = 80) -> str:
    columns = [
        ShownColumn(
            (head, "[yellow]unit[/]"), tuple(f"{number}{row:02}45.678" for row in range(rows)), rank=min(number, 1)
        )
        for number, head in enumerate(HEADS)
    ]
    text = io.StringIO()
    print_fitted(Console(file=text, width=width, color_system=None), columns, title="A table", caption="per port")
    return text.getvalue()


def test_a_table_that_fits_has_every_column_beside_the_others() -> None:
    lines = printed(rows=2, width=200).splitlines()
    assert any(all(head in line for head in HEADS) for line in lines)


def test_few_rows_that_do_not_fit_are_laid_down_with_every_value_whole() -> None:
    table = printed(rows=3)
    assert all(f"{number}{row:02}45.678" in table for number in range(len(HEADS)) for row in range(3))
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= 80


def test_of_many_rows_columns_are_left_out_by_name_and_the_first_ones_stay_whole() -> None:
    table = printed(rows=9)
    assert all(f"{number}{row:02}45.678" in table for number in (0, 1) for row in range(9))
    assert "…" not in table
    left_out = table.partition("The report also has: ")[2]
    assert "Lost unit" in left_out
    assert "Frame" not in left_out


def test_on_a_very_narrow_terminal_numbers_are_folded_and_not_cut() -> None:
    table = printed(rows=9, width=14)
    assert "…" not in table
