"""A study of frames that is killed, loses a directory and finds a full disk: it goes on each time behind its rounds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from tests.commands import run_checked, run_tried

from nicbench.core.result import ResultVerdict
from nicbench.core.round import Round
from nicbench.store.files import VARIABLE
from nicbench.store.folder import RunFolder

from .lab_bench import machine_state

# It compares the interfaces of the whole machine before and after. Kills and full disks are in every session, in the
# table of faults, with other tools.
pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.acceptance]

BENCH = """
nicbench: 1
title: Frames with accidents
lab: {{kind: clients}}
dut: {{kind: server}}
monitor: off
tests:
  - name: editors
    method: frames
    instances: [1, 2]
    directories: {folder}/d{{instance}}
    frame_size: 64 KiB
    warm_up: 100 ms
    duration: 900 ms
    pause: 0 s
    drop_caches: false
    before_each: [{{host: c0, run: sh {folder}/accident.sh}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Two disks, each mounted twice: what is unmounted comes back with all that is on it."""
    for number in (1, 2):
        (tmp_path / f"disk{number}").mkdir()
        (tmp_path / f"d{number}").mkdir()
        run_checked(("mount", "-t", "tmpfs", "-o", "size=16m", "frames", tmp_path / f"disk{number}"))
        mount(tmp_path, number)
    yield tmp_path
    for name in ("d1", "d2", "disk1", "disk2"):
        run_tried(("umount", "-l", tmp_path / name))


def mount(folder: Path, number: int) -> None:
    run_checked(("mount", "--bind", folder / f"disk{number}", folder / f"d{number}"))


def nicbench(*arguments: str, **environment: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "nicbench", *arguments, "--wait", "10min", "--no-progress", "--no-report"]
    done = run_tried(command, env={**os.environ, **environment})
    return done.returncode, done.stderr


def rounds_of(path: Path) -> list[Round]:
    return [*RunFolder.open(path).journal.rounds().values()]


def _all_frames(one: Round) -> Iterator[int]:
    for outcome in one.outcomes:
        assert outcome.figures.frames is not None
        yield outcome.figures.frames.all_frames or 0


def test_nothing_that_was_measured_is_lost_by_a_kill_a_vanished_directory_or_a_full_disk(folder: Path) -> None:
    before = machine_state()
    accident, bench = folder / "accident.sh", folder / "bench.yaml"
    accident.write_text("")
    bench.write_text(BENCH.format(folder=folder))

    # run_started, testbed, test_started, the first round, its two results, half of the second round; or a note first
    status, _ = nicbench("run", str(bench), "--output", str(folder / "runs"), **{VARIABLE: "7:torn"})
    assert status == -9
    (path,) = (folder / "runs").iterdir()
    kept = rounds_of(path)
    assert len(kept) <= 1

    # By a process of the test, for a command on a host of the lab has a view of its own of what is mounted.
    now, gone = folder / "now", folder / "gone"
    wait = f"touch {now}; until [ -e {gone} ]; do sleep 0.05; done"
    accident.write_text(f"[ $(grep -c round_finished {path}/journal.ndjson) -eq 0 ] || {{ {wait}; }}")
    vanish = f"until [ -e {now} ]; do sleep 0.05; done; umount -l {folder}/d2; touch {gone}"
    with subprocess.Popen(("sh", "-c", vanish)):
        status, said = nicbench("resume", str(path))
    assert status == 4
    assert f"the directory {folder}/d2/nicbench-" in said
    so_far = rounds_of(path)
    assert so_far[: len(kept)] == kept
    assert len(so_far) == 1, "the round in which the directory vanished is not kept"

    assert [*folder.glob("disk2/*")], "nobody could remove what is on it"
    mount(folder, 2)
    full = folder / "d1" / "full"
    accident.write_text(f"[ $(grep -c round_finished {path}/journal.ndjson) -lt 3 ] || head -c 20m /dev/zero >{full}")
    status, said = nicbench("resume", str(path))
    assert status == 4
    assert "room for" in said or "No space left" in said
    kept, so_far = so_far, rounds_of(path)
    assert so_far[:1] == kept
    assert [(one.parameters["direction"], one.parameters["instances"]) for one in so_far] == [
        ("read", 1),
        ("read", 2),
        ("write", 1),
    ]

    full.unlink()
    accident.write_text("")
    status, said = nicbench("resume", str(path))
    assert status == 0, said
    assert rounds_of(path)[:3] == so_far
    summary = RunFolder.open(path).summary()
    assert len(summary.results) == 2 * (2 + 3)
    assert summary.verdict in (ResultVerdict.VALID, ResultVerdict.DISTURBED)
    frames = {one.id: sum(_all_frames(one)) for one in rounds_of(path)}
    kept_frames = ds.dataset(path / "frames").to_table(columns=["round"])["round"].to_pylist()
    assert Counter(kept_frames) == frames, "the samples of every round, and of no try that came to nothing"
    assert RunFolder.open(path).differences() == ()
    assert not [*folder.glob("disk?/*")], "nothing of it is left"
    assert not [*Path("/dev/shm").glob("nicbench-left-*"), *Path("/run").glob("nicbench-left-*")]
    assert machine_state() == before
