"""Samples that are kept whole: histograms, times of media frames, and the table of monitors."""

from __future__ import annotations

import base64
import csv
import errno
import io
import json
import time
import zlib
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from tests.commands import run_captured

from nicbench.core.errors import HostError
from nicbench.core.judging import Verdict
from nicbench.core.machine import MonitorCost
from nicbench.core.redaction import Redactor
from nicbench.core.result import Summary
from nicbench.core.round import FramesSpec, Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.engine.binaries import find_binary
from nicbench.store import RunFolder, monitor_samples
from nicbench.store.monitor_samples import MonitorLog
from nicbench.store.samples import check_samples, decode, write

# Histograms are read in either encoding an engine may send.


def test_the_compressed_encoding_is_read(histogram: HdrHistogram) -> None:
    assert decode(histogram.encode().decode()).equals(histogram)


def test_the_plain_encoding_is_read_and_can_be_written_compressed(histogram: HdrHistogram) -> None:
    wrapped = base64.b64decode(histogram.encode())
    plain = base64.b64encode(zlib.decompress(wrapped[8:])).decode()

    assert decode(plain).equals(histogram)
    assert decode(decode(plain).encode().decode()).equals(histogram)


@pytest.mark.parametrize("damaged", ["", "AAAA", "not base64!", "HISTFAAAAAA="])
def test_a_damaged_histogram_is_an_error_in_words(damaged: str) -> None:
    with pytest.raises(HostError, match="histogram cannot be decoded"):
        decode(damaged)


# frames/*.parquet: every frame of every process, as the program says it; what cannot be read costs itself alone.

NUMBERS = (
    *("position", "frame", "bytes", "turn_ns", "begun_ns", "open_ns", "io_ns", "sync_ns", "close_ns"),
    *("completed_ns", "late_by_ns"),
)


def timed(folder: Path, *options: str) -> Path:
    """A file of samples of the real program, and beside it the same as text."""
    frames, samples = folder / "frames-of-ours", folder / "samples"
    frames.mkdir(parents=True)
    program = str(find_binary("nicbench-frames"))
    made = (program, "prepare", str(frames), "--frame-size", "8k", "--frames", "20")
    run_captured(made)
    kept = ("--samples", str(samples), "--csv", f"{samples}.csv")
    run_captured((program, "read", str(frames), "--repeat", *options, *kept))
    return samples


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return timed(tmp_path_factory.mktemp("limited"), "--fps", "1000", "--seconds", "0.1", "--warm-up", "0.02")


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return timed(tmp_path_factory.mktemp("free"), "--seconds", "0.05", "--threads", "2")


def a_round(jobs: int = 2, number: int = 1) -> Round:
    ask = JobSpec(operation="frames", frames=FramesSpec(task="read", directory="/mnt/d1", samples=True))
    every = tuple(
        Job(workload="nicbench-frames", client=f"c{each}", server=None, ask=ask, port=0) for each in range(jobs)
    )
    return Round(
        id=f"r{number:04d}",
        key="many/0/0",
        test="many",
        configuration="bond",
        run=3,
        parameters={"instances": jobs},
        repeat=0,
        request=RoundRequest(jobs=every, duration_s=1.0),
        outcomes=(JobOutcome(),) * jobs,
        verdict=Verdict(),
    )


def text_of(samples: Path) -> list[dict[str, Any]]:
    """What the program itself wrote as text: what there is not is empty."""
    with Path(f"{samples}.csv").open() as stream:
        rows = [{name: int(cell) if cell else None for name, cell in row.items()} for row in csv.DictReader(stream)]
    return [row | {"measured": row["measured"] == 1, "dropped": row["dropped"] == 1} for row in rows]


def test_every_frame_is_a_row_with_the_times_that_the_program_says(limited: Path, free: Path, tmp_path: Path) -> None:
    write(tmp_path, a_round(), {1: check_samples(limited), 2: check_samples(free)})

    rows = pq.read_table(tmp_path / "frames/r0001.parquet").to_pylist()
    for instance, samples in ((1, limited), (2, free)):
        names = ("thread", "measured", "dropped", *NUMBERS)
        found = [{name: row[name] for name in names} for row in rows if row["instance"] == instance]
        assert found == [{name: row[name] for name in names} for row in text_of(samples)]
    first, last = rows[0], rows[-1]
    assert (first["round"], first["test"], first["configuration"], first["run"]) == ("r0001", "many", "bond", 3)
    assert (first["client"], last["client"], first["warm_up"], first["task"]) == ("c0", "c1", False, "read")
    assert (first["sync_ns"], last["late_by_ns"]) == (None, None)
    assert {row["thread"] for row in rows if row["instance"] == 2} == {0, 1}
    assert min(row["began_at_ns"] for row in rows) > 0


def test_the_rounds_of_a_run_are_one_dataset_whose_columns_say_their_units(limited: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path, a_round(1, number), {1: check_samples(limited)})
    dataset = ds.dataset(tmp_path / "frames")
    assert dataset.count_rows() == 2 * check_samples(limited).frames
    assert set(dataset.to_table(columns=["round"])["round"].to_pylist()) == {"r0001", "r0002"}
    assert all(dataset.schema.field(name).metadata[b"unit"] for name in dataset.schema.names)


def test_a_frame_takes_less_than_a_third_of_its_record(limited: Path, tmp_path: Path) -> None:
    record_bytes = 96
    samples = check_samples(limited)
    write(tmp_path, a_round(12), dict.fromkeys(range(1, 13), samples))
    stored = (tmp_path / "frames/r0001.parquet").stat().st_size
    assert stored < 12 * samples.frames * record_bytes / 3


def test_a_record_that_a_kill_cut_short_is_left_out(limited: Path, tmp_path: Path) -> None:
    whole = check_samples(limited)
    torn = tmp_path / "torn"
    torn.write_bytes(limited.read_bytes()[:-10])

    samples = check_samples(torn)

    assert (samples.frames, samples.cut_bytes) == (whole.frames - 1, 86)
    write(tmp_path, a_round(1), {1: samples})
    assert pq.read_table(tmp_path / "frames/r0001.parquet").num_rows == whole.frames - 1


def test_a_process_that_was_killed_before_its_first_frame_has_no_rows(limited: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(limited.read_bytes()[:64])
    write(tmp_path, a_round(2), {1: check_samples(empty), 2: check_samples(limited)})
    table = pq.read_table(tmp_path / "frames/r0001.parquet")
    assert set(table["instance"].to_pylist()) == {2}
    write(tmp_path, a_round(1, 2), {1: check_samples(empty)})
    assert pq.read_table(tmp_path / "frames/r0002.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: b"", "is no file of samples: it begins with b''"),
        (lambda whole: whole[:30], "is no file of samples"),
        (lambda whole: b"\x7fELF" + whole[4:], r"is no file of samples: it begins with b'\x7fELFMPLE'"),
        (lambda whole: whole[:8] + b"\x02" + whole[9:], "(version 2, records of 96 bytes after 64)"),
        (lambda whole: whole[:16] + b"\x68" + whole[17:], "(version 1, records of 104 bytes after 64)"),
        (lambda whole: whole[:64] + b"\xff" * 200, "holds what is no sample, at record 1"),
        (lambda whole: whole[: 64 + 96] + bytes(4) + b"\x01" + whole[165:], "holds what is no sample, at record 2"),
    ],
    ids=["empty", "shorter than a header", "another file", "another version", "longer records", "garbage", "damage"],
)
def test_what_is_no_file_of_samples_is_named(change: Any, said: str, limited: Path, tmp_path: Path) -> None:
    path = tmp_path / "samples-of-c0"
    path.write_bytes(change(limited.read_bytes()))
    with pytest.raises(HostError) as caught:
        check_samples(path)
    assert said in caught.value.message
    assert caught.value.place == str(path)
    assert "stands without its samples" in str(caught.value.next_step)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="No such file") as caught:
        check_samples(tmp_path / "gone")
    assert caught.value.place == str(tmp_path / "gone")


def test_a_full_disk_is_said_plainly_and_leaves_what_was_there(
    limited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a_round(1), {1: check_samples(limited)})
    before = (tmp_path / "frames/r0001.parquet").read_bytes()
    samples, opened = check_samples(limited), Path.open

    class Full(io.FileIO):
        def write(self, content: Any, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full_where_new(path: Path, mode: str = "r", *others: Any) -> Any:
        return Full(path, "wb") if path.suffix == ".tmp" else opened(path, mode, *others)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full_where_new)
        for number in (1, 2):
            with pytest.raises(HostError, match="the disk is full; what was measured so far is kept") as caught:
                write(tmp_path, a_round(1, number), {1: samples})
            assert str(caught.value.place).endswith(f"frames/r000{number}.parquet")
    assert [path.name for path in (tmp_path / "frames").iterdir()] == ["r0001.parquet"]
    assert (tmp_path / "frames/r0001.parquet").read_bytes() == before


def test_a_finished_run_vouches_for_them(limited: Path, folder: RunFolder, summary: Summary) -> None:
    write(folder.path, a_round(1), {1: check_samples(limited)})
    (folder.path / "frames/.r0002.parquet.17.tmp").write_bytes(b"what a killed run was writing")
    folder.finish(summary)
    assert folder.differences() == ()
    (folder.path / "frames/.r0002.parquet.17.tmp").unlink()
    stored = folder.path / "frames/r0001.parquet"
    stored.write_bytes(stored.read_bytes()[:-1])
    assert folder.differences() == ("frames/r0001.parquet was changed after the run had finished",)


# monitor.parquet: whatever was sampled is in it once, also after a crash and a resumption.

COST = MonitorCost(
    cpu_ns=5_000_000, elapsed_ns=10_000_000_000, samples=11, maximum_sample_ns=900_000, resident_bytes=2**21
)
READY = json.dumps({"event": "ready", "protocol": "1.1", "seq": 0, "time_ns": 1})


def series(number: int, metric: str, of: str = "cpu0", kind: str = "count") -> str:
    declared = [{"series": number, "metric": metric, "of": of, "kind": kind}]
    return json.dumps({"event": "series", "series": declared, "seq": 1, "time_ns": 1})


def sample(values: list[list[int | None]], time_ns: int, interval_ns: int = 1_000_000_000) -> str:
    content = {"event": "sample", "values": values, "interval_ns": interval_ns, "seq": 2, "time_ns": time_ns}
    return json.dumps(content, separators=(",", ":"))


def logged(folder: Path, began_ns: int = 1_000_000_000) -> MonitorLog:
    """A log of three samples, the second of which is of a trial."""
    log = MonitorLog(folder, began_ns)
    log.event("local", READY)
    log.event("local", series(0, "cpu_user_ns"))
    log.event("local", sample([[0, 10]], began_ns + 1_000_000_000))
    log.trial("local", 7)
    log.event("local", sample([[0, None]], began_ns + 3_500_000_000, 2_500_000_000))
    log.trial("local", None)
    log.event("local", series(1, "memory_free_bytes", "", "gauge"))
    log.event("local", sample([[0, 12], [1, 4096]], began_ns + 4_500_000_000))
    return log


def rows(folder: Path) -> list[dict[str, object]]:
    return pq.read_table(folder / monitor_samples.NAME).to_pylist()


def test_each_value_is_a_row_with_its_trial_and_time(tmp_path: Path) -> None:
    log = logged(tmp_path)
    log.cost("local", COST)
    log.close()
    monitor_samples.finish(tmp_path)
    assert not (tmp_path / monitor_samples.LOG_NAME).exists()
    found = rows(tmp_path)
    assert [(row["metric"], row["value"], row["trial"], row["at_s"]) for row in found] == [
        ("cpu_user_ns", 10, None, 1.0),
        ("cpu_user_ns", None, "t0007", 3.5),
        ("cpu_user_ns", 12, None, 4.5),
        ("memory_free_bytes", 4096, None, 4.5),
    ]
    monitored = monitor_samples.read(tmp_path, ("memory_free_bytes",))
    assert (monitored.table.num_rows, monitored.costs) == (1, {"local": COST})


def test_samples_of_a_machine_that_was_booted_at_another_time_lie_where_they_were_heard(tmp_path: Path) -> None:
    log = MonitorLog(tmp_path, 90_000_000_000)
    log.event("guest", '{"event":"ready"}')
    log.event("guest", series(0, "cpu_user_ns"))
    log.clock("guest", 85_000_000_000)
    log.event("guest", sample([[0, 10]], 7_000_000_000))
    log.close()
    monitor_samples.finish(tmp_path)
    assert [(row["at_s"], row["time_ns"]) for row in rows(tmp_path)] == [(2.0, 7_000_000_000)]


def test_a_run_that_was_killed_keeps_what_was_sampled(tmp_path: Path) -> None:
    logged(tmp_path)
    path = tmp_path / monitor_samples.LOG_NAME
    path.write_bytes(path.read_bytes() + b'{"host":"local","event":{"event":"sample","values":[[0,1')
    monitored = monitor_samples.read(tmp_path, ("cpu_user_ns",))
    assert monitored.table.num_rows == 3
    resumed = logged(tmp_path, began_ns=900_000_000_000)
    resumed.close()
    monitor_samples.finish(tmp_path)
    assert [row["session"] for row in rows(tmp_path)] == [1, 1, 1, 1, 2, 2, 2, 2]


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    (tmp_path / monitor_samples.NAME).write_bytes(b"torn")
    with pytest.raises(HostError, match=r"monitor\.parquet: is damaged"):
        monitor_samples.read(tmp_path, ("cpu_user_ns",))


def test_a_resumed_run_adds_to_the_table_and_a_log_that_was_copied_is_not_copied_again(tmp_path: Path) -> None:
    first = logged(tmp_path)
    first.cost("local", COST)
    first.close()
    before = (tmp_path / monitor_samples.LOG_NAME).read_bytes()
    monitor_samples.finish(tmp_path)
    (tmp_path / monitor_samples.LOG_NAME).write_bytes(before)  # as if the crash had come before it was removed
    second = logged(tmp_path, began_ns=50_000_000_000)
    second.cost("local", COST)
    second.close()
    monitor_samples.finish(tmp_path)
    monitor_samples.finish(tmp_path)
    assert [row["session"] for row in rows(tmp_path)] == [1, 1, 1, 1, 2, 2, 2, 2]
    monitored = monitor_samples.read(tmp_path, ("cpu_user_ns",))
    assert monitored.costs["local"].cpu_ns == 2 * COST.cpu_ns


@pytest.mark.parametrize("finished", [True, False], ids=["interrupted", "killed"])
def test_a_trial_that_is_made_again_is_told_apart_from_what_was_recorded_before(tmp_path: Path, finished: bool) -> None:
    for began_ns in (1_000_000_000, 50_000_000_000, 90_000_000_000):
        logged(tmp_path, began_ns).close()
        if finished:
            monitor_samples.finish(tmp_path)
    expected = [None, "t0007 (unfinished)", None, None] * 2 + [None, "t0007", None, None]
    monitored = monitor_samples.read(tmp_path, None)
    assert monitored.table["trial"].to_pylist() == expected
    monitor_samples.finish(tmp_path)
    assert [row["trial"] for row in rows(tmp_path)] == expected


def test_each_session_has_the_wall_time_of_its_start(tmp_path: Path) -> None:
    now_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
    logged(tmp_path, began_ns=monotonic_ns - 7_200_000_000_000).close()
    monitor_samples.finish(tmp_path)
    logged(tmp_path, began_ns=monotonic_ns - 3_600_000_000_000).close()
    monitored = monitor_samples.read(tmp_path, ("cpu_user_ns",))
    assert monitored is not None
    ago_s = [(now_ns - (wall_ns or 0)) / 1e9 for wall_ns in monitored.walls]
    assert ago_s == [pytest.approx(7200, abs=60), pytest.approx(3600, abs=60)]


def test_turns_of_one_start_are_one_session(tmp_path: Path) -> None:
    logged(tmp_path).close()
    logged(tmp_path).close()
    monitor_samples.finish(tmp_path)
    assert {row["session"] for row in rows(tmp_path)} == {1}


def test_an_interface_that_bears_its_address_is_redacted(tmp_path: Path) -> None:
    log = MonitorLog(tmp_path, 1, Redactor())
    log.event("local", series(0, "receive_bytes", "enx0242ac110002"))
    log.close()
    written = (tmp_path / monitor_samples.LOG_NAME).read_text()
    assert "receive_bytes" in written
    assert "0242ac110002" not in written


def test_without_monitors_there_is_no_table(tmp_path: Path) -> None:
    monitor_samples.finish(tmp_path)
    assert monitor_samples.read(tmp_path, ("cpu_user_ns",)) is None
    assert not list(tmp_path.iterdir())
