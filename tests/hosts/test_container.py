"""The container host: what it asks of the engine, and what it makes of the answers. No engine is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.quantity import UNITS_REQUIRED
from nicbench.core.registry import find
from nicbench.hosts import host_from_spec
from nicbench.hosts.base import Completed
from nicbench.hosts.containers import READY, Adaptation, adaptation_for, is_left, start_error, status_of
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost, outermost
from nicbench.hosts.options import ContainerOptions
from nicbench.hosts.owner import MARK as OWNER_MARK
from nicbench.hosts.owner import boot_id, owner_mark, this_process
from nicbench.monitor.base import machines
from nicbench.system.inventory.base import collect_host
from nicbench.system.inventory.facts.machine import parse_bounds
from nicbench.testbed.labs.base import TestHost
from nicbench.tuning.items.base import Item
from nicbench.tuning.tune import Part, TuningRequest, place_requests

LIMITS = "Max processes             96365                96365                processes\n"
LIMITS += "Max open files            1024                 20000                files\n"


async def test_it_is_started_once_when_it_is_first_needed_and_commands_run_in_it() -> None:
    machine = _machine()
    host = ContainerHost(machine, ContainerOptions(image="debian"))
    assert machine.commands == []
    await host.run(("iperf3", "--version"))
    await host.run(("true",))

    starts = [command for command in machine.commands if command[:2] == ("podman", "run")]
    inside = [command for command in machine.commands if command[:2] == ("podman", "exec")]
    assert len(starts) == 1
    assert [command[command.index("sh") + 4 :] for command in inside] == [("iperf3", "--version"), ("true",)]


async def test_no_image_is_ever_pulled_and_the_container_removes_itself() -> None:
    assert {"--pull=never", "--rm"} <= set(await _run_command(image="debian"))


async def test_the_root_of_the_machine_stands_under_a_throw_away_overlay() -> None:
    command = await _run_command(root="/")
    assert command[command.index("--rootfs") + 1] == "/:O"


async def test_cpus_memory_rights_and_further_arguments_go_to_the_engine() -> None:
    command = await _run_command(
        image="debian", cpus="0-1,3", cpu_time=1.5, memory=2 << 30, privileged=True, arguments=("--device=/dev/x",)
    )
    assert {"--cpuset-cpus=0-1,3", "--cpus=1.5", f"--memory={2 << 30}", "--privileged", "--device=/dev/x"} <= set(
        command
    )
    assert command.index("--device=/dev/x") < command.index("debian")


async def test_it_sees_folders_of_the_machine_and_has_memory_of_a_node() -> None:
    command = await _run_command(image="debian", memory_node=1, folders=("/mnt/d1", "/mnt/d2"))
    assert {"--cpuset-mems=1", "--volume=/mnt/d1:/mnt/d1", "--volume=/mnt/d2:/mnt/d2"} <= set(command)


async def test_arguments_of_the_engine_stand_before_each_of_its_commands() -> None:
    machine = FakeHost()
    words = ("podman", "--storage-driver=vfs")
    machine.process((*words, "run"), FakeProcess([READY]))
    machine.answer((*words, "exec"), "42\n")
    await ContainerHost(machine, ContainerOptions(image="x", engine_arguments=("--storage-driver=vfs",))).run(("true",))

    assert all(command[:2] == words for command in machine.commands)


async def test_in_a_network_namespace_the_engine_runs_outside_and_the_container_joins_it() -> None:
    machine = _machine()
    host = ContainerHost(NetnsHost(machine, "router"), ContainerOptions(image="debian"))
    await host.run(("true",))

    assert all(command[0] == "podman" for command in machine.commands)
    assert any("--network=ns:/run/netns/router" in command for command in machine.commands)


def test_docker_cannot_join_a_namespace() -> None:
    with pytest.raises(UsageError, match="docker cannot join"):
        ContainerHost(NetnsHost(LocalHost(), "x"), ContainerOptions(engine="docker", image="debian"))


@pytest.mark.parametrize(
    ("network", "inner", "expected"),
    [
        ("host", {"kind": "local"}, {"kind": "local"}),
        ("none", {"kind": "local"}, None),
        ("ns:/run/netns/a", {"kind": "local"}, {"kind": "netns", "namespace": "a", "inner": {"kind": "local"}}),
        (
            "host",
            {"kind": "netns", "namespace": "b"},
            {"kind": "netns", "namespace": "b", "inner": {"kind": "local"}},
        ),
    ],
)
def test_it_says_where_its_network_is_seen_from_outside(
    network: str, inner: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    host = host_from_spec({"kind": "container", "image": "x", "network": network, "inner": inner})
    assert isinstance(host, ContainerHost)
    seen = host.network
    assert (None if seen is host else seen.spec()) == expected


def test_what_belongs_to_the_whole_machine_is_asked_of_the_machine() -> None:
    machine = LocalHost()
    assert outermost(ContainerHost(NetnsHost(machine, "x"), ContainerOptions(image="x"))) is machine
    assert outermost(NetnsHost(ContainerHost(machine, ContainerOptions(image="x")), "x")) is machine


def test_one_monitor_watches_the_machine_of_containers_and_the_namespaces_that_they_joined() -> None:
    hosts = [
        ContainerHost(LocalHost(), ContainerOptions(image="x", network="ns:/run/netns/a"), "one"),
        ContainerHost(NetnsHost(LocalHost(), "b"), ContainerOptions(image="x"), "two"),
    ]
    ((name, found),) = machines([TestHost("dut", str(number), host, ()) for number, host in enumerate(hosts)]).items()
    assert (name, found.host.spec()) == ("local", {"kind": "local"})
    assert found.namespaces == {"a": "/run/netns/a", "b": "/run/netns/b"}


async def test_the_first_line_is_the_process_and_no_output_of_the_command() -> None:
    machine = _machine("42\nhello\nworld")
    done = await ContainerHost(machine, ContainerOptions(image="x")).run(("echo",))
    assert done.stdout == "hello\nworld"


async def test_a_command_that_the_image_lacks_is_told_with_the_image() -> None:
    host = ContainerHost(_machine("missing\n"), ContainerOptions(image="debian"))
    with pytest.raises(NotReadyError, match=r"iperf3: command not found(.|\n)*debian"):
        await host.run(("iperf3",))


async def test_an_engine_that_fails_is_not_taken_for_the_command() -> None:
    machine = _machine()
    machine.fail(("podman", "exec"), "Error: no container with name nicbench-1", 125)
    with pytest.raises(HostError, match="podman could not run it: Error: no container"):
        await ContainerHost(machine, ContainerOptions(image="x")).run(("true",), check=False)


async def test_a_failed_command_has_its_own_status_and_words() -> None:
    machine = _machine()
    machine.answer(("podman", "exec"), lambda command: Completed(command, 3, "42\n", "oops"))
    with pytest.raises(HostError, match="false: exit status 3: oops"):
        await ContainerHost(machine, ContainerOptions(image="x")).run(("false",))


async def test_closed_it_ends_and_comes_again() -> None:
    machine = _machine()
    host = ContainerHost(machine, ContainerOptions(image="x"))
    await host.run(("true",))
    await host.close()
    machine.process(("podman", "run"), FakeProcess([READY]))
    await host.run(("true",))

    assert sum(command[:2] == ("podman", "run") for command in machine.commands) == 2


async def test_what_a_machine_needs_is_found_out_and_kept() -> None:
    machine = FakeHost(files={"/proc/self/limits": LIMITS, "/proc/sys/kernel/pid_max": "32768\n"})
    machine.process(("podman", "run"), FakeProcess(stderr="crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted"))
    host = ContainerHost(machine, ContainerOptions(image="x"))
    start = machine.start

    async def then_works(command: Sequence[str], **rest: Any) -> Any:
        if "--ulimit=nofile=20000:20000" in command:
            machine.process(("podman", "run"), FakeProcess([READY]))
        return await start(command, **rest)

    machine.start = then_works  # type: ignore[method-assign]
    machine.answer(("podman", "exec"), "42\n")
    await host.run(("true",))

    assert [each.arguments for each in host.adaptations] == [
        ("--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768")
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Error: OCI runtime error: crun: cgroups in hybrid mode not supported", ("--runtime=runc",)),
        ("crun: sd-bus call: Interactive authentication required.", ("--cgroup-manager=cgroupfs",)),
        ("dial unix /run/systemd/private: connect: no such file", ("--cgroup-manager=cgroupfs",)),
    ],
)
def test_known_trouble_has_an_adaptation_unless_the_user_chose(message: str, expected: tuple[str, ...]) -> None:
    found = adaptation_for(ContainerOptions(image="x"), message, "", "")
    assert isinstance(found, Adaptation)
    assert found.engine_arguments == expected
    chosen = ContainerOptions(image="x", engine_arguments=("--runtime=crun", "--cgroup-manager=systemd"))
    assert adaptation_for(chosen, message, "", "") is None


def test_unknown_trouble_has_none() -> None:
    assert adaptation_for(ContainerOptions(image="x"), "no space left on device", "", "") is None


@pytest.mark.parametrize(
    ("message", "words", "step"),
    [
        ("Error: debian: image not known", "there is no image debian", "podman pull debian"),
        ('Error: runc: exec: "sh": executable file not found in $PATH', "has no `sh`", "use an image with sh"),
        ("Error: something new", "cannot start the container: Error: something new", "engine_arguments"),
        ("", "ended without a message", "engine_arguments"),
    ],
)
def test_a_start_that_fails_says_why_and_what_to_do(message: str, words: str, step: str) -> None:
    error = start_error(ContainerOptions(image="debian"), message, "dut")
    assert isinstance(error, NotReadyError)
    assert words in error.message
    assert step in (error.next_step or "")


async def test_a_start_that_fails_leaves_nothing_behind() -> None:
    machine = FakeHost()
    machine.process(("podman", "run"), FakeProcess(stderr="Error: something new"))
    with pytest.raises(NicbenchError):
        await ContainerHost(machine, ContainerOptions(image="x")).run(("true",))
    assert machine.commands[-1][:3] == ("podman", "rm", "--force")


@pytest.mark.parametrize(("engine", "ours"), [(0, 0), (3, 3), (125, 125), (137, -9), (143, -15), (255, 255)])
def test_a_signal_is_a_negative_status(engine: int, ours: int) -> None:
    assert status_of(engine) == ours


def test_containers_of_dead_controllers_ended_ones_and_those_of_another_boot_are_left_over() -> None:
    me, boot = this_process(), boot_id()
    living = f"{me.pid}:{me.start_ticks}:{boot}"
    dead = f"{me.pid}:{me.start_ticks + 1}:{boot}"
    elsewhere = "77:1:another-machine"

    assert is_left(f"id running {dead} {boot}", boot)
    assert is_left(f"id created {dead} {boot}", boot)
    assert is_left(f"id exited {living} {boot}", boot)
    assert is_left(f"id created {living} before-the-reboot", boot)
    assert not is_left(f"id running {living} {boot}", boot)
    assert not is_left(f"id running {elsewhere} {boot}", boot)
    assert not is_left("id running nonsense nonsense nonsense", boot)


def test_a_host_is_made_again_from_its_spec() -> None:
    options = ContainerOptions(root="/", network="none", cpus="0-1", memory=2 << 30, arguments=("--device=/dev/x",))
    host = ContainerHost(NetnsHost(LocalHost(), "lab"), options, "dut")
    again = host_from_spec(host.spec(), "dut")

    assert isinstance(again, ContainerHost)
    assert (again.name, again.spec(), again.options) == ("dut", host.spec(), options)


def test_a_bench_file_names_the_host_that_runs_the_engine_with_its_own_options() -> None:
    section = {"image": "debian", "memory": "2 GiB", "inner": {"kind": "netns", "namespace": "router"}}
    options = ContainerOptions.model_validate(section, context={UNITS_REQUIRED: True})

    assert options.memory == 2 << 30
    host = host_from_spec({"kind": "container", **options.model_dump()})
    assert isinstance(host, ContainerHost)
    assert isinstance(host.inner, NetnsHost)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either an `image` or a `root`"),
        ({"image": "x", "root": "/"}, "either an `image` or a `root`"),
        ({"image": "--privileged"}, "no name of an image"),
        ({"root": "srv"}, "absolute path"),
        ({"root": "/a:O"}, "absolute path"),
        ({"image": "x", "network": "moon"}, "no network"),
        ({"image": "x", "cpus": "3-1"}, "no list of CPUs"),
        ({"image": "x", "cpus": ""}, "no CPU"),
        ({"image": "x", "arguments": ["--pid=host"]}, "given by nicbench"),
        ({"engine": "docker", "root": "/"}, "docker cannot run a root"),
        ({"engine": "docker", "image": "x", "network": "ns:/run/netns/x"}, "docker cannot join"),
        ({"image": "x", "inner": {"kind": "moon"}}, "container, local, netns"),
        ({"image": "x", "inner": {"kind": "netns"}}, "namespace: Field required"),
    ],
)
def test_options_that_cannot_be_are_refused_in_words(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ContainerOptions.model_validate(options)


async def test_what_is_known_of_its_network_and_machine_is_read_outside_and_what_it_is_inside() -> None:
    machine = _machine()
    machine.answer(("podman", "inspect"), "crun|3af|sha256:77\n")
    machine.answer(("podman", "version"), "4.3.1\n")
    machine.answer(("ip", "netns", "exec", "lab", "ethtool"), "seen outside")
    host = ContainerHost(NetnsHost(machine, "lab"), ContainerOptions(image="debian", cpus="0-1"), "dut")
    facts = await collect_host(host, ("eth0",))

    assert facts["container"] | {"arguments": [], "engine_arguments": []} == {
        "engine": "podman",
        "version": "4.3.1",
        "runtime": "crun",
        "root": None,
        "memory_bytes": None,
        "memory_node": None,
        "cpu_time_cpus": None,
        "in_force": {"cpus": None, "cpu_time_cpus": None, "memory_bytes": None, "memory_nodes": None},
        "image": "debian",
        "image_id": "3af",
        "image_digest": "sha256:77",
        "network": "ns:/run/netns/lab",
        "cpus": "0-1",
        "privileged": False,
        "arguments": [],
        "engine_arguments": [],
        "adapted": [],
    }
    inside = [command for command in machine.commands if command[:2] == ("podman", "exec")]
    assert inside == []
    assert any(command[:4] == ("ip", "netns", "exec", "lab") for command in machine.commands)


async def test_a_host_that_is_no_container_says_so() -> None:
    assert (await collect_host(FakeHost(), ()))["container"] is False


async def test_it_is_tuned_from_outside_where_no_right_is_missing() -> None:
    host = ContainerHost(NetnsHost(FakeHost(), "lab"), ContainerOptions(image="debian"), "dut")
    items = find("nicbench.tuning.items", Item)
    wishes = [
        TuningRequest("dut", items["mtu"], items["mtu"].Options(bytes=9000)),
        TuningRequest(
            "dut", items["sysctls"], items["sysctls"].Options.model_validate({"values": {"net.ipv4.ip_forward": 1}})
        ),
    ]
    places = [one.place for one in place_requests(wishes, [Part("dut", host, ("eth0",))])]

    assert {str(place.host.spec()["kind"]) for place in places} == {"netns"}


def _machine(answer: str = "42\n") -> FakeHost:
    machine = FakeHost()
    machine.process(("podman", "run"), FakeProcess([READY]))
    machine.answer(("podman", "exec"), answer)
    return machine


async def _run_command(**options: Any) -> tuple[str, ...]:
    machine = _machine()
    await ContainerHost(machine, ContainerOptions(**options)).run(("true",))
    return next(command for command in machine.commands if command[:2] == ("podman", "run"))


async def test_everything_in_a_container_bears_the_mark_of_this_controller() -> None:
    assert f"--env={OWNER_MARK}={owner_mark()}" in await _run_command(image="debian")


def test_bounds_are_read_of_either_kind_of_cgroup() -> None:
    status = "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t1\n"
    second = "/sys/fs/cgroup/a/cpu.max:150000 100000\n/sys/fs/cgroup/a/memory.max:268435456\n"
    first = (
        "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us:150000\n/sys/fs/cgroup/cpu/a/cpu.cfs_period_us:100000\n"
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes:268435456\n"
    )
    bound = {"cpus": "0-3", "cpu_time_cpus": 1.5, "memory_bytes": 268435456, "memory_nodes": "1"}
    assert parse_bounds(status + second) == parse_bounds(status + first) == bound
    unbound = {"cpus": "0-3", "cpu_time_cpus": None, "memory_bytes": None, "memory_nodes": "1"}
    assert parse_bounds(status + second.replace("150000", "max").replace("268435456", "max")) == unbound
    assert parse_bounds(status + first.replace("150000", "-1").replace("268435456", str(2**63 - 4096))) == unbound
