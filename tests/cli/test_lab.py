"""``lab up`` and ``lab down``: a lab that stays for experiments by hand."""

from __future__ import annotations

import errno
import os
import pty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_checked, run_tried

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.stages.lab_shell import run_in_lab
from nicbench.store import folder as store
from nicbench.store.files import storage_error

TITLE = "A lab of the tests"
NAME = "lab-a-lab-of-the-tests"
BENCH = f"""\
nicbench: 1
title: {TITLE}
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
tests: [{{name: throughput, method: throughput}}]
"""


def namespaces() -> set[str]:
    listed = run_captured(["ip", "netns", "list"]).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_a_simulated_lab_cannot_be_kept(nicbench: Any) -> None:
    ended = nicbench("lab", "up", "bench.yaml")
    assert ended.status == 2
    assert "creates nothing that could be kept up" in ended.stderr


def test_a_lab_is_that_of_one_configuration(nicbench: Any) -> None:
    Path("two.yaml").write_text(BENCH + "configurations: {a: {}, b: {dut: {filter_rules: 9}}}\n")
    for arguments in ((), ("--configuration", "c")):
        ended = nicbench("lab", "up", "two.yaml", *arguments)
        assert ended.status == 2
        assert "--configuration and one of a, b" in ended.stderr
    Path("one.yaml").write_text(BENCH)
    assert "leave --configuration out" in nicbench("lab", "up", "one.yaml", "--configuration", "a").stderr


def test_a_lab_that_is_not_up_cannot_be_removed(nicbench: Any) -> None:
    ended = nicbench("lab", "down", "lab-nobody-made-this")
    assert ended.status == 2
    assert "lab-nobody-made-this" in ended.stderr


def test_where_no_lab_is_up_that_is_said_with_how_to_make_one(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nicbench.cli.commands.lab.find_kept_runs", list)
    for command in ("shell", "down"):
        ended = nicbench("lab", command)
        assert ended.status == 2
        assert "error: no lab is up" in ended.stderr
        assert "nicbench lab up" in ended.stderr
    ended = nicbench("lab", "list")
    assert (ended.status, ended.stdout) == (0, "")
    assert "no lab is up" in ended.stderr


@pytest.fixture
def lab_is_up(nicbench: Any) -> Iterator[set[str]]:
    """Gives the namespaces there were before."""
    before = namespaces()
    Path("lab.yaml").write_text(BENCH)
    assert nicbench("lab", "up", "lab.yaml").status == 0
    yield before
    nicbench("lab", "down", NAME)


@pytest.mark.lab
def test_a_lab_stays_until_it_is_taken_down(lab_is_up: set[str], nicbench: Any) -> None:
    assert len(namespaces() - lab_is_up) == 2
    shown = nicbench("lab", "shell", "--lab", NAME, "--host", "dut", "--", "sh", "-c", "ls /sys/class/net; exit 7")
    assert (shown.status, "d0" in shown.stdout) == (7, True)
    assert "one of tester, dut" in nicbench("lab", "shell", "--lab", NAME, "true").stderr
    assert f"{NAME}  tester, dut\n" in nicbench("lab", "list").stdout
    ended = nicbench("lab", "down", NAME)
    assert (ended.status, f"{NAME} is down" in ended.stdout) == (0, True)
    assert not namespaces() - lab_is_up


@pytest.mark.lab
def test_a_lab_is_not_made_twice(lab_is_up: set[str], nicbench: Any) -> None:
    ended = nicbench("lab", "up", "lab.yaml")
    assert ended.status == 2
    assert f"nicbench lab down {NAME}" in ended.stderr


@pytest.mark.lab
@pytest.mark.alone
def test_ports_that_are_made_stay_until_they_are_taken_down(nicbench: Any) -> None:
    near, far = f"nbk{os.getpid()}a", f"nbk{os.getpid()}b"
    spaces = (f"nb-kept-{os.getpid()}-s", f"nb-kept-{os.getpid()}-c")
    Path("ports.yaml").write_text(f"""\
nicbench: 1
title: {TITLE}
hosts:
  server: {{kind: netns, namespace: {spaces[0]}, create: true}}
  client: {{kind: netns, namespace: {spaces[1]}, create: true}}
ports:
  s0: {{host: server, device: {near}, ip: 198.18.0.1/24}}
  c0: {{host: client, device: {far}, ip: 198.18.0.2/24}}
links: [c0 <-> s0]
dut: {{kind: server}}
tests: [{{name: a, method: stream}}]
""")
    before = namespaces()
    run_checked(["ip", "link", "add", near, "type", "veth", "peer", "name", far])
    try:
        ended = nicbench("lab", "up", "ports.yaml")
        assert ended.status == 0
        assert "addresses                s0 198.18.0.1, c0 198.18.0.2" in ended.stdout
        assert namespaces() - before == set(spaces)
        ping = ["ip", "netns", "exec", spaces[1], "ping", "-c1", "-W2", "198.18.0.1"]
        assert run_tried(ping).returncode == 0
        assert nicbench("lab", "down", NAME).status == 0
        assert namespaces() == before
        listed = run_captured(["ip", "-br", "link"]).stdout
        assert f"{near}@{far}" in listed
    finally:
        nicbench("lab", "down", NAME)
        run_tried(["ip", "link", "delete", near])


# ``lab shell``: commands that are given by a pipe give their output alone; who types sees where.

COMMANDS = "echo here; echo there >&2\ncd /\nexit 7\n"


async def run(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    shown = bytearray()
    with os.fdopen(descriptor) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        status = await run_in_lab(LocalHost("guest"), (), shown.extend)
    return status, shown.decode()


async def test_commands_of_a_file_give_their_output_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "commands").write_text(COMMANDS)
    assert await run(os.open(tmp_path / "commands", os.O_RDONLY), monkeypatch) == (7, "here\nthere\n")


async def test_who_types_is_told_on_which_host(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    os.write(keyboard, COMMANDS.encode())
    status, shown = await run(terminal, monkeypatch)
    os.close(keyboard)
    assert status == 7
    assert "guest:/# " in shown  # after cd
    assert "echo here" not in shown  # the terminal here shows what is typed


# The folder of a run that broke off before anything was finished: there where somebody needs it, else gone.

ROUNDS = """\
nicbench: 1
title: Streams
lab: {kind: clients}
dut: {kind: server}
tests: [{name: all, method: stream}]
"""


def fails(error: NicbenchError, *, output: bool) -> Callable[..., Any]:
    async def fail(bench: Any, folder: Any, *_: Any) -> None:
        if output:
            (folder.raw / "r0001").mkdir(parents=True)
            (folder.raw / "r0001" / "1-iperf3.err").write_text("Connection refused")
        raise error

    return fail


def runs() -> list[Path]:
    return list(Path("runs").glob("*-*"))


def test_what_a_tool_wrote_is_kept_and_the_next_step_goes_on(nicbench: Any, run_is: Callable[..., None]) -> None:
    run_is(fails(HostError("the host is gone", place="c0"), output=True))
    ended = nicbench("run", "bench.yaml")
    [path] = runs()
    assert (path / "raw" / "r0001" / "1-iperf3.err").is_file()
    assert f"next: nicbench resume {path.resolve()}" in ended.stderr


@pytest.mark.parametrize(
    "error",
    [
        HostError("a job failed", next_step="mend it, `nicbench resume` goes on"),
        HostError("a job failed", next_step="what it wrote is kept in the run folder's raw"),
        storage_error(OSError(errno.ENOSPC, "No space left on device"), Path("plan.json")),
    ],
    ids=["to be resumed", "to be looked at", "full disk"],
)
def test_a_folder_that_the_message_sends_to_is_there(
    error: NicbenchError, nicbench: Any, run_is: Callable[..., None], finished_run: Any
) -> None:
    run_is(fails(error, output=False))
    ended = nicbench("run", "bench.yaml")
    [path] = runs()
    assert f"nicbench resume {path.resolve()}" in ended.stderr
    run_is(finished_run)
    assert nicbench("resume", str(path)).status == 0


def test_what_was_measured_before_an_error_is_shown_with_its_report(
    nicbench: Any, run_is: Callable[..., None], one_result: Callable[..., None]
) -> None:
    async def broken(bench: Any, folder: Any, bus: Any) -> None:
        one_result(bench, folder, bus)
        raise HostError("the host is gone", place="c0")

    run_is(broken)
    ended = nicbench("run", "bench.yaml")
    [path] = runs()
    assert ended.status == 4
    assert "incomplete" in ended.stdout
    assert "DUT" in ended.stdout
    assert f"report of what was measured: {path.resolve() / 'report.html'}" in ended.stderr
    assert (path / "report.html").is_file()


def test_a_run_that_was_refused_leaves_no_folder_and_speaks_of_none(nicbench: Any, run_is: Callable[..., None]) -> None:
    run_is(fails(NotReadyError("clang is missing", next_step="apt-get install clang"), output=False))
    ended = nicbench("run", "bench.yaml")
    assert not runs()
    assert "resume" not in ended.stderr


def test_resuming_never_removes_a_folder(nicbench: Any, run_is: Callable[..., None]) -> None:
    run_is(fails(HostError("a job failed", next_step="`nicbench resume` goes on"), output=False))
    nicbench("run", "bench.yaml")
    [path] = runs()
    run_is(fails(NotReadyError("clang is missing"), output=False))
    assert nicbench("resume", str(path)).status == 3
    assert path.is_dir()


def test_of_workloads_rounds_are_kept_be_they_none(nicbench: Any, run_is: Callable[..., None]) -> None:
    Path("bench.yaml").write_text(ROUNDS)
    run_is(fails(HostError("the host is gone", place="c0"), output=True))
    nicbench("run", "bench.yaml")
    [path] = runs()
    assert "0 rounds are kept" in nicbench("resume", str(path)).stderr


def test_a_disk_that_is_full_at_once_leaves_no_folder_and_says_what_to_do(
    nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        error = OSError(errno.ENOSPC, "No space left on device")
        raise storage_error(error, path) from error

    monkeypatch.setattr(store, "write_atomically", full)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 4
    assert "a run folder cannot be made here: No space left on device" in ended.stderr
    assert "resume" not in ended.stderr
    assert not runs()
