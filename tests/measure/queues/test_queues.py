"""What receive queues and cores got, and what the hash lets expect."""

from __future__ import annotations

import pytest

from nicbench.core.headers import Fields, Sweep
from nicbench.core.machine import ReceiveHash
from nicbench.core.reading import Counts
from nicbench.core.traffic import StreamSpec, Traffic
from nicbench.core.trial import StreamReading
from nicbench.measure.queues import (
    NotExpectedError,
    expected_frames,
    hash_of,
    look_of,
    parse_network_softirqs,
    parse_queues,
    parse_softnet,
    queues_of_flows,
)
from nicbench.testbed.addressing import flow_headers
from nicbench.testbed.duts.base import Addressing

# Frames of queues and cores, as drivers and the kernel print them.

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


# The queue of each flow, by key and table.

# Microsoft, "Verifying the RSS Hash Calculation".
KEY = (
    "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:"
    "ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa"
)
HASH = ReceiveHash(function="toeplitz", key=KEY, key_from="ethtool -x", table=tuple(range(8)) * 16, fields="sdfn")
WAY = Addressing(
    transmit=0, receive=1, source_mac="02:00:00:00:00:01", destination_mac="02:00:00:00:00:02", ip=4,
    source_address="66.9.149.187", destination_address="161.142.100.80",
)  # fmt: skip
SHOWN = """RX flow hash indirection table for d0 with 2 RX ring(s):
    0:      0     1     0     1
RSS hash key:
Operation not supported
RSS hash function:
    toeplitz: on
    xor: off
"""
FIELDS = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n"


def one_flow(**more: object) -> StreamSpec:
    return StreamSpec.model_validate(
        {"name": "all", "share": 1.0, "flows": 1, "source_port": 2794, "destination_port": 1766, **more}
    )


def sent(frames: int) -> StreamReading:
    counts = Counts(intended=frames, sent=frames, received=frames, lost=0)
    return StreamReading(name="0->1", counts=counts)


def test_the_flow_of_the_specification_goes_to_the_queue_of_its_hash() -> None:
    assert list(queues_of_flows(HASH, one_flow(), WAY)) == [0x51CCC178 % 8]
    without_ports = HASH.replace(fields="sd")
    assert list(queues_of_flows(without_ports, one_flow(), WAY)) == [0x323E8FC2 % 8]


def test_flows_are_numbered_as_the_engine_numbers_them() -> None:
    fields = Fields(source_port=Sweep(first=1000, count=3), destination_port=Sweep(first=7, count=2))
    way = WAY.__class__(**{**{name: getattr(WAY, name) for name in WAY.__slots__}, "source_address_count": 2})
    stream = one_flow(flows=12, fields=fields)
    digits = [(each.source[-1] - 187, each.source_port, each.destination_port) for each in flow_headers(stream, way)]
    assert digits[:4] == [(0, 1000, 7), (1, 1000, 7), (0, 1001, 7), (1, 1001, 7)]
    assert digits[6] == (0, 1000, 8)
    assert len(set(digits)) == 12


def test_frames_that_do_not_divide_go_to_the_first_flows() -> None:
    traffic = Traffic(flows=4, fields=Fields(source_port=Sweep(first=1000, count=4)))
    queues = list(queues_of_flows(HASH, traffic.port_streams()[0], WAY))
    frames = expected_frames(HASH, traffic, [sent(10)], [WAY], 8)
    assert sum(frames) == 10
    by_queue = [0] * 8
    for queue, count in zip(queues, (3, 3, 2, 2), strict=True):
        by_queue[queue] += count
    assert frames == tuple(by_queue)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"table": ()}, "no indirection table"),
        ({"function": "xor"}, "function is xor"),
        ({"key": None}, "key of the hash"),
        ({"fields": "s"}, "fields of the hash are s"),
        ({"key": "6d:5a"}, "too short"),
    ],
)
def test_what_is_not_known_is_named(known: dict[str, object], why: str) -> None:
    with pytest.raises(NotExpectedError, match=why):
        expected_frames(HASH.replace(**known), Traffic(flows=1), [sent(1)], [WAY], 8)


def test_frames_in_a_tunnel_are_not_computed() -> None:
    with pytest.raises(NotExpectedError, match="outer or the inner"):
        expected_frames(HASH, Traffic.model_validate({"vxlan": {"vni": 5}}), [sent(1)], [WAY], 8)


def test_the_queues_of_very_many_flows_are_not_computed() -> None:
    with pytest.raises(NotExpectedError, match="65536 flows at most"):
        expected_frames(HASH, Traffic(flows=65_537), [sent(1)], [WAY], 8)


def test_a_driver_that_shows_no_key_has_that_of_the_kernel() -> None:
    found = hash_of(SHOWN, FIELDS, "AA:BB\n")
    assert (found.key, found.key_from, found.fields, found.table) == (
        "aa:bb",
        "the kernel's netdev_rss_key",
        "sd",
        (0, 1, 0, 1),
    )
    assert hash_of("", FIELDS, "aa:bb") == ReceiveHash()
