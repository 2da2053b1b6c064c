"""A run folder is made once, finished, and notices when somebody changes it."""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from nicbench.core.errors import HostError, NicbenchError, UsageError
from nicbench.core.events import Note, ResultReady, RunStarted, TrialFinished
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.core.trial import Purpose
from nicbench.store import RunFolder, list_runs
from nicbench.store.files import write_atomically
from nicbench.store.folder import new_run_id, slug


@pytest.fixture
def finished(folder: RunFolder, make_trial: Any, summary: Summary) -> RunFolder:
    folder.journal.append(
        RunStarted(run_id=folder.run_id, title="Forwarding", nicbench_version="0", wall_time="2026-01-31", seed=1)
    )
    folder.journal.append(TrialFinished(trial=make_trial(0)))
    folder.journal.append(TrialFinished(trial=make_trial(1, purpose=Purpose.LATENCY, disturbed=True)))
    folder.finish(summary)
    return folder


def test_a_folder_is_named_by_time_and_title_and_is_unique(tmp_path: Path) -> None:
    made = [RunFolder.create(tmp_path / "new", "title: x\n", "Linux IP forwarding: 64 B!") for _ in range(3)]

    assert len({folder.path for folder in made}) == 3
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z-linux-ip-forwarding-64-b-[0-9a-z]{10}", made[0].run_id)
    assert all(folder.bench_text == "title: x\n" for folder in made)


@pytest.mark.parametrize(
    ("title", "expected"),
    [("Übergröße Ωmega", "ubergroe-mega"), ("../../etc/passwd", "etc-passwd"), ("日本", "run"), ("a" * 90, "a" * 48)],
)
def test_any_title_makes_a_plain_name(title: str, expected: str) -> None:
    assert slug(title) == expected


def test_a_folder_that_is_no_run_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, message in (
        (tmp_path / "gone", "no such folder"),
        (tmp_path / "file", "is a file"),
        (tmp_path, "bench.yaml"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            RunFolder.open(path)
        assert "nicbench list" in (caught.value.next_step or "")


def test_a_run_opened_again_has_the_same_journal(folder: RunFolder) -> None:
    folder.journal.append(Note(text="kept"))

    assert list(RunFolder.open(folder.path).journal.events()) == [Note(text="kept")]


def test_json_comes_back_and_what_was_never_written_is_none(folder: RunFolder) -> None:
    folder.write_json("inventory.json", {"tester": {"kernel": "6.1"}})

    assert folder.read_json("inventory.json") == {"tester": {"kernel": "6.1"}}
    assert folder.read_json("tuning.json") is None
    assert folder.plan() is None
    assert folder.summary() is None


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000], ids=["torn", "of another shape", "nested too deep"])
def test_damaged_json_is_named(text: str, folder: RunFolder) -> None:
    (folder.path / "plan.json").write_text(text)
    with pytest.raises(HostError, match=r"plan\.json:1: is damaged") as caught:
        folder.plan()
    assert caught.value.next_step
    assert "\n" not in caught.value.message


def test_a_value_that_is_not_a_number_is_never_stored(folder: RunFolder) -> None:
    with pytest.raises(NicbenchError, match="not a number"):
        folder.write_json("plan.json", {"rate": math.nan})


def test_nothing_temporary_is_left(finished: RunFolder) -> None:
    assert sorted(path.name for path in finished.path.iterdir()) == [
        "MANIFEST.json",
        "bench.yaml",
        "journal.ndjson",
        "latency.hlog",
        "summary.json",
        "trials.parquet",
    ]


def test_the_same_summary_is_the_same_bytes(folder: RunFolder, summary: Summary) -> None:
    folder.finish(summary)
    first = (folder.path / "summary.json").read_bytes()
    turned = summary.results[0].replace(values=dict(reversed(summary.results[0].values.items())))
    folder.finish(summary.replace(results=(turned,)))

    assert (folder.path / "summary.json").read_bytes() == first
    assert b"0.30000000000000004" in first  # no digit is lost
    assert folder.summary() == summary


def test_every_trial_is_a_row_of_the_table(finished: RunFolder) -> None:
    rows = pq.read_table(io.BytesIO((finished.path / "trials.parquet").read_bytes())).to_pylist()

    assert [row["id"] for row in rows] == ["t0000", "t0001"]
    assert (rows[0]["sent"], rows[0]["lost"], rows[0]["loss_ratio"]) == (100_000, 10, 1e-4)
    assert rows[0]["load_frames_per_s_per_port"] == 100_000.0
    assert (rows[0]["latency_p99_9_ns"], rows[0]["latency_maximum_ns"]) == (400_000, 2_000_123)
    assert rows[0]["unexplained"] is None
    assert (rows[0]["valid"], rows[0]["reasons"]) == (True, [])
    assert (rows[1]["valid"], rows[1]["reasons"], rows[1]["findings"]) == (False, ["disturbed"], ["held up for 31 ms"])


def test_a_run_without_trials_still_has_a_table(folder: RunFolder, summary: Summary) -> None:
    folder.finish(summary)

    assert pq.read_table(folder.path / "trials.parquet").num_rows == 0


def test_a_run_of_workloads_without_rounds_has_their_table(folder: RunFolder, summary: Summary) -> None:
    folder.finish(summary, "rounds")

    assert pq.read_table(folder.path / "rounds.parquet").num_rows == 0
    assert not (folder.path / "trials.parquet").exists()


def test_the_latency_log_is_read_by_hdrhistogram(finished: RunFolder, histogram: HdrHistogram) -> None:
    reader = HistogramLogReader(str(finished.path / "latency.hlog"), histogram)
    logged = reader.get_next_interval_histogram()
    following = reader.get_next_interval_histogram()
    reader.input_file.close()

    assert logged.get_tag() == "t0001"
    assert logged.equals(histogram)
    assert following is None  # the search trial is not a latency trial


def test_an_untouched_run_agrees_with_its_manifest(finished: RunFolder) -> None:
    (finished.path / "report.html").write_text("a report may be made again")

    assert finished.finished
    assert finished.differences() == ()


def test_a_changed_a_missing_and_an_added_file_are_noticed(finished: RunFolder) -> None:
    (finished.path / "bench.yaml").write_text("title: another\n")
    (finished.path / "latency.hlog").unlink()
    (finished.path / "raw").mkdir()
    (finished.path / "raw" / "iperf3.txt").touch()

    assert finished.differences() == (
        "bench.yaml was changed after the run had finished",
        "latency.hlog is missing",
        "raw/iperf3.txt was added after the run had finished",
    )


def test_a_resumed_run_is_unfinished_until_it_finishes_again(finished: RunFolder, summary: Summary) -> None:
    resumed = RunFolder.open(finished.path)
    resumed.journal.append(Note(text="resumed"))
    assert not resumed.finished

    resumed.finish(summary)
    assert resumed.finished
    assert resumed.differences() == ()


def test_runs_are_listed_oldest_first_with_their_headline(
    finished: RunFolder, tmp_path: Path, result: Result, make_trial: Any
) -> None:
    cut_short = RunFolder.create(tmp_path / "runs", "title: y\n", "Zebra")
    cut_short.journal.append(TrialFinished(trial=make_trial()))
    cut_short.journal.append(ResultReady(test="throughput", result=result))
    (tmp_path / "runs" / "not a run").mkdir()

    first, second = list_runs(tmp_path / "runs")

    assert (first.run_id, first.title, first.verdict, first.trials) == (
        finished.run_id,
        "Forwarding",
        ResultVerdict.VALID,
        2,
    )
    assert (second.verdict, second.finished, second.trials, second.results) == (ResultVerdict.INCOMPLETE, False, 1, 1)


def test_a_damaged_run_is_listed_with_its_trouble(finished: RunFolder) -> None:
    (finished.path / "summary.json").write_text("{")

    (headline,) = list_runs(finished.path.parent)
    assert headline.verdict is None
    assert "damaged" in (headline.trouble or "")


def test_no_folder_means_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == ()


def test_the_manifest_carries_the_version_of_the_format(finished: RunFolder) -> None:
    assert json.loads((finished.path / "MANIFEST.json").read_text())["format"] == "1.0"


@pytest.mark.skipif(os.geteuid() != 0, reason="a device is made by root alone")
def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with pytest.raises(HostError, match="is a device, and no file takes its place"):
        write_atomically(tmp_path / "null", b"a table")
    assert (tmp_path / "null").is_char_device()
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_ten_thousand_ids_of_machines_that_know_nothing_of_each_other_differ_and_sort_by_time() -> None:
    made = [new_run_id("Nightly") for _ in range(10_000)]
    assert len(set(made)) == len(made)
    assert [run_id[:18] for run_id in sorted(made)] == [run_id[:18] for run_id in made]


def test_two_runs_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nicbench.store.folder.new_run_id", lambda _title: "one")
    RunFolder.create(tmp_path, "title: x\n", "x")
    with pytest.raises(HostError, match="File exists"):
        RunFolder.create(tmp_path, "title: y\n", "y")
    assert RunFolder.open(tmp_path / "one").bench_text == "title: x\n"
