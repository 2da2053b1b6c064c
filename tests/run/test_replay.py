"""Captures with their own timing: on the simulated lab to the frame, by real frames against the receiver's clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from scapy.all import ARP, IP, TCP, UDP, Ether, Raw, rdpcap, wrpcap

from nicbench.bench_file import load
from nicbench.core.events import Bus
from nicbench.core.result import Result
from nicbench.core.trial import Trial
from nicbench.run import run
from nicbench.store.folder import RunFolder

from .lab_bench import TOLERANT

BENCH = """
nicbench: 1
title: Replayed
lab: {lab}
dut: {{kind: {dut}}}
traffic: {{bidirectional: true}}
{more}
tests:
  - name: replay
    method: replay
    captures: [{captures}]
    longest: 3 s
    drain: 200 ms
    settle: 20 ms
    speed: {speed}
"""
LINK = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
LONG_S, SHORT_S = 0.03, 0.005
MOST_REPLAYS = 5


def frames(count: int, number: int) -> list[Any]:
    """Small and large ones, some without a payload, some that are all alike."""
    packet = IP(src=f"198.18.{number}.1", dst="198.19.0.1")
    kinds = (
        lambda index: packet / TCP(sport=9, dport=80, seq=index),
        lambda index: packet / UDP(sport=9, dport=9) / Raw(index.to_bytes(2, "big") * 200),
        lambda index: packet / UDP(sport=7, dport=7) / Raw(b"the same again"),
        lambda index: ARP(psrc=f"198.18.{number}.{index % 250}"),
    )
    return [LINK / kinds[index % 4](index) for index in range(count)]


def write(path: Path, made: list[Any], gaps_s: list[float], begins_s: float = 1.7e9) -> None:
    for frame, gap_s in zip(made, gaps_s, strict=True):
        frame.time = begins_s
        begins_s += gap_s
    wrpcap(str(path), made, nano=True)


def replay(parent: Path, **words: Any) -> tuple[RunFolder, tuple[Result, ...], Trial]:
    text = BENCH.format(**{"lab": "{kind: simulated}", "dut": "simulated", "more": "", "speed": 1, **words})
    folder = RunFolder.create(parent, text, "Replayed")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    summary = asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    trials = [trial for trial in folder.journal.trials().values() if trial.test == "replay"]
    return folder, summary.results, trials[-1]


def counts(result: Result) -> list[Any]:
    names = ("recorded", "sent", "returned", "missing", "changed", "extra", "reordered")
    return [result.values[f"{name}_frames"] for name in names]


def test_every_frame_comes_back_as_recorded_at_its_time(tmp_path: Path) -> None:
    write(tmp_path / "a.pcap", frames(400, 1), [0.001] * 400)
    write(tmp_path / "b.pcap", frames(100, 2), [0.002] * 100, begins_s=1.7e9 + 0.5)
    captures = f"{{file: {tmp_path}/a.pcap}}, {{file: {tmp_path}/b.pcap, from_port: 1, to_port: 0}}"
    _, results, trial = replay(tmp_path, captures=captures, speed=0.5)
    assert [counts(result) for result in results] == [[400, 400, 400, 0, 0, 0, 0], [100, 100, 100, 0, 0, 0, 0]]
    arrivals = [stream.arrivals for stream in trial.reading.streams]
    # At half the speed the second begins a second after the first, and both end after 0.8 s and 1.4 s.
    assert arrivals[1].first_ns - arrivals[0].first_ns == pytest.approx(1e9, rel=0.01)
    assert arrivals[0].last_ns == pytest.approx(0.798e9, rel=0.01)


def test_frames_that_were_captured_with_their_fcs_are_sent_as_long_as_they_were(tmp_path: Path) -> None:
    """As by `nicbench serve`, whose captures do not say that frames have one."""
    sent = [
        bytes(LINK / IP(src="198.18.0.1", dst="198.19.0.1", id=index) / UDP() / Raw(b"x" * 82)) for index in range(9)
    ]
    write(tmp_path / "a.pcap", [Ether(each + crc32(each).to_bytes(4, "little")) for each in sent], [0.001] * 9)
    _, (result,), trial = replay(tmp_path, captures=f"{{file: {tmp_path}/a.pcap}}")
    assert counts(result)[:4] == [9, 9, 9, 0]
    assert trial.reading.streams[0].checked_bytes == 124


@pytest.mark.parametrize(
    ("fault", "column"), [("loss", "missing"), ("duplicate", "extra"), ("reorder", "reordered"), ("corrupt", "changed")]
)
def test_a_dut_that_breaks_frames_is_told_by_its_fault(fault: str, column: str, tmp_path: Path) -> None:
    made = [LINK / IP(src="198.18.0.1", dst="198.19.0.1", id=index) / UDP() / Raw(b"x" * 99) for index in range(500)]
    write(tmp_path / "a.pcap", made, [0.0005] * 500)
    lab = f"{{kind: simulated, {fault}: 10 %}}"
    _, (result,), _ = replay(tmp_path, lab=lab, captures=f"{{file: {tmp_path}/a.pcap}}")
    found = {name: result.values[f"{name}_frames"] for name in ("missing", "changed", "extra", "reordered")}
    assert 20 < found.pop(column) < 90
    assert set(found.values()) <= {0} or fault == "reorder"


def test_frames_that_are_due_too_late_are_not_sent_and_one_without_room_for_a_signature_is_named(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.pcap", frames(8, 1), [0.6] * 8)
    _, (result,), _ = replay(tmp_path, captures=f"{{file: {tmp_path}/a.pcap}}")
    assert counts(result)[:2] == [8, 6]  # 0 s to 3 s


@pytest.mark.lab
def test_known_gaps_are_found_again_by_the_receivers_clock(tmp_path: Path) -> None:
    gaps_s = [LONG_S if index % 3 == 0 else SHORT_S for index in range(60)]
    write(tmp_path / "a.pcap", frames(60, 1), gaps_s)
    more = f"tester: {{driver: net_pcap, timestamps: kernel, capture: {{frames: 100}}}}\n{TOLERANT}"
    captures = f"{{file: {tmp_path}/a.pcap}}"
    apart_s = (LONG_S - SHORT_S) / 2
    for _ in range(MOST_REPLAYS):  # on a busy machine the sender may be late, which its result tells
        folder, (result,), trial = replay(tmp_path, lab="{kind: veth}", dut="bridge", more=more, captures=captures)
        assert counts(result) == [60, 60, 60, 0, 0, 0, 0]
        late_ns = result.values["late_maximum_ns"]
        if isinstance(late_ns, float | int) and late_ns < apart_s * 1e9:
            break
    stamps = [float(frame.time) for frame in rdpcap(str(folder.path / trial.reading.capture.name))]
    found = [after - before for before, after in pairwise(stamps)]
    assert found == pytest.approx(gaps_s[:-1], abs=apart_s)
