"""Work on strangers' bytes: no rights of root, no more than it was given, and whatever becomes of it is told."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import HostError
from nicbench.store import files, landlock
from nicbench.store.confined import Ended, Fence, Limits, run_confined

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
with_landlock = pytest.mark.skipif(
    os.geteuid() != 0 or landlock.landlock_version() == 0, reason="needs root and a kernel with Landlock"
)


def refused(what: Callable[[], object]) -> str:
    """Tries what must not be possible, and says what came of it."""
    try:
        what()
    except (PermissionError, subprocess.CalledProcessError) as error:
        return type(error).__name__
    return "done"


def ended(work: Callable[[], Any], *reads: Path, **fence: Any) -> Ended:
    """Runs work that may read these."""
    return run_confined(work, Fence(reads, **fence))


@as_root
def test_it_is_no_longer_root_and_cannot_become_root_again() -> None:
    def work() -> list[Any]:
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return [os.getuid(), os.geteuid(), os.getgid(), os.getgroups(), refused(lambda: os.setuid(0)), status["CapPrm"]]

    user, effective, group, groups, back, capabilities = ended(work).answer
    assert 0 not in (user, effective, group)
    assert (groups, back) == ([], "PermissionError")
    assert int(capabilities, 16) in (0, 1 << landlock.CAP_DAC_READ_SEARCH)


@as_root
def test_under_sudo_it_is_the_user_who_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "4242")
    monkeypatch.setenv("SUDO_GID", "4343")
    assert ended(lambda: [os.getuid(), os.getgid()]).answer == [4242, 4343]


@with_landlock
def test_it_reads_what_was_given_and_nothing_else_that_root_may_read(tmp_path: Path) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    for folder in (given, other):
        folder.mkdir(mode=0o700)
        (folder / "file").write_text("of root")
        (folder / "file").chmod(0o600)
    (given / "link").symlink_to(other / "file")

    def work() -> list[str]:
        others = (other / "file", given / "link", Path("/etc/shadow"), Path(f"/proc/{os.getppid()}/environ"))
        return [(given / "file").read_text(), *(refused(path.read_text) for path in others)]

    assert ended(work, given).answer == ["of root", *["PermissionError"] * 4]


@with_landlock
def test_it_signals_nobody_and_opens_no_connection() -> None:
    parent = os.getpid()

    def work() -> list[str]:
        with socket.socket() as one, socket.socket() as other:
            return [
                refused(lambda: os.kill(parent, 0)),
                refused(lambda: one.bind(("127.0.0.1", 0))),
                refused(lambda: other.connect(("127.0.0.1", 9))),
            ]

    version = landlock.landlock_version()
    assert ended(work).answer[: 3 if version >= 4 else 1] == ["PermissionError"] * (3 if version >= 4 else 1)


CALLS = {"ptrace": (16, 0), "unshare": (1 << 28,), "keyctl": (0, -2, 0), "io_uring_setup": (1, 0), "userfaultfd": (1,)}
"""Those that every user may make, with arguments."""


@as_root
def test_it_starts_programs_and_makes_no_call_that_a_reader_does_not_need() -> None:
    def work() -> list[Any]:
        libc, told = ctypes.CDLL(None, use_errno=True), dict[str, int]()
        place = landlock._ARCHITECTURES[os.uname().machine][1]
        for name, arguments in {**CALLS, "bpf": (0, 0, 0), "mount": (0, 0, 0, 0, 0)}.items():
            libc.syscall(landlock._CALLS[name][place], *arguments)
            told[name] = ctypes.get_errno()
        for flags in (0x10000000 | signal.SIGCHLD, signal.SIGCHLD):  # a user namespace, and a process like any other
            child = libc.syscall(landlock._CLONE[place], flags, 0, 0, 0, 0)
            if child == 0:
                os._exit(0)
            told[f"clone {flags:x}"] = ctypes.get_errno() if child < 0 else os.waitpid(child, 0)[1]
        with ThreadPoolExecutor(1) as threads:
            started = threads.submit(subprocess.run, ["/usr/bin/true"], check=True).result().returncode
        return [told.pop(f"clone {signal.SIGCHLD:x}"), started, told]

    clone, started, told = ended(work).answer
    assert (clone, started) == (0, 0)
    assert told == dict.fromkeys(told, errno.EPERM)


@as_root
def test_its_parent_writes_the_files_that_were_asked_for_and_no_others(tmp_path: Path) -> None:
    wanted, other = tmp_path / "report.html", tmp_path / "other"
    other.write_text("as it was")
    tmp_path.chmod(0o700)

    def work() -> list[str]:
        files.write_atomically(wanted, b"made")
        escapes = (other, tmp_path / "x" / ".." / "other", Path("/etc/passwd"))
        told = [refused(lambda path=path: files.hands().remove(path)) for path in escapes]  # type: ignore[misc]
        return [*told, refused(lambda: other.write_text("mine"))]

    assert ended(work, tmp_path, may_write=lambda path: path == wanted).answer == ["PermissionError"] * 4
    assert (wanted.read_bytes(), wanted.stat().st_uid, other.read_text()) == (b"made", 0, "as it was")


def test_a_file_that_cannot_be_written_is_the_works_own_error(tmp_path: Path) -> None:
    place = tmp_path / "missing" / "report.html"
    found = ended(lambda: files.write_atomically(place, b""), tmp_path, may_write=lambda _: True)
    assert isinstance(found.error, HostError)
    assert (found.status, found.error.place) == (4, str(place))


def endless() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("work", "limits", "told"),
    [
        (lambda: len(bytearray(2**33)), Limits(memory_bytes=2**28), "more memory"),  # more than a worker has freed
        (endless, Limits(cpu_s=1), "more than 1 s of CPU time"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), Limits(), "killed by SIGKILL"),
        (os.abort, Limits(), "killed by SIGABRT"),
        (lambda: {}["no such key"], Limits(), "KeyError: 'no such key'"),
        (lambda: [open(os.devnull) for _ in range(99)], Limits(open_files=64), "Too many open files"),  # noqa: SIM115
    ],
    ids=["memory", "time", "killed", "crash", "fault", "files"],
)
def test_what_ends_it_is_told_and_nothing_of_it_stays(
    work: Callable[[], Any],
    limits: Limits,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    found = ended(work, limits=limits)
    assert found.status != 0
    assert told in str(found.error)
    assert capfd.readouterr() == ("", "")
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "sent",
    [b"{}", b"[]", b"no request", b"[" * 60_000, b'{"do": "write", "path": "\\u0000"}', b'{"do": 1, "path": []}'],
)
def test_what_is_no_request_writes_nothing_and_does_not_end_the_clerk(sent: bytes, tmp_path: Path) -> None:
    wanted = tmp_path / "report.html"

    def work() -> None:
        files.hands()._line.send(sent)  # type: ignore[attr-defined]
        files.write_atomically(wanted, b"made")

    ended(work, tmp_path, may_write=lambda path: path == wanted)  # the answers are those of other requests
    assert {each.name for each in tmp_path.iterdir()} <= {"report.html"}


def test_only_a_regular_file_is_written_for_it(tmp_path: Path) -> None:
    wanted = tmp_path / "report.html"

    def work() -> str:
        with open("/dev/zero", "rb") as endless_file:
            return refused(lambda: files.hands().ask("write", wanted, endless_file.fileno()))  # type: ignore[attr-defined]

    assert ended(work, tmp_path, may_write=lambda _: True).answer == "PermissionError"
    assert not wanted.exists()
