"""Captures as traffic: loads, line rates and shares of them follow from the sizes of the file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scapy.all import IP, UDP, Ether, Raw, wrpcap

from nicbench.bench_file import load
from nicbench.core.events import Bus
from nicbench.core.result import Result
from nicbench.core.trial import Trial
from nicbench.run import run
from nicbench.store.folder import RunFolder

BENCH = """
nicbench: 1
title: Captured
lab: {{kind: simulated, link: 1 Gb/s{capacity}}}
dut: {{kind: simulated}}
traffic: {traffic}
tests:
  - {{name: loss, method: frame-loss{sizes}, trial: {trial}}}
  - {{name: rate, method: throughput{sizes}, search: {{precision: 5 %}}, trial: {trial}}}
"""
TRIAL = "{duration: 1 s, drain: 50 ms, settle: 0 s}"
BESIDE = (
    "{{streams: [{{name: a, share: 50 %, pcap: {0}/three.pcap}}, {{name: b, share: 25 %, frame_bytes: 64}}, "
    "{{name: c, share: 25 %, pcap: {0}/one.pcap}}]}}"
)
LINE_RATE_BYTES_PER_S = 1e9 / 8
PREAMBLE_AND_GAP_BYTES = 20


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Captures of frames with FCS of 1518 bytes, and of 64, 574 and 1518 bytes in turn."""

    def frame(frame_bytes: int) -> Ether:
        headers = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="198.18.0.1", dst="198.19.0.1")
        return headers / UDP(sport=9, dport=9) / Raw(bytes(frame_bytes - 46))

    wrpcap(str(tmp_path / "one.pcap"), [frame(1518)] * 20)
    wrpcap(str(tmp_path / "three.pcap"), [frame(64), frame(574), frame(1518)] * 10)
    return tmp_path


def measure(
    parent: Path, traffic: str, *, sizes: str = "", capacity: str = ""
) -> tuple[dict[str, list[Result]], list[Trial]]:
    text = BENCH.format(traffic=traffic, sizes=sizes, capacity=capacity, trial=TRIAL)
    folder = RunFolder.create(parent, text, "Captured")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    summary = asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    by_test = {}
    for result in summary.results:
        by_test.setdefault(result.id.partition("/")[0], []).append(result)
    return by_test, list(folder.journal.trials().values())


def line_rate_frames_per_s(mean_bytes: float) -> float:
    return LINE_RATE_BYTES_PER_S / (mean_bytes + PREAMBLE_AND_GAP_BYTES)


@pytest.mark.parametrize(
    ("traffic", "size", "mean_bytes"),
    [
        ("{{pcap: {0}/one.pcap}}", "1518", 1518.0),
        ("{{pcap: {0}/three.pcap}}", "capture", 2156 / 3),
        ("{{pcap: {0}/three.pcap, signature: false}}", "capture", 2156 / 3),
        (
            BESIDE,
            "streams",
            2156 / 6 + 64 / 4 + 1518 / 4,
        ),
    ],
)
def test_a_full_line_is_100_percent_and_carries_all_that_passes(
    captures: Path, traffic: str, size: str, mean_bytes: float
) -> None:
    by_test, trials = measure(captures, traffic.format(captures))
    most = line_rate_frames_per_s(mean_bytes)
    first = trials[0]
    assert first.request.load_frames_per_s == pytest.approx(most)
    assert first.reading.counts.sent == pytest.approx(most, rel=0.01)
    assert first.verdict.findings == ()
    assert {str(result.parameters.get("mix", result.parameters["frame_bytes"])) for result in by_test["loss"]} == {size}
    (rate,) = by_test["rate"]
    found = rate.values["ndr_frames_per_s"]
    made = [(one.request.load_frames_per_s, one.reading.counts, one.verdict) for one in trials if one.test == "rate"]
    assert found.value == pytest.approx(most, rel=0.01), made
    assert found.limited_by == "line_rate"


def test_a_mix_like_the_capture_is_measured_with_it(captures: Path) -> None:
    three = "[{frame_bytes: 64, weight: 1}, {frame_bytes: 574, weight: 1}, {frame_bytes: 1518, weight: 1}]"
    by_test, _ = measure(
        captures,
        f"{{pcap: {captures}/three.pcap, mixes: {{like: {three}}}}}",
        sizes=", frame_bytes: [like]",
        capacity=", capacity: 20 kpps",
    )
    (rate,) = by_test["rate"]
    found = rate.values["ndr_frames_per_s"]
    assert found.value is not None
    assert 19e3 < found.value < 21e3
    assert rate.parameters["mix"] == "like"
    assert rate.parameters["frame_bytes"] == pytest.approx(718.67, abs=0.01)
