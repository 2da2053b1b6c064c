"""Whatever a header is given, Scapy reads the same from the frame; and the tables are those of snappi's model."""

from __future__ import annotations

from typing import Any

import pytest
import scapy.all as scapy
import snappi
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS

from nicbench.otg.headers import ENCODERS

from .frames import frame_of, header, program_of

_BEFORE: dict[str, list[dict[str, Any]]] = {
    "udp": [header("ethernet"), header("ipv4")],
    "tcp": [header("ethernet"), header("ipv6")],
    "vxlan": [header("ethernet"), header("ipv4"), header("udp", dst_port=4789)],
    "gtpv1": [header("ethernet"), header("ipv4"), header("udp", dst_port=2152)],
    "ethernet": [],
}
_UPPER: dict[str, list[dict[str, Any]]] = {"mpls": [header("ipv4")], "vxlan": [header("ethernet")]}
# What Scapy calls the fields of a header, and their bits.
_FIELDS: dict[str, tuple[Any, dict[str, tuple[str, int]]]] = {
    "vlan": (scapy.Dot1Q, {"priority": ("prio", 3), "cfi": ("dei", 1), "id": ("vlan", 12)}),
    "mpls": (MPLS, {"label": ("label", 20), "traffic_class": ("cos", 3), "time_to_live": ("ttl", 8)}),
    "ipv4": (
        scapy.IP,
        {
            "identification": ("id", 16),
            "fragment_offset": ("frag", 13),
            "time_to_live": ("ttl", 8),
            "protocol": ("proto", 8),
            "total_length": ("len", 16),
        },
    ),
    "ipv6": (scapy.IPv6, {"traffic_class": ("tc", 8), "flow_label": ("fl", 20), "hop_limit": ("hlim", 8)}),
    "udp": (scapy.UDP, {"src_port": ("sport", 16), "dst_port": ("dport", 16), "length": ("len", 16)}),
    "tcp": (
        scapy.TCP,
        {"src_port": ("sport", 16), "seq_num": ("seq", 32), "ack_num": ("ack", 32), "window": ("window", 16)},
    ),
    "vxlan": (scapy.VXLAN, {"vni": ("vni", 24), "reserved1": ("reserved2", 8)}),
    "arp": (scapy.ARP, {"operation": ("op", 16)}),
    "gtpv1": (GTP_U_Header, {"message_type": ("gtp_type", 8), "teid": ("teid", 32), "message_length": ("length", 16)}),
}


@st.composite
def headers(draw: st.DrawFn) -> tuple[str, dict[str, Any], int]:
    """A header class, a pattern for some of its fields, and the number of the frame that is looked at."""
    kind = draw(st.sampled_from(sorted(_FIELDS)))
    fields = {}
    for name, (_, bits) in _FIELDS[kind][1].items():
        if draw(st.booleans()):
            fields[name] = draw(patterns(bits))
    return kind, fields, draw(st.integers(0, 400))


@st.composite
def patterns(draw: st.DrawFn, bits: int) -> dict[str, Any]:
    """A pattern of a field of so many bits."""
    number = st.integers(0, 2**bits - 1)
    choice = draw(st.sampled_from(["value", "values", "increment", "decrement"]))
    if choice == "value":
        return {"choice": "value", "value": draw(number)}
    if choice == "values":
        return {"choice": "values", "values": draw(st.lists(number, min_size=1, max_size=7))}
    return {"choice": choice, choice: {"start": draw(number), "step": draw(number), "count": draw(st.integers(1, 300))}}


def expected(pattern: dict[str, Any], bits: int, number: int) -> int:
    """The value that the model's own words give frame ``number``."""
    choice = pattern["choice"]
    if choice == "value":
        return int(pattern["value"])
    if choice == "values":
        return int(pattern["values"][number % len(pattern["values"])])
    counter = pattern[choice]
    steps = number % counter["count"] * counter["step"]
    return int(counter["start"] + (steps if choice == "increment" else -steps)) % 2**bits


@settings(max_examples=150)
@given(headers())
def test_scapy_reads_what_a_header_was_given(drawn: tuple[str, dict[str, Any], int]) -> None:
    kind, fields, number = drawn
    layer, names = _FIELDS[kind]
    before = _BEFORE.get(kind, [header("ethernet")])
    packet = [*before, header(kind, **fields), *_UPPER.get(kind, [])]
    frame = frame_of(program_of(packet, size={"fixed": 200}), number)
    skipped = len(bytes.fromhex(program_of(before, size={"fixed": 200})["template"])) if before else 0
    read = layer(frame[skipped:])
    for name, pattern in fields.items():
        scapy_name, bits = names[name]
        assert getattr(read, scapy_name) == expected(pattern, bits, number), name


_UNSET = {"tpid", "pfc_queue", "dst_usids", "options", "priority", "extension_headers", "metric_tags", "choice"}


@pytest.mark.parametrize(
    "kind", ["ethernet", "vlan", "mpls", "ppp", "ethernetpause", "pfcpause", "ipv4", "ipv6", "arp"]
)
def test_what_is_not_given_is_what_the_model_says(kind: str) -> None:
    flow = snappi.Config().flows.add(name="f")
    getattr(flow.packet, kind)()
    message = flow.packet[0]
    given = {}
    for name in set(message._TYPES) - _UNSET:
        pattern = getattr(message, name)
        if "value" in getattr(pattern, "_TYPES", {}) and pattern.choice == "value":
            given[name] = {"choice": "value", "value": pattern.value}
    sizes = {"fixed": 128}
    plain = program_of([{"choice": kind, kind: {}}], size=sizes)
    explicit = program_of([{"choice": kind, kind: given}], size=sizes)
    assert given
    assert plain["template"] == explicit["template"]


def test_every_header_class_of_the_model_is_encoded_or_refused_by_name() -> None:
    classes = set(snappi.FlowHeader._TYPES["choice"]["enum"])
    refused = {"snmpv2c", "rsvp", "macsec", "lacp", "ipv6_extension_header", "cfm"}
    assert set(ENCODERS) == classes - refused
