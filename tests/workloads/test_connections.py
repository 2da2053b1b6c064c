"""nicbench-connections: command lines of both sides, and what of its results is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.connections import Broken, ConnectionsSpec, ConnectionsTarget
from nicbench.core.round import JobSpec
from nicbench.workloads.base import End, Output, WorkloadError
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.nicbench_connections import NicbenchConnections

from .goldens import golden, job


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
    assert said is not None
    assert (said.sustain.due, said.sustain.failed, said.ramp.failed) == (100, {"short": 5}, {"short": 1})
    assert (said.accepted, said.served) == (125, 125)
    assert said.first_byte is not None
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
    assert figures.connections is not None
    assert figures.connections.accepted == 10
    assert "8 completed and 1 failed of 10" in " ".join(find_implausible(wanted, figures))
    with pytest.raises(WorkloadError, match="connections"):
        NicbenchConnections().parse(wanted, Output("{}"), served)
    with pytest.raises(WorkloadError, match="cpu_ns"):  # found by fuzzing: no float holds it
        NicbenchConnections().parse(wanted, Output(json.dumps({**said, "cpu_ns": 10**400})), served)
