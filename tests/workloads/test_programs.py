"""Versions and placements: asked once for each machine, however many jobs want to know."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.redaction import HIDDEN, hide_secrets
from nicbench.core.round import JobSpec, Placement, ToolEnvironment
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.workloads.processes import Programs, parse_environment, place
from nicbench.workloads.tools.iperf3 import Iperf3

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
