"""Peers that die, are silent, or talk out of turn: a clear verdict or error, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.core.errors import EngineError, HostError
from nicbench.core.events import Bus, TrialStarted
from nicbench.measure import learning
from nicbench.run import run
from nicbench.store.folder import RunFolder
from nicbench.tuning.restore import restore

from .lab_bench import machine_state, make_folder, output_of, run_bench, short, trials_of

pytestmark = pytest.mark.lab

POLICER = "{kind: policer, rate: 100 kpps}"
ENGINE = "nicbench-packet"  # the kernel keeps 15 characters of a name


def run_with(folder: RunFolder, on_search_trial: Callable[[], None]) -> None:
    """Runs; when the first search trial begins, something happens to it shortly afterwards."""
    bus = Bus()
    bus.subscribe(folder.journal.append)
    started = []

    def watch(event: object) -> None:
        if isinstance(event, TrialStarted) and event.purpose == "search" and not started:
            started.append(event)
            threading.Timer(0.4, on_search_trial).start()

    bus.subscribe(watch)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))


def kill_engine() -> None:
    subprocess.run(["pkill", "-KILL", "-P", str(os.getpid()), "-x", ENGINE], check=True)


def test_an_engine_killed_in_a_trial_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    before = machine_state()
    folder = make_folder(tmp_path, short(POLICER, duration="2 s"))
    with pytest.raises(EngineError, match="killed by signal 9") as caught:
        run_with(folder, kill_engine)
    assert caught.value.exit_status == 4
    assert machine_state() == before
    summary = folder.summary()
    assert summary is not None
    assert summary.verdict == "incomplete"
    assert trials_of(folder), "the calibration that was measured is kept"


def test_a_dut_that_never_returns_a_frame_ends_the_run_which_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "UNTIL_FRAMES_COME_BACK_S", (0.1, 0.2))
    with pytest.raises(HostError, match="nothing comes back from port t0 to t1") as caught:
        run_bench(tmp_path, short("{kind: external, macs: ['02:00:00:00:00:01', '02:00:00:00:00:02']}"))
    assert caught.value.exit_status == 4


def send_foreign_frames(folder: RunFolder) -> None:
    """Broadcasts from the DUT's end of the second link for two seconds: some fall into a trial, whenever it begins."""
    namespace = next(name for name in output_of("ip", "netns", "list").split() if name.endswith("-dut"))
    script = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
        "s.bind(('d1', 0))\n"
        "for _ in range(100):\n"
        "    [s.send(b'\\xff' * 6 + b'\\x02' * 6 + b'\\x88\\xb5' + bytes(46)) for _ in range(100)]\n"
        "    time.sleep(0.02)\n"
    )
    subprocess.run(["ip", "netns", "exec", namespace, sys.executable, "-c", script], check=True)


@pytest.mark.alone  # foreign frames are counted in trials of a second, which starve beside others
def test_frames_that_we_did_not_send_are_foreign_and_never_counted_as_ours(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, short(POLICER, trials=2, duration="2 s"))
    run_with(folder, lambda: send_foreign_frames(folder))
    counts = [trial.reading.counts for trial in trials_of(folder)]
    assert max(count.foreign for count in counts) >= 500
    assert all(count.received <= count.sent for count in counts)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.acceptance, id="Ctrl-C"),  # test_restored.py has it besides
        pytest.param(signal.SIGTERM, id="SIGTERM"),
    ],
)
def test_an_interrupted_run_keeps_its_trials_and_restores_the_machine(number: signal.Signals, tmp_path: Path) -> None:
    before = machine_state()
    bench = tmp_path / "bench.yaml"
    bench.write_text(short(POLICER, duration="2 s"))
    command = [sys.executable, "-m", "nicbench", "run", str(bench), "--output", str(tmp_path / "runs")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "t0001" in line:  # the first trial is kept: there is something to resume
            break
    process.send_signal(number)
    said = process.stderr.read()
    assert process.wait(30) == 130
    assert "nicbench resume" in said
    assert machine_state() == before
    process.stderr.close()


def test_after_a_killed_controller_restore_cleans_up_and_says_so(tmp_path: Path) -> None:
    before = machine_state()
    folder = make_folder(tmp_path, short(POLICER, duration="2 s"))
    child = os.fork()
    if child == 0:
        try:
            run_with(folder, lambda: os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(0)  # also where the run was refused: a child must not go on with the session's tests
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert machine_state() != before
    said = asyncio.run(restore(str(folder.path)))
    assert said[0].startswith(folder.run_id)
    assert "nothing to undo" not in said[0]
    assert {**machine_state(), "records": ""} == {**before, "records": ""}
    assert asyncio.run(restore(str(folder.path))) == [f"{folder.run_id}: nothing to undo"]
