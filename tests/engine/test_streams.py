"""From a bench file's traffic to the streams of the protocol."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether

from nicbench.bench_file.frame_sizes import describe_headers, growth_bytes, smallest_frame_bytes
from nicbench.core.errors import UsageError
from nicbench.core.frame_size import IMIX
from nicbench.core.headers import Codepoint, PauseTrain, Pausing, pause_frame, pause_seconds
from nicbench.core.traffic import MacTable, StreamLoad, Traffic, stream_rates_frames_per_s
from nicbench.core.trial import Phase, Purpose, TrialRequest
from nicbench.core.units import line_rate_frames_per_s
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_streams import (
    is_beside,
    mac_requests,
    pause_requests,
    phase_requests,
    stream_requests,
    with_codepoint,
    with_own_loads,
)
from nicbench.testbed.testers._packet_engine import transmission_s

WAY = Addressing(
    transmit=0,
    receive=1,
    source_mac="02:00:00:00:00:00",
    destination_mac="02:00:00:00:00:01",
    ip=4,
    source_address="198.18.64.0",
    destination_address="198.19.64.0",
    source_address_count=32_768,
)


def traffic(**written: Any) -> Traffic:
    return Traffic.model_validate_json(json.dumps(written), strict=True)


def streams(size: Any = 128, load: float | None = 1000.0, **written: Any) -> list[dict[str, Any]]:
    rates = stream_rates_frames_per_s(traffic(**written), load)
    return stream_requests(traffic(**written), WAY, size, rates, 2.0)


def layer_names(stream: dict[str, Any]) -> list[str]:
    return [layer["layer"] for layer in stream["layers"]]


def phased(**written: Any) -> tuple[list[dict[str, Any]], list[int]]:
    frames = traffic(**written)

    def at(load: float, count: int) -> list[dict[str, Any]]:
        return stream_requests(frames, WAY, 64, stream_rates_frames_per_s(frames, load), math.inf, count)

    phases = (Phase(load_frames_per_s=1100.0, duration_s=2.0), Phase(load_frames_per_s=550.0, duration_s=0.5))
    return phase_requests(phases, at)


def test_phases_are_streams_of_the_same_frames_one_after_another() -> None:
    (first, second), numbers = phased(flows=8)
    assert numbers == [1, 2]
    assert [first[key] for key in ("name", "begins_s", "rate_frames_per_s", "frames")] == [
        "0->1 phase 1",
        0,
        1100,
        2200,
    ]
    assert [second[key] for key in ("name", "begins_s", "rate_frames_per_s", "frames")] == ["0->1 phase 2", 2, 550, 275]
    differing = {"name", "begins_s", "rate_frames_per_s", "frames"}
    assert {key: first[key] for key in first.keys() - differing} == {
        key: second[key] for key in second.keys() - differing
    }


def test_each_stream_of_a_port_has_its_share_of_each_phase() -> None:
    shares = [{"name": "a", "share": 0.75}, {"name": "b", "share": 0.25}]
    found, numbers = phased(streams=shares)
    assert numbers == [1, 1, 2, 2]
    assert [stream["frames"] for stream in found] == [1650, 550, 206, 69]


def test_a_burst_that_is_too_short_for_every_stream_goes_to_some() -> None:
    several = traffic(streams=[{"name": name, "share": share} for name, share in (("a", 0.6), ("b", 0.3), ("c", 0.1))])
    rates = stream_rates_frames_per_s(several, 1000.0)
    for frames in range(1, 12):
        parts = [one["frames"] for one in stream_requests(several, WAY, 64, rates, 1.0, frames)]
        assert sum(parts) == frames
        assert all(parts)


def test_plain_traffic_is_told_in_the_flat_fields() -> None:
    (stream,) = streams(flows=8)
    assert "layers" not in stream
    assert (stream["flows"], stream["frame_bytes"], stream["name"]) == (8, 128, "0->1")
    assert (stream["source_address_count"], stream["hop_limit"]) == (32_768, 64)


@pytest.mark.parametrize(
    ("written", "names", "smallest"),
    [
        ({"vlan": 100}, ["ethernet", "vlan", "ipv4", "udp"], 66),
        ({"vlan": [200, 100]}, ["ethernet", "vlan", "vlan", "ipv4", "udp"], 70),
        ({"protocol": "tcp"}, ["ethernet", "ipv4", "tcp"], 74),
        ({"udp_checksum": True}, ["ethernet", "ipv4", "udp"], 64),
        ({"raw": "00 01 02 03"}, ["ethernet", "ipv4", "udp", "raw"], 66),
        ({"vxlan": {"vni": 7}}, ["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"], 112),
    ],
    ids=["802.1Q", "QinQ", "TCP", "UDP with checksum", "raw", "VXLAN"],
)
def test_headers_are_layers_and_say_the_smallest_frame(written: Any, names: list[str], smallest: int) -> None:
    (stream,) = streams(**written)
    assert layer_names(stream) == names
    assert smallest_frame_bytes(traffic(**written)) == smallest


def test_of_two_tags_the_outer_one_is_the_providers_and_fields_go_to_the_inner() -> None:
    (stream,) = streams(vlan=[200, 100], fields={"vlan": {"first": 100, "count": 4}, "vlan_priority": 5})
    outer, inner = stream["layers"][1:3]
    assert outer == {"layer": "vlan", "tpid": 0x88A8, "id": 200}
    assert inner["id"] == {"first": 100, "count": 4, "step": 1, "seed": None}
    assert (inner["tpid"], inner["priority"]) == (0x8100, 5)


def test_a_drawn_field_has_its_seed() -> None:
    (stream,) = streams(fields={"source_port": {"first": 1024, "count": 64_512, "seed": 7}})
    assert stream["layers"][-1]["source"] == {"first": 1024, "count": 64_512, "step": 1, "seed": 7}


def test_streams_share_the_rate_and_take_what_they_leave_out_from_the_traffic() -> None:
    bulk, small = streams(
        vlan=5,
        flows=99,
        streams=[{"name": "bulk", "share": 0.9}, {"name": "small", "share": 0.1, "flows": 2, "burst_frames": 4}],
    )
    assert (bulk["name"], bulk["rate_frames_per_s"], bulk["flows"]) == ("0->1 bulk", 900.0, 99)
    assert (small["name"], small["flows"], small["burst_frames"]) == ("0->1 small", 2, 4)
    assert layer_names(small) == ["ethernet", "vlan", "ipv4", "udp"]


def test_as_fast_as_the_port_takes_frames_there_are_no_bursts() -> None:
    (stream,) = streams(load=None, burst_frames=16)
    assert stream["rate_frames_per_s"] == 0.0
    assert "burst_frames" not in stream


def test_a_mix_is_sizes_with_weights_and_its_line_rate_is_that_of_the_mean() -> None:
    (stream,) = streams(size=IMIX)
    assert [(size["frame_bytes"], size["weight"]) for size in stream["sizes"]] == [(64, 7), (570, 4), (1518, 1)]
    assert line_rate_frames_per_s(10e9, IMIX.frame_bytes) == pytest.approx(12 * 10e9 / 8 / (4246 + 12 * 20))


STREAMS = [
    {"name": "bulk", "share": 0.75},
    {"name": "voice", "rate": 100.0},
    {"name": "rest", "share": 0.25},
    {"name": "clock", "rate": 20.0},
]


def test_streams_with_a_rate_of_their_own_keep_it_and_the_others_share_what_is_left_of_the_load() -> None:
    assert [stream["rate_frames_per_s"] for stream in streams(load=1000.0, streams=STREAMS)] == [660, 100, 220, 20]
    assert [stream["rate_frames_per_s"] for stream in streams(load=5120.0, streams=STREAMS)] == [3750, 100, 1250, 20]


def test_of_a_load_below_their_own_rates_streams_leave_a_hundredth_to_the_others() -> None:
    rates = [stream["rate_frames_per_s"] for stream in streams(load=60.0, streams=STREAMS)]
    assert rates == pytest.approx([0.45, 49.5, 0.15, 9.9])
    assert sum(rates) == pytest.approx(60.0)


def test_a_fixed_number_of_frames_ends_a_stream_that_would_send_more_and_no_other() -> None:
    (stream,) = streams(load=1000.0, frames=500)
    assert stream["frames"] == 500
    for load in (250.0, 100.0, None):  # 2 s of them are as many, fewer, and as fast as it goes
        (stream,) = streams(load=load, frames=500)
        assert "frames" not in stream


def test_a_number_of_frames_of_the_port_is_shared_out_to_the_last_frame() -> None:
    made = traffic(
        streams=[{"name": name, "share": share} for name, share in (("a", "33 %"), ("b", "33 %"), ("c", "34 %"))]
    )
    rates = stream_rates_frames_per_s(made, 1000.0)
    parts = [stream["frames"] for stream in stream_requests(made, WAY, 128, rates, 2.0, 1001)]
    assert sum(parts) == 1001
    assert parts == [330, 331, 340]
    (whole,) = stream_requests(traffic(), WAY, 128, [1000.0], 2.0, 1500)
    assert whole["frames"] == 1500


def test_a_raw_frame_is_sent_as_it_stands_and_says_the_smallest_frame() -> None:
    (stream,) = streams(raw_frame="02 00 00 00 00 01 02 00 00 00 00 00 88 b5" + " 00" * 40)
    assert stream["layers"] == [{"layer": "raw", "hex": "02000000000102000000000088b5" + "00" * 40}]
    assert (stream["flows"], "source_mac" in stream) == (1, False)
    assert smallest_frame_bytes(traffic(raw_frame="00" * 54)) == 54 + 16 + 4


def test_a_sweep_is_every_size_in_turn_and_its_mean_is_theirs() -> None:
    written = traffic(mixes={"every": {"smallest": 64, "largest": 70, "step": 3}})
    every = written.mix("every")
    assert every.frame_bytes == 67.0
    (stream,) = stream_requests(written, WAY, every, [1000.0], 1.0)
    assert stream["size_sweep"] == {"from": 64, "to": 70, "step": 3}
    assert "frame_bytes" not in stream


def test_streams_with_sizes_of_their_own_send_those_whatever_the_tests() -> None:
    own = [{"name": "a", "share": 0.5, "frame_bytes": 64}, {"name": "b", "share": 0.5, "frame_bytes": "imix"}]
    small, mixed = streams(size=1518, streams=own)
    assert (small["frame_bytes"], len(mixed["sizes"])) == (64, 3)


def test_a_capture_gets_the_addresses_of_the_link_and_no_headers() -> None:
    (stream,) = streams(pcap="/captures/a.pcap", signature_offset=60)
    assert (stream["pcap"], stream["signature_offset"]) == ("/captures/a.pcap", 60)
    assert stream["destination_mac"] == WAY.destination_mac
    assert "layers" not in stream


def test_streams_with_loads_of_a_trial_send_those_in_its_sizes_and_the_others_nothing() -> None:
    written = traffic(streams=[{"name": name, "share": "25 %"} for name in ("a", "b", "c", "d")])
    loads = (
        StreamLoad(stream="d", load_frames_per_s=10.0, size=IMIX),
        StreamLoad(stream="b", load_frames_per_s=5.0, size=90),
    )
    sized, rates = with_own_loads(written, loads)
    sent = stream_requests(sized, WAY, 64, rates, 1.0)
    assert [(one["name"], one["rate_frames_per_s"]) for one in sent] == [("0->1 b", 5.0), ("0->1 d", 10.0)]
    assert (sent[0]["frame_bytes"], [one["frame_bytes"] for one in sent[1]["sizes"]]) == (90, [64, 570, 1518])


def test_addresses_are_taught_one_way_and_looked_for_the_other_after_a_pause() -> None:
    back = dataclasses.replace(WAY, transmit=1, receive=0, source_mac="02:00:00:00:00:01")
    macs = MacTable(addresses=100, learning_frames_per_s=50.0, pause_s=1.0)
    learning, test = mac_requests((WAY, back), 64, macs, 200.0)
    assert [(one["name"], one["begins_s"], one["frames"]) for one in (learning, test)] == [
        ("0->1 learning", 0.0, 100), ("1->0 test", 3.0, 100),
    ]  # fmt: skip
    assert learning["layers"][0]["source"] == test["layers"][0]["destination"]
    assert (learning["layers"][0]["source"]["count"], test["rate_frames_per_s"]) == (100, 200.0)


# Pause frames byte by byte as another program makes them, and the streams of a trial with them.

MAC = "02:00:00:00:00:09"
PAUSE_WAY = Addressing(0, 1, "02:00:00:00:00:01", MAC, 4, "198.18.0.2", "198.19.0.2")
TO = "01:80:c2:00:00:01"


def matches(stream: dict[str, object], frame: bytes) -> bool:
    filters = stream["filter"]
    assert isinstance(filters, list)
    for one in filters:
        wanted = bytes.fromhex(one["hex"])
        mask = bytes.fromhex(one.get("mask", "ff" * len(wanted)))
        found = frame[one["at"] : one["at"] + len(wanted)]
        if any((a ^ b) & c for a, b, c in zip(found, wanted, mask, strict=True)):
            return False
    return True


def test_frames_are_those_that_scapy_makes() -> None:
    link = Ether(src=MAC, dst=TO)
    pfc = link / MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=1000)
    pause = link / MACControlPause(pause_time=77)
    assert pause_frame(MAC, 3, 1000) == bytes(pfc).ljust(60, b"\0")
    assert pause_frame(MAC, None, 77) == bytes(pause).ljust(60, b"\0")


def test_quanta_last_longer_on_a_slower_link() -> None:
    assert pause_seconds(65_535, 100e9) == pytest.approx(0.000335539, rel=1e-4)


def test_frames_of_the_dut_are_told_from_our_own_and_by_their_priority() -> None:
    train = PauseTrain(priority=3, quanta=9, frames=2, frames_per_s=10.0, begins_s=0.5)
    ours, ended, heard = pause_requests(PAUSE_WAY, Pausing(trains=(train,), priority=3))
    assert [is_beside(one["name"]) for one in (ours, ended, heard)] == [True] * 3
    assert not is_beside("0->1 storage")
    assert {(one["transmit_port"], one["receive_port"]) for one in (ours, ended, heard)} == {(1, 0)}
    other = "02:00:00:00:00:0a"
    classes = MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=5, c4_enabled=1)
    both = bytes(Ether(src=other, dst=TO) / classes)
    assert [matches(one, both) for one in (ours, ended, heard)] == [False, False, True]
    assert [matches(one, pause_frame(other, 3, 0)) for one in (ours, ended, heard)] == [False, True, True]
    assert [matches(one, pause_frame(other, 4, 5)) for one in (ours, ended, heard)] == [False] * 3
    assert matches(ours, pause_frame(MAC, 3, 9))


def test_the_transmission_lasts_until_the_last_pause_frame() -> None:
    train = PauseTrain(priority=None, quanta=9, frames=11, frames_per_s=10.0, begins_s=0.5)
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=10.0, duration_s=1.0, drain_s=0.0, settle_s=0.0, purpose=Purpose.PAUSE,
        pausing=Pausing(trains=(train,)),
    )  # fmt: skip
    assert transmission_s(request) == pytest.approx(1.51)


def test_the_codepoint_is_set_and_the_dscp_stays_that_of_the_stream() -> None:
    traffic = Traffic.model_validate({
        "fields": {"traffic_class": 0xB8},
        "streams": [
            {"name": "a", "share": 0.5},
            {"name": "b", "share": 0.5, "fields": {"traffic_class": 0x63}},
        ],
    })  # fmt: skip
    marked = with_codepoint(traffic, Codepoint.ECT_0)
    classes = [one["layers"][1]["traffic_class"] for one in stream_requests(marked, PAUSE_WAY, 128, (1.0, 1.0), 1.0)]
    assert classes == [0xBA, 0x62]
    assert with_codepoint(traffic, None) is traffic


def test_classes_that_vary_are_refused() -> None:
    traffic = Traffic.model_validate({"fields": {"traffic_class": {"first": 0, "count": 4}}})
    with pytest.raises(UsageError, match="ECN bits of every frame"):
        with_codepoint(traffic, Codepoint.CE)


# From the tunnels of a bench file to the layers of the protocol, as sent and as they come back.

TUNNEL_WAY = Addressing(
    transmit=0,
    receive=1,
    source_mac="02:00:00:00:00:00",
    destination_mac="02:00:00:00:00:01",
    ip=4,
    source_address="198.18.64.0",
    destination_address="198.19.64.0",
)
BACK = dataclasses.replace(
    TUNNEL_WAY,
    transmit=1,
    receive=0,
    source_address=TUNNEL_WAY.destination_address,
    destination_address=TUNNEL_WAY.source_address,
)
ENDS = {"source": "192.0.2.7", "destination": "192.0.2.9"}
GRE = {"kind": "gre", "key": 7, **ENDS}
VXLAN = {"kind": "vxlan", "vni": 9, **ENDS}


def tunnel_traffic(**written: Any) -> Traffic:
    return Traffic.model_validate_json(json.dumps(written), strict=True)


def stream(way: Addressing = TUNNEL_WAY, **written: Any) -> dict[str, Any]:
    (found,) = stream_requests(tunnel_traffic(**written), way, 256, [1000.0], 1.0)
    return found


def names(layers: list[dict[str, Any]]) -> list[str]:
    return [layer["layer"] for layer in layers]


def addresses(layers: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    def first(value: Any) -> Any:
        return value["first"] if isinstance(value, dict) else value

    return [(first(one["source"]), first(one["destination"])) for one in layers if one["layer"].startswith("ip")]


def test_a_tunnel_with_its_ends_carries_packets_that_are_addressed_through_the_dut() -> None:
    layers = stream(tunnels=[GRE])["layers"]
    assert names(layers) == ["ethernet", "ipv4", "gre", "ipv4", "udp"]
    assert addresses(layers) == [("192.0.2.7", "192.0.2.9"), ("198.18.64.0", "198.19.64.0")]


def test_a_tunnel_without_ends_is_addressed_through_the_dut_itself() -> None:
    layers = stream(tunnels=[{"kind": "gtp-u", "teid": 5}])["layers"]
    assert names(layers) == ["ethernet", "ipv4", "udp", "gtp", "ipv4", "udp"]
    assert addresses(layers) == [("198.18.64.0", "198.19.64.0"), ("192.0.2.1", "192.0.2.2")]


@pytest.mark.parametrize(
    ("tunnels", "expected"),
    [
        ([VXLAN], ["ipv4", "udp", "vxlan", "ethernet"]),
        ([{"kind": "geneve", "vni": 1, "ethernet": False, **ENDS}], ["ipv4", "udp", "geneve"]),
        ([{"kind": "mpls", "label": 16}, {"kind": "mpls", "label": 17}], ["mpls", "mpls"]),
        ([{"kind": "srv6", "segments": ["fc00::1"]}], ["ipv6", "segment_routing"]),
        ([{"kind": "pppoe", "session": 3}], ["pppoe"]),
        ([{"kind": "ip", **ENDS}], ["ipv4"]),
        ([GRE, {"kind": "mpls", "label": 17, "ethernet": True}], ["ipv4", "gre", "mpls", "ethernet"]),
    ],
)
def test_each_kind_has_its_layers_behind_the_tags(tunnels: Any, expected: list[str]) -> None:
    layers = stream(vlan=5, tunnels=tunnels)["layers"]
    assert names(layers) == ["ethernet", "vlan", *expected, "ipv4", "udp"]


def test_where_a_tunnel_ends_in_the_dut_frames_come_back_without_it_and_the_other_way_round() -> None:
    there = stream(tunnels=[GRE], arrives=[])
    assert names(there["received_layers"]) == ["ethernet", "ipv4", "udp"]
    back = stream(BACK, tunnels=[GRE], arrives=[])
    assert names(back["layers"]) == ["ethernet", "ipv4", "udp"]
    assert addresses(back["received_layers"]) == [("192.0.2.9", "192.0.2.7"), ("198.19.64.0", "198.18.64.0")]


def test_without_a_dut_frames_come_back_as_they_were_sent() -> None:
    assert "received_layers" not in stream(dataclasses.replace(TUNNEL_WAY, is_direct=True), tunnels=[GRE], arrives=[])
    assert "received_layers" not in stream(tunnels=[GRE])


def test_the_port_that_the_beginning_of_a_tunnel_chooses_may_be_any() -> None:
    carrier = stream(arrives=[VXLAN])["received_layers"][2]
    assert carrier["source"] == {"first": 0, "count": 65_536, "step": 1, "seed": None}
    assert stream(arrives=[{**VXLAN, "source_port": 77}])["received_layers"][2]["source"] == 77


def test_fields_of_a_tunnel_differ_between_flows_as_those_of_the_packet_inside() -> None:
    labels = {"first": 100, "count": 8, "step": 1, "seed": None}
    layers = stream(tunnels=[{"kind": "mpls", "label": labels}], fields={"source_port": labels})["layers"]
    assert layers[1]["label"] == labels
    assert layers[3]["source"] == labels


def test_the_smallest_frame_holds_all_headers_and_is_whole_behind_the_tunnel() -> None:
    assert smallest_frame_bytes(tunnel_traffic(tunnels=[GRE])) == 90  # 14 + 20 + 8 + 20 + 8 + 16 + 4
    assert smallest_frame_bytes(tunnel_traffic(tunnels=[GRE], arrives=[])) == 92  # 64 behind the tunnel
    assert growth_bytes(tunnel_traffic(arrives=[VXLAN]), 4) == 50
    assert describe_headers(tunnel_traffic(vlan=5, tunnels=[VXLAN]), 4) == "802.1Q, VXLAN, Ethernet, IPv4, UDP"


def test_frames_without_a_signature_say_so_and_how_they_are_counted() -> None:
    raw = stream(raw_frame="020000000002 020000000001 88b5 00", signature=False, filter=[{"at": 12, "hex": "88 b5"}])
    assert (raw["unsigned"], raw["filter"]) == (True, [{"at": 12, "hex": "88b5"}])
    assert smallest_frame_bytes(tunnel_traffic(raw_frame="02" * 70, signature=False)) == 74
    assert stream(pcap="x.pcap", signature=False)["unsigned"]
    assert "unsigned" not in stream(pcap="x.pcap")
