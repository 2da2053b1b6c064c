"""From the tunnels of a bench file to the layers of the protocol, as sent and as they come back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from nicbench.bench_file.frame_sizes import describe_headers, growth_bytes, smallest_frame_bytes
from nicbench.core.traffic import Traffic
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_streams import stream_requests

WAY = Addressing(
    transmit=0,
    receive=1,
    source_mac="02:00:00:00:00:00",
    destination_mac="02:00:00:00:00:01",
    ip=4,
    source_address="198.18.64.0",
    destination_address="198.19.64.0",
)
BACK = dataclasses.replace(
    WAY, transmit=1, receive=0, source_address=WAY.destination_address, destination_address=WAY.source_address
)
ENDS = {"source": "192.0.2.7", "destination": "192.0.2.9"}
GRE = {"kind": "gre", "key": 7, **ENDS}
VXLAN = {"kind": "vxlan", "vni": 9, **ENDS}


def traffic(**written: Any) -> Traffic:
    return Traffic.model_validate_json(json.dumps(written), strict=True)


def stream(way: Addressing = WAY, **written: Any) -> dict[str, Any]:
    (found,) = stream_requests(traffic(**written), way, 256, [1000.0], 1.0)
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
    assert "received_layers" not in stream(dataclasses.replace(WAY, is_direct=True), tunnels=[GRE], arrives=[])
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
    assert smallest_frame_bytes(traffic(tunnels=[GRE])) == 90  # 14 + 20 + 8 + 20 + 8 + 16 + 4
    assert smallest_frame_bytes(traffic(tunnels=[GRE], arrives=[])) == 92  # 64 behind the tunnel
    assert growth_bytes(traffic(arrives=[VXLAN]), 4) == 50
    assert describe_headers(traffic(vlan=5, tunnels=[VXLAN]), 4) == "802.1Q, VXLAN, Ethernet, IPv4, UDP"


def test_frames_without_a_signature_say_so_and_how_they_are_counted() -> None:
    raw = stream(raw_frame="020000000002 020000000001 88b5 00", signature=False, filter=[{"at": 12, "hex": "88 b5"}])
    assert (raw["unsigned"], raw["filter"]) == (True, [{"at": 12, "hex": "88b5"}])
    assert smallest_frame_bytes(traffic(raw_frame="02" * 70, signature=False)) == 74
    assert stream(pcap="x.pcap", signature=False)["unsigned"]
    assert "unsigned" not in stream(pcap="x.pcap")
