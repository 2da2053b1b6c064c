"""Runs on TRex, from the bench file to the report, against a stand-in for its client with a DUT whose rate is known."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nicbench import report
from nicbench.cli.main import main
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.verdict import Reason
from nicbench.store.folder import RunFolder

FAKE = Path(__file__).parent / "fake_trex"
NICBENCH = Path(sys.executable).with_name("nicbench")
HEAD = f"""
nicbench: 1
title: TRex before a switch
tester: {{{{kind: trex, client: {FAKE}, latency_rate: 500 pps, {{tester}}}}}}
dut: {{{{kind: external}}}}
thresholds: {{{{tester_overtime_share: 9}}}} # a machine of tests is busy, and trials are short
traffic: {{{{flows: 8, {{traffic}}}}}}
tests:
"""
THROUGHPUT = """
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{kind: {search}, precision: 5 %, maximum_trials: 30, validation: 0 s}}
    trial: {{duration: 50 ms, drain: 0 s, settle: 0 s}}
"""
HALF_A_SECOND = """
  - name: loss
    method: load-sweep
    loads: [10 %]
    frame_bytes: [64]
    trial: {duration: 500 ms, drain: 0 s, settle: 0 s}
"""
LATENCY = """
  - name: latency
    method: latency
    at: throughput
    loads: [50 %]
    frame_bytes: [64]
    trial: {duration: 200 ms, drain: 0 s, settle: 0 s}
"""
LOSS = """
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    trial: {duration: 50 ms, drain: 0 s, settle: 0 s}
"""


def bench(tests: str, *, tester: str = "ports: [0, 1]", traffic: str = "ip: 4", search: str = "mlr") -> str:
    return HEAD.format(tester=tester, traffic=traffic) + tests.replace("{search}", search).replace("{{", "{").replace(
        "}}", "}"
    )


def run(folder: Path, text: str, *, with_report: bool = False) -> tuple[int, RunFolder | None]:
    """The exit status, and the run folder if there is one; no report, which takes longer than the run, unless asked."""
    (folder / "bench.yaml").write_text(text)
    options = ["--no-progress"] if with_report else ["--no-progress", "--no-report"]
    status = main(["run", str(folder / "bench.yaml"), "--output", str(folder / "runs"), *options])
    kept = sorted((folder / "runs").glob("*/")) if (folder / "runs").exists() else []
    return status, RunFolder.open(kept[0]) if kept else None


def results(folder: RunFolder | None) -> tuple[Result, ...]:
    assert folder is not None
    summary = folder.summary()
    assert summary is not None
    return summary.results


def rate(result: Result, name: str = "ndr_frames_per_s") -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


def page(folder: RunFolder | None) -> str:
    assert folder is not None
    path = folder.path / "report.html"
    return (path if path.exists() else report.build(folder.path)).read_text()


def owners(trex: Any) -> list[str]:
    return [port.owner for port in trex.SERVER.ports.values()]


@pytest.mark.parametrize("search", ["mlr", "bisect", "step-down"])
def test_every_search_finds_the_rate_of_the_dut_behind_trex(search: str, trex: Any, tmp_path: Path) -> None:
    # Of 50 ms the queue carries 16 frames more: 10,320 frames/s pass such a trial.
    status, folder = run(tmp_path, bench(THROUGHPUT, search=search))
    assert status == 0
    (result,) = results(folder)
    assert rate(result).value == pytest.approx(10_320, rel=0.06)
    assert rate(result).limited_by is LimitedBy.DUT
    assert "not measured by this tester" in page(folder)
    assert owners(trex) == [""] * 4
    assert not any(port.promiscuous or port.streams for port in trex.SERVER.ports.values())


def test_a_search_tries_no_load_above_the_one_that_it_is_given(trex: Any, tmp_path: Path) -> None:
    text = bench(THROUGHPUT, search="bisect").replace("validation: 0 s", "validation: 0 s, maximum_load: 8 kpps")
    status, folder = run(tmp_path, text)
    assert status == 0
    (result,) = results(folder)
    assert rate(result).limited_by is LimitedBy.MAXIMUM_LOAD
    assert rate(result).value == 8000
    assert folder is not None
    assert {trial.request.load_frames_per_s for trial in folder.journal.trials().values()} == {8000}


def test_a_whole_run_ends_with_a_report_that_says_what_is_a_sample(trex: Any, tmp_path: Path) -> None:
    status, folder = run(tmp_path, bench(THROUGHPUT + LATENCY + LOSS), with_report=True)
    assert status == 0
    throughput, latency, *losses = results(folder)
    assert latency.values["latency_minimum_ns"] == 25_000
    assert latency.values["latency_maximum_ns"] == 34_000
    assert latency.values["latency_resolution_ns"] == 1000.0
    sample, frames = latency.values["latency_sample_of_frames"], latency.values["timed_frames"]
    assert isinstance(sample, int)
    assert isinstance(frames, int)
    assert 0 < frames <= 0.11 * sample
    text = page(folder)
    assert "a sample of the frames, not every one" in text
    assert "sample of the frames is timed, for this tester stamps no others" in text
    assert "every frame of the trial is timed" not in text
    assert "Where a count is an en dash it is not measured by this tester." in text
    assert {row.values["altered_frames"] for row in losses} == {None}
    at_line_rate = losses[0]
    assert at_line_rate.values["returned_frames"] == 516
    assert at_line_rate.values["lost_frames"] == 744 - 516
    assert losses[-1].values["loss_percent"] == 0.0
    assert rate(throughput).value is not None


def test_counts_that_trex_does_not_know_are_null_in_the_journal(trex: Any, tmp_path: Path) -> None:
    _, folder = run(tmp_path, bench(LOSS))
    assert folder is not None
    counts = [trial.reading.counts for trial in folder.journal.trials().values()]
    for unknown in ("late", "duplicated", "reordered", "corrupted", "unattributed"):
        assert {getattr(count, unknown) for count in counts} == {None}
    assert {count.foreign for count in counts} == {0}
    assert all(count.intended == count.sent + count.unsent for count in counts)
    assert all(count.sent == count.received + count.lost for count in counts)


def test_both_directions_are_loaded_and_counted_each_for_itself(trex: Any, tmp_path: Path) -> None:
    status, folder = run(tmp_path, bench(LOSS, traffic="bidirectional: true"))
    assert status == 0
    assert folder is not None
    trial = next(iter(folder.journal.trials().values()))
    assert [stream.name for stream in trial.reading.streams] == ["0->1", "1->0"]
    assert [stream.counts.received for stream in trial.reading.streams] == [516, 516]
    assert [port.name for port in trial.reading.ports] == ["trex0", "trex1"]


def test_a_trial_has_the_order_of_rfc_2544(trex: Any, tmp_path: Path) -> None:
    run(tmp_path, bench(LOSS))
    calls = [call for call in trex.SERVER.calls if call not in ("get_port_info", "set_port_attr")]
    first = calls.index("start")
    trial = calls[first + 1 :]
    assert trial[: trial.index("get_pgid_stats") + 1] == [
        "wait_on_traffic",  # the learning frames
        "remove_all_streams",
        "add_streams",
        "clear_stats",
        "start",
        "wait_on_traffic",
        "get_stats",
        "get_pgid_stats",
    ]
    learning, measured = trex.SERVER.starts[:2]
    assert learning["ports"] == [0, 1]  # both ends are learnt, also of traffic in one direction
    assert measured["ports"] == [0]


def test_flows_differ_in_their_addresses(trex: Any, tmp_path: Path) -> None:
    run(tmp_path, bench(LOSS))
    ((_, stream),) = trex.SERVER.starts[1]["streams"]
    variables = [command.count for command in stream.packet.vm.commands if hasattr(command, "count")]
    assert max(variables) == 8
    assert len(stream.packet.packet) == 60  # TRex adds the FCS


def test_a_tester_that_falls_short_is_a_ceiling_and_no_loss_of_the_dut(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.limit = 4000.0
    status, folder = run(tmp_path, bench(THROUGHPUT.replace("50 ms", "100 ms")))
    assert status == 0
    (result,) = results(folder)
    assert rate(result).limited_by is LimitedBy.TESTER
    assert rate(result).value == pytest.approx(4000, rel=0.15)
    assert folder is not None
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


def test_flow_counters_that_do_not_work_are_no_loss(
    trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trex.SERVER.blind_flow_counters = True
    status, _ = run(tmp_path, bench(LOSS))
    assert status == 4
    assert "flow counters are 0 although" in capsys.readouterr().err
    assert owners(trex) == [""] * 4


def _another_user(trex: Any) -> None:
    trex.SERVER.ports[1].owner = "ada"


def _link_down(trex: Any) -> None:
    trex.SERVER.ports[0].link = "DOWN"


def _refused(trex: Any) -> None:
    trex.SERVER.refuses = trex.SILENT


def _of_another_release(trex: Any) -> None:
    trex.SERVER.refuses = "RPC version mismatch: a newer client version is required"


def _without_events(trex: Any) -> None:
    trex.SERVER.async_port = 4600


@pytest.mark.parametrize(
    ("spoil", "words", "left"),
    [
        (_another_user, ("Port 1 is already taken by 'ada'", "`force: true`"), ["", "ada", "", ""]),
        (_link_down, ("the link of port 0 is down", "check the cable"), [""] * 4),
        (_refused, ("there is no answer from a TRex server", "127.0.0.1:4501", "./t-rex-64 -i --hdrh"), [""] * 4),
        (_of_another_release, ("are of different releases", "the server's own release, v3.06"), [""] * 4),
        (_without_events, ("no events come from its port 4500", "correct `async_port`"), [""] * 4),
    ],
)
def test_a_server_that_is_not_ready_is_said_before_anything_is_sent(
    spoil: Any, words: tuple[str, ...], left: list[str], trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(trex)
    status, folder = run(tmp_path, bench(LOSS))
    said = capsys.readouterr().err
    assert status == 3
    assert all(word in said for word in words)
    assert folder is None
    assert owners(trex) == left
    assert not trex.SERVER.starts


def test_ports_of_another_user_are_taken_where_that_is_asked_for(trex: Any, tmp_path: Path) -> None:
    _another_user(trex)
    status, _ = run(tmp_path, bench(LOSS, tester="force: true"))
    assert status == 0
    assert owners(trex) == [""] * 4


def test_a_wrong_folder_and_a_wrong_port_are_named(
    trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = run(tmp_path, bench(LOSS).replace(str(FAKE), str(tmp_path / "nowhere")))
    said = capsys.readouterr().err
    assert status == 3
    assert "there is no TRex client in" in said
    assert "unpacked TRex release" in said
    status, _ = run(tmp_path, bench(LOSS, tester="python: /nowhere/python3"))
    assert status == 3
    assert "there is no /nowhere/python3" in capsys.readouterr().err
    status, _ = run(tmp_path, bench(LOSS, tester="ports: [0, 7]"))
    assert status == 3
    assert "the server has no port 7" in capsys.readouterr().err


def test_what_was_measured_is_kept_where_the_server_dies_in_mid_trial(
    trex: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trex.SERVER.dies_at = 6  # each trial starts twice: learning frames and the load
    status, folder = run(tmp_path, bench(LOSS))
    said = capsys.readouterr().err
    assert status == 4
    assert "Failed to get server response" in said
    assert "nicbench resume" in said
    assert folder is not None
    assert len(folder.journal.trials()) == 2
    assert "disconnect" in trex.SERVER.calls
    trex.SERVER = trex.Server()  # started again
    assert main(["resume", str(folder.path), "--no-progress", "--no-report"]) == 0
    assert owners(trex) == [""] * 4


def test_an_end_that_is_told_late_is_no_frame_unsent(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.end_told_after_s = 0.3
    status, folder = run(tmp_path, bench(LOSS))
    assert status == 0
    assert folder is not None
    trials = folder.journal.trials().values()
    assert {trial.reading.counts.unsent_tester for trial in trials} == {0}
    assert all(trial.verdict.valid for trial in trials)


def test_a_call_that_takes_long_to_start_is_none_of_the_time_in_which_frames_were_sent(
    trex: Any, tmp_path: Path
) -> None:
    trex.SERVER.start_takes_s = 1.0
    status, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert status == 0
    assert folder is not None
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
    assert folder is not None
    for trial in folder.journal.trials().values():
        assert any(words in finding.text for finding in trial.verdict.findings)


def test_a_load_that_the_server_cannot_send_is_stopped_at_its_time(trex: Any, tmp_path: Path) -> None:
    """It would send every frame, only later; what it had not sent by then is unsent."""
    trex.SERVER.limit = 1000.0
    _, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert folder is not None
    assert "stop" in trex.SERVER.calls
    counts = [trial.reading.counts for trial in folder.journal.trials().values()]
    assert all(each.unsent_tester > 0 and each.lost == 0 for each in counts)


def test_frames_that_a_full_queue_threw_away_never_left_the_tester(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.dropped_in_queue = 0.1
    _, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert folder is not None
    for trial in folder.journal.trials().values():
        counts = trial.reading.counts
        assert counts.unsent_tester == pytest.approx(0.1 * counts.intended, abs=2)
        assert counts.lost == 0


def test_a_link_that_flaps_in_a_trial_is_no_loss_of_the_dut(trex: Any, tmp_path: Path) -> None:
    trex.SERVER.at_start = lambda number: trex.SERVER.flap(1) if number == 2 else None
    status, folder = run(tmp_path, bench(HALF_A_SECOND))
    assert status == 0
    assert folder is not None
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


def test_the_plan_discloses_the_server_and_its_ports(trex: Any, tmp_path: Path) -> None:
    _, folder = run(tmp_path, bench(LOSS))
    assert folder is not None
    plan = json.loads((folder.path / "plan.json").read_text())
    assert plan["tester"]["engine"] == {"engine": "TRex", "version": "v3.06", "mode": "STL"}
    assert plan["tester"]["client_python"] == ".".join(map(str, sys.version_info[:3]))
    assert [port["driver"] for port in plan["tester"]["ports"]] == ["net_i40e", "net_i40e"]
    assert plan["link_bits_per_s"] == 1e7
    assert plan["link_is_nominal"] is False


def test_a_trial_of_so_many_frames_is_a_burst_of_so_many_with_its_sample_within(trex: Any, tmp_path: Path) -> None:
    exact = LATENCY.replace("loads: [50 %]", "loads: [50 %]\n    frames: 500")
    status, folder = run(tmp_path, bench(THROUGHPUT + exact))
    assert status == 0
    assert results(folder)[-1].values["sent_frames"] == 500
    streams = [stream for _, stream in trex.SERVER.starts[-1]["streams"]]
    assert sum(stream.mode.total_pkts for stream in streams) == 500
    assert len(streams) == 2
