"""What TRex, its server and others do to a trial is not a loss of the DUT, and no run ends with ports held."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.testbed.testers.trex_bench import (
    HALF_A_SECOND,
    LOSS,
    NICBENCH,
    THROUGHPUT,
    bench,
    owners,
    page,
    rate,
    results,
    run,
)

from nicbench.cli.main import main
from nicbench.core.judging import Reason
from nicbench.core.result import LimitedBy
from nicbench.store.folder import RunFolder

pytestmark = pytest.mark.sampled(4, of="faults of TRex")


def test_a_tester_that_falls_short_is_a_ceiling_and_no_loss_of_the_dut(trex: Any, tmp_path: Path) -> None:
    # Sending all takes it seven times as long as asked for: a busy machine may stop it late, and never so late that
    # everything was sent, which the `tester_overtime_share` of these tests takes for a load that the DUT passed.
    trex.SERVER.limit = 2000.0
    status, folder = run(tmp_path, bench(THROUGHPUT.replace("50 ms", "1 s")))
    assert status == 0
    (result,) = results(folder)
    assert rate(result).limited_by is LimitedBy.TESTER
    assert rate(result).value == pytest.approx(2000, rel=0.3)  # of a DUT that passes 10 000
    short = [trial for trial in folder.journal.trials().values() if trial.reading.counts.unsent_tester]
    assert short
    assert all(trial.reading.counts.lost == 0 for trial in short)


@pytest.mark.parametrize(
    ("overload", "words"),
    [
        ({"queue_full": 500}, "transmit queue was full 500 times"),
        ({"ierrors": 40}, "dropped 40 arriving frames"),
    ],
)
def test_a_trial_that_trex_says_it_spoilt_is_invalid(
    overload: dict[str, int], words: str, trex: Any, tmp_path: Path
) -> None:
    for name, value in overload.items():
        setattr(trex.SERVER, name, value)
    status, folder = run(tmp_path, bench(LOSS))
    assert status == 0
    assert {result.verdict.value for result in results(folder)} == {"disturbed"}
    assert words in page(folder)


def test_busy_cores_of_trex_spoil_a_trial_that_is_long_enough_to_see_them(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.cpu_util = 99.0
    step = LOSS.replace("frame-loss", "load-sweep").replace("[64]", "[64]\n    loads: [10 %]").replace("50 ms", "2 s")
    status, folder = run(tmp_path, bench(step))
    assert status == 0
    assert "cores were busy for 99.0 % of their time" in page(folder)


@pytest.mark.parametrize("blind", [{0, 1}, {0}])
def test_flow_counters_that_do_not_work_are_no_loss(
    blind: set[int], trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trex.SERVER.blind_ports = frozenset(blind)
    status, _ = run(tmp_path, bench(LOSS, traffic="bidirectional: true"))
    said = capsys.readouterr().err
    assert status == 4
    assert "flow counters are 0 although" in said
    assert f"frames arrived at port trex{1 if 1 in blind else 0}" in said
    assert owners(trex) == [""] * 4


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning frames are not waited for so long."""
    monkeypatch.setattr("nicbench.measure.learning.UNTIL_FRAMES_COME_BACK_S", (0.01, 0.01))
    monkeypatch.setattr("nicbench.measure.learning._STUCK_S", 0.01)


@pytest.mark.parametrize("strays", [0, 40])
@pytest.mark.usefixtures("impatient")
def test_a_dut_that_passes_nothing_has_no_loss_and_ends_the_run(
    strays: int, trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor do frames that it sends by itself stand for those that it should forward."""
    trex.SERVER.capacity, trex.SERVER.strays = 0.0, strays
    status, folder = run(tmp_path, bench(LOSS))
    assert status == 4
    assert "nothing comes back from port trex0 to trex1" in capsys.readouterr().err
    assert not folder.journal.trials()
    assert owners(trex) == [""] * 4


@pytest.mark.parametrize("comes_back", [True, False])
@pytest.mark.usefixtures("impatient")
def test_a_dut_that_dies_in_mid_trial_has_failed_and_lost_nothing(
    comes_back: bool, trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(start: int) -> None:
        # Learning frames, the trial, learning frames twice after it, and those of the next trial.
        trex.SERVER.capacity = 0.0 if start in {2, 3, 4} or (start > 4 and not comes_back) else 10_000.0

    trex.SERVER.at_start = fail
    status, folder = run(tmp_path, bench(HALF_A_SECOND))
    failed, *others = folder.journal.trials().values()
    assert [finding.reason for finding in failed.verdict.findings] == [Reason.PEER_FAILED]
    if comes_back:
        assert status == 0
        assert [(trial.verdict.valid, trial.reading.counts.lost) for trial in others] == [(True, 0)]
    else:
        assert status == 4
        assert not others
        assert "nothing comes back" in capsys.readouterr().err


def test_frames_that_come_after_the_drain_are_late_and_the_next_trial_waits_for_them(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.held, trex.SERVER.held_s = 5, 0.6
    status, folder = run(tmp_path, bench(HALF_A_SECOND.replace("settle: 0 s", "settle: 1.2 s")))
    assert status == 0
    late, waited = folder.journal.trials().values()
    assert [finding.reason for finding in late.verdict.findings] == [Reason.LATE]
    assert (late.reading.counts.late, late.reading.counts.lost) == (5, 0)
    assert waited.verdict.valid
    assert waited.reading.drain_s == pytest.approx(2.4)
    assert (waited.reading.counts.late, waited.reading.counts.lost) == (0, 0)


def test_what_was_measured_is_kept_where_the_server_dies_in_mid_trial(
    trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first trial starts three times: learning frames, the load, and learning frames after a loss, which are those
    # before the next one too.
    trex.SERVER.dies_at = 6
    status, folder = run(tmp_path, bench(LOSS))
    said = capsys.readouterr().err
    assert status == 4
    assert "Failed to get server response" in said
    assert "nicbench resume" in said
    assert len(folder.journal.trials()) == 2
    assert "disconnect" in trex.SERVER.calls
    trex.SERVER = trex.Server()  # started again
    assert main(["resume", str(folder.path), "--no-progress", "--no-report"]) == 0
    assert owners(trex) == [""] * 4


def test_an_end_that_is_told_late_is_no_frame_unsent(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.end_told_after_s = 0.3
    status, folder = run(tmp_path, bench(LOSS))
    assert status == 0
    trials = folder.journal.trials().values()
    assert {trial.reading.counts.unsent_tester for trial in trials} == {0}
    reasons = {finding.reason for trial in trials for finding in trial.verdict.findings}
    assert Reason.UNSENT not in reasons, "a busy machine may disturb a trial in other ways"


def test_a_call_that_takes_long_to_start_is_none_of_the_time_in_which_frames_were_sent(
    trex: Any, tmp_path: Path
) -> None:
    trex.SERVER.start_takes_s = 1.0
    status, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert status == 0
    (trial,) = folder.journal.trials().values()
    assert trial.verdict.valid
    assert trial.reading.transmit_ns < 0.9e9


@pytest.mark.parametrize(("factor", "words"), [(3.0, "more time"), (0.1, "less time")])
def test_a_transmission_of_another_length_than_asked_is_another_load(
    factor: float, words: str, trex: Any, tmp_path: Path
) -> None:
    trex.SERVER.time_factor = factor
    text = bench(HALF_A_SECOND).replace("tester_overtime_share: 9", "tester_overtime_share: 0.1")
    status, folder = run(tmp_path, text)
    assert status == 0
    for trial in folder.journal.trials().values():
        assert any(words in finding.text for finding in trial.verdict.findings)


def test_a_load_that_the_server_cannot_send_is_stopped_at_its_time(trex: Any, tmp_path: Path) -> None:
    """It would send every frame, only later; what it had not sent by then is unsent."""
    trex.SERVER.limit = 100.0
    _, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert "stop" in trex.SERVER.calls
    counts = [trial.reading.counts for trial in folder.journal.trials().values()]
    stopped = [each for each in counts if each.unsent_tester > 0]
    assert not any(each.lost for each in counts)
    assert {each.late for each in stopped} == {None}, "the server counts no groups after a stop"


def test_frames_that_a_full_queue_threw_away_never_left_the_tester(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.dropped_in_queue = 0.1
    _, folder = run(tmp_path, bench(HALF_A_SECOND))
    for trial in folder.journal.trials().values():
        counts = trial.reading.counts
        assert counts.unsent_tester == pytest.approx(0.1 * counts.intended, abs=2)
        assert counts.lost == 0


def test_a_link_that_flaps_in_a_trial_is_no_loss_of_the_dut(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.at_start = lambda number: trex.SERVER.flap(1) if number == 2 else None
    status, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert status == 0
    flapped, repeated = folder.journal.trials().values()
    assert [finding.reason for finding in flapped.verdict.findings] == [Reason.LINK_CHANGED]
    assert repeated.verdict.valid


def test_who_takes_a_port_in_mid_trial_is_named(trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trex.SERVER.at_start = lambda number: trex.SERVER.steal(1, "bob") if number == 2 else None
    status, _ = run(tmp_path, bench(HALF_A_SECOND))
    said = capsys.readouterr().err
    assert status == 4
    assert "bob took port 1 by force" in said
    assert owners(trex) == ["", "bob", "", ""]


def test_a_killed_run_leaves_its_ports_to_restore(trex: Any, tmp_path: Path) -> None:
    (tmp_path / "bench.yaml").write_text(bench(LOSS.replace("50 ms", "60 s")))
    command = [str(NICBENCH), "run", str(tmp_path / "bench.yaml"), "--output", str(tmp_path / "runs"), "--no-progress"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(trex.SERVER.starts) < 2 and running.poll() is None:
        time.sleep(0.01)
    running.kill()
    running.wait()
    (folder,) = (tmp_path / "runs").iterdir()
    held = [port.owner for port in trex.SERVER.ports.values()]
    assert held == [f"nicbench@{socket.gethostname()}/{folder.name}"] * 2 + [""] * 2
    trex.SERVER.ports[1].owner = "bob"  # took it by force since
    assert main(["restore", str(folder)]) == 0
    assert owners(trex) == ["", "bob", "", ""]
    assert not trex.SERVER.ports[0].promiscuous


def test_an_interruption_gives_the_ports_back(trex: Any, tmp_path: Path) -> None:
    from nicbench.bench_file import parse
    from nicbench.core.events import Bus
    from nicbench.run import run as run_stages

    text = bench(LOSS.replace("50 ms", "60 s"))
    folder = RunFolder.create(tmp_path, text, "interrupted")
    bus = Bus()
    bus.subscribe(folder.journal.append)

    async def interrupted() -> None:
        running = asyncio.ensure_future(run_stages(parse(text.encode(), Path("bench.yaml")), folder, bus))
        while len(trex.SERVER.starts) < 2:  # noqa: ASYNC110 - another thread starts them
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(interrupted())
    folder.journal.close()
    assert owners(trex) == [""] * 4
    assert not any(port.streams for port in trex.SERVER.ports.values())
