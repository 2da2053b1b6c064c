"""The journal keeps what was measured through crashes, full disks and damage."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_tried

from nicbench.core.errors import BusyError, HostError, UsageError
from nicbench.core.events import Note, ResultReady, TrialFinished, TrialStarted
from nicbench.core.result import Result
from nicbench.store import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.ndjson")


def texts(journal: Journal) -> list[str]:
    return [event.text for event in journal.events() if isinstance(event, Note)]


def test_an_event_comes_back_as_it_went_in(journal: Journal, make_trial: Any, result: Result) -> None:
    events = [Note(text="größer\n"), TrialFinished(trial=make_trial()), ResultReady(test="throughput", result=result)]
    for event in events:
        journal.append(event)

    assert list(Journal(journal.path).events()) == events


def test_trials_are_found_by_their_key_in_the_order_they_were_made(journal: Journal, make_trial: Any) -> None:
    for number in (3, 1, 2):
        journal.append(TrialFinished(trial=make_trial(number)))

    assert [trial.id for trial in journal.trials().values()] == ["t0003", "t0001", "t0002"]
    assert journal.trials()["throughput/default/64/1/0"].id == "t0001"


def test_a_result_published_again_replaces_the_first(journal: Journal, result: Result) -> None:
    newer = result.replace(trials=("t0009",))
    for published in (result, result.replace(id="other"), newer):
        journal.append(ResultReady(test="throughput", result=published))

    assert [(row.id, row.trials) for row in journal.results()] == [(result.id, ("t0009",)), ("other", ("t0000",))]


def test_the_start_of_a_trial_is_not_journaled(journal: Journal) -> None:
    journal.append(
        TrialStarted(test="t", parameters={}, purpose="search", load_frames_per_s=None, duration_s=1.0, repeat=0)
    )

    assert list(journal.events()) == []


def test_a_journal_that_was_never_written_is_empty(journal: Journal) -> None:
    assert list(journal.events()) == []
    assert journal.trials() == {}


@pytest.mark.parametrize(
    "torn",
    [
        b'{"event":"note","text":"ha',
        b'{"event":"note","text":"whole, without newline","level":"info"}',
        b"\0" * 64,
        b'{"ev\0\0\0\n',
    ],
    ids=["half a line", "no newline", "zeros after a power failure", "damaged pages before the newline"],
)
def test_a_torn_last_line_is_dropped_with_a_note_and_the_next_line_stands_alone(journal: Journal, torn: bytes) -> None:
    journal.append(Note(text="kept"))
    journal.close()
    with journal.path.open("ab") as stream:
        stream.write(torn)

    read = texts(Journal(journal.path))
    assert read[0] == "kept"
    assert "cut short" in read[1]
    assert journal.path.read_bytes().endswith(torn)  # reading alone changes nothing

    resumed = Journal(journal.path)
    resumed.append(Note(text="next"))
    after = texts(Journal(journal.path))
    assert (after[0], after[2]) == ("kept", "next")
    assert f"its {len(torn)} bytes were dropped" in after[1]
    assert torn not in journal.path.read_bytes()


@pytest.mark.parametrize("damage", ["{]", '{"event":"unheard_of"}', '{"event":"note","text":7}', ""])
def test_a_damaged_line_in_the_middle_is_refused_with_its_number(journal: Journal, damage: str) -> None:
    journal.path.write_text(f'{{"event":"note","text":"a"}}\n{damage}\n{{"event":"note","text":"b"}}\n')

    with pytest.raises(HostError, match=r"journal\.ndjson:2: damaged line"):
        list(journal.events())


def test_two_processes_cannot_write_one_run(journal: Journal) -> None:
    journal.append(Note(text="mine"))
    other = Journal(journal.path)

    with pytest.raises(BusyError, match="another nicbench process is writing this run"):
        other.append(Note(text="theirs"))

    journal.close()
    other.append(Note(text="now"))
    assert texts(journal) == ["mine", "now"]


def test_a_full_disk_is_said_plainly_and_what_was_measured_is_kept(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(Note(text="measured"))
    write = os.write

    def write_ten_bytes_then_nothing(descriptor: int, content: bytes) -> int:
        if len(content) > 10 and content.startswith(b"{"):
            return write(descriptor, content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_ten_bytes_then_nothing)
        with pytest.raises(HostError, match="the disk is full; what was measured so far is kept"):
            journal.append(Note(text="too much"))

    assert texts(Journal(journal.path)) == ["measured"]
    journal.append(Note(text="after space was made"))
    assert texts(Journal(journal.path)) == ["measured", "after space was made"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full_keeps_every_whole_line(tmp_path: Path) -> None:
    script = f"""
import subprocess, sys
from pathlib import Path
from nicbench.core.errors import HostError
from nicbench.core.events import Note
from nicbench.store import Journal
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", {str(tmp_path)!r}], check=True)
journal = Journal(Path({str(tmp_path)!r}) / "journal.ndjson")
written = 0
try:
    while True:
        journal.append(Note(text="x" * 1000))
        written += 1
except HostError as error:
    assert "the disk is full" in str(error), error
assert written > 10
assert len(list(Journal(journal.path).events())) == written
print("kept")
"""
    # A mount namespace of its own: the disk is gone when the process is.
    done = run_tried(["unshare", "--mount", sys.executable, "-c", script], timeout=60)
    if "unshare failed" in done.stderr or "permission denied" in done.stderr:
        pytest.skip("no mount namespace here")
    assert done.stdout == "kept\n", done.stderr


@pytest.mark.parametrize(
    ("switch", "kept", "torn"),
    [("2", 1, False), ("2:before", 1, False), ("2:torn", 1, True), ("2:after", 2, False), ("9", 4, False)],
)
def test_a_process_killed_at_a_boundary_leaves_what_was_on_disk(
    tmp_path: Path, switch: str, kept: int, torn: bool
) -> None:
    path = tmp_path / "journal.ndjson"
    script = f"""
from pathlib import Path
from nicbench.core.events import Note
from nicbench.store import Journal
journal = Journal(Path({str(path)!r}))
for number in range(4):
    journal.append(Note(text=str(number)))
"""
    environment = os.environ | {"NICBENCH_TEST_KILL_AT_JOURNAL_WRITE": switch}
    done = subprocess.run([sys.executable, "-c", script], env=environment, timeout=60, check=False)

    assert done.returncode == (0 if switch == "9" else -signal.SIGKILL)
    read = texts(Journal(path))
    assert read[:kept] == [str(number) for number in range(kept)]
    assert len(read) == kept + torn


def test_a_kill_switch_that_is_not_understood_says_how_to_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NICBENCH_TEST_KILL_AT_JOURNAL_WRITE", "2:sideways")

    with pytest.raises(UsageError, match="n:torn"):
        Journal(tmp_path / "journal.ndjson")


def test_a_journal_that_somebody_deleted_takes_nothing_more_and_says_so(journal: Journal) -> None:
    journal.append(Note(text="kept"))
    journal.path.unlink()
    with pytest.raises(HostError, match="somebody deleted the run folder") as caught:
        journal.append(Note(text="lost"))
    assert (caught.value.exit_status, caught.value.may_resume) == (4, False)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lost": -1}, "lost is -1: less than none"),
        ({"lost": 1e29}, "lost.*exceeded maximum size"),
        ({"received": 1e12}, "frames were sent, and 1.* are accounted for"),
    ],
)
def test_counts_that_cannot_be_are_refused_with_their_line(
    journal: Journal, make_trial: Any, changed: dict[str, float], said: str
) -> None:
    line = json.loads(TrialFinished(trial=make_trial()).model_dump_json())
    line["trial"]["reading"]["counts"] |= changed
    journal.path.write_text(json.dumps(line) + "\n")
    with pytest.raises(HostError, match=rf"journal\.ndjson:1: damaged line: .*{said}"):
        list(journal.events())


@pytest.mark.parametrize(
    "values", [{"lost_frames": -1}, {"loss_percent": 101.0}, {"sent_frames": 9, "lost_frames": 10}]
)
def test_a_result_that_cannot_be_is_refused_with_its_line(
    journal: Journal, result: Result, values: dict[str, float]
) -> None:
    line = json.loads(ResultReady(test="a", result=result).model_dump_json())
    line["result"]["values"] |= values
    journal.path.write_text(json.dumps(line) + "\n")
    with pytest.raises(HostError, match=r"journal\.ndjson:1: damaged line"):
        list(journal.events())


def test_what_was_read_is_known_and_what_came_since_is_read(journal: Journal) -> None:
    journal.append(Note(text="first"))
    reader = Journal(journal.path)
    assert texts(reader) == ["first"]
    journal.append(Note(text="second"))
    assert texts(reader) == texts(reader) == ["first", "second"]

    with journal.path.open("ab") as stream:
        stream.write(b'{"event":')
    assert texts(reader)[:-1] == texts(reader)[:-1] == ["first", "second"]
    assert "9 bytes" in texts(reader)[-1]

    other = Journal(journal.path.with_name("other"))
    other.append(Note(text="from elsewhere"))
    other.path.replace(journal.path)
    assert texts(reader) == ["from elsewhere"]
    journal.path.write_bytes(journal.path.read_bytes() + b"{}\n" * 2)
    with pytest.raises(HostError, match="damaged line") as error:
        list(reader.events())
    assert (error.value.place or "").endswith(":2")
