"""Congestion on real frames: a bridge of slow ports with known queues, and one whose ports share what they pass."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

FRAME_BYTES = 512
LINE_BITS = 8 * (FRAME_BYTES + 20)
BENCH = """
nicbench: 1
title: A congested port
lab: {{kind: veth, ports: 4}}
dut: {dut}
traffic: {{pattern: full-mesh, flows: 4}}
tester: {{catch_up: 5 ms}}
tests:
  - name: congestion
    {test}
"""


def measured(folder: Path, dut: str, test: str) -> Result:
    summary, _ = run_bench(folder, BENCH.format(dut=dut, test=test) + TOLERANT)
    (result,) = summary.results
    return result


def congested(folder: Path, dut: str, rate: float, seconds: float = 1.0) -> Result:
    times = f"{{duration: {seconds:g} s, drain: 300 ms, settle: 50 ms}}"
    test = f"method: congestion-control\n    frame_bytes: [{FRAME_BYTES}]\n    rate: {rate:.0f} pps\n    trial: {times}"
    return measured(folder, dut, test)


def check_outputs(folder: Path, rate: int, queue: int) -> None:
    """What a port loses is what it is offered, less what its line and its queue take; the other loses nothing."""
    dut = f"{{kind: bridge, output: {{rate: {rate * LINE_BITS} b/s, buffer: {queue}}}}}"
    result = congested(folder, dut, 0.97 * rate)
    lost, offered = result.values["congested_loss_percent"], 1.5 * 0.97 * rate
    known = 100.0 * (1.0 - (rate + queue + 4) / offered)
    print(f"lost {lost:.2f} %, known {known:.2f} %, {result.verdict.value}")
    assert (result.values["head_of_line_blocking"], result.values["back_pressure"]) == ("no", "no")
    assert lost == pytest.approx(known, abs=1.5)


@pytest.mark.acceptance  # the pure tests have the same switch
def test_ports_with_queues_of_their_own_do_not_block_and_lose_what_they_must(tmp_path: Path) -> None:
    check_outputs(tmp_path, 2000, 100)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_loss_of_a_congested_port_is_found_in_ten_of_ten_runs(
    repetition: int, draw: random.Random, tmp_path: Path
) -> None:
    check_outputs(tmp_path, draw.randrange(1000, 4000), draw.randrange(100, 200))


def test_what_all_ports_share_blocks_the_one_that_is_free(tmp_path: Path) -> None:
    result = congested(tmp_path, "{kind: bridge, police: [{rate: 2500 pps, burst: 200}]}", 2000.0)
    assert result.values["head_of_line_blocking"] == "yes"


def burst(folder: Path, dut: str, receivers: int, rate: str) -> tuple[Bounded, Bounded]:
    test = f"""method: microburst
    most: 600
    receivers: [{receivers}]
    frame_bytes: [{FRAME_BYTES}]
    rate: {rate}
    trial: {{drain: 250 ms, settle: 50 ms}}"""
    result = measured(folder, dut, test)
    longest, held = result.values["burst_frames"], result.values["buffer_frames"]
    assert isinstance(longest, Bounded)
    assert isinstance(held, Bounded)
    print(f"burst {longest.lower} to {longest.upper}, buffer {held.lower} to {held.upper}, {result.verdict.value}")
    return longest, held


def check_buffer(folder: Path, queue: int, receivers: int = 1) -> None:
    """A port holds its queue, and has sent at once what its bucket lets it: three frames, and one on the line."""
    _, held = burst(folder, f"{{kind: bridge, output: {{rate: 10 Mbit/s, buffer: {queue}}}}}", receivers, "20 kpps")
    assert held.lower is not None
    assert held.upper is not None
    assert held.lower <= queue + 5
    assert queue <= held.upper


@pytest.mark.acceptance
def test_the_buffer_of_a_port_is_found(draw: random.Random, tmp_path: Path) -> None:
    check_buffer(tmp_path, draw.randrange(50, 300))


@pytest.mark.acceptance
@pytest.mark.parametrize("receivers", [1, 2])
@pytest.mark.parametrize("repetition", range(10))
def test_the_buffer_is_found_in_ten_of_ten_runs(
    repetition: int, receivers: int, draw: random.Random, tmp_path: Path
) -> None:
    check_buffer(tmp_path, draw.randrange(50, 300), receivers)


@pytest.mark.acceptance
def test_what_ports_share_takes_shorter_bursts_of_each(tmp_path: Path) -> None:
    """The bucket of one policer for all ports takes 200 frames, and more while the burst lasts."""
    dut = "{kind: bridge, police: [{rate: 1000 pps, burst: 200}]}"
    alone, _ = burst(tmp_path / "alone", dut, 1, "20 kpps")
    both, _ = burst(tmp_path / "both", dut, 2, "20 kpps")
    assert alone.value is not None
    assert both.value is not None
    assert 198 <= alone.value <= 212
    assert 98 <= both.value <= 112
