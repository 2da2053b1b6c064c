"""``nicbench reference``: what comes with nicbench is listed, shown and made into a run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from nicbench.importing.reference.data_sets import command_line, data_set, data_sets


def test_every_data_set_is_listed(nicbench: Any) -> None:
    ended = nicbench("reference", "list")
    assert ended.status == 0
    assert all(f" {name} " in ended.stdout for name in data_sets())
    listed = json.loads(nicbench("reference", "list", "--json").stdout)["data_sets"]
    assert {one["name"]: one["rows"] for one in listed}["frametest-sums"] == 720
    assert all(one["source"] and one["year"] and (one["method"] or one["why_not"]) for one in listed)


def test_a_data_set_is_shown_with_source_rows_and_errata(nicbench: Any) -> None:
    ended = nicbench("reference", "show", "connectx5-single-core")
    assert ended.status == 0
    for text in ("Mellanox NICs Performance Report with DPDK 19.08 (2019)", "49.06 Gb/s", "49.2544 Gb/s", "120.837"):
        assert text in ended.stdout
    shown = json.loads(nicbench("reference", "show", "snapio-findings", "--json").stdout)
    assert len(shown["rows"]) == 4
    assert "changes in percent" in shown["why_not"]


def test_a_long_one_is_cut_and_says_so(nicbench: Any) -> None:
    ended = nicbench("reference", "show", "frametest-sums")
    assert "680 more rows: --all shows them" in ended.stderr
    assert ended.stdout.count("read") < 50
    assert "more rows" not in nicbench("reference", "show", "frametest-sums", "--all").stderr


@pytest.mark.parametrize("name", ["connectx5-zero-loss", "connectx5-single-core", "nsfnic4-four-ports-combined"])
def test_its_run_is_that_of_the_command_line_that_it_shows(nicbench: Any, name: str) -> None:
    chosen = data_set(name)
    line = command_line(chosen)
    assert line is not None
    Path(chosen.table).write_bytes(chosen.content())
    by_name = json.loads(nicbench("reference", "import", name, "--output", "named", "--json").stdout)
    by_line = json.loads(nicbench(*shlex.split(line)[1:], "--output", "typed", "--json").stdout)
    assert by_name == by_line
    assert by_name["imported"]["source"] == chosen.source
    (folder,) = Path("named").iterdir()
    assert (folder / "raw" / chosen.table).read_bytes() == chosen.content()
    assert chosen.source in (folder / "report.html").read_text()


def test_an_erratum_that_is_declared_is_in_the_report(nicbench: Any) -> None:
    ended = nicbench("reference", "import", "frametest-statistics")
    assert ended.status == 0, ended.stderr
    (folder,) = Path("runs").iterdir()
    assert "of one instance nothing deviates" in (folder / "report.html").read_text()


def test_what_cannot_become_a_run_says_why(nicbench: Any) -> None:
    ended = nicbench("reference", "import", "snapio-findings")
    assert ended.status == 2
    assert "none of the figures they are of" in ended.stderr
    assert not Path("runs").exists()
