"""Golden frames in tunnels, as scapy builds them; `build_frames.py` writes them."""

from __future__ import annotations

from typing import Any

from parts import (
    CARRIER4,
    CARRIER6,
    CHECKED,
    DESTINATION,
    ETHER,
    ETHERNET,
    FIRST4,
    FLOW,
    IPV4,
    IPV6,
    OUTER4,
    OUTER6,
    OVER4,
    OVER6,
    PLAIN,
    SOURCE,
    payload,
)
from scapy.all import GRE, PPP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, IPv6ExtHdrSegmentRouting, PPPoE
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.mpls import MPLS

TUNNEL_CASES: list[tuple[str, list[dict[str, Any]], int, Any]] = [
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
