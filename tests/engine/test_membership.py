"""Membership reports, byte by byte, and the streams of a trial with groups."""

from __future__ import annotations

import struct
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest
from tests.methods.known import reading_of

from nicbench.core.headers import Burden, Groups, group_address, group_mac
from nicbench.core.reading import Counts
from nicbench.core.trial import Purpose, StreamReading, TrialRequest
from nicbench.engine.reading import set_aside
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_groups import (
    beside_streams,
    broadcast_streams,
    group_requests,
    last_s,
    reports,
    with_broadcasts,
)

MAC = "02:00:00:00:00:09"


def sums_to_zero(data: bytes) -> bool:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def test_a_report_of_igmp_version_3_is_that_of_the_rfc() -> None:
    groups = [IPv4Address("239.192.0.1"), IPv4Address("239.192.0.2")]
    (frame,) = reports(MAC, "198.18.0.2", groups, leave=False, older=False)
    packet = bytes.fromhex(frame)
    assert packet[:14].hex() == "01005e000016" + "020000000009" + "0800"
    header, message = packet[14:38], packet[38:]
    assert (header[0], header[1], header[8], header[9]) == (0x46, 0xC0, 1, 2)
    assert header[16:].hex() == "e0000016" + "94040000"  # to 224.0.0.22, with the router alert option
    assert sums_to_zero(header)
    assert sums_to_zero(message)
    # RFC 3376 section 4.2: two records, each "exclude nothing" (4).
    assert message[:2].hex() + message[4:].hex() == "2200" + "00000002" + "04000000efc00001" + "04000000efc00002"


def test_a_leave_of_igmp_version_2_goes_to_all_routers() -> None:
    (frame,) = reports(MAC, "198.18.0.2", [IPv4Address("239.192.0.1")], leave=True, older=True)
    packet = bytes.fromhex(frame)
    assert packet[:6].hex() == "01005e000002"
    assert packet[38:40].hex() + packet[42:].hex() == "1700" + "efc00001"


@pytest.mark.parametrize(("older", "leave", "kind", "to"), [
    (False, False, 143, "333300000016"), (False, True, 143, "333300000016"),
    (True, False, 131, "333300010001"), (True, True, 132, "333300000002"),
])  # fmt: skip
def test_reports_of_mld_have_their_checksums(older: bool, leave: bool, kind: int, to: str) -> None:
    (frame,) = reports(MAC, "0.0.0.0", [IPv6Address("ff18::1:1")], leave=leave, older=older)
    packet = bytes.fromhex(frame)
    message = packet[62:]
    assert (packet[:6].hex(), message[0], packet[20], packet[21]) == (to, kind, 0, 1)
    assert packet[54:62].hex() == "3a00" + "050200000100"  # hop by hop: router alert for MLD
    pseudo = packet[22:54] + struct.pack("!II", len(message), 58)
    assert sums_to_zero(pseudo + message)


def test_many_groups_take_several_reports_that_fit_any_frame() -> None:
    for ip, most in ((4, 1518), (6, 1518)):
        frames = list(reports(MAC, "198.18.0.2", [group_address(ip, number) for number in range(400)],
                              leave=False, older=False))  # fmt: skip
        assert len(frames) == Groups(groups=400, members=1).reports(ip)
        assert max(len(frame) // 2 for frame in frames) + 20 <= most


def test_a_group_has_the_address_of_its_rfc() -> None:
    assert group_mac("239.192.0.1") == "01:00:5e:40:00:01"
    assert group_mac("ff18::1:1") == "33:33:00:01:00:01"


def way(receive: int) -> Addressing:
    return Addressing(
        transmit=0, receive=receive, source_mac="02:00:00:00:00:00", destination_mac=f"02:00:00:00:00:0{receive}",
        ip=4, source_address="198.18.64.0", destination_address=f"198.19.6{receive}.0",
        source_address_count=1, destination_address_count=1,
    )  # fmt: skip


def request(groups: Groups) -> TrialRequest:
    return TrialRequest(
        frame_bytes=128, load_frames_per_s=1000.0, duration_s=2.0, drain_s=0.0, settle_s=0.0, purpose=Purpose.LOSS,
        groups=groups,
    )  # fmt: skip


def test_members_join_before_the_load_and_leave_behind_it_and_others_are_watched() -> None:
    asked = request(Groups(groups=3, members=1, send_s=0.5))
    assert asked.groups is not None
    streams = group_requests([way(1), way(2)], 128, asked.groups, asked)
    assert [(one["name"], one["begins_s"], one.get("copy_of")) for one in streams] == [
        ("0->1", 0.5, None), ("0->2 watched", 0.5, 0), ("1->0 0 join", 0.0, None), ("1->0 0 leave", 2.55, None),
    ]  # fmt: skip
    load = streams[0]
    assert (load["frames"], load["flows"]) == (2000, 3)
    assert load["layers"][0]["destination"] == {"first": "01:00:5e:40:00:01", "count": 3}
    assert load["layers"][1]["destination"] == {"first": "239.192.0.1", "count": 3, "together": True}
    assert beside_streams(streams) == {"0->2 watched", "1->0 0 join", "1->0 0 leave"}
    assert last_s(asked.groups, asked) == pytest.approx(2.55)


def test_frames_to_all_stations_need_no_report_and_every_port_counts() -> None:
    asked = request(Groups(groups=0, members=1))
    assert asked.groups is not None
    streams = group_requests([way(1), way(2)], 128, asked.groups, asked)
    assert [one["name"] for one in streams] == ["0->1", "0->2"]
    assert streams[0]["layers"][0]["destination"] == "ff:ff:ff:ff:ff:ff"
    assert not beside_streams(streams)


def test_frames_to_stations_come_between_those_to_groups_at_each_port_in_turn() -> None:
    """RFC 3918 section 4.1: m1 u1 m2 u2 m1 u1 ..."""
    asked = request(Groups(groups=2, members=2, unicast=0.5, send_s=0.25))
    assert asked.groups is not None
    streams = group_requests([way(1), way(2)], 128, asked.groups, asked)
    load = {one["name"]: one for one in streams if one["name"] not in beside_streams(streams)}
    assert [(name, one["rate_frames_per_s"], one["begins_s"], one["frames"]) for name, one in load.items()] == [
        ("0->1", 500.0, 0.25, 1000), ("0->2", 500.0, 0.25, 1000),
        ("0->1 unicast", 250.0, 0.251, 500), ("0->2 unicast", 250.0, 0.253, 500),
    ]  # fmt: skip
    assert load["0->2 unicast"]["layers"][0]["destination"] == way(2).destination_mac


@pytest.mark.parametrize("gateway", [None, "02:00:00:00:00:ff"], ids=["switched", "routed"])
def test_burdening_ports_send_to_each_other_from_the_beginning_to_the_end(gateway: str | None) -> None:
    asked = request(Groups(groups=1, members=1, send_s=0.5, burden=Burden(rate=100.0, ports=3)))
    assert asked.groups is not None
    there = [way(port) for port in range(1, 5)]
    back = [
        replace(
            one, transmit=one.receive, receive=0,
            source_mac=one.destination_mac, source_address=one.destination_address,
            destination_mac=gateway or one.source_mac, destination_address=one.source_address,
        )
        for one in there
    ]  # fmt: skip
    streams = [one for one in group_requests([*there, *back], 128, asked.groups, asked) if "burden" in one["name"]]
    assert {one["name"].split()[0] for one in streams} == {"2->3", "2->4", "3->4", "3->2", "4->2", "4->3"}
    assert {(one["rate_frames_per_s"], one["frames"]) for one in streams} == {(50.0, 125)}
    assert beside_streams(streams) == {one["name"] for one in streams}
    first = next(one for one in streams if one["name"] == "2->4 burden")
    assert first["layers"][0] == {
        "layer": "ethernet", "source": way(2).destination_mac, "destination": gateway or way(4).destination_mac,
    }  # fmt: skip
    assert first["layers"][1]["destination"]["first"] == way(4).destination_address


def test_every_tenth_frame_of_a_port_is_a_broadcast_that_comes_to_every_other() -> None:
    ways = [way(1), replace(way(3), transmit=2), replace(way(1), transmit=1, receive=0)]
    load = [
        {"name": "0->1", "transmit_port": 0, "receive_port": 1, "rate_frames_per_s": 1000.0, "frames": 500},
        {"name": "2->3", "transmit_port": 2, "receive_port": 3, "rate_frames_per_s": 0.0},
    ]
    streams = with_broadcasts(load, ways, 128, 0.1)
    assert [(one["name"], one["rate_frames_per_s"], one.get("frames"), one.get("copy_of")) for one in streams] == [
        ("0->1", 900.0, 450, None), ("2->3", 0.0, None, None),
        ("0->1 to all", 100.0, 50, None), ("0->2 to all", 100.0, 50, 2), ("0->3 to all", 100.0, 50, 2),
    ]  # fmt: skip
    assert broadcast_streams(streams) == {"0->1 to all", "0->2 to all", "0->3 to all"}
    assert streams[2]["layers"][0]["destination"] == "ff:ff:ff:ff:ff:ff"


def test_what_is_no_load_is_in_no_count() -> None:
    lost = Counts(intended=1, sent=1, received=0, lost=1)
    came = Counts(intended=5, sent=5, received=5, lost=0)
    whole = reading_of(1.0, [StreamReading(name="0->1", counts=came), StreamReading(name="1->0 0 join", counts=lost)])
    apart = set_aside(whole, {"1->0 0 join"})
    assert (apart.counts.sent, apart.counts.lost, len(apart.streams)) == (5, 0, 1)
    assert [stream.name for stream in apart.beside] == ["1->0 0 join"]
