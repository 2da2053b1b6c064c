"""The veth lab on this machine: what it makes, that nothing leaves it, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes import FakeHost
from tests.xdp_source import compile_xdp

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.labs.veth import VethLab, VethOptions, namespace_name
from nicbench.tuning import bpf, xdp
from nicbench.tuning.restore import restore
from nicbench.tuning.stack import UndoStack

LOCAL = LocalHost()
FRAMES = 50
RESUME = "cpu[0-9]*/power/pm_qos_resume_latency_us"
# Sends FRAMES frames of a type nobody listens to, from the device named first.
SEND = """
import socket, sys
device, count = sys.argv[1], int(sys.argv[2])
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind((device, 0))
for _ in range(count):
    sender.send(b"\\x02\\x6e\\x62\\x00\\x01\\x00" + b"\\x02\\x6e\\x62\\x00\\x00\\x00" + b"\\x88\\xb5" + bytes(46))
"""


# Counts frames of that type on every interface until it is told that all were sent and a second has passed.
LISTEN = """
import socket, sys, threading, time
listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
listener.settimeout(0.1)
print("ready", flush=True)
told = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), time.sleep(1), told.set()), daemon=True).start()
seen = 0
while not told.is_set():
    try:
        seen += listener.recv(2048)[12:14] == b"\\x88\\xb5"
    except TimeoutError:
        pass
print(seen, flush=True)
"""


@dataclass
class Lab:
    """A lab that is up."""

    lab: VethLab
    stack: UndoStack
    testbed: Testbed
    tester: Host
    dut: Host


@pytest.fixture
def run_id() -> str:
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
async def up(run_id: str, tmp_path: Path) -> AsyncIterator[Lab]:
    lab = VethLab(VethOptions())
    stack = UndoStack(run_id, None, tmp_path / "runtime")
    try:
        testbed = await lab.up(stack, LOCAL)
        assert testbed.dut is not None
        yield Lab(lab, stack, testbed, testbed.tester, testbed.dut)
    finally:
        assert await stack.undo_all() == []


@pytest.mark.lab
async def test_tester_and_dut_are_joined_and_have_no_way_out(up: Lab) -> None:
    for host in (up.tester, up.dut):
        routes = await host.run(("ip", "-j", "route", "show", "table", "all"))
        assert [route for route in json.loads(routes.stdout) if route.get("dst") == "default"] == []
        links = json.loads((await host.run(("ip", "-d", "-j", "link", "show"))).stdout)
        assert {
            link["ifname"]: link.get("linkinfo", {}).get("info_kind") for link in links if "UP" in link["flags"]
        } in (
            {"lo": None, "t0": "veth", "t1": "veth"},
            {"lo": None, "d0": "veth", "d1": "veth"},
        )
    assert await up.tester.read_file("/proc/sys/net/ipv4/ip_forward") == "0\n"
    assert (up.testbed.link_bits_per_s, up.testbed.link_is_nominal) == (10e9, True)
    assert any("not a network card" in statement for statement in up.testbed.statements)


@pytest.mark.lab
async def test_frames_pass_from_the_tester_to_the_dut_and_none_comes_by_itself(up: Lab) -> None:
    before = await _received(up.dut, "d0")
    await asyncio.sleep(0.5)
    assert await _received(up.dut, "d0") == before, "nobody speaks unasked"

    await _send(up.tester, "t0")
    assert await _received(up.dut, "d0") == before + FRAMES


@pytest.mark.lab
async def test_the_duts_ingress_is_steered_to_the_duts_cpu(up: Lab) -> None:
    if up.testbed.cores.shared:
        pytest.skip("one CPU: nothing to steer to")
    mask = await up.dut.read_file("/sys/class/net/d0/queues/rx-0/rps_cpus")
    assert int(mask.replace(",", ""), 16) == 1 << up.testbed.cores.dut[0]


@pytest.mark.lab
@pytest.mark.alone
async def test_the_duts_cpu_does_not_sleep_where_the_kernel_can_keep_it_awake(up: Lab) -> None:
    driver = await LOCAL.read_file("/sys/devices/system/cpu/cpuidle/current_driver")
    if driver in (None, "none\n"):
        assert up.testbed.facts["cpus_kept_awake"] == []
        pytest.skip("a kernel without idle states to choose from")
    assert up.testbed.facts["cpus_kept_awake"] == list(up.testbed.cores.dut)
    for cpu in up.testbed.cores.dut:
        assert await LOCAL.read_file(f"/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us") == "n/a\n"


@pytest.mark.lab
async def test_without_the_dut_every_frame_ends_at_a_sink_which_is_taken_away_again(up: Lab) -> None:
    async with up.lab.without_dut(up.testbed, up.stack) as there_is_a_sink:
        assert there_is_a_sink
        assert await _seen(up, up.dut) == 0
    assert await bpf.attached_program(up.dut, "d0") is None
    assert await bpf.attached_program(up.dut, "d1") is None

    assert await _seen(up, up.dut) == FRAMES


@pytest.mark.lab
async def test_a_sink_gives_way_to_the_duts_own_program_with_all_that_it_remembers(up: Lab, tmp_path: Path) -> None:
    program = compile_xdp(
        "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n"
        "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); }"
        ' seen SEC(".maps");\n'
        'SEC("xdp") int counts(struct xdp_md *context)\n'
        "{ __u32 first = 0; __u64 *count = bpf_map_lookup_elem(&seen, &first); (void)context;"
        " if (count) (*count)++; return XDP_PASS; }\n"
        'char _license[] SEC("license") = "GPL";\n',
        tmp_path,
    )
    number = await xdp.attach(up.stack, up.dut, "d0", program)
    seen = await bpf.map_id(up.dut, number, "seen")
    await bpf.write_map(up.dut, seen, 0, 1000)
    async with up.lab.without_dut(up.testbed, up.stack):
        await _send(up.tester, "t0")
        assert await bpf.attached_program(up.dut, "d0") != number
    assert await bpf.attached_program(up.dut, "d0") == number
    assert await bpf.read_map(up.dut, seen, 0) == 1000

    await _send(up.tester, "t0")
    assert await bpf.read_map(up.dut, seen, 0) == 1000 + FRAMES


@pytest.mark.lab
async def test_a_cable_takes_frames_from_one_tester_port_to_the_other(up: Lab) -> None:
    before = await _received(up.tester, "t1")
    async with up.lab.cable(up.testbed, up.stack) as there_is_a_cable:
        assert there_is_a_cable
        await _send(up.tester, "t0")
        assert await _received(up.tester, "t1") == before + FRAMES
    assert await bpf.attached_program(up.dut, "d0") is None


@pytest.mark.lab
@pytest.mark.alone
async def test_a_lab_leaves_the_machine_as_it_was(run_id: str, tmp_path: Path) -> None:
    before = await _machine()
    stack = UndoStack(run_id, None, tmp_path / "runtime")
    lab = VethLab(VethOptions())
    testbed = await lab.up(stack, LOCAL)
    await stack.set_file(testbed.tester, "/proc/sys/net/ipv4/ip_forward", "1")
    async with lab.without_dut(testbed, stack):
        await _send(testbed.tester, "t0")

    assert await stack.undo_all() == []
    await _is_again(before)
    assert not (tmp_path / "runtime").exists()


@pytest.mark.lab
@pytest.mark.alone
async def test_a_lab_that_fails_in_the_middle_leaves_nothing(run_id: str, tmp_path: Path) -> None:
    before = await _machine()
    stack = UndoStack(run_id, None, tmp_path / "runtime")
    await LOCAL.run(("ip", "netns", "add", namespace_name(run_id, "dut")))  # somebody else's: it comes second
    try:
        with pytest.raises(NotReadyError, match="exists already"):
            await VethLab(VethOptions()).up(stack, LOCAL)
        assert await stack.undo_all() == []
        assert namespace_name(run_id, "dut") in await _namespaces(), "what is not ours stays"
    finally:
        await LOCAL.run(("ip", "netns", "delete", namespace_name(run_id, "dut")))
    await _is_again(before)


@pytest.mark.lab
@pytest.mark.alone
async def test_after_a_sigkill_restore_cleans_up_once_and_for_all(run_id: str, tmp_path: Path) -> None:
    before = await _machine()
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from nicbench.hosts.kinds.local import LocalHost\n"
        "from nicbench.testbed.labs.veth import VethLab, VethOptions\n"
        "from nicbench.tuning.stack import UndoStack\n"
        "async def main():\n"
        "    lab, stack = VethLab(VethOptions()), UndoStack(sys.argv[1], None, Path(sys.argv[2]))\n"
        "    testbed = await lab.up(stack, LocalHost())\n"
        "    async with lab.without_dut(testbed, stack):\n"
        "        await testbed.tester.start(('sleep', '600'))\n"
        "        print('up', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    runtime = tmp_path / "runtime"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, run_id, str(runtime), stdout=subprocess.PIPE
    )
    assert await child.stdout.readline() == b"up\n"
    child.send_signal(signal.SIGKILL)
    await child.wait()
    assert namespace_name(run_id, "tester") in await _namespaces()

    said = await restore(run_id, runtime)
    assert len(said) == 1
    assert "undid" in said[0]
    await _is_again(before)
    assert await restore(run_id, runtime) == [f"{run_id}: nothing to undo"]


@pytest.mark.lab
async def test_a_namespace_is_deleted_although_something_runs_in_it(up: Lab) -> None:
    process = await up.tester.start(("sleep", "600"))
    await up.stack.undo_all()

    assert await process.wait(10.0) == -signal.SIGKILL
    assert not set(await _namespaces()) & set(up.testbed.facts["namespaces"].values())


@pytest.mark.lab
async def test_no_frame_of_the_lab_is_seen_on_any_interface_of_the_machine(up: Lab) -> None:
    assert await _seen(up, up.dut) == FRAMES, "the detector sees frames where they are"

    assert await _seen(up, LOCAL) == 0


@pytest.mark.lab
async def test_every_link_of_the_lab_ends_in_the_lab(up: Lab) -> None:
    async with up.lab.cable(up.testbed, up.stack):
        shown = json.loads((await LOCAL.run(("ip", "-j", "link", "show"))).stdout)
        assert not {link["ifname"] for link in shown} & {"t0", "t1", "d0", "d1"}
        peers = json.loads((await up.dut.run(("ip", "-d", "-j", "link", "show", "type", "veth"))).stdout)
        # Every link of the DUT ends in the tester's namespace.
        assert {peer.get("link_netnsid") for peer in peers} == {peers[0].get("link_netnsid")}


async def test_without_root_the_next_step_is_named(tmp_path: Path) -> None:
    host = FakeHost()
    host.answer("id -u", "1000\n")
    with pytest.raises(NotReadyError, match="sudo"):
        await VethLab(VethOptions()).up(UndoStack("run", None, tmp_path), host)


async def _send(host: Host, device: str) -> None:
    await host.run((sys.executable, "-c", SEND, device, str(FRAMES)))


async def _received(host: Host, device: str) -> int:
    shown = await host.run(("ip", "-j", "-s", "link", "show", "dev", device))
    return int(json.loads(shown.stdout)[0]["stats64"]["rx"]["packets"])


async def _seen(up: Lab, host: Host) -> int:
    """Frames of ours, sent on t0, that a packet socket on all interfaces of ``host`` sees, coming or going."""
    listener = await host.start((sys.executable, "-c", LISTEN))
    assert await listener.read_line(10.0) == "ready"
    await _send(up.tester, "t0")
    await listener.write_line("sent")
    seen = await listener.read_line(30.0)
    await listener.wait(10.0)
    assert seen is not None
    return int(seen)


async def _namespaces() -> list[str]:
    return [line.split()[0] for line in (await LOCAL.run(("ip", "netns", "list"))).stdout.splitlines()]


async def _machine() -> dict[str, object]:
    """What a lab could leave behind: namespaces of ours, interfaces, settings, huge pages, mounts."""
    links = json.loads((await LOCAL.run(("ip", "-j", "link", "show"))).stdout)
    return {
        "namespaces": [name for name in await _namespaces() if name.startswith("nb-")],
        "links": [link["ifname"] for link in links],
        "programs": [link["ifname"] for link in links if bpf.program_of_link(link) is not None],
        "sinks": await _loaded_sinks(),
        "forwarding": await LOCAL.read_file("/proc/sys/net/ipv4/ip_forward"),
        "huge_pages": await LOCAL.read_file("/proc/sys/vm/nr_hugepages"),
        "awake": [await LOCAL.read_file(str(path)) for path in sorted(Path("/sys/devices/system/cpu").glob(RESUME))],
        "bpf_mounts": (await LOCAL.read_file("/proc/self/mounts") or "").count(" bpf "),
    }


async def _is_again(before: dict[str, object]) -> None:
    """The kernel takes a deleted namespace apart in its own time."""
    for _ in range(100):
        if await _machine() == before:
            return
        await asyncio.sleep(0.1)
    assert await _machine() == before


async def _loaded_sinks() -> int:
    """A program lives as long as something uses it: a device of a namespace that is not quite gone, for instance."""
    shown = await LOCAL.run(("bpftool", "-j", "prog", "show"))
    return sum(program.get("name") == "sink" for program in json.loads(shown.stdout or "[]"))


def test_these_tests_never_run_in_a_namespace_of_a_lab() -> None:
    assert not os.path.exists("/sys/class/net/t0")
