"""Frames of several classes in one trial: what a Linux bridge of slow ports passes of them, and what a burden costs."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from nicbench.core.result import Result
from nicbench.core.trial import Trial
from nicbench.methods.multicast import MulticastThroughput
from nicbench.testbed.duts.bridge import Bridge
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

from .lab_bench import TOLERANT, bounds, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

BENCH = """
nicbench: 1
title: Multicast beside unicast
lab: {{kind: veth, ports: 4}}
dut: {dut}
traffic: {{pattern: one-to-many, flows: 4}}
tester: {{catch_up: 2 ms}}
tests:
  - name: mix
    {test}
"""
QUEUE = 50
FRAME_BITS = 8 * (512 + 20)
LONG = pytest.mark.acceptance
TIMES = "drain: 100 ms, settle: 20 ms"


def measured(folder: Path, dut: str, test: str) -> tuple[tuple[Result, ...], dict[str, Trial]]:
    """Results, and trials by their names."""
    summary, trials = run_bench(folder, BENCH.format(dut=dut, test=test) + TOLERANT)
    assert [fault for trial in trials for fault in trial.reading.ledger_faults] == []
    return summary.results, {trial.id: trial for trial in trials}


def mixed(folder: Path, dut: str, unicast: float, precision: str = "10 %") -> tuple[Result, dict[str, Trial]]:
    """The throughput of groups and of single stations, these with a share of all frames."""
    test = f"""method: multicast-throughput
    groups: 4
    unicast: {100 * unicast:.3f} %
    joining: {{pause: 50 ms}}
    frame_bytes: [512]
    search: {{goals: {{NDR: 0}}, precision: {precision}, maximum_load: 8 kpps, trials_per_bound: 1}}
    trial: {{duration: 500 ms, {TIMES}}}"""
    (result,), trials = measured(folder, dut, test)
    return result, trials


def check_mix(folder: Path, draw: random.Random, precision: str = "10 %") -> None:
    """Each of three ports carries all frames to groups and a third of the others, at its rate; its queue comes once."""
    rate_bits_per_s, unicast = draw.uniform(5e6, 15e6), draw.uniform(0.2, 0.8)
    dut = f"{{kind: bridge, snooping: {{}}, output: {{rate: {rate_bits_per_s / 1e6:.6f} Mbit/s, buffer: {QUEUE}}}}}"
    found = bounds(mixed(folder, dut, unicast, precision)[0], "ndr_frames_per_s")
    of_a_port = (1.0 - unicast) + unicast / 3.0
    least, more = rate_bits_per_s / FRAME_BITS, (QUEUE + 1600 / 532 + 1) / 0.5
    print(f"known: {least / of_a_port} to {(least + more) / of_a_port} with {100 * unicast:.1f} % unicast")
    assert found.upper is not None
    assert found.lower is not None
    assert found.upper >= least / of_a_port * 0.99
    assert found.lower <= (least + more) / of_a_port * 1.01


def test_the_throughput_of_a_mix_is_found(draw: random.Random, tmp_path: Path) -> None:
    check_mix(tmp_path, draw)


@LONG
@pytest.mark.parametrize("repetition", range(10))
def test_the_throughput_of_a_mix_is_found_in_ten_of_ten_runs(
    repetition: int, draw: random.Random, tmp_path: Path
) -> None:
    check_mix(tmp_path, draw, "3 %")


def with_more(monkeypatch: pytest.MonkeyPatch, *commands: str) -> None:
    """Has the bridge run these as well; ``{ports}`` stands for the ports but the first, one command for each."""
    set_up = Bridge.up

    async def up(self: Bridge, testbed: Testbed, changes: Changes) -> None:
        await set_up(self, testbed, changes)
        assert testbed.dut is not None
        ports = [str(port.device) for port in testbed.dut_ports[1:]]
        for command in commands:
            for port in ports if "{port}" in command else ports[:1]:
                await testbed.dut.run(("sh", "-c", command.format(port=port)))

    monkeypatch.setattr(Bridge, "up", up)


STARVES = (
    (
        "nft 'add table bridge starve; add chain bridge starve forward { type filter hook forward priority 0; }; "
        "add rule bridge starve forward ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00 "
        "limit rate over 1500/second burst 100 packets drop'"
    )
    .replace("{ t", "{{ t")
    .replace("; }", "; }}")
)


@LONG
def test_a_bridge_that_starves_single_stations_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are half of all frames, and 1500 a second of them pass, and once 100."""
    with_more(monkeypatch, STARVES)
    result, trials = mixed(tmp_path, "{kind: bridge, snooping: {}}", 0.5)
    found = bounds(result, "ndr_frames_per_s")
    assert found.upper is not None
    assert found.lower is not None
    assert found.lower <= 2 * (1500 + 100 / 0.5) * 1.01
    assert found.upper >= 2 * 1500 * 0.99
    assert re.search(
        r"pps 0 of \d+ frames to groups and [1-9]\d* of \d+ to single stations",
        str(MulticastThroughput.table_values(result, trials)["lost_first"]),
    )


def shared_queue(rate_bits_per_s: float) -> tuple[str, ...]:
    """Ports that send through one long queue (ifb): what is sent from one delays what is sent from another."""
    return (
        "ip link add name shared type ifb && ip link set dev shared up",
        f"tc qdisc add dev shared root handle 1: tbf rate {rate_bits_per_s:.0f}bit burst 1600 limit 999999 overhead 24",
        "tc qdisc add dev shared parent 1:1 pfifo limit 10000",
        "tc qdisc add dev {port} clsact",
        "tc filter add dev {port} egress protocol all u32 match u32 0 0 action mirred egress redirect dev shared",
    )


BURDENED = f"""method: multicast-throughput
    joining: {{pause: 100 ms}}
    frame_bytes: [512]
    search: {{goals: {{NDR: 0}}, precision: 40 %, minimum_load: 100 pps, maximum_load: 300 pps}}
    trial: {{duration: 300 ms, {TIMES}}}
  - name: baseline
    method: multicast-latency
    at: mix
    joining: {{pause: 100 ms}}
    frame_bytes: [512]
    trial: {{duration: 500 ms, {TIMES}}}
  - name: burdened
    method: multicast-latency
    at: mix
    joining: {{pause: 300 ms}}
    burden: {{rate: RATE pps}}
    frame_bytes: [512]
    trial: {{duration: 400 ms, drain: 500 ms, settle: 50 ms}}
  - name: joins
    method: multicast-membership
    rate: 500 pps
    repetitions: 1
    burden: {{rate: RATE pps}}
    frame_bytes: [512]
    trial: {{member: 300 ms, after: 400 ms, drain: 500 ms, settle: 50 ms}}"""


def check_burden(folder: Path, draw: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ports send more than the queue passes: it grows from the beginning, and no frame is lost.

    A frame to the group waits for what is in the queue as it comes: 0.3 s after the beginning when the port joins, and
    where latency is measured 0.3 s to 0.7 s after it, with 300 frames a second of its own from then on.
    """
    rate_bits_per_s = draw.uniform(8e6, 16e6)
    passes = rate_bits_per_s / FRAME_BITS
    each = round(draw.uniform(0.55, 0.65) * passes)
    excess = 2 * each / passes - 1.0
    with_more(monkeypatch, *shared_queue(rate_bits_per_s))
    results, trials = measured(
        folder, "{kind: bridge, snooping: {fast_leave: true}}", BURDENED.replace("RATE", f"{each}")
    )
    baseline, burdened, joins = (of_test(results, name)[0] for name in ("baseline", "burdened", "joins"))
    before, mean = (one.values["latency_mean_ns"] for one in (baseline, burdened))
    join = bounds(joins, "join_delay_ns")
    # The bucket lets three frames out at once, of which one would have gone anyway.
    bucket_ns = 1e9 * (1600 / 532 - 1) / passes
    known = 1e9 * (0.5 * excess + 0.2 * 300 / passes) - bucket_ns
    known_join = 1e9 * (0.3 + 0.5 / 500) * excess  # of a frame that is sent half an interval after the join
    print(f"latency {before} alone, {mean} burdened, known {known}; join known {known_join}")
    # Who stands still delays what is behind it.
    few_frames = 3e9 / passes + max(stood_still_ns(trials[name]) for name in (*burdened.trials, *joins.trials))
    assert isinstance(before, float)
    assert isinstance(mean, float)
    assert before < 10e6
    assert abs(mean - known) <= few_frames + 0.005 * known
    assert (burdened.values["loss_percent"], burdened.values["burden_loss_percent"]) == (0.0, 0.0)
    assert burdened.values["flooded_frames"] == 0
    assert join.lower is not None
    assert join.upper is not None
    assert join.lower - few_frames <= known_join <= join.upper + few_frames


def stood_still_ns(trial: Trial) -> int:
    """For how long the tester, or a core of the DUT, did at most."""
    health = trial.reading.health
    return max(health.held_up_ns, *(cpu.longest_pause_ns or 0 for cpu in health.cpus), 0)


def of_test(results: tuple[Result, ...], name: str) -> list[Result]:
    return [one for one in results if one.id.startswith(f"{name}/")]


def test_what_a_burden_costs_is_found(draw: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_burden(tmp_path, draw, monkeypatch)


@LONG
@pytest.mark.parametrize("repetition", range(10))
def test_what_a_burden_costs_is_found_in_ten_of_ten_runs(
    repetition: int, draw: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_burden(tmp_path, draw, monkeypatch)


@LONG
def test_a_bridge_that_floods_groups_to_burdening_ports_is_told(tmp_path: Path) -> None:
    burdened = of_test(measured(tmp_path, "{kind: bridge}", BURDENED.replace("RATE", "1000"))[0], "burdened")[0]
    assert burdened.values["flooded_frames"] == 2 * 120  # 0.4 s at 300 frames a second, to each of two ports
    assert burdened.values["burden_loss_percent"] == 0.0


AMONG = """
nicbench: 1
title: Broadcasts among the frames
lab: {{kind: veth, ports: 4}}
dut: {dut}
traffic: {{broadcasts: {share} %, flows: 4}}
tester: {{catch_up: 2 ms}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [512]
    search: {{goals: {{NDR: 0}}, precision: {precision}, maximum_load: 8 kpps, trials_per_bound: 1}}
    trial: {{duration: 500 ms, {times}}}
"""


def with_broadcasts(folder: Path, dut: str, share: float, precision: str = "10 %") -> Result:
    bench = AMONG.format(dut=dut, share=f"{100 * share:.3f}", times=TIMES, precision=precision)
    summary, trials = run_bench(folder, bench + TOLERANT)
    assert [fault for trial in trials for fault in trial.reading.ledger_faults] == []
    return summary.results[0]


def check_broadcasts(folder: Path, draw: random.Random, precision: str = "10 %") -> None:
    """Of two pairs each receiving port carries its own load, and the broadcasts of the other pair's sender."""
    rate_bits_per_s, share = draw.uniform(5e6, 15e6), draw.uniform(0.05, 0.4)
    dut = f"{{kind: bridge, output: {{rate: {rate_bits_per_s / 1e6:.6f} Mbit/s, buffer: {QUEUE}}}}}"
    result = with_broadcasts(folder, dut, share, precision)
    found = bounds(result, "ndr_frames_per_s")
    least, more = rate_bits_per_s / FRAME_BITS, (QUEUE + 1600 / 532 + 1) / 0.5
    print(f"known: {least / (1 + share)} to {(least + more) / (1 + share)} with {100 * share:.1f} % broadcasts")
    assert found.upper is not None
    assert found.lower is not None
    assert found.upper >= least / (1.0 + share) * 0.99
    assert found.lower <= (least + more) / (1.0 + share) * 1.01
    # Where a queue is all but full, a broadcast may be the one that is dropped.
    few_missing = re.findall(r"got (\d+) of (\d+)", str(result.values["broadcasts"]))
    assert all(int(got) >= 0.95 * int(sent) for got, sent in few_missing)


def test_the_throughput_with_broadcasts_is_found(draw: random.Random, tmp_path: Path) -> None:
    check_broadcasts(tmp_path, draw)


@LONG
@pytest.mark.parametrize("repetition", range(10))
def test_the_throughput_with_broadcasts_is_found_in_ten_of_ten_runs(
    repetition: int, draw: random.Random, tmp_path: Path
) -> None:
    check_broadcasts(tmp_path, draw, "3 %")


def test_a_bridge_that_keeps_broadcasts_from_a_port_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_more(monkeypatch, "bridge link set dev {port} bcast_flood off")
    result = with_broadcasts(tmp_path, "{kind: bridge}", 0.01)
    print(result.values["broadcasts"])
    assert bounds(result, "ndr_frames_per_s").value == 8000.0
    words = str(result.values["broadcasts"])
    assert [port for port in ("t1", "t2", "t3") if f"{port} got 0 of" in words] == ["t1", "t2", "t3"]
    assert words.endswith("the other ports got all")
