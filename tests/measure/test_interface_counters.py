"""What interfaces count: files of the kernel and the statistics of a driver that tell why."""

from __future__ import annotations

from nicbench.measure.host_readings import is_telling, parse_counters

TEXT = """\
/sys/class/net/s0/statistics/rx_bytes:123456
/sys/class/net/s0/statistics/tx_dropped:0
NIC statistics:
     rx_prio3_pause: 7
     rx_discards_phy: 2
     tx_queue_0_packets: 99
     peer_ifindex: 4
no stats available
/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_ecn_marked_roce_packets:5
"""


def test_bytes_drops_pauses_and_marks_are_kept_and_the_drivers_other_hundreds_are_not() -> None:
    assert parse_counters(TEXT) == {
        "rx_bytes": 123456,
        "tx_dropped": 0,
        "rx_prio3_pause": 7,
        "rx_discards_phy": 2,
        "np_ecn_marked_roce_packets": 5,
    }


def test_a_counter_of_what_rdma_repeated_that_did_not_rise_is_kept_for_it_says_that_nothing_was() -> None:
    assert is_telling("duplicate_request")
    assert is_telling("rx_prio3_pause")
    assert not is_telling("rcvd_pkts")
