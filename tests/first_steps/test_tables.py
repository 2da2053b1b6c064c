"""From a table of results to the options of ``nicbench import``."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import UsageError
from nicbench.first_steps.writing import how_to_import

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_a_card_maker_needs_no_manual() -> None:
    found = how_to_import(ROOT / "examples" / "published-zero-loss.csv")
    assert found.method == "throughput"
    assert found.options == ("--configuration", "NIC", "--column", "Ports=link")
    assert found.open == ()


def test_what_only_its_author_knows_is_left_open(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("Frame size,Throughput (%),Remark\n64,88,cold\n128,100,warm\n")
    found = how_to_import(table)
    assert found.options == ("--ignore", "Remark", "--link-speed", "SPEED")
    assert "needs the link's speed" in found.open[0].message


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("name,price\nA,10\n")
    with pytest.raises(UsageError, match="those of no method"):
        how_to_import(table)
