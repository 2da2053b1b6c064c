"""Queues of a guest's kernel that mark before they are full: from the load that they must, and TCP over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result, ResultVerdict

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

PORT_BITS_PER_S = 2.128e6
LINE_OVERHEAD_BYTES = 20  # preamble and gap; frame sizes count the FCS
BUCKET_BYTES = 1600
MARK_ABOVE_S, TRIAL_S = 0.1, 2.0
FRAMES = f"""
nicbench: 1
title: A queue that marks
hosts: {{{{guest: {{{{kind: vm, cpus: 2, memory: 1 GiB}}}}}}}}
lab: {{{{kind: veth, on: guest}}}}
dut: {{{{kind: bridge, output: {{{{rate: {PORT_BITS_PER_S / 1e6:g} Mb/s, buffer: 800, queue: {{queue}}}}}}}}}}
tester: {{{{driver: net_af_packet, memory: 256 MiB}}}}
traffic: {{{{flows: 4}}}}
monitor: off
{{tolerant}}
tests:
  - name: marks
    method: ecn-marking
    frame_bytes: {{sizes}}
    rate: 720 pps
    loads: [55 %, 100 %]
    codepoints: {{codepoints}}
    refinements: 5
    trial: {{{{duration: {TRIAL_S:g} s, drain: 1500 ms, settle: 100 ms}}}}
"""
MARKS = f"{{kind: KIND, target: 10 s, interval: 10 s, mark_above: {MARK_ABOVE_S * 1e3:g} ms}}"


def measured(folder: Path, queue: str, sizes: list[int], codepoints: str) -> dict[str, list[Result]]:
    """The results by part."""
    text = FRAMES.format(queue=queue, sizes=sizes, codepoints=codepoints, tolerant=TOLERANT)
    summary, _ = run_bench(folder, text)
    parts: dict[str, list[Result]] = {}
    for result in summary.results:
        assert result.verdict is ResultVerdict.VALID, result.disturbances
        parts.setdefault(result.parameters["part"], []).append(result)
        print(result.parameters, result.values)
    return parts


def known_onset(frame_bytes: int) -> float:
    """The load at which the last frame of a trial waits longer than the threshold, in frames per second.

    Frame n is sent at n / load and leaves at (n - bucket) / capacity.
    """
    line_bytes = frame_bytes + LINE_OVERHEAD_BYTES
    capacity = PORT_BITS_PER_S / 8 / line_bytes
    return capacity * (1 + MARK_ABOVE_S / TRIAL_S) + BUCKET_BYTES / line_bytes / TRIAL_S


def check_onset(result: Result) -> None:
    """The interval holds the known load, give or take a timer of an emulated machine."""
    known = known_onset(int(result.parameters["frame_bytes"]))
    found = result.values["unmarked_frames_per_s"]
    assert isinstance(found, Bounded)
    assert found.lower is not None
    assert found.upper is not None
    assert found.upper - found.lower < 12
    assert found.lower < 1.005 * known
    assert known < 1.02 * found.upper


def test_ten_frame_sizes_are_marked_from_their_known_load_on(tmp_path: Path) -> None:
    sizes = list(range(448, 608, 16))
    parts = measured(tmp_path, MARKS.replace("KIND", "codel"), sizes, "[ect-0]")
    assert len(parts["onset"]) == 10
    for result in parts["onset"]:
        check_onset(result)


@pytest.mark.parametrize("kind", ["codel", "fq_codel"])
def test_a_queue_marks_who_knows_ecn_and_nobody_else(tmp_path: Path, kind: str) -> None:
    parts = measured(tmp_path, MARKS.replace("KIND", kind), [512], "[ect-0, ect-1, not-ect, ce]")
    for result in parts["onset"]:
        check_onset(result)
    (rules,) = parts["rules"]
    assert rules.values["handling"] == "as RFC 3168"
    for result in parts["loads"]:
        assert result.values["lost_percent"] == 0
        marked = result.values["marked_percent"]
        if result.parameters["load_percent"] < 100 or "ECT(" not in result.parameters["codepoint"]:
            continue
        # Of 1440 frames those after the first that waits long enough: 720 frames/s come, 500 leave.
        unmarked = (MARK_ABOVE_S + BUCKET_BYTES * 8 / PORT_BITS_PER_S) / (1 / 500 - 1 / 720)
        assert isinstance(marked, int | float)
        assert marked == pytest.approx(100 * (1 - unmarked / 1440), abs=2)


def test_a_queue_that_drops_whom_it_should_mark_is_told(tmp_path: Path) -> None:
    parts = measured(tmp_path, "{kind: codel, marks: false}", [512], "[ect-0]")
    (onset,) = parts["onset"]
    assert onset.values["limit"] == "no ECT(0) frame was marked at any load"
    at_full_load = next(one for one in parts["loads"] if one.parameters["load_percent"] == 100)
    lost = at_full_load.values["lost_percent"]
    assert isinstance(lost, int | float)
    assert lost > 1


RATE = 10e6
SENDERS = f"""
nicbench: 1
title: Two senders over one queue
hosts: {{guest: {{kind: vm, cpus: 2, memory: 1 GiB}}}}
lab: {{kind: clients, on: guest, clients_per_port: 2, rate: {RATE / 1e6:g} Mb/s}}
dut: {{kind: server}}
tuning: {{all: {{sysctls: {{net.ipv4.tcp_ecn: 1}}}}}}
monitor: off
thresholds: {{start_spread_share: 0.9, machine_steal_share: 0.9}}
configurations:
  full: {{}}
  untold: {{lab: {{queue: {{kind: codel}}}}, tuning: {{all: {{sysctls: {{net.ipv4.tcp_ecn: 0}}}}}}}}
  codel: {{lab: {{queue: {{kind: codel}}}}}}
  threshold: {{lab: {{queue: {{kind: codel, mark_above: 3 ms}}}}}}
  dctcp: {{lab: {{queue: {{kind: codel, mark_above: 3 ms}}}}, tests: {{senders: {{congestion_control: dctcp}}}}}}
  red: {{lab: {{queue: {{kind: red, mark_from: 6 kB}}}}, tests: {{senders: {{congestion_control: dctcp}}}}}}
tests:
  - name: senders
    method: sender-reaction
    congestion_control: cubic
    duration: 20 s
    joins_after: 5 s
"""


def number(result: Result, name: str) -> float:
    value = result.values[name]
    assert isinstance(value, int | float)
    return float(value)


def test_tcp_over_a_queue_that_is_full_that_drops_early_and_that_marks(tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, SENDERS)
    found: dict[str, list[Result]] = {}
    for result in summary.results:
        if result.parameters["part"] == "streams" and result.parameters["period"] == "beside another":
            print(result.parameters["configuration"], result.parameters["client"], result.values)
            assert result.verdict is not ResultVerdict.INCOMPLETE, result.disturbances
            found.setdefault(str(result.parameters["configuration"]), []).append(result)
    for senders in found.values():  # together they carry the payload of the link
        rates = sum(number(one, "throughput_bits_per_s") for one in senders)
        assert 0.85 * RATE < rates < RATE * 1448 / 1514 * 1.05
    trip_ms = {name: max(number(one, "round_trip_median_ns") for one in of) / 1e6 for name, of in found.items()}
    resent = {name: sum(number(one, "resent_segments") for one in of) for name, of in found.items()}
    marked = {name: min(number(one, "marked_percent") for one in of) for name, of in found.items()}
    # A full queue of 1 MiB is 839 ms; CoDel leaves a few of the segments of 13 ms each that the senders make.
    assert trip_ms["full"] > 150
    assert all(trip_ms[name] < 60 for name in found if name != "full")
    assert trip_ms["dctcp"] < trip_ms["codel"]
    assert marked["full"] == marked["untold"] == 0
    assert resent["untold"] > 0
    for name in ("codel", "threshold", "dctcp", "red"):
        assert marked[name] > 0
        assert resent[name] == 0
        assert all(str(one.values["reaction"]).startswith("reacts to marks") for one in found[name])
    assert marked["dctcp"] > marked["codel"]
    assert {one.values["ecn"] for one in found["untold"]} == {"not negotiated"}
    assert {one.values["congestion_control"] for one in (*found["dctcp"], *found["red"])} == {"dctcp"}
