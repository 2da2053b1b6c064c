"""Multicast on real frames: what a snooping Linux bridge keeps, and when it begins and ends to forward, is found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result
from nicbench.testbed.duts.bridge import Bridge
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

from .lab_bench import TOLERANT, bounds, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

BENCH = """
nicbench: 1
title: Multicast through a bridge
lab: {{kind: veth, ports: 4}}
dut: {dut}
traffic: {{pattern: one-to-many, ip: {ip}}}
tester: {{catch_up: {catch_up}}}
tests:
  - name: groups
    {test}
"""
_QUEUE = 50
SHORT = "drain: 50 ms, settle: 50 ms"


def measured(folder: Path, dut: str, test: str, ip: int = 4, catch_up: str = "500 ms") -> tuple[Result, ...]:
    """With a long time to catch up every frame goes out, whenever that is."""
    summary, _ = run_bench(folder, BENCH.format(dut=dut, test=test, ip=ip, catch_up=catch_up) + TOLERANT)
    return summary.results


def capacity(folder: Path, dut: str, most: int, ip: int = 4) -> Bounded:
    times = f"trial: {{pause: 100 ms, {SHORT}, attempts: 1}}"
    (result,) = measured(
        folder, dut, f"method: multicast-capacity\n    most: {most}\n    rate: 20 kpps\n    {times}", ip
    )
    return bounds(result, "capacity_groups")


def membership(folder: Path, dut: str, after: str, repetitions: int = 1, more: str = "", ip: int = 4) -> Result:
    test = f"method: multicast-membership\n    repetitions: {repetitions}\n    rate: 2 kpps{more}"
    test += f"\n    trial: {{member: 200 ms, after: {after}, {SHORT}}}"
    (result,) = measured(folder, dut, test, ip)
    return result


def test_the_groups_of_a_bridge_are_counted_to_the_last(draw: random.Random, tmp_path: Path) -> None:
    keeps = draw.randrange(2, 8)
    found = capacity(tmp_path, f"{{kind: bridge, snooping: {{most_groups: {keeps}}}}}", 8)
    assert (found.value, found.upper) == (keeps, keeps + 1)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_groups_are_counted_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    keeps = draw.randrange(100, 1000)
    found = capacity(tmp_path, f"{{kind: bridge, snooping: {{most_groups: {keeps}}}}}", 1024)
    assert (found.value, found.upper) == (keeps, keeps + 1)


@pytest.mark.acceptance
def test_groups_of_ipv6_share_the_table_with_the_bridges_own(tmp_path: Path) -> None:
    found = capacity(tmp_path, "{kind: bridge, snooping: {most_groups: 200, mld: true}}", 256, ip=6)
    assert found.value is not None
    assert 196 <= found.value <= 200


@pytest.mark.acceptance
def test_a_bridge_that_does_not_snoop_keeps_no_group(tmp_path: Path) -> None:
    assert capacity(tmp_path, "{kind: bridge}", 2).reason_null == "not even one group went to its member alone"


def check_leave(result: Result, interval_s: float) -> None:
    """The bridge asks twice, and its timer is up to an eighth late (the kernel's timer wheel)."""
    leave, join = bounds(result, "leave_delay_ns"), bounds(result, "join_delay_ns")
    assert leave.lower is not None
    assert leave.upper is not None
    assert join.upper is not None
    assert leave.upper >= 2e9 * interval_s
    assert leave.lower <= 2e9 * interval_s * 1.125 + 20e6
    assert join.upper < 50e6
    assert result.values["flooded_frames"] == 0


_LONG = pytest.mark.acceptance


@pytest.mark.parametrize(
    ("ip", "older"),
    [(4, False), (6, True), pytest.param(4, True, marks=_LONG), pytest.param(6, False, marks=_LONG)],
)
def test_frames_go_on_for_as_long_as_the_bridge_asks(ip: int, older: bool, tmp_path: Path) -> None:
    dut = f"{{kind: bridge, snooping: {{last_member: 200 ms, mld: {str(ip == 6).lower()}}}}}"
    more = "\n    older: true" if older else ""
    check_leave(membership(tmp_path, dut, "800 ms", more=more, ip=ip), 0.2)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_leave_delay_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    interval_s = draw.randrange(10, 100) / 100
    dut = f"{{kind: bridge, snooping: {{last_member: {interval_s:g} s}}}}"
    check_leave(membership(tmp_path, dut, f"{2.5 * interval_s + 0.5:g} s", repetitions=2), interval_s)


@pytest.mark.acceptance
def test_a_bridge_that_asks_nobody_ends_at_once_and_one_that_asks_for_long_is_told(tmp_path: Path) -> None:
    fast = membership(tmp_path / "fast", "{kind: bridge, snooping: {fast_leave: true}}", "300 ms")
    found = bounds(fast, "leave_delay_ns")
    assert found.upper is not None
    assert found.upper < 50e6
    slow = membership(tmp_path / "slow", "{kind: bridge, snooping: {last_member: 10 s}}", "300 ms")
    assert bounds(slow, "leave_delay_ns").reason_null == ("in 1 of 1 trials: frames still came 0.3 s after the leave")
    floods = membership(tmp_path / "floods", "{kind: bridge}", "300 ms")
    assert bounds(floods, "join_delay_ns").reason_null == (
        "in 1 of 1 trials: frames came before the join: they are flooded"
    )


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", ["multicast", "broadcast"])
def test_the_rate_of_slow_ports_is_found_and_every_port_is_timed(kind: str, tmp_path: Path) -> None:
    check_rate(kind, 10e6, tmp_path)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
@pytest.mark.parametrize("kind", ["multicast", "broadcast"])
def test_the_rate_is_found_in_ten_of_ten_runs(kind: str, repetition: int, draw: random.Random, tmp_path: Path) -> None:
    check_rate(kind, draw.uniform(5e6, 20e6), tmp_path)


def check_rate(kind: str, rate_bits_per_s: float, folder: Path) -> None:
    """What a port passes is its rate, and once what its queue and its bucket hold."""
    groups = "groups: 4\n    joining: {pause: 100 ms}\n    " if kind == "multicast" else ""
    dut = f"{{kind: bridge, snooping: {{}}, output: {{rate: {rate_bits_per_s / 1e6:.6f} Mbit/s, buffer: {_QUEUE}}}}}"
    test = f"""method: {kind}-throughput
    {groups}frame_bytes: [512]
    search: {{goals: {{NDR: 0}}, precision: 4 %, maximum_load: 10 kpps, trials_per_bound: 1}}
    trial: {{duration: 1 s, drain: 200 ms, settle: 50 ms}}
  - name: latency
    method: {kind}-latency
    at: groups
    load: 50 %
    {groups}frame_bytes: [512]
    trial: {{duration: 200 ms, {SHORT}}}"""
    results = measured(folder, dut, test, catch_up="2 ms")
    found = bounds(results[0], "ndr_frames_per_s")
    frame_bits = 8 * (512 + 20)
    least, more = rate_bits_per_s / frame_bits, (_QUEUE + 1600 / 532 + 1) / 1.0
    assert found.upper is not None
    assert found.lower is not None
    assert found.upper >= least * 0.99
    assert found.lower <= (least + more) * 1.01
    ports = [result.parameters["port"] for result in results[1:]]
    assert ports == ["t1", "t2", "t3"]
    assert all(result.values["received_frames"] and result.values["loss_percent"] == 0.0 for result in results[1:])


def test_a_port_that_gets_no_broadcasts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up = Bridge.up

    async def without_a_port(self: Bridge, testbed: Testbed, changes: Changes) -> None:
        await set_up(self, testbed, changes)
        await testbed.dut.run(("bridge", "link", "set", "dev", str(testbed.dut_ports[3].device), "bcast_flood", "off"))

    monkeypatch.setattr(Bridge, "up", without_a_port)
    search = "{goals: {NDR: 0, most: 40 %}, precision: 40 %, minimum_load: 1 kpps, maximum_load: 2 kpps}"
    test = f"""method: broadcast-throughput
    frame_bytes: [512]
    search: {search}
    trial: {{duration: 100 ms, {SHORT}}}"""
    (result,) = measured(tmp_path, "{kind: bridge}", test)
    assert bounds(result, "ndr_frames_per_s").value is None
    assert bounds(result, "most_frames_per_s").value == 2000.0
    lost = {way.receive_port: way.received_frames == 0 for way in result.by_port.ways}
    assert lost == {"t1": False, "t2": False, "t3": True}
