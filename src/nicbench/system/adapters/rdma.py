"""RDMA devices and their GIDs, as ``rdma`` (iproute2) and the kernel's sysfs show them. Pure.

Sources: rdma-link(8); Documentation/ABI/stable/sysfs-class-infiniband of the kernel; the GID of an IPv4 address is the
address mapped to IPv6 (RoCE v2, annex A17 of the InfiniBand specification).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import IPv4Address, ip_address
from typing import Any, Final

ROCE_V2: Final = "RoCE v2"
GIDS_SCRIPT: Final = (
    "cd /sys/class/infiniband/{device}/ports/{port} && for file in $(grep -lsx {gid} gids/*); do "
    'number=${{file##*/}}; echo "$number $(cat gid_attrs/ndevs/$number) $(cat gid_attrs/types/$number)"; done; '
    "[ -e ../../device ] || echo soft"
)
"""For a shell: number, interface and type of each GID of a port that is ``gid``, for all are up to a thousand.

Then ``soft`` where no device of a bus is beneath the RDMA device.
"""


def parse_rdma_links(text: str) -> list[dict[str, Any]]:
    """Of ``rdma -j link show``: ``ifname``, ``port``, ``state``, ``netdev``. ValueError where it is no list."""
    links = json.loads(text or "[]")
    if not isinstance(links, list) or any(not isinstance(link, Mapping) or "ifname" not in link for link in links):
        raise ValueError("not a list of RDMA links")
    return [dict(link) for link in links]


def gid_of(address: str) -> str:
    """An IP address as sysfs writes it among the GIDs."""
    ip = ip_address(address)
    return f"0000:0000:0000:0000:0000:ffff:{_halves(ip)}" if isinstance(ip, IPv4Address) else ip.exploded


def gid_index_of(text: str, interface: str) -> int | None:
    """The first RoCE v2 GID of this interface in what the script says; None where there is none."""
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        name, _, kind = rest.partition(" ")
        if number.isdigit() and name == interface and kind.strip() == ROCE_V2:
            return int(number)
    return None


def is_soft(text: str) -> bool:
    """Whether what the script says is of a driver without an adapter (rxe, siw)."""
    return "soft" in text.splitlines()


def _halves(ip: IPv4Address) -> str:
    text = ip.packed.hex()
    return f"{text[:4]}:{text[4:]}"
