"""From TRex's dictionaries to a reading: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nicbench.core.traffic import Traffic
from nicbench.stats.latency import histogram_of
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._trex_traffic import (
    SendingTime,
    TrexStatistics,
    UnknownCountError,
    Way,
    flow_program,
    reading_of,
    silent_ways,
    udp_frame,
)

NAMES = {0: "trex0", 1: "trex1"}
WAY = Way(name="0->1", transmit=0, receive=1, intended=1000, group=1, latency_group=513)
NOT_AVAILABLE = object()


def told(sent: int, received: Any, sampled: dict[str, Any] | None = None, arrived: int | None = None) -> TrexStatistics:
    def flow(tx: int, rx: Any) -> dict[str, Any]:
        return {"tx_pkts": {0: tx, 1: 0, "total": tx}, "rx_pkts": {0: 0, 1: rx, "total": rx}}

    in_sample = sum((sampled or {}).get("histogram", {}).values())
    errors = {"dropped": 0, "dup": 0, "out_of_order": 0, "seq_too_high": 0, "seq_too_low": 0}
    return TrexStatistics(
        ports={
            0: {"opackets": sent + in_sample, "ipackets": 0, "ierrors": 0},
            1: {"opackets": 0, "ipackets": arrived if arrived is not None else received + in_sample, "ierrors": 0},
            "global": {"queue_full": 3},
        },
        groups={
            "flow_stats": {1: flow(sent, received), 513: flow(in_sample, in_sample), "global": {}},
            "latency": {513: {"err_cntrs": errors, "latency": sampled or {}}, "global": {"bad_hdr": 0}},
        },
        later=None,
        time=SendingTime(taken_ns=10**9, overtime_ns=0, uncertainty_ns=1000),
        cpu_share=None,
        links_changed=frozenset(),
    )


def test_both_groups_of_a_way_are_one_stream() -> None:
    reading = reading_of([WAY], told(900, 850, {"histogram": {20: 100}, "total_max": 26}), NAMES)
    assert reading.counts.sent == 1000
    assert reading.counts.received == 950
    assert reading.counts.lost == 50
    assert reading.counts.unsent_tester == 0
    assert reading.health.queue_full == 3
    assert reading.health.longest_gap_ns is None


def test_what_was_not_sent_is_the_testers() -> None:
    counts = reading_of([WAY], told(800, 800), NAMES).counts
    assert (counts.intended, counts.sent, counts.unsent_tester, counts.lost) == (1000, 800, 200, 0)


def test_frames_of_groups_that_did_not_leave_the_port_are_unsent() -> None:
    """A queue that is full throws them away behind the count of the groups."""
    short = told(1000, 900)
    ports = {**short.ports, 0: {**short.ports[0], "opackets": 900}}
    counts = reading_of([WAY], replace(short, ports=ports), NAMES).counts
    assert (counts.intended, counts.sent, counts.unsent_tester, counts.lost) == (1000, 900, 100, 0)


def test_one_frame_more_than_intended_is_no_frame_too_many() -> None:
    counts = reading_of([WAY], told(1001, 1001), NAMES).counts
    assert (counts.intended, counts.sent, counts.unsent_tester) == (1001, 1001, 0)


def test_what_comes_after_the_drain_is_late_and_not_lost() -> None:
    first = told(1000, 900)
    counts = reading_of([WAY], replace(first, later=told(1000, 940).groups), NAMES).counts
    assert (counts.received, counts.late, counts.lost) == (900, 40, 60)
    assert reading_of([WAY], replace(first, later=first.groups), NAMES).counts.late == 0
    assert reading_of([WAY], first, NAMES).counts.late is None


def test_copies_are_no_frames_received() -> None:
    """Nor do they hide a loss of other frames; how many there were is not known."""
    counts = reading_of([WAY], told(1000, 1010), NAMES).counts
    assert (counts.received, counts.lost, counts.duplicated) == (1000, 0, None)


def test_frames_that_belong_to_no_stream_are_foreign() -> None:
    reading = reading_of([WAY], told(1000, 1000, arrived=1007), NAMES)
    assert reading.counts.foreign == 7
    assert reading.ports[1].foreign == 7


def test_frames_that_come_back_to_the_port_that_sent_them_are_misdirected() -> None:
    back = told(1000, 990)
    back.groups["flow_stats"][1]["rx_pkts"][0] = 10
    back.ports[0]["ipackets"] = 12
    reading = reading_of([WAY], back, NAMES)
    assert [(port.foreign, port.misdirected) for port in reading.ports] == [(2, 10), (0, 0)]
    assert (reading.counts.misdirected, reading.counts.lost) == (10, 10)


def test_a_count_that_trex_does_not_have_is_an_error_and_no_loss() -> None:
    with pytest.raises(UnknownCountError, match="rx_pkts of packet group 1 at port 1"):
        reading_of([WAY], told(1000, NOT_AVAILABLE, arrived=1000), NAMES)


def test_flow_counters_at_zero_beside_arriving_frames_are_not_believed() -> None:
    with pytest.raises(UnknownCountError, match="are 0 although 990 frames arrived"):
        reading_of([WAY], told(1000, 0, arrived=990), NAMES)


def both_ways(received_at: dict[int, int]) -> tuple[list[Way], TrexStatistics]:
    """1000 frames on each of two ways, all of which arrived; flow counters have ``received_at`` of each port."""
    ways = [Way("0->1", 0, 1, 1000, 1, None), Way("1->0", 1, 0, 1000, 2, None)]
    groups = {
        way.group: {
            "tx_pkts": {way.transmit: 1000, way.receive: 0},
            "rx_pkts": {way.transmit: 0, way.receive: received_at[way.receive]},
        }
        for way in ways
    }
    ports = {port: {"opackets": 1000, "ipackets": 1000, "ierrors": 0} for port in NAMES}
    return ways, replace(told(0, 0), ports=ports, groups={"flow_stats": groups, "latency": {}})


def test_flow_counters_that_fail_at_one_port_alone_are_not_believed() -> None:
    ways, statistics = both_ways({0: 1000, 1: 0})
    with pytest.raises(UnknownCountError, match="flow counters are 0 although 1000 frames arrived at port trex1:"):
        reading_of(ways, statistics, NAMES)


def test_a_way_that_passes_nothing_beside_one_that_passes_all_is_believed() -> None:
    ways, statistics = both_ways({0: 1000, 1: 0})
    ports = {**statistics.ports, 1: {**statistics.ports[1], "ipackets": 3}}
    assert reading_of(ways, replace(statistics, ports=ports), NAMES).counts.lost == 1000


@pytest.mark.parametrize(
    ("received", "arrived", "silent", "unclear"),
    [
        (0, 1, {0}, set()),
        (1, 9, set(), set()),
        (0, 8, {0}, {0}),  # no group counts them, or these are others
        (NOT_AVAILABLE, 8, set(), set()),
    ],
)
def test_a_way_is_silent_where_its_learning_frames_did_not_come(
    received: Any, arrived: int, silent: set[int], unclear: set[int]
) -> None:
    """Those of the other way do not stand for them."""
    ways = [Way("0->1", 0, 1, 8, 1, None), Way("2->1", 2, 1, 8, 2, None)]
    groups = {1: {"rx_pkts": {1: received}}, 2: {"rx_pkts": {1: 8}}}
    ports = {1: {"ipackets": 8 + arrived}}
    found = silent_ways(ways, ports, {"flow_stats": groups})
    assert [{way.transmit for way in each} for each in found] == [silent, unclear]


def blind_for_the_sample(arrived: int) -> TrexStatistics:
    """900 frames of the load came, and of the 100 of the latency stream none was counted."""
    statistics = told(900, 900, {"histogram": {20: 100}}, arrived=arrived)
    groups = statistics.groups["flow_stats"]
    blind = {**groups[513], "rx_pkts": {0: 0, 1: 0}}
    return replace(statistics, groups={**statistics.groups, "flow_stats": {**groups, 513: blind}})


def test_flow_counters_that_fail_for_latency_streams_alone_are_not_believed() -> None:
    with pytest.raises(UnknownCountError, match="flow counters of latency streams are 0 although 99 frames arrived"):
        reading_of([WAY], blind_for_the_sample(arrived=999), NAMES)


def test_a_latency_stream_that_the_dut_lost_is_believed() -> None:
    """The frames of the load that arrived are not frames of the latency stream."""
    assert reading_of([WAY], blind_for_the_sample(arrived=901), NAMES).counts.lost == 100


def test_a_dut_that_passes_nothing_is_believed() -> None:
    counts = reading_of([WAY], told(1000, 0, arrived=2), NAMES).counts
    assert (counts.received, counts.lost) == (0, 1000)


def test_the_fine_histogram_gives_latencies_to_the_microsecond() -> None:
    fine = histogram_of([(25, 60), (31, 40)])
    sampled = {"histogram": {20: 60, 30: 40}, "total_max": 31, "average": 7.0, "hdrh": fine}
    latency = reading_of([WAY], told(900, 900, sampled), NAMES).latency
    assert (latency.minimum_ns, latency.maximum_ns, latency.count) == (25_000, 31_000, 100)
    assert latency.mean_ns == pytest.approx(27_400)  # and not the average, which is a running one
    assert latency.percentiles_ns["50"] == pytest.approx(25_000, rel=1e-3)
    assert latency.sample_of == 1000
    assert latency.resolution_ns == 1000.0


def test_a_fine_histogram_of_other_frames_is_not_used() -> None:
    """Clearing the statistics does not clear it."""
    sampled = {"histogram": {20: 100}, "total_max": 26, "hdrh": histogram_of([(25, 5000)])}
    latency = reading_of([WAY], told(900, 900, sampled), NAMES).latency
    assert latency.count == 100
    assert latency.resolution_ns == 6000.0  # of the bin from 20 us, which ends at the greatest


def test_without_it_percentiles_are_at_most_what_the_bins_allow() -> None:
    sampled = {"histogram": {0: 50, 20: 30, 300: 20}, "total_max": 342}
    latency = reading_of([WAY], told(900, 900, sampled), NAMES).latency
    assert (latency.minimum_ns, latency.maximum_ns) == (0, 342_000)
    assert latency.percentiles_ns["50"] == pytest.approx(10_000, rel=1e-3)
    assert latency.percentiles_ns["90"] == pytest.approx(342_000, rel=1e-3)
    assert latency.resolution_ns == 42_000.0


def test_no_stamped_frame_is_no_latency() -> None:
    assert reading_of([WAY], told(1000, 1000, {"histogram": {}}), NAMES).latency is None


def test_a_frame_is_ethernet_ipv4_and_udp_of_the_size_without_its_checksum() -> None:
    way = Addressing(0, 1, "02:00:00:00:00:01", "02:00:00:00:00:02", 4, "198.18.0.1", "198.19.0.1", 4, 2)
    frame = udp_frame(Traffic(), way, 128)
    assert len(frame) == 124
    assert frame[:14].hex() == "020000000002" + "020000000001" + "0800"
    assert frame[14:34].hex() == "4500006e00000000" + "4011" + "ee57" + "c6120001" + "c6130001"
    assert frame[34:42].hex() == "c0200007005a0000"
    assert sum(int.from_bytes(frame[at : at + 2], "big") for at in range(14, 34, 2)) % 0xFFFF == 0
    assert flow_program(Traffic(flows=3), way) == ((26, 0xC6120001, 3),)
