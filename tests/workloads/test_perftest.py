"""perftest and netperf: RDMA's tables, and netperf's keyed output, as they were recorded."""

from __future__ import annotations

import pytest
from tests.fakes import FakeHost

from nicbench.core.round import Figures, JobSpec, RequestLatency
from nicbench.workloads.base import End, Output, WorkloadError
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.netperf import Netperf
from nicbench.workloads.tools.perftest import Perftest

from .goldens import GOLDEN, golden, job

CLIENT = End(FakeHost(), "198.18.0.1", rdma_device="mlx5_1", gid_index=3)
SERVER = End(FakeHost(), "198.18.0.2", rdma_device="mlx5_0", gid_index=1)
BANDWIDTH = JobSpec(duration_s=3, transport="rdma", verb="write", write_bytes=65536)
LATENCY = JobSpec(operation="request-response", duration_s=3, transport="rdma", verb="send", write_bytes=64)


def read(ask: JobSpec, name: str, stderr: str = "") -> Figures:
    figures = Perftest().parse(job("perftest", ask), Output(golden(f"perftest-4.5-{name}.client"), stderr), None)
    assert not find_implausible(job("perftest", ask), figures)
    return figures


def latency_of(ask: JobSpec, name: str) -> RequestLatency:
    latency = read(ask, name).latency
    assert latency is not None
    return latency


def test_throughput_is_the_average_in_binary_megabytes() -> None:
    [flow] = read(BANDWIDTH, "write-bw").flows
    assert flow.bits_per_s == 7.65 * 2**20 * 8
    assert flow.received_bytes == 368 * 65536
    pairs = BANDWIDTH.replace(streams=10, write_bytes=16384)
    assert read(pairs, "write-bw-q10").flows[0].bits_per_s == 2.66 * 2**20 * 8
    some = JobSpec(total_bytes=500 * 65536, transport="rdma", verb="read")
    [flow] = read(some, "read-bw").flows
    assert flow.bits_per_s == 6.10 * 2**20 * 8
    assert flow.received_bytes == 500 * 65536
    assert flow.duration_s == pytest.approx(500 / 16 / 6.10)
    assert read(some.replace(streams=2), "read-bw").flows[0].received_bytes is None, "it counts those of one pair"


def test_version_24_07_names_the_same_megabytes_otherwise() -> None:
    output = Output(golden("perftest-24.07-write-bw.client"))
    [flow] = Perftest().parse(job("perftest", BANDWIDTH), output, None).flows
    assert flow.bits_per_s == 7.65 * 2**20 * 8


@pytest.mark.parametrize("name", ["again2", "again3", "write-bw-reversed"])
def test_a_rate_of_zero_with_exit_status_zero_is_refused_unless_it_was_none(name: str) -> None:
    text = golden(f"perftest-4.5-{name}.client")
    if " 0.00   \t" not in text:
        assert read(BANDWIDTH, name).flows
        return
    clock = (GOLDEN / "perftest-4.5-again3.client.err.txt").read_text()
    with pytest.raises(WorkloadError, match=r"0\.00 MB/s of \d+ messages.*Correlation coefficient"):
        Perftest().parse(job("perftest", BANDWIDTH), Output(text, clock), None)


def test_latencies_that_are_infinite_are_refused_with_their_cause() -> None:
    output = Output(golden("perftest-4.5-clock-unknown.client"), "Correlation coefficient r^2: 0.280938 < 0.9")
    with pytest.raises(WorkloadError, match=r"no finite number \(it could not tell its clock's frequency: Correlation"):
        Perftest().parse(job("perftest", LATENCY), output, None)


def test_the_longest_sample_counts_though_perftest_leaves_it_out() -> None:
    latency = latency_of(LATENCY, "send-lat-raw")
    assert latency.basis == "half round trip"
    assert latency.count == 999
    assert latency.maximum_ns == 26601500  # its own t_max is 16081.89 us
    assert latency.minimum_ns == pytest.approx(50830, rel=1e-3)
    assert latency.histogram is not None
    reading = LATENCY.replace(verb="read")
    assert latency_of(reading, "read-lat-raw").basis == "round trip"


def test_tables_of_latency_without_samples_are_read() -> None:
    writing = LATENCY.replace(verb="write")
    summary = latency_of(writing, "write-lat")
    assert (summary.minimum_ns, summary.mean_ns, summary.maximum_ns) == (33390, 2215270, 21501230)
    assert summary.percentiles_ns == {"50": 65760, "99": 11140160, "99.9": 21501230}
    timed = latency_of(writing, "write-lat-duration")
    assert (timed.mean_ns, timed.maximum_ns) == (1852910, None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("refused", "Couldn't connect to 10.7.0.10:19999"),
        ("no-device", "mlx5_9 not found"),
        ("no-devices", "Did not detect devices"),
        ("write-bw-n", "Completion with error at client"),
    ],
)
def test_its_failures_are_told_in_its_words(name: str, words: str) -> None:
    assert words in (Perftest().complaint(Output(golden(f"perftest-4.5-{name}.client"), status=1)) or "")


def test_without_an_rdma_device_nothing_is_started() -> None:
    none = End(FakeHost(), "198.18.0.2")
    asked = job("perftest", BANDWIDTH)
    assert Perftest().refusal_of_ends(asked, CLIENT, SERVER) is None
    assert Perftest().refusal_of_ends(asked, CLIENT, none) == "no RDMA device at its server"


def test_commands_name_the_device_of_each_side_and_never_use_the_connection_manager() -> None:
    asked = job("perftest", BANDWIDTH.replace(streams=50))
    client = " ".join(Perftest().client_command(asked, CLIENT, SERVER))
    assert client == "ib_write_bw -d mlx5_1 -i 1 -p 5201 -F -c RC -D 3 -q 50 -s 65536 -x 3 198.18.0.2"
    server = " ".join(Perftest().server_command(asked, CLIENT, SERVER))
    assert server == "ib_write_bw -d mlx5_0 -i 1 -p 5201 -F -c RC -D 3 -q 50 -s 65536 -x 1"
    patient = " ".join(Perftest({"qp_timeout": 18, "transmit_depth": 4}).client_command(asked, CLIENT, SERVER))
    assert patient.endswith("-x 3 -t 4 -u 18 198.18.0.2")
    probe = " ".join(Perftest({"traffic_class": 96}).client_command(job("perftest", LATENCY), CLIENT, SERVER))
    assert probe == ("ib_send_lat -d mlx5_1 -i 1 -p 5201 -F -c RC -n 10000 -U -s 64 -x 3 --tclass=96 198.18.0.2")


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (JobSpec(duration_s=3), "RDMA, and nothing else"),
        (BANDWIDTH.replace(direction="both"), "the sum of both directions"),
        (BANDWIDTH.replace(duration_s=1.0), "at least 2"),
        (LATENCY.replace(streams=2), "one queue pair"),
        (BANDWIDTH.replace(window_bytes=1), "neither socket buffers"),
    ],
)
def test_what_perftest_cannot_do_is_said_before_anything_starts(ask: JobSpec, why: str) -> None:
    assert why in (Perftest().refusal(ask) or "")


def test_its_version_is_read() -> None:
    assert Perftest().parse_version(golden("perftest-4.5-version")) == "6.06"


def netperf(ask: JobSpec, name: str) -> Figures:
    figures = Netperf().parse(job("netperf", ask), Output(golden(f"netperf-2.7.0-{name}.client")), None)
    assert not find_implausible(job("netperf", ask), figures)
    return figures


def test_netperf_tells_what_was_sent_and_what_arrived() -> None:
    for name, direction in (("tcp", "forward"), ("tcp-reverse", "reverse")):
        [flow] = netperf(JobSpec(duration_s=1, direction=direction), name).flows  # type: ignore[arg-type]
        assert flow.direction == direction
        assert flow.received_bytes == pytest.approx(flow.sent_bytes, rel=1e-4)  # netperf itself counted 2000 bytes more
    [udp] = netperf(JobSpec(duration_s=1, transport="udp", write_bytes=1400), "udp").flows
    assert udp.sent_bits_per_s >= udp.received_bits_per_s > 0  # type: ignore[operator]


def test_netperfs_seconds_are_finer_than_it_prints_them() -> None:
    [flow] = netperf(JobSpec(total_bytes=2**24, write_bytes=8192), "tcp-bytes").flows
    assert flow.received_bytes == 2**24
    assert flow.duration_s == pytest.approx(2**24 * 8 / flow.bits_per_s)  # type: ignore[operator]


def test_netperfs_requests_have_round_trips_and_percentiles() -> None:
    figures = netperf(JobSpec(operation="request-response", duration_s=1, write_bytes=64), "requests")
    assert figures.latency.basis == "round trip"
    assert figures.transactions_per_s == pytest.approx(1e9 / figures.latency.mean_ns, rel=0.05)  # type: ignore[operator]
    assert list(figures.latency.percentiles_ns) == ["50", "90", "99"]


def test_netperfs_other_units_are_refused_and_its_version_is_read() -> None:
    text = golden("netperf-2.7.0-tcp.client").replace("10^6bits/s", "GBytes/s")
    with pytest.raises(WorkloadError, match="in GBytes/s, not in"):
        Netperf().parse(job("netperf", JobSpec(duration_s=1)), Output(text), None)
    assert Netperf().parse_version(golden("netperf-2.7.0-version")) == "2.7.0"


def test_netperf_tells_how_busy_it_saw_both_machines_and_its_service_demand() -> None:
    figures = Netperf().parse(
        job("netperf", JobSpec(duration_s=1, write_bytes=8192)), Output(golden("netperf-2.7.1-tcp-cpu.client")), None
    )
    assert (figures.client_machine_cpu_share, figures.server_machine_cpu_share) == (1.0, 1.0)
    # Two CPUs, busy all the time: the demand is their time over what was moved.
    assert figures.client_service_demand_ns_per_byte == pytest.approx(12.815 * 1000 / 1024)
    moved_per_s = (figures.flows[0].bits_per_s or 0.0) / 8
    assert figures.client_service_demand_ns_per_byte == pytest.approx(2e9 / moved_per_s, rel=0.01)


def test_of_netperfs_requests_the_demand_by_bytes_says_nothing() -> None:
    ask = JobSpec(operation="request-response", duration_s=1, write_bytes=64)
    text = golden("netperf-2.7.1-requests-cpu.client")
    figures = Netperf().parse(job("netperf", ask), Output(text), None)
    assert (figures.client_machine_cpu_share, figures.client_service_demand_ns_per_byte) == (1.0, None)


def test_netperf_in_reverse_has_sender_and_receiver_exchanged_and_of_datagrams_no_segment_size() -> None:
    reverse = job("netperf", JobSpec(duration_s=2, write_bytes=8192, direction="reverse"))
    (flow,) = Netperf().parse(reverse, Output(golden("netperf-2.7.1-tcp-reverse-cpu.client")), None).flows
    assert (flow.direction, flow.sent_bytes, flow.received_bytes) == ("reverse", 238944256, 235582344)
    assert flow.received_bits_per_s == pytest.approx(942.15e6)
    requests = job("netperf", JobSpec(operation="request-response", transport="udp", duration_s=1, write_bytes=1))
    figures = Netperf().parse(requests, Output(golden("netperf-2.7.1-udp-requests-cpu.client")), None)
    assert (figures.mss_bytes, figures.server_machine_cpu_share) == (None, 0.995)


def test_netperf_that_cannot_measure_the_cpus_says_nothing_of_them() -> None:
    text = (
        golden("netperf-2.7.1-tcp-cpu.client")
        .replace("CPU_UTIL=100.00", "CPU_UTIL=-1.00")
        .replace("SD=12.815", "SD=-1.0")
    )
    figures = Netperf().parse(job("netperf", JobSpec(duration_s=1)), Output(text), None)
    assert (figures.client_machine_cpu_share, figures.server_service_demand_ns_per_byte) == (None, None)


def test_netperfs_commands_use_the_omni_test() -> None:
    ask = JobSpec(duration_s=10, write_bytes=8192, direction="reverse")
    command = " ".join(Netperf().client_command(job("netperf", ask), CLIENT, SERVER))
    assert command.startswith(
        "netperf -H 198.18.0.2 -L 198.18.0.1 -p 5201 -t omni -l 10 -f m -P 0 -c -C -- -T tcp -d recv -P ,5202"
        " -m 8192 -M 8192 -k THROUGHPUT,"
    )
    server = Netperf().server_command(job("netperf", ask), CLIENT, SERVER)
    assert " ".join(server) == "netserver -D -L 198.18.0.2 -p 5201"
    assert "one way" in (Netperf().refusal(JobSpec(duration_s=1, direction="both")) or "")
