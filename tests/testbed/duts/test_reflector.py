"""The reflector: its configuration, what it says of itself, and its conversation, without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import HostError
from nicbench.testbed.duts import reflector as stats
from nicbench.testbed.duts._dpdk import DutCores
from nicbench.testbed.duts.reflector import Faults, Reflector, ReflectorOptions, configuration
from nicbench.testbed.labs.memif import MemifOptions
from nicbench.tuning.stack import UndoStack

from .memif_testbed import memif_testbed

STATS = json.loads((Path(__file__).with_name("golden") / "reflector_stats.json").read_text())


def test_without_faults_its_loop_does_nothing_but_forward() -> None:
    given = configuration(ReflectorOptions(), memif_testbed(FakeHost()), DutCores(main=0, workers=(1,)))
    assert given["faults"] == {}
    assert given["worker_cpu"] == 1
    assert [port["name"] for port in given["ports"]] == ["d0", "d1"]
    assert all("role=server" in port["vdev"] for port in given["ports"])


def test_it_is_told_that_frames_go_back_where_they_came_from() -> None:
    for topology in ("crossed", "same-port"):
        testbed = memif_testbed(FakeHost(), MemifOptions.model_validate({"topology": topology, "ports": 4}))
        given = configuration(ReflectorOptions(), testbed, DutCores(main=0, workers=(1,)))
        assert (len(given["ports"]), given["same_port"]) == (4, topology == "same-port")


def test_faults_are_said_in_the_protocols_units() -> None:
    faults = Faults(seed=3, loss=0.01, delay=20e-6, jitter=1e-6, rate=500_000.0, rate_burst=64).protocol()
    assert (faults["seed"], faults["loss"], faults["delay_ns"], faults["jitter_ns"]) == (3, 0.01, 20_000, 1_000)
    assert (faults["rate_frames_per_s"], faults["rate_burst_frames"]) == (500_000.0, 64)


def test_more_faults_than_frames_are_refused() -> None:
    with pytest.raises(ValidationError, match="a frame has at most one fault"):
        Faults(loss=0.6, duplicate=0.5)


def test_a_rate_that_cannot_pass_as_too_few_delayed_frames_are_held_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"at most 40\.96 kpps, less than `rate`: lower `rate` or `delay`"):
        Faults(delay=0.1, rate=200e3)
    with pytest.raises(ValidationError, match=r"write `held_frames: 10000`, or lower `rate` or `delay`"):
        Faults(delay=0.05, rate=200e3)
    assert Faults(delay=0.05, rate=200e3, held_frames=10_000).rate == 200e3
    assert Faults(delay=0.02, rate=200e3).rate == 200e3


def test_what_it_dropped_and_what_the_tester_did_not_take_are_kept_apart() -> None:
    assert stats.drops(STATS)["reflector d0 to d1 lost"] == 177
    assert stats.count_overruns(STATS) == {1: 5, 0: 0}


def test_its_work_is_that_of_turns_that_moved_a_frame() -> None:
    work = stats.work(STATS)
    assert (work.packets, work.tsc_cycles, work.tsc_hz) == (18_484, 282_755_538, 2_596_136_258.96637)
    assert work.core_clock_hz == (3_696_174_459.434485,)
    assert not work.counts_empty_polls


def test_a_line_that_is_no_event_is_passed_over() -> None:
    assert stats.parse_event("EAL: something") == {}
    assert stats.parse_event("[1]") == {}


async def test_its_events_are_waited_for_and_a_rate_is_known(tmp_path: Path) -> None:
    host = FakeHost()
    process = FakeProcess([json.dumps({"event": "ready"}), json.dumps({"event": "forwarding", "ports": []})])
    host.start = lambda *_, **__: _started(process)  # type: ignore[method-assign]
    dut = Reflector(ReflectorOptions(huge_pages=False, faults=Faults(rate=1e6)))
    await dut.up(memif_testbed(host), UndoStack("nb-test", None, tmp_path))
    assert dut.known_rate_frames_per_s(2.0) == 1e6 + 16
    assert json.loads(process.written[0])["faults"]["rate_frames_per_s"] == 1e6
    assert dut.disclosure()["name"] == "reference forwarder with faults"


async def test_what_it_refuses_is_said_in_its_own_words(tmp_path: Path) -> None:
    host = FakeHost()
    failed = {"event": "failed", "error": {"kind": "port", "message": "no such device", "next": "check it"}}
    process = FakeProcess([json.dumps(failed)], status=3)
    host.start = lambda *_, **__: _started(process)  # type: ignore[method-assign]
    with pytest.raises(HostError, match="no such device; check it"):
        await Reflector(ReflectorOptions(huge_pages=False)).up(
            memif_testbed(host), UndoStack("nb-test", None, tmp_path)
        )


async def _started(process: FakeProcess) -> FakeProcess:
    return process
