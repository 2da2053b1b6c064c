"""The benchmark networks behind the DUT's two ports: RFC 2544 appendix C.2.2 (IPv4) and RFC 5180 section 8 (IPv6).

Behind port 0 lie 198.18.0.0/16 and 2001:2:0:0::/50, behind port 1 lie 198.19.0.0/16 and 2001:2:0:8000::/50. The
ports' own subnets are small parts of these. Streams sweep a range clear of them.
"""

from __future__ import annotations

from nicbench.errors import UsageError

# 64.0 to 191.255 of each /16: four times the 8192 flows a bench file may ask for.
SWEPT_ADDRESSES = 32_768

_NETWORKS = {4: ("198.18.0.0/16", "198.19.0.0/16"), 6: ("2001:2::/50", "2001:2:0:8000::/50")}
_SWEPT_FROM = {4: ("198.18.64.0", "198.19.64.0"), 6: ("2001:2:0:100::1", "2001:2:0:8100::1")}


def network_behind(ip: int, port: int) -> str:
    """The network that is routed towards the tester's port of this index."""
    return _NETWORKS[checked_version(ip)][port]


def swept_address(ip: int, port: int) -> str:
    """The first of ``SWEPT_ADDRESSES`` addresses behind this port."""
    return _SWEPT_FROM[checked_version(ip)][port]


def checked_version(ip: int) -> int:
    """4 or 6; UsageError otherwise."""
    if ip not in (4, 6):
        raise UsageError(f"no IP version {ip}", place="traffic, ip", next_step="use 4 or 6")
    return ip
