"""The RDMA device over an interface, its port, and the GID by which packets bear the interface's address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nicbench.adapters.rdma import GIDS_SCRIPT, gid_index_of, gid_of, is_soft, parse_rdma_links
from nicbench.hosts.base import Host

_LISTED: Final = ("sh", "-c", "command -v rdma >/dev/null && rdma -j link show || echo '[]'")


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """``gid_index`` is that of a RoCE v2 GID; None where the port has none: InfiniBand, RoCE v1."""

    device: str
    port: int
    state: str
    gid_index: int | None = None
    is_soft: bool = False


async def rdma_port_of(host: Host, interface: str, address: str) -> RdmaPort | None:
    """Of the interface in the network namespace of ``host``; None where no RDMA device is over it."""
    shown = await host.run(_LISTED, check=False)
    try:
        links = parse_rdma_links(shown.stdout)
    except ValueError:
        return None
    link = next((link for link in links if link.get("netdev") == interface), None)
    if link is None:
        return None
    device, port = str(link["ifname"]), int(link.get("port", 1))
    script = GIDS_SCRIPT.format(device=device, port=port, gid=gid_of(address))
    gids = await host.run(("sh", "-c", script), check=False)
    return RdmaPort(
        device, port, str(link.get("state", "")), gid_index_of(gids.stdout, interface), is_soft(gids.stdout)
    )
