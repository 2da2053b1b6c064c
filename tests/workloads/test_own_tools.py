"""nicbench-connections and nicbench-frames: their commands, and what their outputs mean; documentation of tools."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost
from tests.workloads.goldens import golden, job

from nicbench.core.connections import Broken, ConnectionsSpec, ConnectionsTarget
from nicbench.core.round import FramesSpec, JobSpec
from nicbench.core.shipped import shipped
from nicbench.doctor.checks.software import parse_packages
from nicbench.testbed.real_hosts import vlan_of
from nicbench.workloads.base import End, Output, WorkloadError
from nicbench.workloads.play import kinds
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.nicbench_connections import NicbenchConnections
from nicbench.workloads.tools.nicbench_frames import NicbenchFrames

# nicbench-connections: command lines of both sides, and what of its results is refused.


def ask(**asked: Any) -> JobSpec:
    spec = ConnectionsSpec(**{"task": "connect", "rate_per_s": 500.0, "objects": ((1024, 3), (65536, 1)), **asked})
    return JobSpec(operation="connections", duration_s=2.0, connections=spec)


@pytest.fixture
def host() -> End:
    return End(host=FakeHost("client"), address="198.18.0.2")


def test_both_command_lines_say_what_is_asked(host: End) -> None:
    tool = NicbenchConnections()
    wanted = job("nicbench-connections", ask(tls="1.3", ports=4, broken=Broken(reset_every=100)))
    client = " ".join(tool.client_command(wanted, host, host))
    assert f"--to {host.address} --port {wanted.port} --ports 4 --object 1024:3 --object 65536:1" in client
    assert "--task connect --rate 500 --ramp 0 --seconds 2" in client
    assert "--tls 1.3" in client
    server = " ".join(tool.server_command(wanted, host, host) or ())
    assert server.startswith("nicbench-connections serve --on ")
    assert server.endswith("--tls --reset-every 100")
    assert len(tool.listens(wanted, host)) == 4


def test_connections_of_a_vlan_are_made_in_the_hook_of_the_interface_below(host: End) -> None:
    link = {"link": "c0", "linkinfo": {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": 100}}}
    end = replace(host, device="c0.100", vlan=vlan_of(link))
    wanted = job("nicbench-connections", ask(driver="xdp"))
    for command in (
        NicbenchConnections().client_command(wanted, end, end),
        NicbenchConnections().server_command(wanted, end, end),
    ):
        assert "--xdp c0 --vlan 100 " in " ".join(command or ())


def test_nginx_has_the_objects_and_a_target_has_no_server(host: End) -> None:
    tool = NicbenchConnections()
    nginx = " ".join(tool.server_command(job("nicbench-connections", ask(server="nginx")), host, host) or ())
    assert nginx.endswith("--object 1024 --object 65536")
    target = ConnectionsTarget(address="192.0.2.1", port=80, host="192.0.2.1", path="/a")
    there = job("nicbench-connections", ask(server="target", target=target))
    assert tool.server_command(there, host, host) is None
    assert "--to 192.0.2.1 --port 80 --host 192.0.2.1 --path /a" in " ".join(tool.client_command(there, host, None))


def test_a_recorded_result_has_counts_of_both_sides_and_histograms() -> None:
    client, server = (Output(golden(f"nicbench-connections-0.1.0-short.{side}")) for side in ("client", "server"))
    wanted = job("nicbench-connections", ask())
    figures = NicbenchConnections().parse(wanted, client, server)
    said = figures.connections
    assert (said.sustain.due, said.sustain.failed, said.ramp.failed) == (100, {"short": 5}, {"short": 1})
    assert (said.accepted, said.served) == (125, 125)
    assert said.first_byte.count == 100
    assert find_implausible(wanted, figures) == ()


def test_counts_that_do_not_add_up_are_refused() -> None:
    said = {
        "wall_ns": 10**9, "in_time": 9, "bytes": 9, "lateness_p99_ns": 0, "opened": 10, "reopened": 0,
        "most_open": 2, "held": 0, "cpu_ns": 1, "busiest_thread_ns": 1,
        "ramp": {"due": 0, "completed": 0, "failed": {}},
        "sustain": {"due": 10, "completed": 8, "failed": {"reset": 1}},
    }  # fmt: skip
    served = Output(json.dumps({"accepted": 10, "requests": 10}))
    wanted = job("nicbench-connections", ask())
    figures = NicbenchConnections().parse(wanted, Output(json.dumps(said)), served)
    assert figures.connections.accepted == 10
    assert "8 completed and 1 failed of 10" in " ".join(find_implausible(wanted, figures))
    with pytest.raises(WorkloadError, match="connections"):
        NicbenchConnections().parse(wanted, Output("{}"), served)
    with pytest.raises(WorkloadError, match="cpu_ns"):  # found by fuzzing: no float holds it
        NicbenchConnections().parse(wanted, Output(json.dumps({**said, "cpu_ns": 10**400})), served)


# nicbench-frames: what it is asked, what its recorded results come to, and which of its failures end a run.

READ = JobSpec(
    operation="frames",
    duration_s=1.0,
    frames=FramesSpec(task="read", directory="/mnt/d1", warm_up_s=0.5, frames_per_s=60_000 / 1001, seed=7),
)


def recorded(case: str, status: int = 0) -> Output:
    return Output(golden(f"nicbench-frames-0.1.0-{case}.client"), status=status)


def test_its_command_line_says_everything_that_it_does(frames_host: End) -> None:
    command = NicbenchFrames().client_command(job("nicbench-frames", READ), frames_host, None)
    assert command == (
        *("nicbench-frames", "read", "/mnt/d1", "--seconds", "1", "--warm-up", "0.5", "--fps", "59.9400599401"),
        *("--read-ahead", "1", "--order", "forward", "--seed", "7", "--threads", "1", "--engine", "auto"),
        *("--depth", "4", "--request", "1048576", "--sync", "none", "--verify", "blocks", "--json"),
    )


def test_an_instance_that_begins_later_is_told_so_and_takes_longer(frames_host: End) -> None:
    asked = READ.frames.replace(after_s=2.5)  # type: ignore[union-attr]
    later = job("nicbench-frames", READ.replace(frames=asked))
    assert " --after 2.5 " in " ".join(NicbenchFrames().client_command(later, frames_host, None))
    assert NicbenchFrames().expected_s(later) == 4.0


def test_every_frames_times_are_left_where_somebody_keeps_them(frames_host: End) -> None:
    asked = READ.frames.replace(samples=True)  # type: ignore[union-attr]
    wanted, workload = job("nicbench-frames", READ.replace(frames=asked)), NicbenchFrames()
    [left] = workload.leaves(wanted)
    command = workload.client_command(wanted, replace(frames_host, folder="/dev/shm/ours/r0001/1"), None)
    assert " ".join(command).endswith(f"--samples /dev/shm/ours/r0001/1/{left.name} --json")
    assert "--samples" not in workload.client_command(wanted, frames_host, None)
    assert workload.leaves(job("nicbench-frames", READ)) == ()


def test_a_whole_frame_a_request_and_switches(frames_host: End) -> None:
    asked = FramesSpec(
        task="write",
        directory="/mnt/d1",
        frame_bytes=4096,
        request_bytes=0,
        direct=True,
        streamed=True,
        repeat=True,
        engine="io_uring",
        sync="end",
    )
    command = NicbenchFrames().client_command(
        job("nicbench-frames", JobSpec(operation="frames", frames=asked)), frames_host, None
    )
    words = " ".join(command)
    assert "--frame-size 4096" in words
    assert "--request frame" in words
    assert "--engine io-uring" in words
    assert "--content unique" in words
    assert words.endswith("--direct --streamed --repeat --json")
    assert "--verify" not in words


def test_a_recorded_read_at_a_limit() -> None:
    figures = NicbenchFrames().parse(job("nicbench-frames", READ), recorded("read"), None)
    said = figures.frames
    assert (said.frames_per_s, said.due_frames, said.dropped_frames) == (24.0, 24, 0)
    assert (said.bytes, said.engine) == (24 * 65_536, "io_uring")
    assert said.completion.count == 24
    assert find_implausible(job("nicbench-frames", READ), figures) == ()


def test_without_a_limit_nothing_was_due() -> None:
    said = NicbenchFrames().parse(job("nicbench-frames", READ), recorded("write-unlimited"), None).frames
    assert (said.due_frames, said.dropped_frames, said.lateness) == (None, None, None)


def test_a_frame_that_failed_is_told_by_its_name_and_ends_the_run() -> None:
    workload, output = NicbenchFrames(), recorded("vanished", 4)
    assert "frame 20, /mnt/d1/frame_000020.dpx: No such file or directory" in str(workload.complaint(output))
    assert workload.ends_run(output)


def test_wrong_content_fails_this_instance_alone() -> None:
    text = golden("nicbench-frames-0.1.0-vanished.client").replace('"kind":"vanished"', '"kind":"wrong_content"')
    assert not NicbenchFrames().ends_run(Output(text, status=4))


def test_what_it_says_before_it_can_begin_is_told() -> None:
    output = Output("", stderr="nicbench-frames: /mnt/d1 is not a directory\n  next: mount it", status=3)
    assert NicbenchFrames().complaint(output) == "/mnt/d1 is not a directory / next: mount it"
    assert NicbenchFrames().ends_run(output)
    assert not NicbenchFrames().ends_run(Output("", stderr="killed", status=-9))


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('"frames_per_s":24.0', '"frames_per_s":25.2', "25.2 frames/s"),
        ('"missed":0', '"missed":25', "25 dropped frames of 24"),
        ('"measured_ns":1000000000', '"measured_ns":9000000000', "9 s were measured"),
    ],
)
def test_figures_that_cannot_be_so_are_refused(was: str, becomes: str, said: str) -> None:
    text = golden("nicbench-frames-0.1.0-read.client")
    assert was in text
    asked = job("nicbench-frames", READ)
    wrong = find_implausible(asked, NicbenchFrames().parse(asked, Output(text.replace(was, becomes)), None))
    assert any(said in each for each in wrong)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [('"missed":0,', "", "missed"), ('"intervals":[', '"intervals":["x",', "'x' is no object")],
    ids=["an older program", "a text in the place of an interval"],
)
def test_what_does_not_have_the_form_is_no_result(was: str, becomes: str, says: str) -> None:
    text = golden("nicbench-frames-0.1.0-read.client").replace(was, becomes)
    with pytest.raises(WorkloadError, match=says):
        NicbenchFrames().parse(job("nicbench-frames", READ), Output(text), None)


@pytest.fixture
def frames_host() -> End:
    from tests.fakes import FakeHost

    return End(host=FakeHost("client"), address="198.18.0.2")


# What docs/workloads.md says of each tool; its options are compared by tests/test_documented_options.py.

PAGE = (Path(__file__).resolve().parents[2] / "docs/workloads.md").read_text()
NOT_IN_DEBIAN = {"netperf"}


@pytest.mark.parametrize("kind", kinds())
def test_the_page_names_each_tool_in_its_table_and_in_a_section(kind: str) -> None:
    assert f"\n## `{kind}`\n" in PAGE
    assert f"| `{kind}` |" in PAGE


def test_the_packages_of_all_tools_are_listed() -> None:
    listed = {
        package.name
        for package in parse_packages(shipped("packages.debian").read_text())
        if package.needed_for == "tools"
    }
    installed = {name: kind for name, kind in kinds().items() if not kind.is_ours and name not in NOT_IN_DEBIAN}
    assert {kind.package for kind in installed.values()} <= listed
