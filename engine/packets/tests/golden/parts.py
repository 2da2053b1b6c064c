"""What the golden frames are made of: fields, signatures and payloads, by scapy and by the published algorithms."""

from __future__ import annotations

from scapy.all import IP, Ether, IPv6, Raw

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
