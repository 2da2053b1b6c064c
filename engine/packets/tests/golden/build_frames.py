"""Builds the golden frames of ``golden_frames.rs`` with scapy, which knows nothing of nicbench.

Needs scapy (``pip install scapy``); run it in this folder. It writes frames.json and the captures, which are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scapy.all import (
    GRE,
    IP,
    PPP,
    TCP,
    UDP,
    VXLAN,
    Dot1AD,
    Dot1Q,
    Ether,
    IPv6,
    IPv6ExtHdrSegmentRouting,
    Padding,
    PcapNgWriter,
    PPPoE,
    Raw,
    wrpcap,
)
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.mpls import MPLS

MASK = (1 << 64) - 1
RUN_KEY, TRIAL, FIRST_FLOW, SEQUENCE, TIME_NS = 0x0123456789ABCDEF, 7, 100, 5, 123_456_789
SOURCE, DESTINATION = "02:00:00:00:00:01", "02:00:00:00:00:02"


def scramble(value: int) -> int:
    """SplitMix64, as published by Steele, Lea and Flood."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def fold(left: int, right: int) -> int:
    """Both halves of a product, mixed (as in wyhash)."""
    product = left * right
    return (product ^ product >> 64) & MASK


def signature(flow: int, sequence: int) -> bytes:
    """As protocol/README.md and signature.rs describe it."""
    first = scramble(RUN_KEY)
    second = scramble(first ^ 0x6E69636265_6E6368)
    upper = flow & 0xFFFFFF | (TIME_NS >> 32 & 0xFF) << 24
    lower = sequence | (TIME_NS & 0xFFFFFFFF) << 32
    inner = fold(lower ^ first, upper ^ (second | 1 << 63))
    outer = fold(inner ^ second, 0xE7037ED1A0B428DB ^ (upper << 32))
    mark = TRIAL * 0x9E3779B1 & 0xFFFFFFFF
    mark = (mark ^ mark >> 16) * 0x9E3779B1 & 0xFFFFFFFF
    check = (outer ^ outer >> 32) & 0xFFFFFFFF ^ mark
    return (check | upper << 32).to_bytes(8, "little") + lower.to_bytes(8, "little")


def payload(flow: int, room: int) -> Raw:
    """Signature and pattern, as long as there is room."""
    pattern = bytes((index * 131 + 89) & 0xFF for index in range(room - 16))
    return Raw(signature(FIRST_FLOW + flow, SEQUENCE) + pattern)


def drawn(seed: int, place: int, flow: int, count: int) -> int:
    """The value that a flow draws in the field of this number, counted from 1 over the varied fields."""
    return scramble(scramble(seed ^ place) ^ scramble(flow)) * count >> 64


ETHERNET = {"layer": "ethernet", "source": SOURCE, "destination": DESTINATION}
IPV4 = {"layer": "ipv4", "source": {"first": "198.18.0.2", "count": 4}, "destination": "198.19.0.2"}
IPV6 = {
    "layer": "ipv6",
    "source": "2001:2::1",
    "destination": {"first": "2001:2:0:8000::ffff", "count": 300, "step": 3},
}
CARRIER4 = {"layer": "ipv4", "source": "10.0.0.1", "destination": "10.0.0.2"}
CARRIER6 = {"layer": "ipv6", "source": "2001:db8::1", "destination": "2001:db8::2"}
PLAIN = {"layer": "udp", "source": 1, "destination": 2}
CHECKED = {**PLAIN, "checksum": True}
FLOW = 10
ETHER = Ether(src=SOURCE, dst=DESTINATION)
OVER4 = IP(src="198.18.0.4", dst="198.19.0.2", id=0, flags="DF", ttl=64)  # flow 10 of 4 sources: the third
FIRST4 = IP(src="198.18.0.2", dst="198.19.0.2", id=0, flags="DF", ttl=64)  # behind 16 values and more of a tunnel
OUTER4 = IP(src="10.0.0.1", dst="10.0.0.2", id=0, flags="DF", ttl=64)
OUTER6 = IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=64)
OVER6 = IPv6(src="2001:2::1", dst="2001:2:0:8000::1:1d", hlim=64)  # 0xffff + 10 * 3

CASES: list[tuple[str, list[dict[str, Any]], int, Any]] = [
    (
        "802.1Q, priority, UDP without checksum",
        [
            ETHERNET,
            {"layer": "vlan", "id": 100, "priority": 5},
            IPV4,
            {"layer": "udp", "source": 49184, "destination": 7},
        ],
        128,
        lambda room: (
            ETHER / Dot1Q(vlan=100, prio=5) / OVER4 / UDP(sport=49184, dport=7, chksum=0) / payload(FLOW, room)
        ),
    ),
    (
        "QinQ, swept identifier, UDP with checksum, odd length",
        [
            ETHERNET,
            {"layer": "vlan", "tpid": 0x88A8, "id": 7},
            {"layer": "vlan", "id": {"first": 200, "count": 8, "step": 2}},
            {**IPV4, "source": "198.18.0.4", "traffic_class": 0xB8, "identification": 77, "hop_limit": 9},
            {"layer": "udp", "source": 49184, "destination": 7, "checksum": True},
        ],
        131,
        lambda room: (
            ETHER
            / Dot1AD(vlan=7)
            / Dot1Q(vlan=204)
            / IP(src="198.18.0.4", dst="198.19.0.2", id=77, flags="DF", ttl=9, tos=0xB8)
            / UDP(sport=49184, dport=7)
            / payload(FLOW, room)
        ),
    ),
    (
        "TCP over IPv4, drawn port",
        [
            ETHERNET,
            IPV4,
            {"layer": "tcp", "source": {"first": 1024, "count": 64512, "seed": 9}, "destination": 80, "flags": 2},
        ],
        74,
        lambda room: (
            ETHER
            / OVER4
            / TCP(sport=1024 + drawn(9, 2, FLOW, 64512), dport=80, flags="S", window=65535, seq=0, ack=0)
            / payload(FLOW, room)
        ),
    ),
    (
        "TCP over IPv6, swept address, odd length",
        [
            ETHERNET,
            {**IPV6, "traffic_class": 0x2E, "flow_label": 0x12345},
            {"layer": "tcp", "source": 40000, "destination": 443, "sequence": 0xDEADBEEF, "acknowledgement": 17},
        ],
        1517,
        lambda room: (
            ETHER
            / IPv6(src="2001:2::1", dst="2001:2:0:8000::1:1d", hlim=64, tc=0x2E, fl=0x12345)
            / TCP(sport=40000, dport=443, flags="A", window=65535, seq=0xDEADBEEF, ack=17)
            / payload(FLOW, room)
        ),
    ),
    (
        "UDP over IPv6 behind a tag",
        [ETHERNET, {"layer": "vlan", "id": 1}, IPV6, {"layer": "udp", "source": 1, "destination": 2}],
        86,
        lambda room: ETHER / Dot1Q(vlan=1) / OVER6 / UDP(sport=1, dport=2) / payload(FLOW, room),
    ),
    (
        "VXLAN with TCP inside",
        [
            ETHERNET,
            {"layer": "ipv4", "source": "10.0.0.1", "destination": "10.0.0.2"},
            {"layer": "udp", "source": 50000, "destination": 4789},
            {"layer": "vxlan", "vni": {"first": 5000, "count": 16}},
            ETHERNET,
            {**IPV4, "source": "198.18.0.4"},
            {"layer": "tcp", "source": 1, "destination": 2},
        ],
        201,
        lambda room: (
            ETHER
            / IP(src="10.0.0.1", dst="10.0.0.2", id=0, flags="DF", ttl=64)
            / UDP(sport=50000, dport=4789, chksum=0)
            / VXLAN(vni=5010, flags=8)
            / ETHER
            / OVER4
            / TCP(sport=1, dport=2, flags="A", window=65535, seq=0, ack=0)
            / payload(FLOW, room)
        ),
    ),
    (
        "raw bytes of an odd number under a UDP checksum",
        [
            ETHERNET,
            IPV4,
            {"layer": "udp", "source": 1, "destination": 2, "checksum": True},
            {"layer": "raw", "hex": "de ad be"},
        ],
        100,
        lambda room: ETHER / OVER4 / UDP(sport=1, dport=2) / Raw(bytes.fromhex("deadbe") + bytes(payload(FLOW, room))),
    ),
    (
        "GRE with a key, UDP with checksum inside",
        [ETHERNET, CARRIER4, {"layer": "gre", "key": {"first": 7, "count": 16}}, IPV4, CHECKED],
        150,
        lambda room: ETHER / OUTER4 / GRE(key_present=1, key=17) / FIRST4 / UDP(sport=1, dport=2) / payload(FLOW, room),
    ),
    (
        "Ethernet in GRE over IPv6",
        [ETHERNET, CARRIER6, {"layer": "gre"}, ETHERNET, IPV4, PLAIN],
        151,
        lambda room: (
            ETHER / OUTER6 / GRE(proto=0x6558) / ETHER / OVER4 / UDP(sport=1, dport=2, chksum=0) / payload(FLOW, room)
        ),
    ),
    (
        "GENEVE with TCP over IPv6 inside",
        [
            ETHERNET,
            CARRIER4,
            {"layer": "udp", "source": 50000, "destination": 6081},
            {"layer": "geneve", "vni": 0xABCDE},
            ETHERNET,
            IPV6,
            {"layer": "tcp", "source": 1, "destination": 2},
        ],
        301,
        lambda room: (
            ETHER
            / OUTER4
            / UDP(sport=50000, dport=6081, chksum=0)
            / GENEVE(vni=0xABCDE, proto=0x6558)
            / ETHER
            / OVER6
            / TCP(sport=1, dport=2, flags="A", window=65535, seq=0, ack=0)
            / payload(FLOW, room)
        ),
    ),
    (
        "two labels of MPLS behind a tag, swept label",
        [
            ETHERNET,
            {"layer": "vlan", "id": 5},
            {"layer": "mpls", "label": {"first": 1000, "count": 64}, "traffic_class": 5},
            {"layer": "mpls", "label": 17, "hop_limit": 9},
            IPV4,
            CHECKED,
        ],
        97,
        lambda room: (
            ETHER
            / Dot1Q(vlan=5)
            / MPLS(label=1010, cos=5, s=0, ttl=64)
            / MPLS(label=17, s=1, ttl=9)
            / FIRST4
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "Ethernet in MPLS",
        [ETHERNET, {"layer": "mpls", "label": 17}, ETHERNET, IPV6, CHECKED],
        133,
        lambda room: ETHER / MPLS(label=17, s=1, ttl=64) / ETHER / OVER6 / UDP(sport=1, dport=2) / payload(FLOW, room),
    ),
    (
        "SRv6 with two segments and IPv4 inside",
        [
            ETHERNET,
            {**CARRIER6, "destination": "fc00:1::1"},
            {"layer": "segment_routing", "segments": ["fc00:1::1", "fc00:2::2"]},
            IPV4,
            CHECKED,
        ],
        200,
        lambda room: (
            ETHER
            / IPv6(src="2001:db8::1", dst="fc00:1::1", hlim=64, nh=43)
            / IPv6ExtHdrSegmentRouting(addresses=["fc00:2::2", "fc00:1::1"], segleft=1, lastentry=1, nh=4)
            / OVER4
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "SRv6 whose last segment is reached, Ethernet inside",
        [
            ETHERNET,
            {**CARRIER6, "destination": "fc00:2::2"},
            {"layer": "segment_routing", "segments": ["fc00:2::2"], "segments_left": 0},
            ETHERNET,
            IPV6,
            CHECKED,
        ],
        210,
        lambda room: (
            ETHER
            / IPv6(src="2001:db8::1", dst="fc00:2::2", hlim=64, nh=43)
            / IPv6ExtHdrSegmentRouting(addresses=["fc00:2::2"], segleft=0, lastentry=0, nh=143)
            / ETHER
            / OVER6
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "GTP-U",
        [
            ETHERNET,
            CARRIER4,
            {"layer": "udp", "source": 2152, "destination": 2152},
            {"layer": "gtp", "teid": 0xCAFE},
            IPV4,
            CHECKED,
        ],
        128,
        lambda room: (
            ETHER
            / OUTER4
            / UDP(sport=2152, dport=2152, chksum=0)
            / GTP_U_Header(teid=0xCAFE, gtp_type=255)
            / OVER4
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "GTP-U with a QoS flow, IPv6 inside",
        [
            ETHERNET,
            CARRIER4,
            {"layer": "udp", "source": 2152, "destination": 2152},
            {"layer": "gtp", "teid": 7, "qos_flow": 9},
            IPV6,
            CHECKED,
        ],
        140,
        lambda room: (
            ETHER
            / OUTER4
            / UDP(sport=2152, dport=2152, chksum=0)
            / GTP_U_Header(teid=7, gtp_type=255, E=1, next_ex=0x85)
            / GTPPDUSessionContainer(type=1, QFI=9, NextExtHdr=0)
            / OVER6
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "PPPoE behind two tags",
        [
            ETHERNET,
            {"layer": "vlan", "tpid": 0x88A8, "id": 7},
            {"layer": "vlan", "id": 8},
            {"layer": "pppoe", "session": {"first": 100, "count": 64}},
            IPV4,
            CHECKED,
        ],
        101,
        lambda room: (
            ETHER
            / Dot1AD(vlan=7)
            / Dot1Q(vlan=8, type=0x8864)
            / PPPoE(sessionid=110)
            / PPP(proto=0x21)
            / FIRST4
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "PPPoE with IPv6",
        [ETHERNET, {"layer": "pppoe", "session": 1}, IPV6, CHECKED],
        100,
        lambda room: (
            Ether(src=SOURCE, dst=DESTINATION, type=0x8864)
            / PPPoE(sessionid=1)
            / PPP(proto=0x57)
            / OVER6
            / UDP(sport=1, dport=2)
            / payload(FLOW, room)
        ),
    ),
    (
        "IPv4 in IPv4",
        [ETHERNET, CARRIER4, IPV4, CHECKED],
        100,
        lambda room: ETHER / OUTER4 / OVER4 / UDP(sport=1, dport=2) / payload(FLOW, room),
    ),
    (
        "IPv6 in IPv4",
        [ETHERNET, CARRIER4, IPV6, CHECKED],
        111,
        lambda room: ETHER / OUTER4 / OVER6 / UDP(sport=1, dport=2) / payload(FLOW, room),
    ),
    (
        "IPv4 in IPv6",
        [ETHERNET, CARRIER6, IPV4, PLAIN],
        112,
        lambda room: ETHER / OUTER6 / OVER4 / UDP(sport=1, dport=2, chksum=0) / payload(FLOW, room),
    ),
]


def golden() -> list[dict[str, Any]]:
    """The rows of frames.json."""
    rows = []
    for name, layers, frame_bytes, build in CASES:
        header_bytes = len(bytes(build(16))) - 16
        frame = bytes(build(frame_bytes - 4 - header_bytes))
        stream = {
            "name": name,
            "transmit_port": 0,
            "receive_port": 1,
            "rate_frames_per_s": 1,
            "flows": 64,
            "frame_bytes": frame_bytes,
            "layers": layers,
        }
        rows.append({"stream": stream, "flow": FLOW, "sequence": SEQUENCE, "frame": frame.hex()})
    return rows


def captured() -> list[Any]:
    """Two flows, TCP, VLAN, padding, and checksums that a capture before the network card has not filled in."""
    client, server = Ether(src="0a:00:00:00:00:01", dst="0a:00:00:00:00:02"), "10.1.0.2"
    return [
        client / IP(src="10.1.0.1", dst=server) / UDP(sport=5000, dport=53, chksum=0xBAD) / Raw(b"q" * 40),
        client / IP(src="10.1.0.1", dst=server) / TCP(sport=6000, dport=80, chksum=0xBAD) / Raw(b"GET / " * 20),
        client / Dot1Q(vlan=9) / IP(src="10.1.0.1", dst=server) / UDP(sport=5000, dport=53) / Raw(b"r" * 101),
        client
        / IP(src="10.1.0.1", dst=server)
        / UDP(sport=7000, dport=9, chksum=0)
        / Raw(b"p" * 16)
        / Padding(b"\0" * 2),
    ]


if __name__ == "__main__":
    here = Path(__file__).parent
    (here / "frames.json").write_text(json.dumps(golden(), indent=1) + "\n")
    frames = [Ether(bytes(frame)) for frame in captured()]
    wrpcap(str(here / "flows.pcap"), frames)
    writer = PcapNgWriter(str(here / "flows.pcapng"))
    writer.write(frames)
    writer.close()
    without_payload = ETHER / IP(src="10.1.0.1", dst="10.1.0.2") / TCP(sport=1, dport=2)
    wrpcap(str(here / "small.pcap"), [frames[0], Ether(bytes(without_payload))])
