"""``nicbench inventory``: what this machine is, as text and as data, with its names or without."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from nicbench.cli.main import main


def test_the_inventory_of_this_machine_is_printed_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory"]) == 0
    shown = capsys.readouterr().out
    for words in ("this machine", "Operating system", "Kernel", "Processors", "Every fact"):
        assert words in shown


def test_redacted_data_have_neither_this_machines_name_nor_its_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory", "--json", "--redact"]) == 0
    shown = capsys.readouterr().out
    (facts,) = json.loads(shown)["hosts"].values()
    assert facts["kernel"]["release"] == platform.release()
    addresses = [path.read_text().strip() for path in Path("/sys/class/net").glob("*/address")]
    assert not [each for each in addresses if each and each in shown and each.strip("0:") and each.strip("f:")]


def test_the_hosts_of_a_bench_file_are_told_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text((Path(__file__).parents[2] / "examples" / "external.yaml").read_text())
    assert main(["inventory", str(bench), "--json"]) == 0
    assert "tester" in json.loads(capsys.readouterr().out)["hosts"]


def test_of_a_namespace_that_a_run_makes_the_machine_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text((Path(__file__).parents[2] / "examples" / "two-ports.yaml").read_text())
    assert main(["inventory", str(bench), "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert {facts["kernel"]["release"] for facts in (hosts["server"], hosts["client"])} == {platform.release()}
