"""Rounds are played: processes, ports, programs, and jobs."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
import sys
from pathlib import Path

import pytest
from tests.fakes import FakeHost
from tests.ports import free_port
from tests.workloads.goldens import golden

from nicbench.core.errors import NotReadyError
from nicbench.core.redaction import HIDDEN, hide_secrets
from nicbench.core.round import Job, JobOutcome, JobSpec, Placement, RoundRequest, ToolEnvironment
from nicbench.hosts.base import Completed, Host, Process
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.workloads.base import End, Listening
from nicbench.workloads.play import RunningJob, play
from nicbench.workloads.processes import (
    LARGEST_FILE_BYTES,
    HungError,
    Programs,
    RawFolder,
    Running,
    is_open,
    parse_environment,
    parse_listeners,
    place,
    safe_name,
)
from nicbench.workloads.tools.iperf3 import Iperf3

# A round with tools that hang, die, lie, flood or are missing: each fails its own job, and the rest goes on.


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of PATH with a tool that is called iperf3."""
    folder = tmp_path / "tools"
    folder.mkdir()
    script = folder / "iperf3"
    script.write_text(f"#!{sys.executable} -IS\n" + (Path(__file__).parent / "fake_tool.py").read_text())
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_HONEST", golden("iperf3-3.12-tcp-bytes.client"))
    return folder


def behaving(behaviour: str, **others: object) -> Job:
    ask = JobSpec(total_bytes=16777216, congestion_control=behaviour)
    return Job(workload="iperf3", client=behaviour, server="server", ask=ask, port=free_port(), **others)  # type: ignore[arg-type]


def played(folder: Path, *jobs: Job, ready_timeout_s: float = 10.0) -> dict[str, JobOutcome]:
    """What came of each, by the client's name."""
    end = End(LocalHost(), "127.0.0.1")
    ends = {"server": end, **{job.client: end for job in jobs}}
    request = RoundRequest(jobs=jobs, duration_s=0.2, timeout_s=4.0)
    outcomes = asyncio.run(play(request, ends, RawFolder(folder, "r1"), ready_timeout_s=ready_timeout_s))
    return {job.client: outcome for job, outcome in zip(jobs, outcomes, strict=True)}


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes that are still there and came of this test."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def test_each_bad_tool_fails_its_own_job_and_the_rest_goes_on(tools: Path, tmp_path: Path) -> None:
    behaviours = ("honest", "hang", "die", "lie", "nan", "escape", "flood", "scream", "child")
    outcomes = played(tmp_path, *(behaving(one) for one in behaviours))
    honest = outcomes.pop("honest")
    assert honest.failure is None
    assert honest.figures.flows[0].bits_per_s == 6191425777.2857275
    assert honest.version == honest.server_version == "3.12"
    said = {name: outcome.failure or "" for name, outcome in outcomes.items()}
    assert all(outcome.figures is None for outcome in outcomes.values())
    assert "iperf3, client on hang: did not end within 4.2 s and was killed" in said["hang"]
    assert "exit status 139" in said["die"]
    assert "first words / Segmentation fault" in said["die"]
    assert "6.19e+20 bit/s received, more than anything carries" in said["lie"]
    assert "NaN, which is no number" in said["nan"]
    assert "congestion_control holds control characters" in said["escape"]
    assert "wrote more than 33554432 bytes and was killed" in said["flood"]
    assert "ended by nicbench: more than 67108864 bytes on stderr" in said["scream"]
    assert "child" in said["child"]
    assert all("next: " in text for name, text in said.items() if name not in ("lie", "nan", "escape"))
    assert not any("\x1b" in text or "\n" in text for text in said.values())
    assert not left_behind(tools)


def test_what_was_written_is_kept_bounded_and_harmless(tools: Path, tmp_path: Path) -> None:
    outcomes = played(tmp_path, behaving("die"), behaving("flood"), behaving("honest"))
    for outcome in outcomes.values():
        assert all((tmp_path / name).is_file() and name.startswith("raw/r1/") for name in outcome.files)
    for path in (tmp_path / "raw").rglob("*.*"):
        assert path.stat().st_size < LARGEST_FILE_BYTES + 200
        assert b"\x1b" not in path.read_bytes()
    assert "\\x1b[31m" in (tmp_path / "raw/r1/1-iperf3-die-client.err").read_text()
    assert "cut by nicbench" in (tmp_path / "raw/r1/2-iperf3-flood-client.out").read_text()[-200:]
    command = (tmp_path / "raw/r1/3-iperf3-honest-client.command").read_text()
    assert command.startswith("iperf3 -c 127.0.0.1")
    assert command.endswith("exit status: 0\n")


def test_a_missing_tool_is_named_with_the_package_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("sh", "setpriv", "cat"):
        (tmp_path / program).symlink_to(f"/usr/bin/{program}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("nicbench.hosts.kinds.local._SYSTEM_FOLDERS", ())
    outcome = played(tmp_path, behaving("honest"))["honest"]
    assert outcome.failure is not None
    assert "iperf3 is not installed there" in outcome.failure
    assert "apt-get install iperf3" in outcome.failure
    assert not outcome.repeatable


@pytest.mark.parametrize(
    ("server", "said"),
    [("dies", "exit status 1; its last words: unable to start listener"), ("deaf", "did not listen on TCP port")],
)
def test_a_server_that_is_never_ready_is_told(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_SERVER", server)
    outcome = played(tmp_path, behaving("honest"), ready_timeout_s=0.5)["honest"]
    assert "iperf3, server on server" in (outcome.failure or "")
    assert said in (outcome.failure or "")
    assert outcome.took_s is None
    assert not left_behind(tools)


def test_a_port_that_is_taken_is_named(tools: Path, tmp_path: Path) -> None:
    job = behaving("honest")
    with socket.create_server(("127.0.0.1", job.port)):
        outcome = played(tmp_path, job)["honest"]
    assert f"TCP port {job.port} is taken by another process there" in (outcome.failure or "")
    assert "ss -lntup" in (outcome.failure or "")


def test_what_cannot_be_done_starts_nothing(tools: Path, tmp_path: Path) -> None:
    wrong = behaving("honest").replace(ask=JobSpec(duration_s=0.5))
    unknown = behaving("other").replace(workload="telepathy")
    option = behaving("third", options={"omit": 3})
    outcomes = played(tmp_path, wrong, unknown, option)
    assert "whole seconds" in (outcomes["honest"].failure or "")
    assert "no workload 'telepathy'" in (outcomes["other"].failure or "")
    assert "omit: Extra inputs are not permitted" in (outcomes["third"].failure or "")
    assert all(not outcome.repeatable and not outcome.files for outcome in outcomes.values())


def test_processes_are_placed_and_what_cannot_be_is_said(tools: Path, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    here = behaving("honest", client_placement=Placement(cpus=(cpu,)))
    nowhere = behaving("other", server_placement=Placement(cpus=(cpu, 4000)))
    outcomes = played(tmp_path, here, nowhere)
    assert outcomes["honest"].failure is None
    assert outcomes["honest"].client_command[:3] == ("taskset", "-c", str(cpu))
    assert f"cannot be kept on the CPUs {cpu},4000" in (outcomes["other"].failure or "")
    assert not outcomes["other"].repeatable


def test_where_a_placed_server_ran_is_read_from_its_own_proc(tools: Path, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    # Long enough that the server is still there when somebody looks.
    outcomes = played(tmp_path, behaving("last", server_placement=Placement(cpus=(cpu,))), behaving("other"))
    ran_on = outcomes["last"].server_ran_on
    assert ran_on.cpus == (cpu,)
    assert outcomes["other"].server_ran_on is None


def test_nothing_is_left_behind_where_the_round_is_cancelled(tools: Path, tmp_path: Path) -> None:
    async def cancelled() -> None:
        job = behaving("hang")
        end = End(LocalHost(), "127.0.0.1")
        request = RoundRequest(jobs=(job,), duration_s=60.0)
        playing = asyncio.create_task(play(request, {"hang": end, "server": end}, RawFolder(tmp_path, "r1")))
        while len(left_behind(tools)) < 2:  # noqa: ASYNC110 - server and client; there is no event of theirs
            await asyncio.sleep(0.05)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    asyncio.run(cancelled())
    assert not left_behind(tools)


def test_names_of_files_lead_nowhere_else() -> None:
    assert safe_name("../../etc/passwd") == "etc-passwd"
    assert safe_name("-rf\x1b[2J") == "rf-2J"
    assert safe_name("...") == "unnamed"


def test_a_client_has_begun_once_it_runs(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = RunningJob._start

    async def slow(self: RunningJob, host: Host, command: tuple[str, ...]) -> Running:
        if self.number == 2 and command == self._client_command:
            await asyncio.sleep(0.4)  # as a container's or a far host's does
        return await start(self, host, command)

    monkeypatch.setattr(RunningJob, "_start", slow)
    second = behaving("honest").replace(client="second")
    outcomes = played(tmp_path, behaving("honest"), second)
    assert (outcomes["second"].began_s or 0.0) >= 0.4


def test_figures_beyond_all_arithmetic_fail_their_own_job(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = re.sub(r'"bytes":\s*\d+', '"bytes": 1.7e308', golden("iperf3-3.12-tcp-bytes.client"))
    monkeypatch.setenv("FAKE_HONEST", said)
    outcome = played(tmp_path, behaving("honest"))["honest"]
    assert outcome.figures is None
    assert outcome.failure


# A process that no signal ends is left, and said to hang: it never looks like somebody's interruption.


class Deaf(Process):
    """Waits for a file system that does not answer: it neither writes nor ends, whatever it is told."""

    @property
    def pid(self) -> int | None:
        return 1

    async def write_line(self, line: str) -> None: ...

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return None

    async def read_some(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def close_stdin(self) -> None: ...

    async def wait(self, timeout_s: float | None = None) -> int:
        await asyncio.sleep(0)
        return -9 if timeout_s is None else 0

    async def signal(self, number: int) -> None: ...

    def stderr_tail(self) -> str:
        return ""


async def test_a_process_that_cannot_be_killed_hangs_however_often_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nicbench.workloads.processes._ENDING_S", 0.01)
    running = Running(Deaf(), 1000)
    with pytest.raises(HungError):
        await running.finish(0.01)
    await running.stop()
    await running.stop()
    with pytest.raises(HungError):
        await running.finish(0.01)


# Who listens where, from /proc/net as the kernel prints it.

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "00000000:00000000 00:00000000 00000000     0        0 4764617 1 0000000000000000 100 0 0 10 0\n"
TABLES = (
    "@/proc/net/tcp\n"
    f"{HEADER}   0: 025A12C6:1518 00000000:0000 0A {REST}"
    f"   1: 025A12C6:157C 015A12C6:ACFD 06 {REST}"
    f"@/proc/net/tcp6\n{HEADER}"
    f"   0: 00000000000000000000000000000000:15E0 00000000000000000000000000000000:0000 0A {REST}"
    f"   1: B80D01200000000000000000{'01000000'}:1F90 00000000000000000000000000000000:0000 0A {REST}"
    f"   2: 0000000000000000FFFF0000025A12C6:1F91 00000000000000000000000000000000:0000 0A {REST}"
    f"@/proc/net/udp\n{HEADER} 9544: 00000000:1518 00000000:0000 07 {REST}@/proc/net/udp6\n{HEADER}"
)


def test_a_listening_socket_is_found_at_its_address_and_at_no_other() -> None:
    sockets = parse_listeners(TABLES)
    assert is_open(Listening("tcp", 5400, "198.18.90.2"), sockets)
    assert is_open(Listening("tcp", 5400), sockets)
    assert not is_open(Listening("tcp", 5400, "198.18.90.3"), sockets)
    assert is_open(Listening("udp", 5400, "198.18.90.3"), sockets)
    assert not is_open(Listening("udp", 5401), sockets)


def test_a_socket_of_ipv6_takes_ipv4_too() -> None:
    sockets = parse_listeners(TABLES)
    assert is_open(Listening("tcp", 5600, "198.18.90.2"), sockets)
    assert is_open(Listening("tcp", 8080, "2001:db8::1"), sockets)
    assert is_open(Listening("tcp", 8080, "2001:db8::1%eth0"), sockets)
    assert is_open(Listening("tcp", 8081, "198.18.90.2"), sockets)


def test_a_connection_that_has_ended_does_not_listen() -> None:
    assert not is_open(Listening("tcp", 5500), parse_listeners(TABLES))


def test_lines_that_are_none_of_a_socket_are_passed_over() -> None:
    assert (
        parse_listeners("@/proc/net/tcp\n  1: zz:1 0 0A\n x\n  2: 0100007F:FFFFFFFFFFFFFFFFFFFF 0 0A\n\n") is not None
    )


# Versions and placements: asked once for each machine, however many jobs want to know.

ASK = JobSpec(duration_s=1)


def test_namespaces_of_one_machine_are_asked_once_for_all_jobs() -> None:
    machine = FakeHost()
    for name in ("a", "b"):
        machine.answer(("ip", "netns", "exec", name, "iperf3"), "iperf 3.12 (cJSON 1.7.15)\n")
    hosts = [NetnsHost(machine, name) for name in ("a", "b", "a", "b")]

    async def versions() -> list[str | None]:
        programs = Programs()
        return list(await asyncio.gather(*(programs.version(host, Iperf3(), ASK) for host in hosts)))

    assert asyncio.run(versions()) == ["3.12"] * 4
    assert sum("--version" in command for command in machine.commands) == 1


def test_a_tool_that_is_not_there_is_named_with_its_package() -> None:
    machine = FakeHost("c1")
    machine.fail(("sh", "-c"), "", status=127)
    with pytest.raises(NotReadyError, match="iperf3 is not installed there") as raised:
        asyncio.run(Programs().version(machine, Iperf3(), ASK))
    assert raised.value.place == "c1"
    assert raised.value.next_step == "install it on that machine: apt-get install iperf3"


def test_a_tool_that_no_machine_has_is_missed_before_the_first_round() -> None:
    hosts = [FakeHost("c1"), FakeHost("s1")]
    for host in hosts:
        host.fail(("sh", "-c"), "", status=127)
    with pytest.raises(NotReadyError, match="iperf3 is not installed there"):
        asyncio.run(Programs().require_somewhere(hosts, Iperf3(), ASK))
    hosts[1].answer(("sh", "-c"), "/usr/bin/iperf3\n")
    hosts[1].answer(("iperf3",), "iperf 3.12 (cJSON 1.7.15)\n")
    asyncio.run(Programs().require_somewhere(hosts, Iperf3(), ASK))


@pytest.mark.parametrize(("said", "fits"), [("1-2,5\n", True), ("1-2\n", False), ("", False)])
def test_cpus_that_the_kernel_leaves_out_are_noticed(said: str, fits: bool) -> None:
    machine = FakeHost()
    machine.answer(("taskset",), said)
    why = asyncio.run(Programs().cannot_place(machine, Placement(cpus=(1, 2, 5))))
    assert (why is None) is fits
    assert fits or "the CPUs 1,2,5" in (why or "")


def test_memory_of_a_node_that_is_not_there_is_noticed() -> None:
    machine = FakeHost()
    machine.answer(("numactl",), lambda command: Completed(command, 1, "", "node argument 7 is out of range"))
    why = asyncio.run(Programs().cannot_place(machine, Placement(memory_node=7)))
    assert "memory of node 7" in (why or "")
    machine.answer(("numactl",), "policy: bind\nmembind: 7 \n")
    assert asyncio.run(Programs().cannot_place(machine, Placement(memory_node=7))) is None


def test_a_placed_command_begins_with_its_place() -> None:
    command = place(("iperf3", "-s"), Placement(cpus=(0, 4), memory_node=1))
    assert " ".join(command) == "taskset -c 0,4 numactl --membind=1 iperf3 -s"
    assert place(("iperf3",), Placement()) == ("iperf3",)


def test_the_environment_is_asked_once_and_hosts_with_the_same_stand_together() -> None:
    machine = FakeHost()
    for name, threads in (("a", 1), ("b", 1), ("c", 2)):
        said = f"NICBENCH_OWNER={name}\0PATH=/bin\0OMP_NUM_THREADS={threads}\0_=/bin/env\0"
        machine.answer(("ip", "netns", "exec", name, "env"), said)
    hosts = [NetnsHost(machine, name) for name in ("a", "b", "c", "a")]

    async def environments() -> tuple[ToolEnvironment, ...]:
        programs = Programs()
        await asyncio.gather(*(programs.learn_environment(host, Iperf3()) for host in hosts))
        assert programs.environments({"qperf"}) == ()
        return programs.environments({"iperf3"})

    assert asyncio.run(environments()) == (
        ToolEnvironment(workload="iperf3", hosts=("a", "b"), variables={"OMP_NUM_THREADS": "1", "PATH": "/bin"}),
        ToolEnvironment(workload="iperf3", hosts=("c",), variables={"OMP_NUM_THREADS": "2", "PATH": "/bin"}),
    )
    assert sum("env" in command for command in machine.commands) == 3


def test_a_host_without_env_has_no_known_environment() -> None:
    machine = FakeHost()
    machine.fail(("env",), "not found", 127)
    programs = Programs()
    asyncio.run(programs.learn_environment(machine, Iperf3()))
    assert programs.environments({"iperf3"}) == ()


def test_values_of_several_lines_and_control_characters_are_kept_harmless() -> None:
    assert parse_environment("B=1\n2\0A=\x1b[31m=\0broken\0") == {"A": "\\x1b[31m=", "B": "1\n2"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "x"),
        ("PGPASSWORD", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("BMC_PASS", "x"),
        ("SSH_AUTH_SOCK", "/tmp/x"),
        ("X", "ghp_0123456789abcdef"),
        ("X", "Bearer abc"),
        ("X", "-----BEGIN PRIVATE KEY-----"),
    ],
)
def test_what_looks_like_a_secret_is_not_kept(name: str, value: str) -> None:
    assert hide_secrets({name: value}) == {name: HIDDEN}


def test_what_a_tool_is_influenced_by_is_kept_and_a_proxy_loses_its_user() -> None:
    plain = {
        "PATH": "/bin",
        "KEYMAP": "de",
        "COMPASS": "1",
        "MLX5_SHUT_UP_BF": "1",
        "MONKEY": "1",
        "LD_PRELOAD": "libvma.so",
    }
    assert hide_secrets(plain) == plain
    assert hide_secrets({"http_proxy": "http://u:p@proxy:3128"}) == {"http_proxy": "http://(not kept)@proxy:3128"}
