"""The test interfaces, inside their namespace: kind, MAC address, MTU, state, queues, XDP program."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.links import parse_links, xdp_program
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact
from nicbench.inventory.facts._per_interface import each


class Interfaces(Fact):
    """From ``ip -j -d link``."""

    kind = "interfaces"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            return parse_link(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))

        return await each(devices, ask)


def parse_link(text: str) -> dict[str, Any]:
    """What of ``ip -j -d link show`` bears on a measurement."""
    link = parse_links(text)[0]
    return {
        "kind": link.get("linkinfo", {}).get("info_kind") or "hardware",
        "mac": link.get("address"),
        "mtu_bytes": link.get("mtu"),
        "state": link.get("operstate"),
        "promiscuous": bool(link.get("promiscuity")),
        "queueing": link.get("qdisc"),
        "transmit_queue_frames": link.get("txqlen"),
        "transmit_queues": link.get("num_tx_queues"),
        "receive_queues": link.get("num_rx_queues"),
        "largest_gro_bytes": link.get("gro_max_size"),
        "largest_gso_bytes": link.get("gso_max_size"),
        "xdp_program": xdp_program(link),
    }
