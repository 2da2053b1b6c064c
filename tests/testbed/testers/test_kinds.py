"""A tester is one file: the bench file, its checks, a whole run and the report know it without another change."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nicbench.testbed.testers
from nicbench.bench_file import WrongBenchFileError, parse
from nicbench.cli.main import main
from nicbench.core.registry import find
from nicbench.core.traffic import Ability
from nicbench.store.folder import RunFolder
from nicbench.testbed.testers.base import TesterKind

TINY = '''
"""A generator of arithmetic (`tiny`), for one test."""

from nicbench.testbed.labs.base import TesterPort
from nicbench.core.traffic import Ability
from nicbench.core.base import Frozen
from nicbench.core.reading import Counts
from nicbench.core.quantity import FramesPerSecond
from nicbench.core.trial import Health, PortReading, Reading, StreamReading
from nicbench.testbed.testers.base import Tester, TesterFacts, TesterKind


class TinyOptions(Frozen):
    """How fast the DUT behind it forwards."""

    capacity: FramesPerSecond = 5000.0


class Tiny(TesterKind):
    """Two ports, and nothing between them but a number."""

    kind = "tiny"
    Options = TinyOptions
    cannot = {Ability.LATENCY: "it has no clock"}

    def own_ports(self):
        return tuple(TesterPort(name=f"tiny{n}", engine={}, mac=f"02:00:00:00:00:0{n}") for n in range(2))

    def make(self, setting):
        return _Sums(self.options.capacity)


class _Sums(Tester):
    def __init__(self, capacity):
        self.capacity = capacity

    async def start(self):
        return TesterFacts({"engine": {"engine": "tiny"}}, 64, 1518, 1e7)

    async def trial(self, number, request, addressing, during=None):
        sent = int(request.load_frames_per_s * request.duration_s)
        received = min(sent, int(self.capacity * request.duration_s))
        counts = Counts(
            intended=sent, sent=sent, received=received, lost=sent - received, late=None, duplicated=None,
            reordered=None, corrupted=None, unattributed=None, corrupted_unattributed=None, foreign=None,
        )
        return Reading(
            transmit_ns=int(1e9 * request.duration_s), counts=counts,
            streams=(StreamReading(name="0->1", counts=counts),),
            ports=(PortReading(name="tiny0"), PortReading(name="tiny1")), latency=None, health=Health(),
        )

    async def close(self):
        pass
'''

BENCH = """
nicbench: 1
title: A new tester
tester: {kind: tiny, capacity: 4 kpps}
dut: {kind: external}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {precision: 5 %, maximum_trials: 20}
    trial: {duration: 1 s, drain: 0 s, settle: 0 s}
"""
LATENCY = "  - {name: delays, method: latency, at: throughput, frame_bytes: [64]}\n"
LOSS = "tests:\n  - {name: loss, method: frame-loss, frame_bytes: [64]}\n"
LARGER = LOSS.replace("64", "128")
EXTERNAL = "dut: {kind: external}\n"
TREX = "nicbench: 1\ntitle: T\ntester: {kind: trex, client: /opt/trex}\n"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file next to the others, as far as the registry can see."""
    folder = tmp_path / "added"
    folder.mkdir()
    (folder / "tiny.py").write_text(TINY)
    monkeypatch.setattr(nicbench.testbed.testers, "__path__", [*nicbench.testbed.testers.__path__, str(folder)])
    importlib.invalidate_caches()
    yield
    sys.modules.pop("nicbench.testbed.testers.tiny", None)


def refusals(text: str) -> list[str]:
    with pytest.raises(WrongBenchFileError) as caught:
        parse(text.encode(), Path("b.yaml"))
    return [str(error) for error in caught.value.list_errors()]


@pytest.mark.usefixtures("tiny")
def test_a_new_file_is_a_new_tester_from_the_bench_file_to_the_report(tmp_path: Path) -> None:
    (tmp_path / "bench.yaml").write_text(BENCH)
    assert main(["run", str(tmp_path / "bench.yaml"), "--output", str(tmp_path / "runs"), "--no-progress"]) == 0
    (path,) = (tmp_path / "runs").glob("*/")
    summary = RunFolder.open(path).summary()
    rate = summary.results[0].values["ndr_frames_per_s"]
    assert rate.value == pytest.approx(4000, rel=0.06)
    assert (path / "report.html").is_file()
    assert (path / "trials.parquet").is_file()


@pytest.mark.usefixtures("tiny")
def test_a_test_that_it_cannot_do_is_refused_with_the_next_step() -> None:
    (problem,) = refusals(BENCH + LATENCY)
    assert problem.startswith("b.yaml:12:28: ")
    assert "the test `delays` (latency) needs the latency of frames, and the tester `tiny` cannot: it has no clock" in (
        problem
    )
    assert "`tester: {kind: packets}`" in problem
    assert "`tester: {kind: trex}`" in problem


@pytest.mark.usefixtures("tiny")
def test_its_options_are_checked_where_they_stand() -> None:
    (problem,) = refusals(BENCH.replace("capacity", "capacitty"))
    assert problem.startswith("b.yaml:4:22: ")
    assert "did you mean `capacity`?" in problem


def test_an_unknown_tester_is_refused_where_it_stands() -> None:
    (problem,) = refusals(BENCH.replace("tiny, capacity: 4 kpps", "trecks"))
    assert problem.startswith("b.yaml:4:16: ")
    assert "unknown tester kind `trecks`" in problem
    assert "did you mean `trex`?" in problem


def test_a_tester_without_a_kind_is_our_own_engine() -> None:
    bench = parse(
        b"nicbench: 1\ntitle: T\nlab: simulated\ndut: simulated\ntester: {burst: 64}\n" + LOSS.encode(), Path("b.yaml")
    )
    assert bench.tester.kind == "packets"
    assert bench.tester.options.model_dump()["burst"] == 64
    (problem,) = refusals("nicbench: 1\ntitle: T\nlab: simulated\ndut: simulated\ntester: {burts: 64}\n" + LOSS)
    assert problem.startswith("b.yaml:5:10: ")
    assert "did you mean `burst`?" in problem


def test_options_of_our_engine_are_none_of_another_tester() -> None:
    (problem,) = refusals(TREX.replace("client:", "burst: 64, client:") + EXTERNAL + LOSS)
    assert "unknown key `tester.burst`" in problem


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        (TREX + "lab: {kind: veth}\n" + EXTERNAL + LOSS, "4:1", "brings its own ports, so `lab` has no effect"),
        (TREX + "dut: {kind: kernel-forward}\n" + LOSS, "4:13", "write `dut: {kind: external}`"),
        (TREX + EXTERNAL + "traffic: {ip: 6}\n" + LARGER, "5:15", "this traffic needs IPv6"),
        (TREX + EXTERNAL + "traffic: {vlan: 5}\n" + LARGER, "5:17", "plain Ethernet, IPv4 and UDP"),
        (TREX + EXTERNAL + LOSS.replace("[64]", "[imix]"), "6:51", "needs frames of several sizes in one stream"),
        (
            TREX
            + "dut: {kind: external, macs: ['02:00:00:00:01:01', '02:00:00:00:01:02'], answer_for_flows: true}\n"
            + LOSS,
            "4:1",
            "give the DUT static neighbours",
        ),
        (TREX.replace("}", ", ports: [0, 0]}") + EXTERNAL + LOSS, "3:9", "give each port once"),
        (TREX.replace("}", ", ports: [0, 1, 2]}") + EXTERNAL + LOSS, "3:48", "one-to-one"),
    ],
)
def test_what_trex_cannot_do_is_found_before_anything_is_touched(text: str, position: str, words: str) -> None:
    (problem,) = refusals(text)
    assert problem.startswith(f"b.yaml:{position}")
    assert words in problem


def test_bursts_and_recovery_are_refused_by_name() -> None:
    tests = (
        "tests:\n"
        "  - {name: rate, method: throughput, frame_bytes: [64]}\n"
        "  - {name: bursts, method: back-to-back, at: rate, frame_bytes: [64]}\n"
        "  - {name: recovery, method: system-recovery, at: rate, frame_bytes: [64]}\n"
        "  - {name: reset, method: reset, at: rate, command: [reboot], host: local}\n"
    )
    said = "\n".join(refusals(TREX + EXTERNAL + tests))
    refused = ("`bursts` (back-to-back) needs bursts", "`recovery` (system-recovery) needs loads", "`reset` (reset)")
    assert all(words in said for words in refused)


def test_our_own_engine_can_do_everything_and_no_tester_refuses_without_a_reason() -> None:
    kinds = find("nicbench.testbed.testers", TesterKind)
    assert not kinds["packets"].cannot
    for kind in kinds.values():
        assert all(isinstance(ability, Ability) and reason for ability, reason in kind.cannot.items())
