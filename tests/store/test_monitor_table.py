"""monitor.parquet: whatever was sampled is in it once, also after a crash and a resumption."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nicbench.core.errors import HostError
from nicbench.core.machine import MonitorCost
from nicbench.core.redaction import Redactor
from nicbench.store import monitor_samples
from nicbench.store.monitor_samples import MonitorLog

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
    assert monitored is not None
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
    assert monitored is not None
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
    assert monitored is not None
    assert monitored.costs["local"].cpu_ns == 2 * COST.cpu_ns


@pytest.mark.parametrize("finished", [True, False], ids=["interrupted", "killed"])
def test_a_trial_that_is_made_again_is_told_apart_from_what_was_recorded_before(tmp_path: Path, finished: bool) -> None:
    for began_ns in (1_000_000_000, 50_000_000_000, 90_000_000_000):
        logged(tmp_path, began_ns).close()
        if finished:
            monitor_samples.finish(tmp_path)
    expected = [None, "t0007 (unfinished)", None, None] * 2 + [None, "t0007", None, None]
    monitored = monitor_samples.read(tmp_path, None)
    assert monitored is not None
    assert monitored.table["trial"].to_pylist() == expected
    monitor_samples.finish(tmp_path)
    assert [row["trial"] for row in rows(tmp_path)] == expected


def test_a_table_of_an_older_nicbench_is_told_apart_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(monitor_samples, "_made_again", lambda *_: {})
        for began_ns in (1_000_000_000, 50_000_000_000):
            logged(tmp_path, began_ns).close()
        monitor_samples.finish(tmp_path)
    monitored = monitor_samples.read(tmp_path, ("cpu_user_ns",))
    assert monitored is not None
    assert monitored.table["trial"].to_pylist() == [None, "t0007 (unfinished)", None, None, "t0007", None]


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
