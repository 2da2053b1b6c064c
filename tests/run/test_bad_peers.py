"""DUTs that are silent, or talk out of turn: a clear error or count. Those that die are in ``tests/faults``."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import run_checked

from nicbench.bench_file import load
from nicbench.core.errors import HostError
from nicbench.core.events import Bus, TrialStarted
from nicbench.measure import learning
from nicbench.run import run
from nicbench.store.folder import RunFolder

from .lab_bench import make_folder, output_of, run_bench, short, trials_of

pytestmark = pytest.mark.lab

POLICER = "{kind: policer, rate: 100 kpps}"


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
    run_checked(["ip", "netns", "exec", namespace, sys.executable, "-c", script])


@pytest.mark.sampled(1, of="long labs")
@pytest.mark.alone  # foreign frames are counted in trials of a second, which starve beside others
def test_frames_that_we_did_not_send_are_foreign_and_never_counted_as_ours(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, short(POLICER, trials=2, duration="2 s"))
    run_with(folder, lambda: send_foreign_frames(folder))
    counts = [trial.reading.counts for trial in trials_of(folder)]
    assert max(count.foreign for count in counts) >= 500
    assert all(count.received <= count.sent for count in counts)
