"""Two settings of one bench file with real packets: disclosed, redacted, and told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nicbench.cli.main import main
from nicbench.compare.run_differences import find_differences
from nicbench.store.folder import RunFolder

from .lab_bench import TOLERANT, short
from .simulated_bench import BENCH


def told(parent: Path, bench: str, *options: str) -> RunFolder:
    """A run as a user starts it."""
    parent.mkdir()
    (parent / "bench.yaml").write_text(bench)
    command = ["run", str(parent / "bench.yaml"), "--output", str(parent / "runs"), "--no-progress", *options]
    assert main(command) == 0
    (path,) = (parent / "runs").iterdir()
    return RunFolder.open(path)


@pytest.mark.lab
@pytest.mark.acceptance
def test_the_setting_that_was_tuned_is_disclosed_and_named_first(tmp_path: Path) -> None:
    runs = []
    for value in (0, 1):
        tuning = f"tuning: {{dut: {{sysctls: {{net.ipv4.ip_early_demux: {value}}}}}}}\n"
        bench = short("{kind: kernel-forward}", more=TOLERANT + tuning, trials=2, duration="100 ms")
        runs.append(told(tmp_path / str(value), bench, "--redact", *["--no-report"] * value))
    found = find_differences(*runs)
    assert found.settings[0].path == "tuning.sysctls.machine.net.ipv4.ip_early_demux"
    assert found.settings[0].values == ("0", "1")
    page = (runs[0].path / "report.html").read_text()
    assert "System configuration" in page
    assert "Settings made for the test" in page
    links = json.loads((runs[0].path / "inventory.json").read_text())["dut"]["interfaces"]
    assert all(link["mac"].startswith("mac-") for link in links.values())


def test_a_redacted_run_goes_on_redacted(tmp_path: Path) -> None:
    run = told(tmp_path / "a", BENCH, "--redact", "--no-report")
    lines = (run.path / "journal.ndjson").read_text().splitlines(keepends=True)
    assert json.loads(lines[0])["redacted"] is True
    (run.path / "MANIFEST.json").unlink()
    (run.path / "journal.ndjson").write_text("".join(lines[: len(lines) // 2]))
    assert main(["resume", str(run.path), "--no-progress", "--no-report"]) == 0
    started = [
        json.loads(line) for line in (run.path / "journal.ndjson").read_text().splitlines() if "run_started" in line
    ]
    assert [event["redacted"] for event in started] == [True, True]
