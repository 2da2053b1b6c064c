"""Builds the golden frames of ``golden_frames.rs`` with scapy, which knows nothing of nicbench.

Needs scapy (``pip install scapy``); run it in this folder. It writes frames.json and the captures, which are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from parts import ETHER, ETHERNET, FLOW, IPV4, IPV6, OVER4, OVER6, SEQUENCE, drawn, payload
from scapy.all import IP, TCP, UDP, VXLAN, Dot1AD, Dot1Q, Ether, IPv6, Padding, PcapNgWriter, Raw, wrpcap
from tunnel_frames import TUNNEL_CASES

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
]


def golden() -> list[dict[str, Any]]:
    """The rows of frames.json."""
    rows = []
    for name, layers, frame_bytes, build in CASES + TUNNEL_CASES:
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
