"""The container host with a real podman: the same behaviour as a local host, and nothing that is left behind."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_checked
from tests.hosts.ending import wait_until

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.containers import BOOT_LABEL, OWNER_LABEL, remove_left_containers
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.options import ContainerOptions
from nicbench.hosts.owner import boot_id, this_process
from nicbench.system.inventory.facts.machine import Container

pytestmark = [
    pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a container of this machine's root needs root"),
    pytest.mark.sampled(6, of="containers by podman"),
]


@pytest.fixture
async def host() -> AsyncIterator[ContainerHost]:
    """A container with this machine's root file system, for one test."""
    made = ContainerHost(LocalHost(), ContainerOptions(root="/", network="none"))
    await _begin(made)
    yield made
    await made.close()
    assert _containers(made) == []


async def test_commands_run_in_it_with_input_output_errors_and_status(host: ContainerHost) -> None:
    done = await host.run(("sh", "-c", "cat; echo oops >&2; exit 3"), input_text="hello\nworld", check=False)
    assert (done.status, done.stdout, done.stderr) == (3, "hello\nworld", "oops\n")
    with pytest.raises(HostError, match="exit status -9"):
        await host.run(("sh", "-c", "kill -9 $$"))
    with pytest.raises(NotReadyError, match="no-such-command: command not found"):
        await host.run(("no-such-command",))


async def test_it_sees_neither_the_machines_processes_nor_its_changes_of_files(host: ContainerHost) -> None:
    path = f"/var/tmp/nicbench-{secrets.token_hex(6)}"
    await host.write_file(path, "inside\n")

    assert await host.read_file(path) == "inside\n"
    assert not Path(path).exists()
    assert await host.read_file("/no/such/file") is None
    assert "sh" in (await host.read_file("/proc/1/cmdline") or "")


async def test_a_command_that_does_not_end_is_killed_in_the_container_with_what_it_started(host: ContainerHost) -> None:
    with pytest.raises(HostError, match=r"^container: sh -c .*: did not end within"):
        await host.run(("sh", "-c", "setsid sleep 1234 & sleep 1235"), timeout_s=1.0)
    assert await _sleeping(host) == []


async def test_endless_output_is_cut_off_and_its_command_killed(host: ContainerHost) -> None:
    with pytest.raises(HostError, match=r"yes: more than .* bytes of output"):
        await host.run(("yes",))
    assert (await host.run(("pgrep", "-x", "yes"), check=False)).stdout == ""


async def test_a_process_is_talked_to_and_signalled(host: ContainerHost) -> None:
    script = (
        "trap 'echo ended >&2; exit 5' TERM; echo ready; "
        "while read line; do echo got $line; done; echo closed; sleep 1234 & wait"
    )
    process = await host.start(("sh", "-c", script))
    assert await process.read_line(20.0) == "ready"
    await process.write_line("hello")
    assert await process.read_line(20.0) == "got hello"
    await process.close_stdin()
    assert await process.read_line(20.0) == "closed"
    await process.signal(signal.SIGTERM)

    assert await process.wait(20.0) == 5
    assert process.stderr_tail() == "ended"
    await process.signal(signal.SIGTERM)  # nothing happens any more


async def test_a_killed_process_ends_with_children_that_left_its_session(host: ContainerHost) -> None:
    process = await host.start(("sh", "-c", "setsid sleep 1234 & echo ready; wait"))
    assert await process.read_line(20.0) == "ready"
    await process.signal(signal.SIGKILL)

    assert await process.wait(20.0) == -signal.SIGKILL
    assert await _sleeping(host) == []


async def test_cpus_and_memory_are_bounded() -> None:
    cpu = min(os.sched_getaffinity(0))
    host = ContainerHost(
        LocalHost(), ContainerOptions(root="/", network="none", cpus=str(cpu), cpu_time=0.5, memory=256 << 20)
    )
    await _begin(host)
    try:
        status = await host.read_file("/proc/self/status") or ""
        limit = await host.run(
            ("sh", "-c", "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; true")
        )
        assert f"Cpus_allowed_list:\t{cpu}\n" in status
        assert str(256 << 20) in limit.stdout
        facts = await Container().read(host, ())
        assert isinstance(facts, dict)
        bounds = facts["in_force"]
        assert (bounds["cpus"], bounds["cpu_time_cpus"], bounds["memory_bytes"]) == (str(cpu), 0.5, 256 << 20)
        told = Container.subjects[0].tell({"container": facts}, lambda name, value: f"{value} B")
        assert f"CPUs {cpu}, CPU time of 0.5 CPUs, memory {256 << 20} B" in (told or "")
        # The bound holds: what takes more is ended by the kernel, and a busy process gets its share and no more.
        with pytest.raises(HostError, match="exit status -9"):
            await host.run(("python3", "-c", "bytearray(512 << 20)"))
        busy = "import time; end = time.monotonic() + 1; exec('while time.monotonic() < end: pass')"
        share = await host.run(("python3", "-c", f"{busy}; print(time.process_time())"))
        assert float(share.stdout) < 0.8
    finally:
        await host.close()


async def test_in_a_namespace_it_has_the_namespaces_interfaces_and_no_others(namespace: str) -> None:
    host = ContainerHost(NetnsHost(LocalHost(), namespace), ContainerOptions(root="/"))
    await _begin(host)
    try:
        shown = await host.run(("ls", "/sys/class/net"))
        assert shown.stdout.split() == ["inside", "lo", "other"]
        assert (await host.network.run(("ls", "/sys/class/net"))).stdout == shown.stdout
    finally:
        await host.close()


async def test_an_image_that_is_not_there_is_not_pulled() -> None:
    host = ContainerHost(LocalHost(), ContainerOptions(image="localhost/nicbench-no-such-image", network="none"))
    with pytest.raises(NotReadyError, match="nicbench pulls none by itself"):
        await host.run(("true",))


def test_nothing_is_left_of_a_controller_that_is_killed(tmp_path: Path) -> None:
    mark = f"12{secrets.randbelow(10**7):07}"
    script = (
        "import asyncio\n"
        "from nicbench.hosts import host_from_spec\n"
        "async def main():\n"
        "    host = host_from_spec({'kind': 'container', 'root': '/', 'network': 'none'})\n"
        f"    process = await host.start(('sh', '-c', 'setsid sleep {mark} & echo started; sleep {mark}'))\n"
        "    print(await process.read_line(60), host._container, flush=True)\n"
        "    await process.wait()\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    controller = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert controller.stderr is not None
    said = controller.stdout.readline().split()
    if not said:
        pytest.skip(f"no container can be started here: {controller.stderr.read()[-500:]}")
    shown = run_captured(["podman", "inspect", "--format={{.Id}}", said[1]])
    container = shown.stdout.strip()
    assert _mounts_of(container)
    controller.kill()
    controller.communicate()

    wait_until(lambda: not subprocess.run(["pgrep", "-f", f"sleep {mark}"], check=False, capture_output=True).stdout)
    wait_until(lambda: said[1] not in _names())
    wait_until(lambda: not _mounts_of(container))


async def test_containers_of_dead_runs_are_removed_and_those_of_living_ones_stay(host: ContainerHost) -> None:
    me = this_process()
    dead = f"nicbench-test-{secrets.token_hex(4)}"
    labels = (f"--label={OWNER_LABEL}={me.pid}:{me.start_ticks + 1}:{boot_id()}", f"--label={BOOT_LABEL}={boot_id()}")
    run_captured(["podman", "create", "--name", dead, *labels, "--rootfs", "/:O", "true"])
    await remove_left_containers(LocalHost(), ("podman",))

    assert dead not in _names()
    assert (await host.run(("echo", "still here"))).stdout == "still here\n"


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with a pair of interfaces of its own."""
    name = f"nbc{secrets.token_hex(3)}"
    run_checked(["ip", "netns", "add", name])
    try:
        pair = ["link", "add", "inside", "type", "veth", "peer", "name", "other"]
        run_checked(["ip", "-n", name, *pair])
        yield name
    finally:
        run_checked(["ip", "netns", "delete", name])


async def _begin(host: ContainerHost) -> None:
    """Starts it; skips the test where this machine cannot, with podman's reason."""
    try:
        await host.run(("true",), timeout_s=60.0)
    except NotReadyError as error:
        pytest.skip(f"no container can be started here: {error.message}")


async def _sleeping(host: ContainerHost) -> list[str]:
    return (await host.run(("pgrep", "-x", "sleep"), check=False)).stdout.split()


def _containers(host: ContainerHost) -> list[str]:
    return [name for name in _names() if name == host._container]


def _names() -> list[str]:
    listed = run_captured(["podman", "ps", "--all", "--format", "{{.Names}}"])
    return listed.stdout.split()


def _mounts_of(container: str) -> list[str]:
    """Its overlay among them."""
    return [line for line in Path("/proc/mounts").read_text().splitlines() if container in line]
