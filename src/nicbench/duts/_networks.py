"""The benchmark networks behind the DUT's ports: RFC 2544 appendix C.2.2 (IPv4) and RFC 5180 section 8 (IPv6).

Between two ports: behind port 0 lie 198.18.0.0/16 and 2001:2:0:0::/50, behind port 1 lie 198.19.0.0/16 and
2001:2:0:8000::/50. Of more ports the even ones share what port 0 has alone, the odd ones what port 1 has, in equal
parts. The ports' own subnets are small parts of these. Streams sweep a range clear of them.
"""

from __future__ import annotations

from nicbench.errors import UsageError

# 64.0 to 191.255 of each /16: four times the 8192 flows a bench file may ask for.
SWEPT_ADDRESSES = 32_768
MOST_PORTS = 64

_NETWORKS = {4: ("198.18.0.0/16", "198.19.0.0/16"), 6: ("2001:2::/50", "2001:2:0:8000::/50")}
_FIRST_SWEPT_BYTE = 64
# Of the third group of four digits, behind those of the ports' own subnets.
_FIRST_SWEPT_SUBNET = 0x100


def network_behind(ip: int, port: int, ports: int = 2) -> str:
    """The network that is routed towards the tester's port of this index, of so many."""
    if _parts(ports) == 1:
        return _NETWORKS[checked_version(ip)][port % 2]
    length = 17 + (_parts(ports).bit_length() - 1) if checked_version(ip) == 4 else 64
    first = swept_address(ip, port, ports).removesuffix("1" if ip == 6 else "")
    return f"{first}/{length}"


def swept_address(ip: int, port: int, ports: int = 2) -> str:
    """The first of ``swept_addresses`` addresses behind this port."""
    half, part = port % 2, port // 2
    if checked_version(ip) == 4:
        offset = part * swept_addresses(ports)
        return f"198.{18 + half}.{_FIRST_SWEPT_BYTE + offset // 256}.{offset % 256}"
    return f"2001:2:0:{0x8000 * half + _FIRST_SWEPT_SUBNET + part:x}::1"


def swept_addresses(ports: int = 2) -> int:
    """How many addresses the streams to one of so many ports may sweep."""
    return SWEPT_ADDRESSES // _parts(ports)


def port_address(ip: int, port: int) -> str:
    """The router's own address at a port, with its prefix: node 1 of its network, as in RFC 2544 C.2.2.1."""
    half, part = port % 2, port // 2
    if checked_version(ip) == 4:
        return f"198.{18 + half}.{part}.1/24"
    return f"2001:2:0:{0x8000 * half + part:x}::1/64"


def checked_version(ip: int) -> int:
    """4 or 6; UsageError otherwise."""
    if ip not in (4, 6):
        raise UsageError(f"no IP version {ip}", place="traffic, ip", next_step="use 4 or 6")
    return ip


def _parts(ports: int) -> int:
    """Into how many equal parts each half is divided: a power of two."""
    if ports > MOST_PORTS:
        raise UsageError(f"{ports} ports are too many", place="lab, ports", next_step=f"use at most {MOST_PORTS}")
    return 1 << max(0, (ports + 1) // 2 - 1).bit_length()
