"""iperf 2: its command lines, and its enhanced output."""

from __future__ import annotations

import pytest
from tests.fakes import FakeHost

from nicbench.core.round import JobSpec
from nicbench.workloads.base import End, Output, WorkloadError
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.iperf import Iperf

from .goldens import both_sides, golden, job

CLIENT, SERVER = End(FakeHost(), "198.18.0.1", device="eth1"), End(FakeHost(), "198.18.0.2")
TCP = JobSpec(duration_s=1, streams=2, write_bytes=8192)
UDP = JobSpec(duration_s=1, transport="udp", rate_bits_per_s=5e7, write_bytes=1400, streams=2)


def command(ask: JobSpec, **options: object) -> str:
    return " ".join(Iperf(options).client_command(job("iperf", ask), CLIENT, SERVER))


def test_bytes_of_both_ends_are_iperfs_own_to_the_last_one() -> None:
    asked = job("iperf", TCP)
    figures = Iperf().parse(asked, *both_sides("iperf-2.1.8-tcp"))
    [flow] = figures.flows
    assert flow.sent_bytes == 567222332 + 324730940
    assert flow.received_bytes == flow.sent_bytes
    assert flow.retransmissions == 90
    assert [stream.retransmissions for stream in flow.streams] == [0, 90]
    assert sum(stream.received_bits_per_s or 0 for stream in flow.streams) == pytest.approx(flow.received_bits_per_s)
    assert figures.mss_bytes == 1448
    assert figures.client_cpu_share is None
    assert not find_implausible(asked, figures)


def test_the_rate_of_one_stream_is_iperfs_own() -> None:
    ask = JobSpec(total_bytes=2**24, write_bytes=8192, direction="reverse")
    figures = Iperf().parse(job("iperf", ask), *both_sides("iperf-2.1.8-tcp-reverse-n"))
    [flow] = figures.flows
    assert (flow.direction, flow.sent_bytes, flow.received_bytes) == ("reverse", 2**24, 2**24)
    assert f"{flow.received_bits_per_s:.0f} bits/sec" in golden("iperf-2.1.8-tcp-reverse-n.client")
    assert f"{flow.sent_bits_per_s:.0f} bits/sec" in golden("iperf-2.1.8-tcp-reverse-n.server")
    assert not find_implausible(job("iperf", ask), figures)


def test_both_ways_at_once_are_two_flows() -> None:
    ask = JobSpec(duration_s=1, direction="both")
    figures = Iperf().parse(job("iperf", ask), *both_sides("iperf-2.1.8-both"))
    assert [(flow.direction, flow.received_bytes, flow.retransmissions) for flow in figures.flows] == [
        ("forward", 992084028, 1778),
        ("reverse", 533069824, 2174),
    ]
    assert not find_implausible(job("iperf", ask), figures)


def test_udp_has_datagrams_losses_and_jitter() -> None:
    [flow] = Iperf().parse(job("iperf", UDP), *both_sides("iperf-2.1.8-udp")).flows
    assert (flow.datagrams, flow.lost_datagrams, flow.received_bytes) == (8935, 0, 12509000)
    assert flow.jitter_s == pytest.approx(1.5e-6)
    fast = JobSpec(duration_s=1, transport="udp", write_bytes=1024)
    [flow] = Iperf().parse(job("iperf", fast), *both_sides("iperf-2.1.8-udp-fast")).flows
    assert (flow.datagrams, flow.lost_datagrams) == (115936, 58867)
    assert flow.received_bits_per_s == 463139527
    back = UDP.replace(streams=1, direction="reverse")
    [flow] = Iperf().parse(job("iperf", back), *both_sides("iperf-2.1.8-udp-reverse")).flows
    assert (flow.sent_bytes, flow.received_bytes, flow.lost_datagrams) == (12458600, 12422200, 26)


def test_of_udp_the_client_repeats_what_the_server_said() -> None:
    client, _ = both_sides("iperf-2.1.8-udp")
    [flow] = Iperf().parse(job("iperf", UDP), client, None).flows
    assert (flow.datagrams, flow.received_bytes) == (8935, 12509000)


def test_without_the_servers_report_what_arrived_is_unknown() -> None:
    client, _ = both_sides("iperf-2.1.8-tcp")
    [flow] = Iperf().parse(job("iperf", TCP), client, Output("")).flows
    assert flow.received_bits_per_s is None
    assert flow.sent_bytes == 891953272


def test_a_stream_without_a_report_is_an_error() -> None:
    client, server = both_sides("iperf-2.1.8-tcp")
    lines = [line for line in server.stdout.splitlines() if not line.startswith("[  2] 0.0000")]
    with pytest.raises(WorkloadError, match="reports 1 of 2 streams forward"):
        Iperf().parse(job("iperf", TCP), client, Output("\n".join(lines)))


def test_an_error_with_status_zero_is_heard() -> None:
    refused = Output(golden("iperf-2.1.8-refused.client"))
    assert Iperf().complaint(refused) == "tcp connect failed: Connection refused"
    with pytest.raises(WorkloadError, match="Connection refused"):
        Iperf().parse(job("iperf", JobSpec(duration_s=1)), refused, None)


def test_commands() -> None:
    assert command(TCP, mss_bytes=1400, dscp=10) == (
        "iperf -c 198.18.0.2 -B 198.18.0.1 -p 5201 -e -f b -l 8192 -S 40 -t 1 -P 2 -M 1400"
    )
    assert command(JobSpec(duration_s=0.5, transport="udp", direction="both")) == (
        "iperf -c 198.18.0.2 -B 198.18.0.1 -p 5201 -e -f b -u -t 0.5 --full-duplex -b 1000g"
    )
    assert " -n 500 -R -P 2" in command(JobSpec(total_bytes=999, streams=2, direction="reverse"))
    assert " ".join(Iperf().server_command(job("iperf", UDP), CLIENT, SERVER)) == (
        "iperf -s -B 198.18.0.2 -p 5201 -e -f b -u -l 1400"
    )


def test_the_version_is_read_and_one_too_old_is_refused() -> None:
    assert Iperf().parse_version(golden("iperf-2.1.8-version")) == "2.1.8"
    assert Iperf().refusal_of_version(TCP, "2.1.8") is None
    assert "2.1 and later" in str(Iperf().refusal_of_version(TCP, "2.0.13"))


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (JobSpec(operation="request-response", duration_s=1), "sends streams"),
        (TCP.replace(direction="reverse", congestion_control="reno"), "alone"),
        (TCP.replace(sink_file="/mnt/d1/sink"), "memory to memory"),
        (UDP.replace(write_bytes=16), "64 to 65507 bytes, not 16"),
        (UDP.replace(no_delay=True), "Nagle"),
        (TCP.replace(streams=200), "at most 128"),
    ],
)
def test_what_it_cannot_do_is_said_before_anything_starts(ask: JobSpec, why: str) -> None:
    assert why in str(Iperf().refusal(ask))
