"""Overloads, resets and long loads, from the bench file to the report: what a DUT is known to do is what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench import report
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.store.folder import RunFolder

from .lab_bench import TOLERANT, run_bench
from .simulated_bench import run_in_child, run_whole

THROUGHPUT = """
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {NDR: 0 %}, precision: 1 %, maximum_trials: 12, trials_per_bound: 1}
    trial: {duration: 1 s, drain: 20 ms, settle: 5 ms}
"""
SIMULATED = f"""
nicbench: 1
title: Overload and soak
lab: {{kind: simulated, link: 10 Mb/s, capacity: 8 kpps, queue_frames: 8, delay: 50 us}}
dut: {{kind: simulated}}
tests:{THROUGHPUT}
  - name: recovery
    method: system-recovery
    at: throughput
    frame_bytes: [64]
    repetitions: 2
    trial: {{overload_time: 500 ms, recovery_time: 300 ms, drain: 20 ms, settle: 5 ms}}
  - name: never
    method: system-recovery
    at: throughput
    frame_bytes: [64]
    overload: 160 %
    recovery: 80 %
    repetitions: 1
    trial: {{overload_time: 300 ms, recovery_time: 300 ms, drain: 20 ms, settle: 5 ms}}
  - name: soak
    method: soak
    rate: 10 kpps
    trial: {{duration: 900 ms, interval: 200 ms, drain: 20 ms}}
"""


def results_of(folder: RunFolder) -> dict[str, Result]:
    summary = folder.summary()
    return {result.id: result for result in summary.results}


def value_of(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder.create(tmp_path_factory.mktemp("runs"), SIMULATED, "Overload and soak")
    run_whole(folder)
    return RunFolder.open(folder.path)


def test_a_queue_that_is_drained_faster_than_it_fills_recovers_at_once(simulated: RunFolder) -> None:
    result = results_of(simulated)["recovery/64"]
    assert value_of(result, "recovery_time_ms").value == 0.0
    lost, spared = result.values["overload_lost_frames"], result.values["recovery_lost_frames"]
    assert isinstance(lost, float)
    assert lost > 0
    assert spared == 0


def test_the_two_loads_are_sent_exactly_one_after_the_other(simulated: RunFolder) -> None:
    trials = [trial for trial in simulated.journal.trials().values() if trial.test == "recovery"]
    for trial in trials:
        first, second = trial.reading.streams
        for phase, stream in zip(trial.request.phases, (first, second), strict=True):
            assert stream.counts.sent == stream.counts.intended == int(phase.load_frames_per_s * phase.duration_s)
        assert first.arrivals.last_ns == pytest.approx(500e6, abs=3e6)
        assert second.arrivals.first_ns == pytest.approx(500e6, abs=3e6)
        assert second.arrivals.last_ns == pytest.approx(800e6, abs=3e6)


def test_a_dut_that_goes_on_losing_frames_did_not_recover(simulated: RunFolder) -> None:
    result = results_of(simulated)["never/64"]
    assert value_of(result, "recovery_time_ms").value is None
    assert "frames were lost to the end" in str(result.values["limit"])


def test_every_interval_of_a_soak_stands_in_the_summary_and_the_report(simulated: RunFolder) -> None:
    results = results_of(simulated)
    names = [name for name in results if name.startswith("soak/")]
    assert names == [f"soak/64/{number}" for number in (1, 2, 3, 4, 5, "all")]
    for name in names:
        assert results[name].values["loss_percent"] == pytest.approx(20.0, abs=0.6)
    text = report.build(simulated.path).read_text(encoding="utf-8")
    for words in ("System recovery", "Soak", "overload for 0.5 s, RFC 2544 section 26.5 asks for 60 s"):
        assert words in text


def test_a_soak_that_was_killed_goes_on_with_the_interval_under_way(tmp_path: Path, simulated: RunFolder) -> None:
    folder = RunFolder.create(tmp_path, SIMULATED, "Overload and soak")
    trials = len(simulated.journal.trials())
    written = len(list(simulated.journal.events()))
    assert run_in_child(folder, kill_at=str(written - 8)) != 0
    assert 0 < len(RunFolder.open(folder.path).journal.trials()) < trials
    run_whole(RunFolder.open(folder.path))
    assert results_of(RunFolder.open(folder.path)).keys() == results_of(simulated).keys()
    ours, theirs = results_of(RunFolder.open(folder.path)), results_of(simulated)
    for name, result in theirs.items():
        # When an interval began is real time, which no two runs share.
        known = {key: value for key, value in result.values.items() if key != "began_s"}
        assert {key: value for key, value in ours[name].values.items() if key != "began_s"} == known


CRITICAL = """
nicbench: 1
title: Critical load
lab: {kind: simulated, link: 10 Mb/s, capacity: 8 kpps, queue_frames: 8}
dut: {kind: simulated}
tests:
  - name: soak
    method: soak
    critical_load: {loss_ratio: 0.1 %, duration: 6 s, first_trial: 250 ms, longer_by: 20 ms}
    trial: {drain: 20 ms}
"""


def test_a_known_capacity_is_the_critical_load_and_the_report_shows_how_it_was_found(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "whole", CRITICAL, "Critical load")
    run_whole(folder)
    results = results_of(folder)
    found = results["soak/64/critical-load"]
    rate = value_of(found, "critical_load_frames_per_s")
    # The queue lets 9 frames more pass in a trial of 250 ms, 0.5 %: less, the longer a trial is.
    assert rate.value == pytest.approx(8000, rel=0.01)
    steps = [result for name, result in results.items() if name.startswith("soak/64/critical-load/")]
    assert len(steps) == found.values["search_trials"] == len(folder.journal.trials())
    assert steps[-1].values["seconds"] == found.values["seconds"]
    text = report.build(folder.path).read_text(encoding="utf-8")
    for words in ("Critical load", "stretch: average", "How the estimate narrowed", "All rows"):
        assert words in text

    killed = RunFolder.create(tmp_path / "killed", CRITICAL, "Critical load")
    assert run_in_child(killed, kill_at="15") != 0
    assert 0 < len(RunFolder.open(killed.path).journal.trials()) < len(folder.journal.trials())
    run_whole(RunFolder.open(killed.path))
    assert results_of(RunFolder.open(killed.path)) == results


# The command runs on the DUT's CPU, and where that is full of frames it can begin a second late: hence the long trials.
# Frames to the network behind the DUT are not forwarded for 400 ms: no link goes down, and no neighbour is forgotten.
RESET = """
nicbench: 1
title: Reset
lab: {kind: veth}
dut: {kind: kernel-forward}
tester: {driver: DRIVER}
"""
RESET_TESTS = """
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {NDR: 0.1 %}, precision: 30 %, maximum_trials: 5, trials_per_bound: 1}
    trial: {duration: 300 ms, drain: 100 ms, settle: 50 ms}
  - name: reset
    method: reset
    at: throughput
    command: [sh, -c, "echo 0 > /proc/sys/net/ipv4/ip_forward; sleep 0.4; echo 1 > /proc/sys/net/ipv4/ip_forward"]
    repetitions: 2
    trial: {duration: 4 s, after: 300 ms, drain: 100 ms, settle: 50 ms}
"""


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.acceptance
@pytest.mark.sampled(1)
@pytest.mark.parametrize("driver", ["net_af_xdp", "xdp"])
def test_a_reset_of_a_known_time_is_measured_with_real_packets(driver: str, tmp_path: Path) -> None:
    summary, trials = run_bench(tmp_path, RESET.replace("DRIVER", driver) + TOLERANT + RESET_TESTS)
    result = next(result for result in summary.results if result.method == "reset")
    time, by_loss = value_of(result, "reset_time_ms"), result.values["by_loss_ms"]
    print(f"reset for 400 ms: {time}, by loss {by_loss} ms, {result.verdict.value}")
    assert time.lower is not None
    assert time.upper is not None
    # A sleep is never shorter, and a busy machine may make it longer.
    assert 395.0 <= time.lower <= time.upper <= 900.0
    assert isinstance(by_loss, float)
    assert time.value is not None
    assert by_loss >= 0.85 * time.value  # a busy machine loses frames besides
    assert [trial.request.purpose.value for trial in trials][-2:] == ["reset", "reset"]


def test_a_command_that_fails_ends_the_run_and_is_named(tmp_path: Path) -> None:
    bench = f"""
nicbench: 1
title: No such command
lab: {{kind: simulated, link: 10 Mb/s, capacity: 8 kpps}}
dut: {{kind: simulated}}
tests:{THROUGHPUT}
  - name: reset
    method: reset
    at: throughput
    command: [nicbench-has-no-such-command]
    host: local
    trial: {{duration: 100 ms, after: 0 s, drain: 20 ms, settle: 5 ms}}
"""
    folder = RunFolder.create(tmp_path, bench, "No such command")
    with pytest.raises(Exception, match="nicbench-has-no-such-command"):
        run_whole(folder)
    summary = folder.summary()
    assert summary.verdict is ResultVerdict.INCOMPLETE
