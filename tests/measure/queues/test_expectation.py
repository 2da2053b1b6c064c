"""The queue of each flow, by key and table."""

from __future__ import annotations

import pytest

from nicbench.core.headers.fields import Fields, Sweep
from nicbench.core.queues import ReceiveHash
from nicbench.core.reading import Counts
from nicbench.core.traffic import StreamSpec, Traffic
from nicbench.core.trial import StreamReading
from nicbench.measure.queues import NotExpectedError, expected_frames, hash_of, queues_of_flows
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.flow_headers import flow_headers

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


def test_a_driver_that_shows_no_key_has_that_of_the_kernel() -> None:
    found = hash_of(SHOWN, FIELDS, "AA:BB\n")
    assert (found.key, found.key_from, found.fields, found.table) == (
        "aa:bb",
        "the kernel's netdev_rss_key",
        "sd",
        (0, 1, 0, 1),
    )
    assert hash_of("", FIELDS, "aa:bb") == ReceiveHash()
