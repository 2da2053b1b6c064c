"""The test interfaces, inside their namespace: kind, MAC address, MTU, state, queues, XDP program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.links import parse_links, xdp_program
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces
from nicbench.system.inventory.subjects import join_texts, part_of


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


def _tell_adapter(facts: Facts, write: Write, name: str, link: Any) -> str | None:
    link = link if isinstance(link, Mapping) else {}
    driver = part_of(part_of(facts, "drivers"), name) or part_of(link, "driver")
    card = part_of(part_of(facts, "pci_adapters"), str(driver.get("bus") or name))
    slot = part_of(card, "link")
    speed = part_of(part_of(facts, "link_settings"), name).get("speed_bits_per_s")
    return join_texts(
        join_texts(name, join_texts(card.get("vendor"), card.get("model"), by=" "), by=": "),
        f"driver {join_texts(driver.get('name'), driver.get('version'), by=' ')}"
        if driver.get("name")
        else link.get("kind"),
        f"firmware {driver['firmware']}" if driver.get("firmware") else None,
        write("_bits_per_s", speed) if speed else None,
        f"PCI Express {slot.get('speed_gt_per_s'):g} GT/s x{slot['lanes']}" if slot.get("lanes") else None,
        f"MTU {link['mtu_bytes']}" if link.get("mtu_bytes") else None,
    )


def _tell_adapters(facts: Facts, write: Write) -> str | None:
    """Each interface of the test, from whatever facts know it by its name, and its card by its bus."""
    return join_texts(
        *(_tell_adapter(facts, write, name, link) for name, link in part_of(facts, "interfaces").items()), by="; "
    )


class Interfaces(Fact):
    """From ``ip -j -d link``."""

    kind = "interfaces"
    shape = dict[str, _Interface]
    subjects = (Subject("Network adapters", 230, _tell_adapters),)

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
