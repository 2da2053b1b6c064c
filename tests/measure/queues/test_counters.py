"""Frames of queues and cores, as drivers and the kernel print them."""

from __future__ import annotations

import pytest

from nicbench.measure.queues import look_of, parse_network_softirqs, parse_queues, parse_softnet

STATISTICS = {
    "igb": "     rx_packets: 30\n     rx_queue_0_packets: 10\n     rx_queue_0_bytes: 6\n     rx_queue_1_packets: 20\n",
    "i40e": "     rx-0.packets: 10\n     tx-0.packets: 7\n     rx-1.packets: 20\n",
    "iavf": "     rx-0.rx_packets: 10\n     rx-1.rx_packets: 20\n",
    "mlx5_core": "     rx_packets: 30\n     rx0_packets: 10\n     rx0_xdp_drop: 3\n     rx1_packets: 20\n",
    "bnxt_en": (
        "     [0]: rx_ucast_packets: 6\n     [0]: rx_mcast_packets: 3\n     [0]: rx_bcast_packets: 1\n"
        "     [0]: rx_discards: 9\n     [1]: rx_ucast_packets: 20\n     [1]: tx_ucast_packets: 5\n"
    ),
    "ena": "     queue_0_tx_cnt: 3\n     queue_0_rx_cnt: 10\n     queue_1_rx_cnt: 20\n",
    "virtio_net": "     rx0_packets: 10\n     rx0_drops: 2\n     rx1_packets: 20\n",
    "sfc": "     rx-0.rx_packets: 10\n     rx-1.rx_packets: 20\n",
    "gve": "     rx_packets: 30\n     rx_packets[0]: 10\n     rx_packets[1]: 20\n",
    "veth": "     rx_queue_0_xdp_packets: 10\n     rx_queue_0_drops: 1\n     rx_queue_1_xdp_packets: 20\n",
}


@pytest.mark.parametrize("driver", STATISTICS)
def test_each_driver_says_what_its_queues_got(driver: str) -> None:
    assert parse_queues("NIC statistics:\n" + STATISTICS[driver], driver) == (10, 20)


def test_a_driver_that_is_not_known_says_nothing() -> None:
    assert parse_queues(STATISTICS["igb"], "e1000") == ()
    assert parse_queues("no stats available", "igb") == ()


def test_frames_of_cores_are_those_of_the_cpu_that_the_line_names() -> None:
    columns = "{:08x} 00000000 00000000 0 0 0 0 0 0 0 0 0 {:08x} 0 0"
    text = "\n".join((columns.format(4096, 0), columns.format(255, 2)))
    assert parse_softnet(text) == {0: 4096, 2: 255}
    assert parse_softnet("00000010 0 0 0 0 0 0 0 0 0 0\n00000020 0 0 0 0 0 0 0 0 0 0") == {0: 16, 1: 32}


def test_softirqs_are_those_of_received_frames() -> None:
    text = "          CPU0       CPU2\n   HI:          1          2\n   NET_RX:         30         40\n"
    assert parse_network_softirqs(text) == {0: 30, 2: 40}
    assert parse_network_softirqs("") == {}


def test_the_kernels_word_of_queues_counts_before_the_drivers() -> None:
    """Linux 6.18 has frames of virtio_net's queues by netlink alone; a veth has them in ethtool alone."""
    said = {
        "queues of the kernel": '{"eth0": {"0": 7, "1": 5}}',
        "eth0": "     rx0_packets: 1\n     rx1_packets: 2\n",
        "d0": "     rx_queue_0_xdp_packets: 3\n",
    }
    look = look_of(said, {"eth0": "virtio_net", "d0": "veth"})
    assert look.queues == {"eth0": (7, 5), "d0": (3,)}
    assert look.of_kernel == {"eth0"}
    assert look_of({**said, "queues of the kernel": ""}, {"eth0": "virtio_net"}).queues == {"eth0": (1, 2)}
