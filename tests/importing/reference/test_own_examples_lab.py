"""Each published data set is compared with a run of its own study's example, made small: both have points in common."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nicbench.cli.main import main
from nicbench.core.shipped import shipped

sys.path.insert(0, str(Path(__file__).parents[3] / "docs/site"))
from nicbench_docs.items import FOLDER, printed_at

SIMULATED = {
    r"lab:\n  kind: veth": "lab: {kind: simulated}",
    r"lab: \{kind: veth\}": "lab: {kind: simulated}",
    r"dut:\n  kind: bridge": "dut: {kind: simulated}",
    r"dut: bridge\n": "dut: {kind: simulated}\n",
    r"  A: .*\n  B: .*": "  A: {lab: {capacity: 400 kpps}}\n  B: {lab: {capacity: 500 kpps}}",
    r"traffic:\n  bidirectional: true\n": "",
    r"runs: 2\n": "",
    r"duration: \S+ \w+": "duration: 100 ms",
}
SHORT = {
    r"duration: 2 s": "duration: 1 s",
    r"direction: \[forward, reverse\]": "direction: [forward]",
    r"repetitions: \d": "repetitions: 1",
    r"transfer_bytes: \[1 MB, ": "transfer_bytes: [",
    r"write_bytes: \[1 KiB, 8 KiB\]": "write_bytes: [8 KiB]",
    r"  10-Mbps-full-duplex: .*\n": "  slower: {lab: {rate: 50 Mb/s}}\n",
    r"(?s)  # Do two tools agree.*?(?=  # From the clients)": "",
    r"(?s)  # Both clients of a port send.*": "",
}


def run(example: str, changes: Mapping[str, str]) -> None:
    """Runs an example in this folder, with these changes."""
    text = (shipped("examples") / f"{example}.yaml").read_text()
    for old, new in changes.items():
        text = re.sub(old, new, text)
    Path("bench.yaml").write_text(text)
    assert main(("run", "bench.yaml", "--no-progress", "--no-report")) == 0


def common(reference: str, capsys: pytest.CaptureFixture[str], *, of: str = "latest") -> set[str]:
    """Compares the run with published results, and returns the tests of which both have points."""
    capsys.readouterr()
    status = main(("compare", of, f"reference:{reference}", "--force", "--json"))
    output = capsys.readouterr()
    assert status == 0, output.err
    found = json.loads(output.out)
    published = {entry["name"] for entry in found["entries"] if entry["origin"] == "imported"}
    return {
        value["test"] for value in found["values"] if 0 < len(published & set(value["entries"])) < len(value["entries"])
    }


def test_a_load_sweep_is_compared_load_by_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("load-sweep", SIMULATED)
    assert common("nsfnic4-load-sweep:100 Mb/s, full duplex", capsys) == {"load-sweep"}
    # What docs/studies has of the report is at the same place in this one.
    assert main(("report", "latest", "--format", "md")) == 0
    (report,) = Path("runs").glob("*/report.md")
    title, heads, *rows = printed_at("Load sweep", report.read_text())
    kept = (FOLDER / "four-ports.txt").read_text()
    assert f"  {title}\n  {heads.partition(' | ')[0]}" in kept
    assert [row.split(" ")[1] for row in rows] == ["100", "75", "1"]


def test_a_long_tail_is_compared_at_the_lossless_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("two-adapters", SIMULATED)
    capsys.readouterr()
    assert main(("compare", "latest:A", "reference:netxtreme25-long-tail", "--force")) == 0
    assert "no point in common" not in capsys.readouterr().err


@pytest.mark.lab
@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("example", "references", "of"),
    [
        pytest.param(
            "link-modes",
            ("nsfnic4-port-alone", "nsfnic4-four-ports", "nsfnic4-four-ports-combined"),
            "latest:100-Mbps-full-duplex",
            id="ports",
        ),
        pytest.param("eight-ports", ("nsfnic4-eight-ports", "nsfnic4-eight-ports-combined"), "latest", id="eight"),
        pytest.param(
            "streams",
            (
                "nsfnic4-two-clients",
                "nsfnic4-two-clients-combined",
                "nsfnic4-forwarding",
                "nsfnic4-transfers",
                "nsfnic4-transfers-fast-client",
            ),
            "latest",
            id="clients",
        ),
    ],
)
def test_streams_are_compared_port_by_port(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    example: str,
    references: tuple[str, ...],
    of: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    run(example, SHORT)
    for reference in references:
        mode = "100 Mb/s, full" if "transfers" in reference else "full duplex"
        mode = "100 Mb/s, full duplex" if reference in ("nsfnic4-port-alone", "nsfnic4-forwarding") else mode
        tests = common(f"{reference}:{mode}", capsys, of=of)
        assert tests or reference == "nsfnic4-two-clients", reference  # of single clients nothing is a main value
