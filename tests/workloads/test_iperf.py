"""iperf 2 and iperf3: their commands, and what their outputs mean."""

from __future__ import annotations

import json

import pytest
from tests.fakes import FakeHost
from tests.workloads.goldens import both_sides, golden, job

from nicbench.core.round import JobSpec
from nicbench.workloads.base import End, Output, WorkloadError
from nicbench.workloads.tool_output import find_implausible
from nicbench.workloads.tools.iperf import Iperf
from nicbench.workloads.tools.iperf3 import Iperf3

# iperf 2: its command lines, and its enhanced output.

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


# iperf3: its command lines, and its JSON of several versions.

CLIENT, SERVER = End(FakeHost(), "198.18.0.1", device="eth1"), End(FakeHost(), "198.18.0.2")


def iperf3_command(ask: JobSpec, **options: object) -> str:
    return " ".join(Iperf3(options).client_command(job("iperf3", ask), CLIENT, SERVER))


def test_throughput_is_iperf3s_own_to_the_last_digit() -> None:
    client, server = both_sides("iperf3-3.12-tcp")
    end = json.loads(client.stdout)["end"]
    figures = Iperf3().parse(job("iperf3", JobSpec(duration_s=2, streams=2)), client, server)
    [flow] = figures.flows
    assert flow.bits_per_s == end["sum_received"]["bits_per_second"] == 7335226947.99319
    assert flow.sent_bits_per_s == end["sum_sent"]["bits_per_second"]
    assert (flow.sent_bytes, flow.received_bytes, flow.retransmissions) == (1834024960, 1834024960, 117)
    assert [stream.retransmissions for stream in flow.streams] == [69, 48]
    assert [at_s for at_s, _ in figures.intervals] == pytest.approx([1.0, 2.0], abs=0.01)
    assert (figures.congestion_control, figures.mss_bytes) == ("bbr", 1448)
    assert figures.client_cpu_share == pytest.approx(0.993, abs=1e-3)
    assert figures.server_cpu_share == pytest.approx(0.687, abs=1e-3)


def test_in_reverse_the_server_sends() -> None:
    ask = JobSpec(duration_s=1, direction="reverse", congestion_control="reno")
    figures = Iperf3().parse(job("iperf3", ask), *both_sides("iperf3-3.12-tcp-reverse"))
    [flow] = figures.flows
    assert (flow.direction, flow.sent_bytes, flow.received_bytes) == ("reverse", 5227020288, 5226364928)
    assert figures.congestion_control == "reno"
    assert not find_implausible(job("iperf3", ask), figures)


def test_iperf3_both_ways_at_once_are_two_flows() -> None:
    ask = JobSpec(duration_s=1, direction="both")
    figures = Iperf3().parse(job("iperf3", ask), *both_sides("iperf3-3.12-tcp-bidir"))
    forward, reverse = figures.flows
    assert (forward.received_bytes, reverse.received_bytes) == (1125777408, 2971926528)
    assert (forward.streams[0].retransmissions, reverse.streams[0].retransmissions) == (822, 1361)
    assert figures.intervals[0][1] > forward.bits_per_s  # type: ignore[operator]
    assert not find_implausible(job("iperf3", ask), figures)


def test_iperf3_udp_has_datagrams_losses_and_jitter() -> None:
    ask = JobSpec(duration_s=1, transport="udp", rate_bits_per_s=1e8, write_bytes=1400)
    [flow] = Iperf3().parse(job("iperf3", ask), *both_sides("iperf3-3.12-udp")).flows
    assert (flow.datagrams, flow.lost_datagrams, flow.received_bytes) == (8921, 0, 12489400)
    assert flow.jitter_s == pytest.approx(2.065e-6, rel=1e-3)


def test_udp_both_ways() -> None:
    ask = JobSpec(duration_s=1, transport="udp", rate_bits_per_s=5e7, direction="both", streams=2)
    figures = Iperf3().parse(job("iperf3", ask), *both_sides("iperf3-3.12-udp-bidir"))
    assert [(flow.direction, flow.datagrams, len(flow.streams)) for flow in figures.flows] == [
        ("forward", 8626, 2),
        ("reverse", 8626, 2),
    ]
    assert not find_implausible(job("iperf3", ask), figures)


def test_omitted_seconds_are_in_no_figure() -> None:
    figures = Iperf3({"omit_s": 1}).parse(job("iperf3", JobSpec(duration_s=1)), *both_sides("iperf3-3.12-tcp-omit"))
    [(end_s, _)] = figures.intervals
    assert end_s == pytest.approx(2.0, abs=0.01)  # since the start: the tool counts from 0 again
    assert figures.flows[0].duration_s == pytest.approx(1.0, abs=0.01)


def test_a_receiver_may_get_more_than_was_sent_after_the_omitted_seconds() -> None:
    ask = JobSpec(duration_s=10)
    figures = Iperf3({"omit_s": 3}).parse(job("iperf3", ask), Output(golden("iperf3-3.9-tcp-omit.client")), None)
    [flow] = figures.flows
    assert (flow.sent_bytes, flow.received_bytes, flow.duration_s) == (60293120, 61444992, 10.292703)
    assert flow.bits_per_s == 47758099.694511734
    assert len(figures.intervals) == 2
    assert not find_implausible(job("iperf3", ask, options={"omit_s": 3}), figures)
    assert "61444992 bytes arrived of 60293120" in find_implausible(job("iperf3", ask), figures)[0]


def test_version_3_1_has_one_sum_of_udp_for_both_ends() -> None:
    ask = JobSpec(total_bytes=81920000, transport="udp", write_bytes=8192)
    figures = Iperf3().parse(job("iperf3", ask), Output(golden("iperf3-3.1.3-udp.client")), None)
    [flow] = figures.flows
    assert (flow.datagrams, flow.lost_datagrams, flow.sent_bits_per_s) == (9996, 69, 834711189.017002)
    assert flow.bits_per_s == pytest.approx(834711189.017002 * (1 - 69 / 9996))
    assert "computed from the datagrams" in figures.notes[0]
    assert not find_implausible(job("iperf3", ask), figures)


def test_version_3_16_tells_what_arrived_of_an_overload() -> None:
    ask = JobSpec(duration_s=20, transport="udp")
    [flow] = Iperf3().parse(job("iperf3", ask), Output(golden("iperf3-3.16-udp.client")), None).flows
    assert (flow.datagrams, flow.lost_datagrams) == (2981960, 2744190)
    assert (flow.sent_bits_per_s, flow.bits_per_s) == (1667402400.2921805, 131580149.06754848)


def test_both_ways_before_3_11_are_read_from_the_streams() -> None:
    """Both sums of a test with --bidir have the same name."""
    ask = JobSpec(duration_s=1, direction="both", streams=2)
    figures = Iperf3().parse(job("iperf3", ask), Output(golden("iperf3-3.9-tcp-bidir.client")), None)
    assert [(flow.direction, flow.sent_bytes, flow.received_bytes, len(flow.streams)) for flow in figures.flows] == [
        ("forward", 2523136, 2523136, 2),
        ("reverse", 2588672, 2588672, 2),
    ]
    assert [flow.bits_per_s for flow in figures.flows] == pytest.approx([19421324.97, 19925774.97])
    assert not find_implausible(job("iperf3", ask), figures)


@pytest.mark.parametrize(("case", "rate", "lost"), [("3.9-udp", 9.0239e6, 200), ("3.6-udp", 8.5320e6, 31)])
def test_udp_before_3_10_has_a_rate_of_the_senders_seconds(case: str, rate: float, lost: int) -> None:
    ask = JobSpec(duration_s=2 if case == "3.9-udp" else 1, transport="udp")
    figures = Iperf3().parse(job("iperf3", ask), Output(golden(f"iperf3-{case}.client")), None)
    [flow] = figures.flows
    assert (flow.bits_per_s, flow.lost_datagrams) == (pytest.approx(rate, rel=1e-4), lost)
    assert not find_implausible(job("iperf3", ask), figures)


@pytest.mark.parametrize(("case", "lost", "of"), [("3.21-udp-to-3.12", 200, 2084), ("3.13-udp-omit", 245, 2070)])
def test_lost_datagrams_are_those_whose_bytes_are_missing(case: str, lost: int, of: int) -> None:
    """A client of 3.21 counts none with a server of 3.12; one of 3.13 counts those of the omitted second too."""
    ask = JobSpec(duration_s=2, transport="udp")
    for server in (both_sides(f"iperf3-{case}")[1], None):
        figures = Iperf3().parse(job("iperf3", ask), both_sides(f"iperf3-{case}")[0], server)
        [flow] = figures.flows
        assert (flow.lost_datagrams, flow.datagrams) == (lost, of)
        assert f"by the bytes that arrived it is {lost}" in figures.notes[0]


def test_two_ends_that_count_other_losses_disagree() -> None:
    client, server = both_sides("iperf3-3.13-udp-omit")
    wrong = Output(server.stdout.replace('"lost_packets":\t245', '"lost_packets":\t300'))
    assert wrong != server
    with pytest.raises(WorkloadError, match="by the client 245 of 2070 datagrams are lost, by the server 300"):
        Iperf3().parse(job("iperf3", JobSpec(duration_s=2, transport="udp")), client, wrong)


def test_losses_of_omitted_seconds_cannot_be_told_apart_before_3_10() -> None:
    ask = JobSpec(duration_s=2, transport="udp")
    with pytest.raises(WorkloadError, match=r"what arrived is unknown: .* counts those of the omitted seconds too"):
        Iperf3().parse(job("iperf3", ask), Output(golden("iperf3-3.9-udp-omit.client")), None)
    uncounted = golden("iperf3-3.9-udp.client").replace('"lost_packets"', '"no"')  # as 3.1.6 with -R
    with pytest.raises(WorkloadError, match=r"what arrived is unknown: .* counts none"):
        Iperf3().parse(job("iperf3", ask), Output(uncounted), None)
    assert "omitted seconds" in (Iperf3({"omit_s": 1}).refusal_of_version(ask, "3.9") or "")
    assert Iperf3({"omit_s": 1}).refusal_of_version(ask, "3.12") is None


def test_a_test_of_few_bytes_has_no_rate_where_it_lasts_an_interval() -> None:
    ask = JobSpec(total_bytes=2097152)
    text = golden("iperf3-3.21-tcp-bytes.client")
    with pytest.raises(WorkloadError, match=r"in 1\.04 s its rate is unknown; send for 50 s at least"):
        Iperf3().parse(job("iperf3", ask), Output(text), None)
    short = text.replace('"interval":\t1', '"interval":\t0.02')
    assert Iperf3().parse(job("iperf3", ask), Output(short), None).flows[0].received_bytes == 2097152
    unsaid = text.replace('"interval":\t1,', "").replace('"seconds":\t1.0369329452514648', '"seconds":\t0.02')
    assert Iperf3().parse(job("iperf3", ask), Output(unsaid), None).flows[0].received_bytes == 2097152


def test_an_output_that_is_there_twice_is_read_once() -> None:
    text = golden("iperf3-3.12-tcp.client")
    once, twice = (
        Iperf3().parse(job("iperf3", JobSpec(duration_s=1, streams=2)), Output(each), None)
        for each in (text, f"{text}{text}")
    )
    assert once == twice


def test_an_error_in_the_json_is_told_though_the_exit_status_is_zero() -> None:
    refused = Output(golden("iperf3-3.12-refused.client"), status=0)
    assert Iperf3().complaint(refused) == "unable to connect to server: Connection refused"
    with pytest.raises(WorkloadError, match="Connection refused"):
        Iperf3().parse(job("iperf3", JobSpec(duration_s=1)), refused, None)


def test_two_ends_that_disagree_are_believed_neither() -> None:
    client, server = both_sides("iperf3-3.12-tcp")
    other = Output(server.stdout.replace("1834024960", "1434024960"))
    with pytest.raises(WorkloadError, match=r"disagree: .* 1834024960 .* 1434024960"):
        Iperf3().parse(job("iperf3", JobSpec(duration_s=2, streams=2)), client, other)


def test_the_version_is_read() -> None:
    assert Iperf3().parse_version(golden("iperf3-3.12-version")) == "3.12"
    assert Iperf3().parse_version("iperf 3.17.1+ (cJSON 1.7.15)") == "3.17.1+"
    assert Iperf3().parse_version("command not found") is None


def test_commands_ask_for_everything_that_is_asked() -> None:
    begin = "iperf3 -c 198.18.0.2 -p 5201 -J -B 198.18.0.1"
    assert iperf3_command(JobSpec(duration_s=10)) == f"{begin} -t 10"
    assert iperf3_command(JobSpec(total_bytes=16777216, write_bytes=8192)) == f"{begin} -n 16777216 -i 0.1 -l 8192"
    assert iperf3_command(JobSpec(duration_s=1, direction="reverse", streams=4)) == f"{begin} -t 1 -R -P 4"
    assert (
        iperf3_command(JobSpec(duration_s=1, direction="both", window_bytes=262144))
        == f"{begin} -t 1 --bidir -w 262144"
    )
    tuned = JobSpec(duration_s=1, congestion_control="cubic", zero_copy=True, no_delay=True)
    assert iperf3_command(tuned) == f"{begin} -t 1 -C cubic -Z -N"
    assert iperf3_command(JobSpec(duration_s=1, transport="udp")) == f"{begin} -t 1 -u -b 0"
    assert (
        iperf3_command(JobSpec(duration_s=1, transport="udp", rate_bits_per_s=1e9)) == f"{begin} -t 1 -u -b 1000000000"
    )
    assert (
        iperf3_command(JobSpec(duration_s=1, rate_bits_per_s=1e9), pacing="kernel")
        == f"{begin} -t 1 --fq-rate 1000000000"
    )
    assert iperf3_command(JobSpec(duration_s=1), omit_s=2, bind_device=True).endswith("-O 2 --bind-dev eth1")


def test_a_file_is_the_senders_source_and_the_receivers_sink() -> None:
    ask = JobSpec(total_bytes=1000, source_file="/a", sink_file="/b")
    assert iperf3_command(ask).endswith("-F /a")
    assert " ".join(Iperf3().server_command(job("iperf3", ask), CLIENT, SERVER)).endswith("-B 198.18.0.2 -F /b")
    back = ask.replace(direction="reverse")
    assert iperf3_command(back).endswith("-F /b")
    assert " ".join(Iperf3().server_command(job("iperf3", back), CLIENT, SERVER)).endswith("-F /a")


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (JobSpec(operation="request-response"), "nothing else"),
        (JobSpec(transport="rdma"), "nothing else"),
        (JobSpec(duration_s=0.5), "whole seconds"),
        (JobSpec(duration_s=1, streams=129), "at most 128 streams"),
        (JobSpec(duration_s=1, write_bytes=2**21), "at most 1048576 bytes at once"),
        (JobSpec(duration_s=1, transport="udp", write_bytes=70000), "at most 65507 bytes at once over UDP"),
        (JobSpec(duration_s=1, transport="udp", congestion_control="bbr"), "neither congestion control"),
        (JobSpec(duration_s=1, streams=2, sink_file="/x"), "one stream and one direction"),
    ],
)
def test_iperf3_what_it_cannot_do_is_said_before_anything_starts(ask: JobSpec, why: str) -> None:
    assert why in (Iperf3().refusal(ask) or "")


def test_what_an_old_version_cannot_do_is_said_too() -> None:
    assert Iperf3().refusal(JobSpec(duration_s=1, direction="both")) is None
    assert "3.7 and later" in (Iperf3().refusal_of_version(JobSpec(duration_s=1, direction="both"), "3.6") or "")
    assert Iperf3().refusal_of_version(JobSpec(duration_s=1, direction="both"), "3.12") is None


def test_the_senders_kernel_knows_round_trips_and_the_path_mtu() -> None:
    figures = Iperf3().parse(job("iperf3", JobSpec(duration_s=2, streams=2)), *both_sides("iperf3-3.12-tcp"))
    trips = [stream.round_trip for stream in figures.flows[0].streams]
    assert [(trip.minimum_ns, trip.mean_ns, trip.maximum_ns) for trip in trips if trip] == [
        (12_000, 15_000, 18_000), (15_000, 15_000, 15_000),
    ]  # fmt: skip
    assert figures.path_mtu_bytes == 1500
    ask = JobSpec(duration_s=1, direction="reverse", congestion_control="reno")
    reverse = Iperf3().parse(job("iperf3", ask), *both_sides("iperf3-3.12-tcp-reverse"))
    # Of a sender at the server's end the client has none, and writes 0.
    assert [stream.round_trip for stream in reverse.flows[0].streams] == [None] * len(reverse.flows[0].streams)
