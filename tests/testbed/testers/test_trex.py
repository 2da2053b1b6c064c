"""Runs on TRex, from the bench file to the report, against a stand-in for its client with a DUT whose rate is known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from tests.testbed.testers.trex_bench import FAKE, LATENCY, LOSS, THROUGHPUT, bench, owners, page, rate, results, run
from tests.testbed.testers.trex_flows import addresses_of

from nicbench.core.judging import Thresholds
from nicbench.core.result import LimitedBy
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.testbed.testers._trex_traffic import SendingTime, sending_time, worst

in_turn = pytest.mark.sampled(5, of="runs behind TRex")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("search", ["guided", "mlr", "step-down"])
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


@in_turn
def test_a_search_tries_no_load_above_the_one_that_it_is_given(trex: Any, tmp_path: Path) -> None:
    text = bench(THROUGHPUT, search="guided").replace("validation: 0 s", "validation: 0 s, maximum_load: 8 kpps")
    status, folder = run(tmp_path, text)
    assert status == 0
    (result,) = results(folder)
    assert rate(result).limited_by is LimitedBy.MAXIMUM_LOAD
    # What was sent, which a busy machine makes a little less than what was asked for.
    assert 7600 < cast("float", rate(result).value) <= 8000
    assert {trial.request.load_frames_per_s for trial in folder.journal.trials().values()} == {8000}


@in_turn
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
    assert {row.values["altered_frames"] for row in losses} == {None}
    at_line_rate = losses[0]
    assert at_line_rate.values["returned_frames"] == 516
    assert at_line_rate.values["lost_frames"] == 744 - 516
    assert losses[-1].values["loss_percent"] == 0.0
    assert rate(throughput).value is not None


@in_turn
def test_counts_that_trex_does_not_know_are_null_in_the_journal(trex: Any, tmp_path: Path) -> None:
    _, folder = run(tmp_path, bench(LOSS))
    counts = [trial.reading.counts for trial in folder.journal.trials().values()]
    for unknown in ("duplicated", "reordered", "corrupted", "unattributed"):
        assert {getattr(count, unknown) for count in counts} == {None}
    assert {count.foreign for count in counts} == {0}
    assert all(count.intended == count.sent + count.unsent for count in counts)
    assert all(count.sent == count.received + count.lost for count in counts)


@in_turn
def test_both_directions_are_loaded_and_counted_each_for_itself(trex: Any, tmp_path: Path) -> None:
    status, folder = run(tmp_path, bench(LOSS, traffic="bidirectional: true"))
    assert status == 0
    trial = next(iter(folder.journal.trials().values()))
    assert [stream.name for stream in trial.reading.streams] == ["0->1", "1->0"]
    assert [stream.counts.received for stream in trial.reading.streams] == [516, 516]
    assert [port.name for port in trial.reading.ports] == ["trex0", "trex1"]


@in_turn
def test_a_trial_has_the_order_of_rfc_2544(trex: Any, tmp_path: Path) -> None:
    run(tmp_path, bench(LOSS))
    calls = [call for call in trex.SERVER.calls if call not in ("get_port_info", "set_port_attr")]
    first = calls.index("start")
    trial = calls[first + 1 :]
    read = ["get_stats", "get_pgid_stats"]
    assert trial[:11] == [
        *read,
        "wait_on_traffic",  # the learning frames
        "remove_all_streams",
        "add_streams",
        "clear_stats",
        "start",
        *read,
        "get_pgid_stats",  # late frames
        "wait_on_traffic",
    ]
    learning, measured = trex.SERVER.starts[:2]
    assert learning["ports"] == [0, 1]  # both ends are learnt, also of traffic in one direction
    assert measured["ports"] == [0]


@in_turn
def test_flows_differ_in_their_addresses(trex: Any, tmp_path: Path) -> None:
    run(tmp_path, bench(LOSS))
    ((_, stream),) = trex.SERVER.starts[1]["streams"]
    assert len(set(addresses_of(stream, 100))) == 8
    assert len(stream.packet.packet) == 60  # TRex adds the FCS


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


@in_turn
def test_ports_of_another_user_are_taken_where_that_is_asked_for(trex: Any, tmp_path: Path) -> None:
    _another_user(trex)
    status, _ = run(tmp_path, bench(LOSS, tester="force: true"))
    assert status == 0
    assert owners(trex) == [""] * 4


@in_turn
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


@in_turn
def test_the_plan_discloses_the_server_and_its_ports(trex: Any, tmp_path: Path) -> None:
    _, folder = run(tmp_path, bench(LOSS))
    plan = json.loads((folder.path / "plan.json").read_text())
    assert plan["tester"]["engine"] == {"engine": "TRex", "version": "v3.06", "mode": "STL"}
    assert plan["tester"]["client_python"] == ".".join(map(str, sys.version_info[:3]))
    assert [port["driver"] for port in plan["tester"]["ports"]] == ["net_i40e", "net_i40e"]
    assert plan["link_bits_per_s"] == 1e7
    assert plan["link_is_nominal"] is False


@in_turn
def test_a_trial_of_so_many_frames_is_a_burst_of_so_many_with_its_sample_within(trex: Any, tmp_path: Path) -> None:
    exact = LATENCY.replace("loads: [50 %]", "loads: [50 %]\n    frames: 500")
    status, folder = run(tmp_path, bench(THROUGHPUT + exact))
    assert status == 0
    assert results(folder)[-1].values["sent_frames"] == 500
    streams = [stream for _, stream in trex.SERVER.starts[-1]["streams"]]
    assert sum(stream.mode.total_pkts for stream in streams) == 500
    assert len(streams) == 2


# For how long TRex's ports sent, by readings of their counters: pure.


def readings(begun: float, ended: float, frames: int, every_s: float = 0.002) -> dict[str, Any]:
    """Those of a port that sent evenly from ``begun`` to ``ended``, each reading taking a tenth of its interval."""

    def read(at: float) -> tuple[float, float, int]:
        share = min(1.0, max(0.0, (at - begun) / (ended - begun)))
        return (at - every_s / 20, at + every_s / 20, int(frames * share + 1e-9))

    all_of_them = [read(step * every_s) for step in range(int(2 * ended / every_s))]
    after = next(number for number, one in enumerate(all_of_them) if one[2] == frames)
    first = next(number for number, one in enumerate(all_of_them) if one[2] > 0)
    return {
        "none": all_of_them[first - 1],
        "beginning": all_of_them[first : first + 10],
        "ending": all_of_them[after - 10 : after],
        "last": all_of_them[after],
    }


@pytest.mark.parametrize("begun", [0.5, 0.5003, 0.5011, 0.5019])
@pytest.mark.parametrize("taken", [1.0, 1.0007, 1.067])
def test_the_time_is_known_better_than_the_readings_are_apart(begun: float, taken: float) -> None:
    time = sending_time(readings(begun, begun + taken, 20_000), 20_000 / taken, 1.0)
    assert time.taken_ns / 1e9 == pytest.approx(taken, abs=2e-4)
    assert time.overtime_ns / 1e9 == pytest.approx(taken - 1.0, abs=2e-4)
    assert time.uncertainty_ns <= 3_000_000


def test_a_burst_at_the_beginning_is_seen_by_what_it_takes_from_the_time() -> None:
    """50 ms of traffic leave at once, and the rest at its rate: the load was higher than asked."""
    burst = {
        "none": (0.999, 0.9991, 0),
        "beginning": [(1.001, 1.0011, 1020)],
        "ending": [(1.949, 1.9491, 19_990)],
        "last": (1.951, 1.9511, 20_000),
    }
    time = sending_time(burst, 20_000, 1.0)
    assert time.overtime_ns / 1e9 == pytest.approx(-0.05, abs=2e-3)
    assert time.uncertainty_ns >= 1_000_000  # when it began is known to the readings


def test_counters_that_could_not_be_read_in_time_leave_it_uncertain() -> None:
    late = readings(0.5, 1.5, 20_000) | {"ending": [(1.0, 1.0001, 10_000)], "last": (2.0, 2.0001, 20_000)}
    assert sending_time(late, 20_000, 1.0).uncertainty_ns >= 0.3e9


def test_a_reading_that_was_answered_late_does_not_blur_the_time() -> None:
    """The server answers nothing while it starts a transmission."""
    blurred = readings(0.5, 1.5, 20_000)
    before, after, frames = blurred["beginning"][0]
    blurred["beginning"][0] = (before - 0.02, after, frames)
    time = sending_time(blurred, 20_000, 1.0)
    assert time.taken_ns / 1e9 == pytest.approx(1.0, abs=2e-4)
    assert time.uncertainty_ns <= 3_000_000


def test_a_reading_after_the_end_says_nothing_of_the_beginning() -> None:
    """Where the server answered nothing for long, the first readings with frames are the last ones too."""
    stalled = readings(0.5, 1.5, 20_000)
    stalled["beginning"] = [stalled["beginning"][0], stalled["last"], (1.6, 1.6, 20_000)]
    time = sending_time(stalled, 20_000, 1.0)
    assert time.taken_ns / 1e9 == pytest.approx(1.0, abs=2e-4)


def test_a_port_that_sent_nothing_took_the_time_it_was_given() -> None:
    assert sending_time(
        {"none": (1.0, 1.1, 0), "beginning": [], "ending": [], "last": None}, 20_000, 2.0
    ) == SendingTime(2 * 10**9, 0, 0)


def test_the_port_that_missed_its_time_most_stands_for_all() -> None:
    short, long = SendingTime(10**9 - 300, -300, 5), SendingTime(10**9 + 200, 200, 5)
    assert worst([long, short]) == short


def test_a_port_whose_time_is_unknown_is_not_hidden_by_one_that_missed_its_time() -> None:
    known, unknown = SendingTime(1_001_000_000, 1_000_000, 100_000), SendingTime(1_000_200_000, 200_000, 300_000_000)
    time = worst([known, unknown])
    assert (time.taken_ns, time.overtime_ns, time.uncertainty_ns) == (1_001_000_000, 1_000_000, 300_000_000)
    evidence = Evidence(
        transmit_ns=time.taken_ns,
        intended=10**6,
        unsent_tester=0,
        overtime_ns=time.overtime_ns,
        time_uncertainty_ns=time.uncertainty_ns,
    )
    (finding,) = judge(evidence, Thresholds()).findings
    assert "is known to 30.0 % only" in finding.text
