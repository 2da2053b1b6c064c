"""Names and addresses of a veth lab. Pure."""

from __future__ import annotations

import hashlib

from nicbench.errors import UsageError

NAMESPACE_PREFIX = "nb-"


def namespace_name(run_id: str, role: str) -> str:
    """Unique to the run, and short: ``nb-3fa2c1-tester``."""
    return f"{NAMESPACE_PREFIX}{hashlib.sha256(run_id.encode()).hexdigest()[:6]}-{role}"


def mac(group: int, member: int) -> str:
    """Locally administered (IEEE 802c, bit 1 of the first byte) and the same in every run.

    Groups are sides (0 is the tester) of pairs, or ports of a server with their stations: those differ in the last
    byte, by which a bond's ``layer2`` tells them apart.
    """
    return f"02:6e:62:00:{group:02x}:{member:02x}"


def dut_ipv4(pair: int) -> str:
    """RFC 2544 C.2.2.1: node 1 of a /24 of 198.18.0.0/16 at the first port of a pair, of 198.19.0.0/16 at the second.

    The RFC counts the networks of the pairs from 198.18.1.0 on, we from 198.18.0.0.
    """
    high, low = _network(pair)
    return f"198.{18 + high}.{low}.1/24"


def dut_ipv6(pair: int) -> str:
    """RFC 5180 section 8: 2001:2::/48, halved as the IPv4 range is."""
    high, low = _network(pair)
    return f"2001:2:0:{0x8000 * high + low:x}::1/64"


def _network(pair: int) -> tuple[int, int]:
    if not 0 <= pair < 128:
        raise UsageError(f"no veth pair {pair}", place="lab, ports", next_step="use at most 128")
    return pair % 2, pair // 2
