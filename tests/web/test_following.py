"""A run that is followed: from a growing, torn, replaced or hostile journal, for several pages at once."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import struct
import subprocess
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.web._folders import HOSTILE, begun, finished, line, make_run, note, started, trials
from tests.web.conftest import Client

from nicbench.core.events import (
    BoundsNarrowed,
    GoalBounds,
    RoundFinished,
    RunFinished,
    TestStarted,
    TrialStarted,
    Waiting,
)
from nicbench.core.judging import Verdict
from nicbench.core.result import ResultVerdict
from nicbench.core.round import Figures, Job, JobOutcome, JobSpec, RequestLatency, Round, RoundRequest
from nicbench.stats.activity import TimeLeft
from nicbench.stats.latency import histogram_of
from nicbench.store import manifest
from nicbench.store.marks import is_asked_to_stop
from nicbench.store.now import NAME as NOW
from nicbench.store.now import NowFile, read_now
from nicbench.web import watched_run
from nicbench.web.controller import find_writer, stop_after_test
from nicbench.web.moments import item_of
from nicbench.web.site import Site
from nicbench.web.views.runs import place_of, stream_run
from nicbench.web.watched_run import WatchedRun

ESTIMATE = TimeLeft([("throughput", 180.0)]).estimate.model_dump()


async def events_of(stream: AsyncIterator[str]) -> AsyncIterator[tuple[str, Any]]:
    """Kind and content of each event of a stream."""
    async for text in stream:
        fields = dict(line.split(": ", 1) for line in text.strip().splitlines() if not line.startswith(":"))
        if fields:
            yield fields["event"], json.loads(fields["data"])


async def until(stream: AsyncIterator[tuple[str, Any]], kind: str) -> list[tuple[str, Any]]:
    """The events up to the first of a kind."""
    found = []
    async for event in stream:
        found.append(event)
        if event[0] == kind:
            return found
    return found


async def test_a_page_is_told_of_each_trial_as_the_journal_grows(site: Site, runs: Path) -> None:
    folder = make_run(runs, "one", started("Mine") + begun())
    journal = folder / "journal.ndjson"
    stream = events_of(stream_run(site, site.watched.of(folder), (0, 0)))
    (_, first), (_, state) = await until(stream, "state")
    assert [item["k"] for item in first] == ["run", "test"]
    assert state["state"] == "silent"
    line = trials(1)
    with journal.open("a") as file:
        file.write(line[:100])  # half of a line is not told
        file.flush()
        await asyncio.sleep(0.7)
        file.write(line[100:])
    [(_, (trial,))] = await until(stream, "items")
    assert (trial["id"], trial["test"], trial["point"], trial["verdict"]) == (
        "t0001",
        "throughput",
        "64 bytes",
        "valid",
    )
    with journal.open("a") as file:
        file.write(finished())
    told = await until(stream, "state")
    assert told[-1][1] == {"report": False, "state": "finished", "verdict": "valid"}
    site.ending.set()
    assert (await until(stream, "bye"))[-1][0] == "bye"


async def test_two_pages_see_the_same_and_one_that_comes_again_is_told_the_rest(site: Site, runs: Path) -> None:
    folder = make_run(runs, "one", started() + trials(5) + finished())
    run = site.watched.of(folder)
    site.ending.set()
    both = [[event async for event in events_of(stream_run(site, run, (0, 0)))] for _ in range(2)]
    assert both[0] == both[1]
    rest = [event async for event in events_of(stream_run(site, run, place_of("0.5")))]
    assert [item.get("id", item["k"]) for item in rest[0][1]] == ["t0005", "end"]
    assert site.streams == 0


async def test_a_page_gets_all_of_a_long_journal_before_its_server_ends(
    site: Site, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_run, "_MOST_BYTES", 2000)
    folder = make_run(runs, "one", started() + trials(20) + finished())
    site.ending.set()
    events = [event async for event in events_of(stream_run(site, site.watched.of(folder), (0, 0)))]
    pieces = [items for kind, items in events if kind == "items"]
    assert len(pieces) > 1
    assert [pieces[-1][-1]["k"], events[-1][0]] == ["end", "bye"]


async def test_a_page_of_another_journal_begins_anew(site: Site, runs: Path) -> None:
    folder = make_run(runs, "one", started() + trials(1))
    site.ending.set()
    events = [event async for event in events_of(stream_run(site, site.watched.of(folder), place_of("0.9999")))]
    assert [kind for kind, _ in events] == ["reset", "items", "state", "bye"]
    assert place_of("rubbish") == place_of(None) == place_of("1.2.3") == (0, 0)


def test_a_resumed_run_goes_on_behind_the_line_that_a_crash_cut(runs: Path) -> None:
    folder = make_run(runs, "one", started() + trials(2) + '{"event":"trial_fin')
    run = WatchedRun(folder)
    run.advance()
    assert len(run.items) == 3
    journal = folder / "journal.ndjson"
    journal.write_text(journal.read_text()[:-19] + started(resumed=True) + trials(1, first=3))
    run.advance()
    items = [json.loads(item) for item in run.items]
    assert [item.get("id", item["k"]) for item in items] == ["run", "t0001", "t0002", "run", "t0003"]
    journal.write_text(started("another"))
    run.advance()
    assert (run.generation, len(run.items)) == (1, 1)


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"event":"unknown"}', "\x00\xff", "[" * 5000, '{"event":1e999}'])
def test_a_line_that_no_run_wrote_is_said_to_be_damaged(text: str) -> None:
    item = item_of(text.encode("latin-1"))
    assert (item["k"], item["level"]) == ("note", "warning")


def test_texts_of_strangers_come_as_they_are_and_in_ascii(runs: Path) -> None:
    run = WatchedRun(make_run(runs, "one", started(HOSTILE) + note(HOSTILE) + trials(1, note=HOSTILE)))
    run.advance()
    assert all(item.isascii() for item in run.items)
    title, said, trial = (json.loads(item) for item in run.items)
    assert (title["title"], said["text"], trial["why"]) == (HOSTILE, HOSTILE, [HOSTILE])


def test_who_is_waited_for_and_how_the_bounds_narrow_is_told() -> None:
    waiting = item_of(line(Waiting(text="the machine: in use: run x of eve")).encode())
    assert waiting == {"k": "waiting", "text": "the machine: in use: run x of eve"}
    bounds = GoalBounds(goal="NDR", passing_frames_per_s=4e5, failing_frames_per_s=None)
    narrowed = BoundsNarrowed(
        test="throughput", parameters={"frame_bytes": 64}, bounds=(bounds,), trials=3, maximum_trials=60
    )
    told = item_of(line(narrowed).encode())
    assert (told["point"], told["goals"], told["most"]) == ("64 bytes", [["NDR", 4e5, None]], 60)


def damaged_histograms() -> list[str]:
    """Texts that no engine wrote: no base64, cut off, and a head that asks for terabytes."""
    good = histogram_of([(20_000, 1)])
    head = struct.pack(">IIiIQQd", 0x1C849313, 0, 0, 5, 1, 2**63, 1.0)
    return ["", "x", good[:-8], base64.b64encode(head).decode()]


@pytest.mark.parametrize("histogram", damaged_histograms())
def test_a_histogram_that_no_engine_wrote_costs_a_trial_its_column_and_no_more(histogram: str) -> None:
    journaled = json.loads(trials(1))
    journaled["trial"]["reading"]["latency"]["histogram"] = histogram
    told = item_of(json.dumps(journaled).encode())
    assert told["id"] == "t0001"
    assert "bins" not in told


def test_the_latencies_of_a_round_are_those_of_all_its_jobs() -> None:
    job = Job(workload="sockperf", client="c0", server="s0", ask=JobSpec(duration_s=1.0), port=5201)
    outcomes = [
        JobOutcome(figures=Figures(latency=RequestLatency(basis="round trip", histogram=histogram_of([(value, 2)]))))
        for value in (10_000, 20_000)
    ]
    one = Round(
        id="r0001",
        key="rr/0/0",
        test="rr",
        configuration="default",
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=(job, job, job), duration_s=1.0),
        outcomes=(*outcomes, JobOutcome(failure="it was not there")),
        verdict=Verdict(),
    )
    told = item_of(line(RoundFinished(round=one)).encode())
    assert told["bins"] == [40, [2, 0, 0, 2]]


def test_a_long_run_is_told_in_a_few_hundred_bytes_for_each_trial(runs: Path) -> None:
    run = WatchedRun(make_run(runs, "one", started() + trials(50)))
    run.advance()
    assert max(len(item) for item in run.items) < 500


# Who conducts a run.


def test_the_process_that_holds_the_journal_is_stopped_and_no_other(
    conducted: tuple[Path, subprocess.Popen[bytes]], post: Any, site: Site
) -> None:
    folder, process = conducted
    writer = find_writer(folder)
    assert (writer.pid, writer.is_ours) == (process.pid, True)
    assert site.watched.of(folder).state()["state"] == "running"
    assert post("/api/runs/one/stop-after-test") == 200
    assert is_asked_to_stop(folder)
    assert site.watched.of(folder).state()["asked"] is True
    assert post("/api/runs/one/stop") == 200
    assert process.wait(10) == 7
    assert find_writer(folder) is None


def test_a_reader_of_the_journal_and_a_lock_without_it_conduct_nothing(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    descriptor = os.open(folder / "journal.ndjson", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        assert find_writer(folder) is None
    finally:
        os.close(descriptor)
    with pytest.raises(Exception, match="no process on this machine"):
        stop_after_test(folder)


def test_a_run_without_a_controller_was_killed_once_it_is_silent_for_long(runs: Path) -> None:
    folder = make_run(runs, "one", started() + begun())
    assert WatchedRun(folder).state()["state"] == "silent"
    os.utime(folder / "journal.ndjson", (0, 0))
    assert WatchedRun(folder).state()["state"] == "killed"
    event = {"event": "trial_started", "duration_s": 1e9}  # a long trial, on a machine that is not seen from here
    (folder / NOW).write_text(json.dumps({"event": event, "began_s": 0.0, "estimate": ESTIMATE}))
    assert WatchedRun(folder).state()["state"] == "silent"
    assert WatchedRun(folder).state()["left"] == "about 3 min left"
    with (folder / "journal.ndjson").open("a") as file:
        file.write(finished(complete=False))
    run = WatchedRun(folder)
    run.advance()
    assert run.state()["state"] == "stopped"


def test_what_a_run_does_now_is_told_while_it_does_it(
    conducted: tuple[Path, subprocess.Popen[bytes]], site: Site
) -> None:
    folder, _ = conducted
    now = NowFile(folder)
    trial = TrialStarted(
        test="throughput",
        parameters={"frame_bytes": 64},
        purpose="search",
        load_frames_per_s=1e6,
        duration_s=120.0,
        repeat=0,
    )
    left = TimeLeft([("throughput", 240.0)])
    for event in (TestStarted(test="throughput", method="throughput", points=1, estimate_s=240.0), trial):
        left.note(event)
    now.note(trial, left.estimate)
    state = site.watched.of(folder).state()
    assert (state["left"], state["share"]) == ("about 4 min left", 0.0)
    assert state["now"]["point"] == "64 bytes"
    began = json.loads((folder / NOW).read_text())
    (folder / NOW).write_text(json.dumps(began | {"began_s": began["began_s"] - 60.0}))
    state = WatchedRun(folder).state()  # a minute later, within the same trial
    assert (state["left"], state["share"]) == ("about 3 min left", 0.25)
    manifest.write(folder)
    assert manifest.differences(folder) == ()  # no part of what the manifest vouches for
    now.note(RunFinished(verdict=ResultVerdict.VALID), left.estimate)
    assert read_now(folder) is None


def test_a_file_of_now_that_no_run_wrote_says_nothing(runs: Path) -> None:
    folder = make_run(runs, "one", started())
    wild = [{"began_s": 0.0, "estimate": ESTIMATE | {name: float("nan")}} for name in ESTIMATE]
    wild += [{"began_s": began, "estimate": ESTIMATE} for began in (float("inf"), "x", None)]
    for text in ("{", "[]", *(json.dumps({"event": {"load_frames_per_s": []}} | each) for each in wild)):
        (folder / NOW).write_text(text)
        assert read_now(folder) is None


async def test_a_page_is_sent_no_more_than_it_lacks_by_a_server_that_has_just_started(site: Site, runs: Path) -> None:
    long = "".join(note("x" * 1_000_000) for _ in range(6))  # more than is read at one time
    folder = make_run(runs, "one", started() + long)
    stream = events_of(stream_run(site, site.watched.of(folder), place_of("0.7")))
    assert [kind for kind, _ in await until(stream, "state")] == ["state"]


def test_cpus_are_drawn_at_the_time_of_their_session_also_where_an_earlier_one_was_not_watched(
    client: Client, runs: Path
) -> None:
    second = started(resumed=True).replace("12:00:00", "13:00:00")
    folder = make_run(runs, "one", started() + trials(1) + second + trials(1, first=2) + finished())
    began_ns = 5_000_000_000
    wall_ns = int(datetime.fromisoformat("2026-11-26T13:00:00+00:00").timestamp()) * 10**9
    series = [{"series": number, "metric": f"cpu_{state}_ns", "of": "0", "kind": "count"} for number, state in
              enumerate(("user", "idle"))]  # fmt: skip
    sample = {"event": "sample", "time_ns": began_ns + 10 * 10**9, "interval_ns": 10**9,
              "values": [[0, 250_000_000], [1, 750_000_000]]}  # fmt: skip
    lines = [{"began_ns": began_ns, "wall_ns": wall_ns}]
    lines += [{"host": "local", "event": each} for each in ({"event": "series", "series": series}, sample)]
    (folder / "monitor.ndjson").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (machine,) = client.get("/api/runs/one/cpus").json()["machines"]
    assert (machine["at_s"], machine["mean"]) == ([3610.0], [0.25])
