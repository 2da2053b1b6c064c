"""The real tools in one short round between two network namespaces: their words, and nicbench's, of the same thing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_checked, run_tried

from nicbench.core.round import Job, JobOutcome, JobSpec, RoundRequest
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.workloads.base import End
from nicbench.workloads.play import play
from nicbench.workloads.processes import RawFolder

CLIENT, SERVER = f"nb-workload-c{os.getpid()}", f"nb-workload-s{os.getpid()}"
STREAM, REQUESTS = JobSpec(duration_s=1), JobSpec(operation="request-response", duration_s=1, write_bytes=64)
ASKS = {
    "iperf3": STREAM.replace(streams=2),
    "iperf": STREAM.replace(streams=2, direction="both"),
    "nuttcp": STREAM,
    "qperf": REQUESTS,
    "sockperf": REQUESTS.replace(transport="udp"),
}


def ip(*arguments: str) -> None:
    run_captured(("ip", *arguments))


@pytest.fixture
def ends() -> Iterator[dict[str, End]]:
    """Two namespaces without a default route, joined by a veth pair; they are gone afterwards."""
    try:
        for name in (CLIENT, SERVER):
            ip("netns", "add", name)
        ip("link", "add", "nbw0", "netns", CLIENT, "type", "veth", "peer", "name", "nbw1", "netns", SERVER)
        for name, device, address in ((CLIENT, "nbw0", "198.18.77.1"), (SERVER, "nbw1", "198.18.77.2")):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
        local = LocalHost()
        yield {
            "client": End(NetnsHost(local, CLIENT), "198.18.77.1", "nbw0"),
            "server": End(NetnsHost(local, SERVER), "198.18.77.2", "nbw1"),
        }
    finally:
        for name in (CLIENT, SERVER):
            run_tried(("ip", "netns", "del", name))


@pytest.mark.lab
def test_real_tools_are_driven_together_and_believed(ends: dict[str, End], tmp_path: Path) -> None:
    jobs = tuple(
        Job(workload=kind, client="client", server="server", ask=ask, port=5400 + 200 * number)
        for number, (kind, ask) in enumerate(ASKS.items())
    )
    request = RoundRequest(jobs=jobs, duration_s=1.0, timeout_s=15.0)
    outcomes = asyncio.run(play(request, ends, RawFolder(tmp_path, "r0001")))
    by_tool = dict(zip(ASKS, outcomes, strict=True))
    assert {kind: outcome.failure for kind, outcome in by_tool.items()} == dict.fromkeys(ASKS)
    assert all(outcome.version and outcome.version == outcome.server_version for outcome in outcomes)
    assert not pids(CLIENT)
    assert not pids(SERVER)
    check_iperf3(by_tool["iperf3"], tmp_path)
    check_both_ways(by_tool["iperf"])
    check_requests(by_tool)


def check_iperf3(outcome: JobOutcome, folder: Path) -> None:
    """The throughput that is told is the one iperf3 tells."""
    [written] = [name for name in outcome.files if name.endswith("client.out")]
    end = json.loads((folder / written).read_text())["end"]
    [flow] = outcome.figures.flows
    assert flow.bits_per_s == end["sum_received"]["bits_per_second"]
    assert flow.retransmissions == end["sum_sent"]["retransmits"]
    assert len(flow.streams) == 2


def check_both_ways(outcome: JobOutcome) -> None:
    """What both ends of iperf 2 sent and received is told, of each stream."""
    assert [flow.direction for flow in outcome.figures.flows] == ["forward", "reverse"]
    assert all(flow.received_bytes and flow.sent_bytes and len(flow.streams) == 2 for flow in outcome.figures.flows)


def check_requests(by_tool: dict[str, JobOutcome]) -> None:
    """Both tools tell half of the round trip; sockperf keeps every sample."""
    for kind in ("qperf", "sockperf"):
        figures = by_tool[kind].figures
        assert figures.latency.basis == "half round trip"
        assert figures.transactions_per_s
    sockperf = by_tool["sockperf"].figures
    assert sockperf.latency.histogram is not None


def pids(namespace: str) -> str:
    return run_captured(("ip", "netns", "pids", namespace)).stdout


@pytest.mark.sampled(1)
@pytest.mark.lab
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_path_that_carries_nothing_is_a_result_with_its_reason(
    transport: str, ends: dict[str, End], tmp_path: Path
) -> None:
    rule = "table inet hole { chain in { type filter hook input priority 0; meta length > 1000 drop; }; }"
    run_checked(("ip", "netns", "exec", SERVER, "nft", rule))
    ask = JobSpec(duration_s=1, transport=transport, write_bytes=1400, rate_bits_per_s=1e7)
    job = Job(workload="iperf3", client="client", server="server", ask=ask, port=5400)
    request = RoundRequest(jobs=(job,), duration_s=1.0, timeout_s=15.0)
    [outcome] = asyncio.run(play(request, ends, RawFolder(tmp_path, "r0001")))
    assert outcome.figures is not None, outcome.failure
    [flow] = outcome.figures.flows
    assert flow.bits_per_s == 0
    assert outcome.notes[-1] == "nothing arrived: the path to 198.18.77.2 drops packets of more than 1000 bytes"
