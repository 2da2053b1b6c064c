"""Names and addresses in a lab of veth pairs. Pure."""

from __future__ import annotations

import hashlib

from nicbench.core.errors import UsageError

NAMESPACE_PREFIX = "nb-"


def namespace_name(run_id: str, role: str) -> str:
    """A short name that is unique to the run, as in ``nb-3fa2c1-tester``."""
    return f"{NAMESPACE_PREFIX}{hashlib.sha256(run_id.encode()).hexdigest()[:6]}-{role}"


def mac(group: int, member: int) -> str:
    """A locally administered MAC address (IEEE 802c, bit 1 of the first byte), the same in every run.

    A group is a side of pairs (0 is the tester), or a port of a server with its clients: these differ in the last byte,
    which a bond's ``layer2`` policy hashes.
    """
    return f"02:6e:62:00:{group:02x}:{member:02x}"


def dut_ipv4(pair: int) -> str:
    """The DUT's address: node 1 of a /24 of 198.18.0.0/16 at the first port of a pair, of 198.19.0.0/16 at the second.

    RFC 2544 C.2.2.1 counts the networks of the pairs from 198.18.1.0 on, nicbench from 198.18.0.0.
    """
    high, low = _network(pair)
    return f"198.{18 + high}.{low}.1/24"


def dut_ipv6(pair: int) -> str:
    """The DUT's IPv6 address in 2001:2::/48 (RFC 5180 section 8), which is halved as the IPv4 range is."""
    high, low = _network(pair)
    return f"2001:2:0:{0x8000 * high + low:x}::1/64"


def _network(pair: int) -> tuple[int, int]:
    if not 0 <= pair < 128:
        raise UsageError(f"there is no veth pair {pair}", place="lab, ports", next_step="use at most 128")
    return pair % 2, pair // 2
