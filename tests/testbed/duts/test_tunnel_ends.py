"""The end of a tunnel in the kernel: the words for `ip`, and what cannot be one interface."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lab import TESTER_MACS, Wires
from pydantic import ValidationError
from scapy.all import GRE, IP, PPP, UDP, VXLAN, Ether, IPv6, IPv6ExtHdrSegmentRouting, PPPoE, Raw
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.mpls import MPLS
from wire import raw_socket, receive

from nicbench.testbed.duts.tunnel_ends import TunnelEndOptions, XdpTunnel, XdpTunnelOptions, link_words
from nicbench.tuning.stack import UndoStack

ENDS = {"source": "192.0.2.1", "destination": "192.0.2.2"}
ENDS6 = {"source": "2001:db8::1", "destination": "2001:db8::2"}


def options(**tunnel: Any) -> TunnelEndOptions:
    return TunnelEndOptions.model_validate_json(json.dumps({"tunnel": tunnel}), strict=True)


@pytest.mark.parametrize(
    ("tunnel", "words"),
    [
        (
            {"kind": "vxlan", "vni": 7, **ENDS},
            "address 02:00:5e:00:00:02 type vxlan id 7 local 192.0.2.2 remote 192.0.2.1 dstport 4789",
        ),
        (
            {"kind": "geneve", "vni": 7, **ENDS6},
            "address 02:00:5e:00:00:02 type geneve id 7 remote 2001:db8::1 dstport 6081 udp6zerocsumtx udp6zerocsumrx",
        ),
        (
            {"kind": "geneve", "vni": 7, "ethernet": False, **ENDS},
            "type geneve id 7 remote 192.0.2.1 dstport 6081 innerprotoinherit",
        ),
        ({"kind": "gre", "key": 5, **ENDS}, "type gre local 192.0.2.2 remote 192.0.2.1 key 5"),
        (
            {"kind": "gre", "ethernet": True, **ENDS6},
            "address 02:00:5e:00:00:02 type ip6gretap local 2001:db8::2 remote 2001:db8::1",
        ),
        ({"kind": "ip", **ENDS}, "type ipip mode any local 192.0.2.2 remote 192.0.2.1"),
        ({"kind": "ip", **ENDS6}, "type ip6tnl mode any local 2001:db8::2 remote 2001:db8::1"),
    ],
)
def test_the_interface_is_made_with_the_ends_exchanged(tunnel: dict[str, Any], words: str) -> None:
    assert " ".join(link_words(options(**tunnel).tunnel)) == words


@pytest.mark.parametrize(
    ("tunnel", "why"),
    [
        ({"kind": "gre"}, "the ends of the tunnel are not known"),
        ({"kind": "vxlan", "vni": {"first": 1, "count": 2}, **ENDS}, "one number, not several"),
        ({"kind": "pppoe", "session": 1}, "vxlan"),
    ],
)
def test_what_is_no_interface_of_the_kernel_is_refused(tunnel: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        options(**tunnel)


# The DUT at which tunnels end: the bytes of its headers against scapy's, and real frames through it.


INNER = Ether(src="02:00:5e:00:00:01", dst="02:00:5e:00:00:02")
CARRIER = IP(src="192.0.2.1", dst="192.0.2.2", id=0, flags="DF", ttl=64)
LINK = Ether(src=TESTER_MACS[0], dst=TESTER_MACS[1])
PACKET = IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1, dport=2) / Raw(b"what is carried" * 8)
UDP_PORT = 49_152

TUNNELS = {
    "gre": ([{"kind": "gre", "key": 7, **ENDS}], CARRIER / GRE(key_present=1, key=7)),
    "vxlan": (
        [{"kind": "vxlan", "vni": 9, **ENDS}],
        CARRIER / UDP(sport=UDP_PORT, dport=4789, chksum=0) / VXLAN(vni=9, flags=8) / INNER,
    ),
    "geneve": (
        [{"kind": "geneve", "vni": 9, **ENDS}],
        CARRIER / UDP(sport=UDP_PORT, dport=6081, chksum=0) / GENEVE(vni=9, proto=0x6558) / INNER,
    ),
    "gtp-u": (
        [{"kind": "gtp-u", "teid": 5, "qos_flow": 3, **ENDS}],
        CARRIER
        / UDP(sport=UDP_PORT, dport=2152, chksum=0)
        / GTP_U_Header(teid=5, gtp_type=255, E=1, next_ex=0x85)
        / GTPPDUSessionContainer(type=1, QFI=3, NextExtHdr=0),
    ),
    "ip": ([{"kind": "ip", **ENDS}], CARRIER),
    "mpls": (
        [{"kind": "mpls", "label": 16}, {"kind": "mpls", "label": 17, "traffic_class": 5}],
        MPLS(label=16, s=0, ttl=64) / MPLS(label=17, cos=5, s=1, ttl=64),
    ),
    "pppoe": ([{"kind": "pppoe", "session": 9}], PPPoE(sessionid=9) / PPP(proto=0x21)),
    "srv6": (
        [{"kind": "srv6", "segments": ["fc00::1", "fc00::2"]}],
        IPv6(src="2001:db8::1", dst="fc00::1", hlim=64, nh=43)
        / IPv6ExtHdrSegmentRouting(addresses=["fc00::2", "fc00::1"], segleft=1, lastentry=1, nh=4),
    ),
}
FRAMES = 10


def options_of_xdp_tunnel(**written: Any) -> XdpTunnelOptions:
    return XdpTunnelOptions.model_validate_json(json.dumps(written), strict=True)


def plain() -> bytes:
    return bytes(LINK / PACKET)


def carried(kind: str) -> bytes:
    """The packet in a tunnel, as scapy builds it."""
    types = {"mpls": 0x8847, "pppoe": 0x8864, "srv6": 0x86DD}
    return bytes(Ether(src=LINK.src, dst=LINK.dst, type=types.get(kind, 0x0800)) / TUNNELS[kind][1] / PACKET)


def through(lab: Wires, frame: bytes, start: str, end: str, enough: int = FRAMES) -> list[bytes]:
    with raw_socket(lab.tester, end) as listening, raw_socket(lab.tester, start) as sending:
        for _ in range(FRAMES):
            sending.send(frame)
        return receive(listening, lambda got: got[-20:-1] == frame[-20:-1], enough=enough)


@pytest.mark.lab
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", TUNNELS)
async def test_what_comes_out_is_what_scapy_builds_to_the_last_byte(kind: str, lab: Wires, changes: UndoStack) -> None:
    dut = XdpTunnel(options_of_xdp_tunnel(tunnels=TUNNELS[kind][0]))
    await dut.up(lab.testbed, changes)
    assert through(lab, carried(kind), "t0", "t1") == [plain()] * FRAMES
    # On the way back the ends of the tunnel are exchanged, but for segments.
    (came, *others) = through(lab, plain(), "t1", "t0")
    assert others == [came] * (FRAMES - 1)
    expected = carried(kind)
    if kind in ("mpls", "pppoe", "srv6"):
        assert came == expected
    else:
        outer = Ether(came)[IP]
        assert (outer.src, outer.dst) == ("192.0.2.2", "192.0.2.1")
        checksum, outer.chksum = outer.chksum, None
        assert IP(bytes(outer)).chksum == checksum
        assert len(came) == len(expected)
        assert came[-len(bytes(PACKET)) :] == bytes(PACKET)


@pytest.mark.lab
async def test_frames_outside_of_the_tunnel_stay_and_a_broken_one_drops_and_damages(
    lab: Wires, changes: UndoStack
) -> None:
    dut = XdpTunnel(options_of_xdp_tunnel(tunnels=TUNNELS["gre"][0], drop_every=5, damage_every=2))
    await dut.up(lab.testbed, changes)
    assert through(lab, plain(), "t0", "t1") == []
    assert (await dut.left_to_kernel())["d0 not in the tunnel"] >= FRAMES
    came = through(lab, carried("gre"), "t0", "t1", enough=8)
    assert len(came) == 8  # the fifth and the tenth are dropped; of the others the even ones are damaged
    assert sum(frame == plain() for frame in came) == 4
    assert await dut.drops() == {"d0 dropped on purpose": 2, "d1 dropped on purpose": 0}


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ({}, "it would change nothing"),
        ({"tunnels": [{"kind": "gre"}]}, "the GRE header needs `source` and `destination`"),
        ({"tunnels": [{"kind": "srv6", "segments": ["fc00::1"] * 10}]}, "at most 192"),
    ],
)
def test_options_that_cannot_be_are_refused(written: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        options_of_xdp_tunnel(**written)
