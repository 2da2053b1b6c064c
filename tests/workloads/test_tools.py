"""nuttcp, sockperf, qperf and stress-ng: what their recorded outputs come to, and what they are asked."""

from __future__ import annotations

import pytest
from tests.fakes import FakeHost

from nicbench.core.round import Figures, JobSpec
from nicbench.stats.latency import value_counts
from nicbench.workloads.base import End, Output, Workload, WorkloadError
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.nuttcp import Nuttcp
from nicbench.workloads.tools.qperf import Qperf
from nicbench.workloads.tools.sockperf import Sockperf
from nicbench.workloads.tools.stress_ng import StressNg

from .goldens import golden, job

CLIENT, SERVER = End(FakeHost(), "198.18.0.1", device="eth1"), End(FakeHost(), "198.18.0.2")
ASKING = JobSpec(operation="request-response", duration_s=1)


def read(workload: Workload, ask: JobSpec, name: str) -> Figures:
    whole, left_out, _ = name.partition("-left-out")
    text = golden(f"{whole}.client")
    if left_out:
        text = text.split("packet, txTime(sec)")[0]
    figures = workload.parse(job(workload.kind, ask), Output(text), None)
    assert not find_implausible(job(workload.kind, ask), figures)
    return figures


def command(workload: Workload, ask: JobSpec) -> str:
    return " ".join(workload.client_command(job(workload.kind, ask), CLIENT, SERVER))


def test_nuttcp_tells_both_ends_of_a_stream() -> None:
    figures = read(Nuttcp(), JobSpec(duration_s=1, write_bytes=8192), "nuttcp-6.1.2-tcp")
    [flow] = figures.flows
    text = golden("nuttcp-6.1.2-tcp.client")
    assert f"rate_Mbps={flow.sent_bits_per_s / 1e6:.4f}" in text.split("nuttcp-r:")[0]  # type: ignore[operator]
    assert f"rate_Mbps={flow.bits_per_s / 1e6:.4f}" in text.split("nuttcp-r:", 1)[1]  # type: ignore[operator]
    assert flow.retransmissions is not None
    assert figures.mss_bytes == 1448
    assert figures.client_cpu_share is not None


def test_nuttcp_in_reverse_moves_so_many_buffers_from_the_server() -> None:
    figures = read(
        Nuttcp(), JobSpec(total_bytes=2**24, write_bytes=8192, direction="reverse"), "nuttcp-6.1.2-tcp-reverse-n"
    )
    [flow] = figures.flows
    assert (flow.direction, flow.sent_bytes, flow.received_bytes) == ("reverse", 2**24, 2**24)
    # Seconds are printed with two decimals; bytes and rate tell more.
    assert flow.duration_s == pytest.approx(2**24 * 8 / flow.bits_per_s)  # type: ignore[operator]


def test_nuttcps_udp_has_its_losses() -> None:
    ask = JobSpec(duration_s=1, transport="udp", write_bytes=1024)
    [flow] = read(Nuttcp(), ask, "nuttcp-6.1.2-udp-loss").flows
    assert flow.datagrams is not None
    assert flow.lost_datagrams is not None
    assert 0 < flow.lost_datagrams < flow.datagrams
    arrived = flow.received_bytes / 1024  # type: ignore[operator]
    assert arrived == pytest.approx(flow.datagrams - flow.lost_datagrams, rel=1e-3)
    backwards = ask.replace(direction="reverse", write_bytes=1400, rate_bits_per_s=1e8)
    [flow] = read(Nuttcp(), backwards, "nuttcp-6.1.2-udp-reverse").flows
    assert flow.bits_per_s == pytest.approx(1e8, rel=0.05)


def test_nuttcps_streams_and_files() -> None:
    streams = JobSpec(duration_s=1, streams=4, window_bytes=262144)
    assert read(Nuttcp(), streams, "nuttcp-6.1.2-tcp-streams").flows[0].bits_per_s
    assert command(Nuttcp(), streams) == (
        "nuttcp -fparse -vv -t -P 5201 -p 5202 -l65536 -T1 -N4 -w256 -ws256 198.18.0.2"
    )
    to_file = JobSpec(total_bytes=819200, write_bytes=8192, direction="reverse", sink_file="/data/it's here")
    assert read(Nuttcp(), to_file, "nuttcp-6.1.2-to-file").flows[0].received_bytes == pytest.approx(819200, abs=60)
    assert Nuttcp().client_command(job("nuttcp", to_file), CLIENT, SERVER)[:3] == (
        "sh",
        "-c",
        """exec "$@" > '/data/it'"'"'s here'""",
    )


def test_nuttcps_commands() -> None:
    assert command(Nuttcp(), JobSpec(total_bytes=10**6, write_bytes=8192)).endswith("-l8192 -n123 198.18.0.2")
    assert command(Nuttcp(), JobSpec(duration_s=0.5, transport="udp")).endswith("-u -l1024 -T0.5 -Ru 198.18.0.2")
    paced = JobSpec(duration_s=1, rate_bits_per_s=1e7, streams=2, no_delay=True)
    assert command(Nuttcp(), paced).endswith("-l65536 -T1 -R20000 -N2 -D 198.18.0.2")
    assert " ".join(Nuttcp().server_command(job("nuttcp", paced), CLIENT, SERVER)) == "nuttcp -1 --nofork -P 5201"


def test_nuttcps_time_and_rate_must_fit_together() -> None:
    text = golden("nuttcp-6.1.2-tcp.client").replace("real_seconds=1.0", "real_seconds=3.0")
    with pytest.raises(WorkloadError, match=r"took 3\S* s, where"):
        Nuttcp().parse(job("nuttcp", JobSpec(duration_s=1)), Output(text), None)


def test_every_sample_of_sockperf_is_in_the_histogram() -> None:
    latency = read(Sockperf(), ASKING, "sockperf-3.7-tcp-samples").latency
    assert latency.histogram is not None
    assert latency.basis == "half round trip"
    assert latency.count == sum(count for _, count in value_counts(latency.histogram)) > 200
    # sockperf's own summary of the same samples
    own = read(Sockperf(), ASKING, "sockperf-3.7-tcp-samples-left-out").latency
    for value, summary in (
        (latency.minimum_ns, own.minimum_ns),
        (latency.mean_ns, own.mean_ns),
        (latency.maximum_ns, own.maximum_ns),
        (latency.stdev_ns, own.stdev_ns),
    ):
        assert value == pytest.approx(summary, rel=1e-2, abs=2)


def test_sockperf_under_load_tells_the_whole_round_trip_where_it_was_asked_for() -> None:
    ask = ASKING.replace(transport="udp")
    workload = Sockperf({"under_load": True, "messages_per_s": 1000, "full_round_trip": True})
    figures = read(workload, ask, "sockperf-3.7-udp-under-load")
    assert figures.latency.basis == "round trip"
    assert figures.transactions_per_s == pytest.approx(1000, rel=0.02)
    assert "under-load -i 198.18.0.2 -p 5201 --client_ip 198.18.0.1 -m 64 -t 1 --mps 1000 --reply-every 1" in command(
        workload, ask
    )


def test_sockperfs_own_percentiles_are_read_where_samples_were_not_kept() -> None:
    latency = read(Sockperf({"samples": False}), ASKING, "sockperf-3.7-tcp-summary").latency
    assert latency.histogram is None
    assert list(latency.percentiles_ns) == ["99.999", "99.99", "99.9", "99", "90", "75", "50", "25"]
    assert latency.percentiles_ns["50"] <= latency.percentiles_ns["99.9"] <= latency.maximum_ns  # type: ignore[operator]


def test_sockperf_3_8_says_more_of_its_mean() -> None:
    latency = read(Sockperf({"samples": False}), ASKING, "sockperf-3.8-tcp-summary").latency
    assert (latency.mean_ns, latency.stdev_ns, latency.percentiles_ns["50"]) == (1.85e6, 422741.0, 1.8e6)


def test_sockperfs_throughput_is_of_what_was_sent() -> None:
    figures = read(Sockperf(), JobSpec(duration_s=1, write_bytes=8192), "sockperf-3.7-tcp-throughput")
    [flow] = figures.flows
    assert flow.received_bits_per_s is None
    assert flow.sent_bits_per_s == pytest.approx(flow.sent_bytes * 8 / flow.duration_s, rel=1e-2)  # type: ignore[operator]
    assert "not what arrived" in figures.notes[0]


@pytest.mark.parametrize(
    ("name", "words"), [("refused", "Connection refused"), ("too-small", "Invalid message size: 1 (min: 14)")]
)
def test_sockperf_fails_with_status_zero_and_is_heard(name: str, words: str) -> None:
    assert words in (Sockperf().complaint(Output(golden(f"sockperf-3.7-{name}.client"))) or "")


def test_qperfs_figures_are_read_in_the_units_that_were_asked_for() -> None:
    [stream] = read(Qperf(), JobSpec(duration_s=1, write_bytes=65536), "qperf-0.4.11-tcp-bw").flows
    assert stream.received_bits_per_s == stream.received_bytes * 8  # type: ignore[operator]
    udp = JobSpec(duration_s=1, write_bytes=1400, transport="udp")
    [datagrams] = read(Qperf(), udp, "qperf-0.4.11-udp-bw").flows
    assert datagrams.sent_bits_per_s > datagrams.received_bits_per_s  # type: ignore[operator]
    figures = read(Qperf(), ASKING, "qperf-0.4.11-tcp-lat")
    assert figures.latency.basis == "half round trip"
    assert figures.transactions_per_s == pytest.approx(1e9 / (2 * figures.latency.mean_ns), rel=1e-3)  # type: ignore[operator]
    other = Output(golden("qperf-0.4.11-tcp-bw.client").replace("bits/sec", "GB/sec"))
    with pytest.raises(WorkloadError, match="not what it was asked for"):
        Qperf().parse(job("qperf", JobSpec(duration_s=1)), other, None)


def test_a_latency_of_zero_is_refused() -> None:
    ask = JobSpec(operation="request-response", duration_s=1, transport="udp", write_bytes=65536)
    figures = Qperf().parse(job("qperf", ask), Output(golden("qperf-0.4.11-udp-too-large.client")), None)
    assert any("latency of 0 ns" in text for text in find_implausible(job("qperf", ask), figures))
    assert "at most 65507" in (Qperf().refusal(ask) or "")


def test_qperfs_failures_are_told_and_its_warnings_are_not() -> None:
    refused = Output(golden("qperf-0.4.11-refused.client"), status=1)
    assert Qperf().complaint(refused) == "198.18.90.2: failed to connect"
    no_rdma = golden("qperf-0.4.11-no-rdma.client")
    assert "failed to find any InfiniBand devices" in (Qperf().complaint(Output(no_rdma, status=1)) or "")
    assert Qperf().complaint(Output(no_rdma, status=0)) is None
    roce = Output(golden("qperf-0.4.11-roce-without-manager.client"), status=1)
    assert "failed to modify QP to RTR" in (Qperf().complaint(roce) or "")
    rdma = JobSpec(duration_s=1, transport="rdma")
    ends = (
        End(FakeHost(), "198.18.0.1", rdma_device="rxe1", gid_index=1),
        End(FakeHost(), "198.18.0.2", rdma_device="rxe0"),
    )
    assert " ".join(Qperf().client_command(job("qperf", rdma), *ends)).endswith("-li rxe1:1 -ri rxe0:1 -cm1 rc_bw")
    assert "no RDMA device at its client and its server" in (
        Qperf().refusal_of_ends(job("qperf", rdma), CLIENT, SERVER) or ""
    )


def test_stress_ngs_memory_throughput_is_of_all_its_processes() -> None:
    figures = read(StressNg(), JobSpec(operation="memory", duration_s=6, streams=2), "stress-ng-0.15.06-two")
    expected = (7144.74 + 4763.16 + 6953.40 + 4635.60) * 2**20
    assert figures.memory_bytes_per_s == pytest.approx(expected)


def test_a_load_on_memory_may_be_too_short_for_a_rate_and_a_measurement_may_not() -> None:
    ask = JobSpec(operation="memory", duration_s=1)
    output = Output(golden("stress-ng-0.15.06-short.client"))
    load, measured = job("stress-ng", ask, role="memory"), job("stress-ng", ask)
    figures = StressNg().parse(load, output, None)
    assert figures.memory_bytes_per_s is None
    assert not find_implausible(load, figures)
    assert StressNg().refusal_of_ends(load, CLIENT, None) is None
    assert "at least 5 s" in (StressNg().refusal_of_ends(measured, CLIENT, None) or "")
    with pytest.raises(WorkloadError, match="the rates of 0 of 1 processes"):
        StressNg().parse(measured, output, None)


@pytest.mark.parametrize("workload", [Nuttcp(), Sockperf(), Qperf(), StressNg()], ids=lambda one: one.kind)
def test_the_version_is_read(workload: Workload) -> None:
    versions = {"nuttcp": "6.1.2", "sockperf": "3.7", "qperf": "0.4.11", "stress-ng": "0.15.06"}
    version = versions[workload.kind]
    assert workload.parse_version(golden(f"{workload.kind}-{version}-version")) == version
    assert workload.parse_version("no such thing") is None


@pytest.mark.parametrize(
    ("workload", "ask", "why"),
    [
        (Nuttcp(), ASKING, "no request-response"),
        (Nuttcp(), JobSpec(duration_s=1, direction="both"), "not both at once"),
        (Nuttcp(), JobSpec(duration_s=1, congestion_control="bbr"), "no congestion control"),
        (Nuttcp(), JobSpec(duration_s=1, transport="udp", streams=2), "one of UDP"),
        (Nuttcp(), JobSpec(duration_s=1, sink_file="/x"), "server has no files"),
        (Sockperf(), JobSpec(operation="request-response", duration_s=1, write_bytes=1), "14 to 1048576 bytes"),
        (Sockperf(), JobSpec(operation="request-response", total_bytes=9), "whole seconds"),
        (Sockperf(), JobSpec(duration_s=1, streams=2), "one connection"),
        (Qperf(), JobSpec(total_bytes=9), "for a time"),
        (Qperf(), JobSpec(duration_s=0.5), "whole seconds"),
        (Qperf(), JobSpec(duration_s=1, direction="reverse"), "let the other end be the client"),
        (StressNg(), JobSpec(duration_s=1), "it sends nothing"),
        (StressNg(), JobSpec(operation="memory", duration_s=0.5), "whole seconds"),
    ],
)
def test_what_a_tool_cannot_do_is_said_before_anything_starts(workload: Workload, ask: JobSpec, why: str) -> None:
    assert why in (workload.refusal(ask) or "")
