"""Fails one system call of a whole simulated run, by strace, and holds what the run says against what is on disk.

``python -m tests.faults.syscalls CALL|every [FIRST [LAST [STEP]]]`` tries the N-th call of every thread, from FIRST on,
until the run makes fewer; ``CALL:N ...`` tries these. It forks, and so runs in a process of its own: one that has drawn
a chart cannot draw another after a fork.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.run.simulated_bench import nothing_told

import nicbench.report.formats  # noqa: F401 - every process of a run has it loaded then
from nicbench.cli.main import main
from nicbench.stages import plan
from nicbench.store.folder import RunFolder

CALLS: Final = {
    "write": ("write,writev,pwrite64", "ENOSPC"),
    "fsync": ("fsync,fdatasync", "EIO"),
    "rename": ("rename,renameat,renameat2", "ENOSPC"),
    "openat": ("openat", "EMFILE"),
    "clone": ("clone,clone3,fork,vfork", "EAGAIN"),
    "mmap": ("mmap", "ENOMEM"),
    "mkdir": ("mkdir,mkdirat", "ENOSPC"),
    "ftruncate": ("ftruncate", "EIO"),
}
"""Of each kind its system calls, and the error that they give."""

BENCH: Final = """\
nicbench: 1
title: One call fails
seed: 7
lab: {kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us}
dut: {kind: simulated}
tests:
  - name: sweep
    method: load-sweep
    of: 30 kpps
    loads: [50 %, 100 %]
    frame_bytes: [64, 512]
    trial: {duration: 20 ms, drain: 5 ms, settle: 1 ms}
"""
RESULTS: Final = 4
_WAIT_S: Final = 90.0


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a run: ``injected`` is how many calls failed, ``folder`` None where none was made."""

    status: int
    stdout: str
    stderr: str
    injected: int
    folder: Path | None


def has_strace() -> bool:
    """Whether strace is there, and may attach to a process."""
    return shutil.which("strace") is not None and os.geteuid() == 0


def warm_up(place: Path) -> None:
    """Makes one run in this process, so that those forked of it have loaded what a run needs."""
    (place / "bench.yaml").write_text(BENCH)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["run", str(place / "bench.yaml"), "--runs", str(place / "before"), "--no-report", "--no-progress"])


def run_with(kind: str, number: int, place: Path) -> Ended:
    """Runs the bench file in a forked process whose threads each have their ``number``-th call of this kind fail."""
    bench, runs, log = place / "bench.yaml", place / "runs", place / "strace"
    bench.write_text(BENCH)
    calls, error = CALLS[kind]
    child = os.fork()
    if child == 0:
        _run(place, ["run", str(bench), "--runs", str(runs), "--json", "--no-progress"])
    os.waitpid(child, os.WUNTRACED)
    inject = f"inject={calls}:error={error}:when={number}"
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={calls}", "-e", inject, "-p", str(child)],
        stderr=subprocess.DEVNULL,
    )
    while not _is_traced(child) and tracer.poll() is None:
        os.sched_yield()
    os.kill(child, signal.SIGCONT)
    status = _wait(child)
    try:
        tracer.wait(_WAIT_S)
    finally:
        tracer.kill()
    found = sorted(runs.iterdir()) if runs.is_dir() else []
    said = ((place / name).read_text() for name in ("stdout", "stderr"))
    return Ended(status, *said, log.read_text().count("(INJECTED)"), found[-1] if found else None)


def _run(place: Path, words: list[str]) -> None:
    """Runs a command in this process, which ends with it, once it is let go on."""
    status = 1
    try:
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        sys.unraisablehook = sys.__unraisablehook__
        plan.collect = nothing_told  # type: ignore[assignment]
        os.kill(os.getpid(), signal.SIGSTOP)
        sys.argv[1:] = words
        status = main()  # with the arguments of the process: only such a command is the whole of it
        sys.stdout.flush()
    finally:
        os._exit(status)


def _wait(child: int) -> int:
    """Returns the exit status of a process; one that hangs is killed, which its status says."""
    process = os.pidfd_open(child)
    try:
        if not select.select([process], [], [], _WAIT_S)[0]:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(process)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _is_traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def faults_of(ended: Ended) -> list[str]:
    """Returns what is wrong with how a run ended: nothing where no result is lost, and a reason is given."""
    wrong = []
    if ended.status < 0:
        wrong.append(f"killed by signal {-ended.status}")
    if "Traceback" in ended.stderr or "Exception ignored" in ended.stderr:
        wrong.append("a traceback")
    kept = _kept(ended.folder)
    document = _document(ended.stdout)
    if ended.status == 0:
        if document is None or len(document["results"]) != RESULTS:
            wrong.append("says that all went well, and does not print every result")
    else:
        told = document is not None and document.get("error")
        if not told and "error: " not in ended.stderr:
            wrong.append(f"status {ended.status} without a reason")
        printed = {each["id"] for each in document["results"]} if document is not None else None
        if printed is None and "stdout" not in ended.stderr:
            wrong.append("no document")
        if printed is not None and not kept <= printed:
            wrong.append(f"{len(kept - printed)} results are kept and not printed")
        if document is not None and len(kept) == RESULTS and document["verdict"] == "incomplete" and ended.status == 7:
            wrong.append("everything was measured, and is called incomplete")
    return wrong


def _kept(folder: Path | None) -> set[str]:
    return {result.id for result in RunFolder(folder).journal.results()} if folder is not None else set()


def _document(stdout: str) -> dict[str, Any] | None:
    try:
        found = json.loads(stdout)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def resumed(ended: Ended, place: Path) -> list[str]:
    """Resumes the run without a fault; returns what is then wrong."""
    if ended.folder is None or ended.status == 0:
        return []
    before = _kept(ended.folder)
    child = os.fork()
    if child == 0:
        _run(place, ["resume", str(ended.folder), "--json", "--no-progress"])
    os.waitpid(child, os.WUNTRACED)
    os.kill(child, signal.SIGCONT)
    status = _wait(child)
    document = _document((place / "stdout").read_text())
    if status != 0 or document is None or len(document["results"]) != RESULTS or not before <= _kept(ended.folder):
        return [f"resume ends with {status}: {(place / 'stderr').read_text()[-300:]}"]
    return []


def sweep(kind: str, first: int, last: int, step: int) -> int:
    """Tries calls of one kind, prints what is wrong with each, and returns how many were wrong."""
    wrong_ones = tried = 0
    for number in range(first, last + 1, step):
        with tempfile.TemporaryDirectory() as folder:
            ended = run_with(kind, number, Path(folder))
            if not ended.injected:
                break
            tried += 1
            wrong = [*faults_of(ended), *resumed(ended, Path(folder))]
            if wrong:
                wrong_ones += 1
                print(kind, number, ended.status, wrong, ended.stderr[-600:], flush=True)
    print(f"{kind}: {tried} tried, {wrong_ones} wrong")
    return wrong_ones


def _list_sweeps(words: list[str]) -> list[tuple[str, int, int, int]]:
    if ":" in words[0]:
        return [(kind, int(number), int(number), 1) for kind, _, number in (word.partition(":") for word in words)]
    first, last, step = (*map(int, words[1:]), *(1, 10**6, 1)[len(words) - 1 :])
    return [(kind, first, last, step) for kind in (CALLS if words[0] == "every" else words[:1])]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder))
    sys.exit(min(1, sum(sweep(*each) for each in _list_sweeps(sys.argv[1:]))))
