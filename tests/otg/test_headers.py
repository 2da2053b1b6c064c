"""Headers as they are sent, decoded by Scapy, which knows nothing of ours."""

from __future__ import annotations

from typing import Any

import pytest
import scapy.all as scapy
import snappi
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.gtp_v2 import GTPHeader as GtpV2
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.mpls import MPLS
from scapy.layers.igmp import IGMP

from nicbench.otg.headers import ENCODERS
from nicbench.otg.model import OtgError

from .frames import frame_of, header, program_of

ETHERNET = header("ethernet", dst="00:00:01:01:01:02", src="00:00:01:01:01:01")
IPV4 = header("ipv4", src="1.1.1.1", dst="1.1.1.2")
IPV6 = header("ipv6", src="2001:db8::1", dst="2001:db8::2")


def decoded(packet: list[dict[str, Any]], number: int = 0, size: int = 128, **members: Any) -> Any:
    return scapy.Ether(frame_of(program_of(packet, size={"fixed": size}, **members), number))


def recomputed(frame: Any, layer: Any, name: str) -> int:
    """The checksum that Scapy computes for a layer of this frame."""
    fresh = frame.copy()
    for each in (scapy.IP, scapy.UDP, scapy.TCP, scapy.ICMP, scapy.ICMPv6EchoRequest):
        if fresh.haslayer(each):
            fresh[each].delfieldval("cksum" if each is scapy.ICMPv6EchoRequest else "chksum")
    return int(getattr(type(fresh)(bytes(fresh))[layer], name))


def test_udp_over_ipv4_has_its_lengths_and_checksums() -> None:
    frame = decoded([ETHERNET, IPV4, header("udp", src_port=5000, dst_port=6000)])
    assert (frame.dst, frame.src, frame.type) == ("00:00:01:01:01:02", "00:00:01:01:01:01", 0x0800)
    ip, udp = frame[scapy.IP], frame[scapy.UDP]
    assert (ip.version, ip.ihl, ip.len, ip.ttl, ip.proto, ip.src, ip.dst) == (4, 5, 110, 64, 17, "1.1.1.1", "1.1.1.2")
    assert (udp.sport, udp.dport, udp.len) == (5000, 6000, 90)
    assert ip.chksum == recomputed(frame, scapy.IP, "chksum")
    assert udp.chksum == recomputed(frame, scapy.UDP, "chksum")


def test_tcp_over_ipv6_has_flags_offset_and_checksum() -> None:
    tcp = header(
        "tcp", src_port=80, dst_port=81, seq_num=7, ack_num=2**32 - 1, ctl_syn=1, ctl_ack=1, ecn_ns=1, window=9
    )
    frame = decoded([ETHERNET, IPV6, tcp])
    ip, read = frame[scapy.IPv6], frame[scapy.TCP]
    assert (ip.plen, ip.nh, ip.hlim, ip.src, ip.dst) == (70, 6, 64, "2001:db8::1", "2001:db8::2")
    assert (read.sport, read.dport, read.seq, read.ack, read.dataofs, read.window) == (80, 81, 7, 2**32 - 1, 5, 9)
    assert str(read.flags) == "SAN"
    assert read.chksum == recomputed(frame, scapy.TCP, "chksum")


@pytest.mark.parametrize(("upper", "layer"), [("udp", scapy.UDP), ("tcp", scapy.TCP)])
def test_a_bad_checksum_is_wrong_and_a_custom_one_is_sent_as_it_is(upper: str, layer: Any) -> None:
    bad = header("ipv4", header_checksum={"choice": "generated", "generated": "bad"})
    frame = decoded([ETHERNET, bad, header(upper, checksum={"choice": "custom", "custom": 0xBEEF})])
    assert frame[scapy.IP].chksum != recomputed(frame, scapy.IP, "chksum")
    assert frame[layer].chksum == 0xBEEF
    frame = decoded([ETHERNET, IPV4, header(upper, checksum={"choice": "generated", "generated": "bad"})])
    assert frame[layer].chksum != recomputed(frame, layer, "chksum")


def test_tags_stand_before_the_type_of_the_packet() -> None:
    tags = [header("vlan", id=100, priority=5, tpid=0x88A8), header("vlan", id=200, cfi=1)]
    frame = decoded([ETHERNET, *tags, IPV4])
    assert frame.type == 0x88A8
    outer, inner = frame[scapy.Dot1AD], frame[scapy.Dot1Q]
    assert (outer.vlan, outer.prio, outer.type) == (100, 5, 0x8100)
    assert (inner.vlan, inner.dei, inner.type) == (200, 1, 0x0800)


def test_a_type_and_a_tpid_for_one_place_are_refused() -> None:
    with pytest.raises(OtgError, match=r"config.flows\[0\].packet\[0\].ethernet.ether_type: the vlan header after it"):
        program_of([header("ethernet", ether_type=0x8100), header("vlan", tpid=0x88A8)])


def test_a_stack_of_labels_ends_with_the_bottom_bit() -> None:
    frame = decoded(
        [ETHERNET, header("mpls", label=1000, traffic_class=3), header("mpls", label=2000, time_to_live=9), IPV4]
    )
    first, second = frame[MPLS], frame[MPLS].payload
    assert (frame.type, first.label, first.cos, first.s, first.ttl) == (0x8847, 1000, 3, 0, 64)
    assert (second.label, second.s, second.ttl) == (2000, 1, 9)
    assert frame[scapy.IP].src == "1.1.1.1"


def test_priorities_of_ipv4_are_dscp_type_of_service_or_a_number() -> None:
    dscp = {"choice": "dscp", "dscp": {"phb": {"value": 46}, "ecn": {"value": 1}}}
    tos = {"choice": "tos", "tos": {"precedence": {"value": 7}, "reliability": {"value": 1}}}
    raw = {"choice": "raw", "raw": {"value": 0xAB}}
    told = [decoded([ETHERNET, header("ipv4", priority=each)])[scapy.IP].tos for each in (dscp, tos, raw)]
    assert told == [46 << 2 | 1, 7 << 5 | 1 << 2, 0xAB]


def test_options_of_ipv4_lengthen_the_header_to_whole_words() -> None:
    options = [
        {"choice": "router_alert"},
        {
            "choice": "custom",
            "custom": {"type": {"option_number": {"value": 30}, "copied_flag": {"value": 1}}, "value": "0a0b0c"},
        },
        {
            "choice": "timestamp",
            "timestamp": {
                "pointer": {"choice": "value", "value": 9},
                "format": {
                    "choice": "address_and_timestamps",
                    "address_and_timestamps": [{"address": {"value": "9.8.7.6"}, "timestamp": {"value": 5}}],
                },
            },
        },
    ]
    frame = decoded([ETHERNET, header("ipv4", src="1.1.1.1", options=options), header("udp")])
    ip = frame[scapy.IP]
    assert ip.ihl == 11
    assert bytes(ip)[20:44].hex() == "94040000" + "9e050a0b0c" + "440c090109080706" + "00000005" + "000000"
    assert ip.chksum == recomputed(frame, scapy.IP, "chksum")
    assert frame[scapy.UDP].chksum == recomputed(frame, scapy.UDP, "chksum")


def test_echo_of_both_versions_has_its_checksum() -> None:
    echo = {"identifier": {"value": 7}, "sequence_number": {"value": 9}}
    frame = decoded([ETHERNET, IPV4, {"choice": "icmp", "icmp": {"echo": echo}}])
    assert (frame[scapy.IP].proto, frame[scapy.ICMP].type, frame[scapy.ICMP].id, frame[scapy.ICMP].seq) == (1, 8, 7, 9)
    assert frame[scapy.ICMP].chksum == recomputed(frame, scapy.ICMP, "chksum")
    frame = decoded([ETHERNET, IPV6, {"choice": "icmpv6", "icmpv6": {"echo": echo}}])
    read = frame[scapy.ICMPv6EchoRequest]
    assert (frame[scapy.IPv6].nh, read.id, read.seq) == (58, 7, 9)
    assert read.cksum == recomputed(frame, scapy.ICMPv6EchoRequest, "cksum")


def test_igmp_is_encoded() -> None:
    frame = frame_of(program_of([ETHERNET, IPV4, header("igmpv1", group_address="224.1.2.3")]), 0)
    assert (frame[23], frame[34:36].hex(), frame[38:42].hex()) == (2, "1100", "e0010203")
    assert IGMP(frame[34:42]).chksum == 0xFFFF - (0x1100 + 0xE001 + 0x0203)


def test_gre_has_a_checksum_only_where_its_flag_says_so() -> None:
    frame = decoded([ETHERNET, IPV4, header("gre"), IPV6])
    assert (frame[scapy.IP].proto, frame[scapy.GRE].proto, len(frame[scapy.GRE]) - len(frame[scapy.IPv6])) == (
        47,
        0x86DD,
        4,
    )
    frame = decoded([ETHERNET, IPV4, header("gre", checksum_present=1), IPV4, header("udp")])
    gre = frame[scapy.GRE]
    assert (gre.chksum_present, gre.proto, gre.payload.src) == (1, 0x0800, "1.1.1.1")
    covered = bytes(gre)
    assert scapy.checksum(covered[:4] + b"\0\0" + covered[6:]) == gre.chksum
    with pytest.raises(OtgError, match=r"gre.reserved1: is not sent where checksum_present is 0"):
        program_of([ETHERNET, IPV4, header("gre", reserved1=1)])


def test_lengths_within_vxlan_leave_room_for_the_inner_fcs() -> None:
    inner = header("ethernet", dst="00:00:01:01:01:04", src="00:00:01:01:01:03")
    udp = header("udp", src_port=4789, dst_port=4789)
    frame = decoded([ETHERNET, IPV6, udp, header("vxlan", vni=[1000, 1001]), inner, IPV4, header("udp")], 1, size=256)
    assert frame[scapy.UDP].len == 256 - 4 - 14 - 40
    assert (frame[scapy.VXLAN].vni, frame[scapy.VXLAN].flags) == (1001, 8)
    ip = frame[scapy.VXLAN][scapy.IP]
    assert (ip.len, ip[scapy.UDP].len) == (256 - 4 - 14 - 40 - 8 - 8 - 14 - 4, 256 - 4 - 14 - 40 - 8 - 8 - 14 - 4 - 20)
    assert recomputed(scapy.Ether(bytes(frame[scapy.VXLAN].payload)), scapy.UDP, "chksum") == ip[scapy.UDP].chksum


def test_gtp_tunnels_have_their_optional_fields() -> None:
    extension = {"contents": {"value": 0x0102_0304_0506}, "next_extension_header": {"value": 0}}
    tunnel = header(
        "gtpv1", teid=0xDEADBEEF, message_type=255, e_flag=1, squence_number=3, next_extension_header_type=0x85
    )
    tunnel["gtpv1"]["extension_headers"] = [extension]
    frame = decoded([ETHERNET, IPV4, header("udp", dst_port=2152), tunnel, IPV4], size=200)
    read = GTP_U_Header(bytes(frame[scapy.UDP].payload))
    assert (read.version, read.PT, read.E, read.S, read.PN, read.gtp_type) == (1, 1, 1, 0, 0, 255)
    assert (read.teid, read.seq, read.next_ex, read.length) == (0xDEADBEEF, 3, 0x85, 200 - 4 - 14 - 20 - 8 - 8)
    assert bytes(read)[12:20].hex() == "0201020304050600"
    tunnel = header("gtpv2", teid=5, teid_flag=1, message_type=32, sequence_number=77)
    read = GtpV2(bytes(decoded([ETHERNET, IPV4, header("udp", dst_port=2123), tunnel])[scapy.UDP].payload))
    assert (read.version, read.T, read.gtp_type, read.teid, read.seq) == (2, 1, 32, 5, 77)
    with pytest.raises(OtgError, match=r"packet\[3\].gtpv1.extension_headers: are announced by e_flag"):
        program_of([ETHERNET, IPV4, header("udp"), {"choice": "gtpv1", "gtpv1": {"extension_headers": [extension]}}])


def test_pause_frames_are_encoded() -> None:
    pause = decoded([header("ethernetpause", src="00:00:00:00:00:01", time=0x1234)])
    assert (pause.dst, pause.type) == ("01:80:c2:00:00:01", 0x8808)
    assert pause[MACControlPause].pause_time == 0x1234
    classes = decoded([header("pfcpause", class_enable_vector=0x81, pause_class_0=1, pause_class_7=7)])
    read = classes[MACControlClassBasedFlowControl]
    assert (read.c0_enabled, read.c7_enabled, read.c1_enabled, read.c0_pause_time, read.c7_pause_time) == (
        1,
        1,
        0,
        1,
        7,
    )


def test_ppp_and_custom_bytes_are_encoded() -> None:
    ppp = decoded([ETHERNET, header("ppp"), IPV6])
    assert (ppp.type, bytes(ppp)[14:18].hex()) == (0x880B, "ff030057")
    custom = decoded([ETHERNET, {"choice": "custom", "custom": {"bytes": "0xde:ad be ef"}}])
    assert bytes(custom)[12:18].hex() == "ffffdeadbeef"


def test_patterns_advance_together_each_with_its_own_modulus() -> None:
    ports = header(
        "udp",
        src_port={"choice": "increment", "increment": {"start": 5000, "step": 2, "count": 3}},
        dst_port={"choice": "decrement", "decrement": {"start": 1, "step": 1, "count": 4}},
    )
    ip = header(
        "ipv4", src=["1.0.0.1", "1.0.0.2"], dst={"choice": "increment", "increment": {"start": "9.9.9.255", "count": 5}}
    )
    frames = [decoded([ETHERNET, ip, ports], number) for number in range(8)]
    assert [frame[scapy.UDP].sport for frame in frames] == [5000, 5002, 5004, 5000, 5002, 5004, 5000, 5002]
    assert [frame[scapy.UDP].dport for frame in frames] == [1, 0, 65535, 65534, 1, 0, 65535, 65534]
    assert [frame[scapy.IP].src for frame in frames[:3]] == ["1.0.0.1", "1.0.0.2", "1.0.0.1"]
    assert [frame[scapy.IP].dst for frame in frames[:6:5]] == ["9.9.9.255", "9.9.9.255"]
    assert frames[1][scapy.IP].dst == "9.9.10.0"
    assert all(frame[scapy.UDP].chksum == recomputed(frame, scapy.UDP, "chksum") for frame in frames)


def test_ipv6_addresses_and_labels_vary() -> None:
    ip = header(
        "ipv6",
        src={"choice": "increment", "increment": {"start": "::ffff:ffff:ffff:ffff", "step": "::1", "count": 2}},
        flow_label={"choice": "random", "random": {"min": 5, "max": 9, "seed": 3, "count": 50}},
    )
    frames = [decoded([ETHERNET, ip, header("udp")], number) for number in range(50)]
    assert [frame[scapy.IPv6].src for frame in frames[:2]] == ["::ffff:ffff:ffff:ffff", "0:0:0:1::"]
    labels = [frame[scapy.IPv6].fl for frame in frames]
    assert set(labels) <= set(range(5, 10))
    assert len(set(labels)) > 1


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        ([{"choice": "rsvp", "rsvp": {}}], r"packet\[0\].rsvp: this header is not encoded"),
        ([header("ipv4", src={"choice": "auto", "auto": {"choice": "dhcp"}})], r"ipv4.src.auto: addresses are not"),
        (
            [header("ipv4", src="1.1.1.1"), header("udp", src_port=70000)],
            r"packet\[1\].udp.src_port.value: 70000 does not",
        ),
        ([header("ethernet", src="01:02")], r"ethernet.src.value: '01:02' is no MAC address"),
        ([header("udp")], r"udp.checksum: covers the addresses"),
        (
            [header("ipv4", src={"value": "1.1.1.1", "metric_tags": [{"name": "t", "offset": 8}]})],
            r"ipv4.src.metric_tags\[0\]: bits 8 to 40 are not within 32",
        ),
        ([header("ethernet", pfc_queue=3)], r"ethernet.pfc_queue: queues of priority"),
        ([header("ipv4"), header("gre", checksum_present=[0, 1])], r"gre.checksum_present: decides which fields"),
        (
            [header("vlan", id={"choice": "increment", "increment": {"start": 1, "count": 0}})],
            r"id.increment.count: is at",
        ),
    ],
)
def test_what_is_not_encoded_is_refused_with_its_path(packet: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(OtgError, match=message):
        program_of(packet)


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
    """A pattern of a field of this many bits."""
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
    refused = {"snmpv2c", "rsvp", "macsec", "lacp", "cfm"}
    assert set(ENCODERS) == classes - refused


def segment_routed(routing: dict[str, Any], *, upper: str = "udp", **fields: Any) -> Any:
    """A packet of IPv6 with a routing header, as scapy reads it."""
    extension = {**header("ipv6_extension_header", **fields)}
    extension["ipv6_extension_header"] |= {"choice": "routing", "routing": routing}
    packet = [header("ethernet"), header("ipv6", src="2001:db8::1", dst="2001:db8::2"), extension, header(upper)]
    return scapy.Ether(frame_of(program_of(packet, size={"fixed": 300}), 0))


def addresses(*segments: str, **fields: Any) -> dict[str, Any]:
    listed = [{"segment": {"choice": "value", "value": segment}} for segment in segments]
    return {"choice": "segment_routing", "segment_routing": {"segment_list": listed, **fields}}


def number(value: int) -> dict[str, Any]:
    return {"choice": "value", "value": value}


@pytest.mark.parametrize("upper", ["udp", "tcp"])
@pytest.mark.parametrize("left", [None, 0, 2])
def test_a_routing_header_has_its_lengths_and_checksums_cover_the_last_segment(upper: str, left: int | None) -> None:
    given = {} if left is None else {"segments_left": number(left)}
    routing = addresses("fc00::9", "fc00::8", "fc00::7", tag=number(0xABCD), **given)
    read = segment_routed(routing, upper=upper)
    header_read = read[scapy.IPv6ExtHdrSegmentRouting]
    assert (read[scapy.IPv6].nh, read[scapy.IPv6].plen) == (43, 300 - 4 - 14 - 40)
    assert (header_read.nh, header_read.len, header_read.type) == (17 if upper == "udp" else 6, 6, 4)
    assert (header_read.segleft, header_read.lastentry, header_read.tag) == (3 if left is None else left, 2, 0xABCD)
    assert header_read.addresses == ["fc00::9", "fc00::8", "fc00::7"]
    layer = {"udp": scapy.UDP, "tcp": scapy.TCP}[upper]
    assert read[layer].chksum == recomputed(read, layer, "chksum")


def test_a_routing_header_has_flags_padding_and_values_that_vary() -> None:
    routing = addresses("fc00::9", flags={"oam": number(1)}, pad_tlv={})
    routing["segment_routing"]["segment_list"][0]["segment"] = {"choice": "values", "values": ["fc00::9", "fc00::a"]}
    read = segment_routed(routing)[scapy.IPv6ExtHdrSegmentRouting]
    assert (read.len, read.segleft, read.lastentry) == (3, 1, 0)
    assert bytes(read)[5] == 0x20, "the O-flag of RFC 9259"
    assert bytes(read)[24:32].hex() == "0406000000000000"


def test_containers_hold_a_locator_and_short_segments() -> None:
    container = {"locator": {"value": "fc00::"}, "usids": ["0001", "0002", "0x0003"]}
    packed = {"locator_length": number(0), "usids": ["00010002", "00030004", "00050006", "00070008"]}
    routing = {"choice": "segment_routing_usid", "segment_routing_usid": {"segment_list": [packed, container]}}
    read = segment_routed(routing)[scapy.IPv6ExtHdrSegmentRouting]
    assert read.addresses == ["1:2:3:4:5:6:7:8", "fc00:0:1:2:3::"]
    assert (read.segleft, read.lastentry) == (1, 1)
    packet = [header("ethernet"), header("ipv6"), header("udp")]
    packet[1]["ipv6"]["dst_usids"] = container
    assert scapy.Ether(frame_of(program_of(packet, size={"fixed": 100}), 0))[scapy.IPv6].dst == "fc00:0:1:2:3::"


@pytest.mark.parametrize(
    ("routing", "path"),
    [
        (addresses("fc00::9", pad_tlv={"length": number(3)}), "segment_routing.pad_tlv.length"),
        (addresses("fc00::9", segments_left={"choice": "values", "values": [0, 1]}), "segment_routing.segments_left"),
        (addresses(*["fc00::9"] * 128), "segment_routing.segment_list"),
        (
            {"segment_routing_usid": {"segment_list": [{"usids": ["0001"] * 7}]}},
            r"segment_routing_usid.segment_list\[0\]",
        ),
    ],
)
def test_routing_headers_that_cannot_be_are_refused(routing: dict[str, Any], path: str) -> None:
    with pytest.raises(OtgError, match=rf"packet\[2\].ipv6_extension_header.routing.{path}"):
        segment_routed(routing)


def test_a_routing_header_follows_one_of_ipv6() -> None:
    with pytest.raises(OtgError, match=r"packet\[1\].ipv6_extension_header: follows an ipv6 header"):
        program_of([header("ethernet"), {"choice": "ipv6_extension_header"}])
