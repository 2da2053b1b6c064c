"""The test interfaces, inside their namespace: kind, MAC address, MTU, state, queues, XDP program."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from nicbench.core.described import NotEverywhere
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.links import parse_links, xdp_program
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces


class _Program(TypedDict):
    """An XDP program."""

    mode: str | None
    name: str | None
    tag: str | None


class _Interface(TypedDict):
    """One interface."""

    kind: str
    mac: str | None
    mtu_bytes: int | None
    state: str | None
    promiscuous: bool
    queueing: str | None
    transmit_queue_frames: int | None
    transmit_queues: int | None
    receive_queues: int | None
    largest_gro_bytes: int | None
    largest_gso_bytes: int | None
    xdp_program: Annotated[_Program | None, NotEverywhere]


class Interfaces(Fact):
    """From ``ip -j -d link``."""

    kind = "interfaces"
    shape = dict[str, _Interface]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        async def ask(device: str) -> Any:
            return parse_link(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))

        return await ask_interfaces(devices, ask)


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
