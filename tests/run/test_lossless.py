"""Lossless Ethernet on real frames: a bucket that marks, a switch with pauses, head room and watchdog of known size."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.result import Result

from .lab_bench import TOLERANT, bounds, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

FRAME_BYTES = 512
BENCH = """
nicbench: 1
title: Lossless
lab: {{kind: veth}}
dut: {dut}
traffic: {{flows: 4, fields: {{traffic_class: 0x60}}}}
tester: {{catch_up: 20 ms}}
tests:
  - {{name: test, frame_bytes: [512], trial: {{{duration}drain: 300 ms, settle: 50 ms}}, {test}}}
"""


def measured(folder: Path, dut: str, test: str, duration: str = "") -> tuple[Result, ...]:
    summary, _ = run_bench(folder, BENCH.format(dut=dut, test=test, duration=duration) + TOLERANT)
    return tuple(summary.results)


def check_marks(folder: Path, rate: int, burst: int) -> None:
    """Of a load of twice the rate as many are marked as the bucket does not pass, or lost where they are not ECT."""
    test = f"method: ecn-marking, rate: {2 * rate} pps, loads: [40 %, 100 %], codepoints: [ect-0, not-ect]"
    dut = f"{{kind: policer, rate: {rate} pps, burst: {burst}, mark: true}}"
    results = measured(folder, dut, f"{test}, refinements: 0", "duration: 500 ms, ")
    loads = {
        (one.parameters["codepoint"], one.parameters["load_percent"]): one.values
        for one in results
        if one.parameters["part"] == "loads"
    }
    over = round(rate * 0.5) - burst
    marked, lost = loads["ECT(0)", 100.0]["marked_frames"], loads["Not-ECT", 100.0]["lost_percent"]
    print(f"marked {marked}, known {over}")
    assert marked == pytest.approx(over, abs=0.02 * rate)
    assert lost == pytest.approx(100.0 * over / rate, abs=1.0)
    assert (loads["ECT(0)", 40.0]["marked_frames"], loads["ECT(0)", 100.0]["lost_percent"]) == (0, 0.0)
    assert {values["handling"] for values in loads.values()} == {"as RFC 3168"}


def test_marks_of_a_bucket_are_what_it_does_not_pass(tmp_path: Path) -> None:
    check_marks(tmp_path, 8000, 100)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_marks_are_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    check_marks(tmp_path, draw.randrange(2000, 20_000), draw.randrange(50, 500))


@pytest.mark.acceptance  # the pure tests have the same faults
def test_a_bucket_that_breaks_the_rules_is_told(tmp_path: Path) -> None:
    dut = "{kind: policer, rate: 5 kpps, burst: 100, mark: true, mark_faults: [marks-not-ect, clears-ce]}"
    test = "method: ecn-marking, rate: 10 kpps, loads: [100 %], codepoints: [not-ect, ce]"
    whole = measured(tmp_path, dut, test, "duration: 1 s, ")[-1].values
    assert whole["accepted"] == "no"
    assert "frames that are Not-ECT, clears the CE of" in str(whole["answer"])


def switch(**more: Any) -> str:
    given = {
        "rate": "100 Mbit/s",
        "lossless": "[3]",
        "xoff": "20000 B",
        "xon": "10000 B",
        "head_room": "10000 B",
        **more,
    }
    return f"{{kind: lossless-switch, {', '.join(f'{name}: {value}' for name, value in given.items())}}}"


PAUSES = "priority: 3, link_rate: 100 Mbit/s"


def check_head_room(folder: Path, xoff: int, room: int) -> None:
    test = f"method: head-room, {PAUSES}, rate: 2000 pps, most: 128, loss_verification: 0"
    (result,) = measured(folder, switch(xoff=f"{xoff} B", head_room=f"{room} B"), test)
    found = bounds(result, "head_room_bytes")
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= room <= found.upper
    assert result.values["handling"] == "pauses before it drops"


@pytest.mark.acceptance  # a search is a dozen trials; the pure tests have the same switch
@pytest.mark.parametrize("repetition", range(10))
def test_head_room_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    check_head_room(tmp_path, draw.randrange(12_000, 30_000), draw.randrange(4_000, 30_000))


def check_storm(folder: Path, detect_ms: int, restore_ms: int) -> None:
    watchdog = f"{{detect: {detect_ms} ms, restore: {restore_ms} ms, action: drop}}"
    test = f"method: pause-storm, {PAUSES}, rate: 1000 pps, quanta: 5000, storm: {detect_ms + 200} ms"
    more = f"after: {restore_ms + 200} ms, repetitions: 1, detects_within: {detect_ms + 100} ms"
    (result,) = measured(folder, switch(watchdog=watchdog), f"{test}, {more}")
    detected, restored = bounds(result, "detected_ns"), bounds(result, "restored_ns")
    assert result.values["action"] == "drops"
    assert detected.value == pytest.approx(1e6 * detect_ms, abs=40e6)
    assert restored.value == pytest.approx(1e6 * restore_ms, abs=40e6)
    assert result.values["handling"] == "as asked"


def test_a_watchdog_has_both_its_times(tmp_path: Path) -> None:
    check_storm(tmp_path, 250, 200)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_a_watchdogs_times_are_found_in_ten_of_ten_runs(
    repetition: int, draw: random.Random, tmp_path: Path
) -> None:  # fmt: skip
    check_storm(tmp_path, draw.randrange(150, 600), draw.randrange(150, 500))


def check_pause(folder: Path, quanta: int, obeys: str) -> Result:
    test = f"method: pause-reaction, {PAUSES}, rate: 200 pps, quanta: [{quanta}], repetitions: 1, tolerance: 40 ms"
    (result,) = measured(folder, switch(obeys=obeys, head_room="100000 B"), test)
    return result


@pytest.mark.parametrize("obeys", ["true", pytest.param("false", marks=pytest.mark.acceptance)])
def test_a_switch_that_obeys_is_told_from_one_that_does_not(obeys: str, tmp_path: Path) -> None:
    result = check_pause(tmp_path, 40_000, obeys)
    handled = {"true": "obeys", "false": "does not obey 1 of 1 pauses"}
    bounds(result, "paused_ns")
    assert result.values["handling"] == handled[obeys]


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_pauses_are_as_long_as_their_quanta_in_ten_of_ten_runs(
    repetition: int, draw: random.Random, tmp_path: Path
) -> None:  # fmt: skip
    quanta = draw.randrange(20_000, 60_000)
    paused = bounds(check_pause(tmp_path, quanta, "true"), "paused_ns")
    assert paused.value == pytest.approx(1e9 * quanta * 512 / 1e8, abs=20e6)
