"""What each interface can do with XDP: carry the tester inside the kernel, and AF_XDP with or without a copy.

A line for each interface of a device, one for the veth pairs of a lab, and one for the kernel, which makes the frames.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nicbench.core.errors import NicbenchError
from nicbench.doctor.base import Check, Examination, Interface, interfaces, ok, warning
from nicbench.engine.client import refusal_of_ports
from nicbench.hosts.base import Host
from nicbench.system.xdp.abilities import (
    BY_THE_KERNEL,
    IN_A_LAB,
    LAB_DEVICE,
    Abilities,
    Lack,
    Mode,
    abilities,
    ask_flags,
    ask_flags_within,
    count_queues,
    interface_lacks,
    kernel_lacks,
    kernel_of,
)

_MEANS = {
    Mode.ZERO_COPY: "the driver can give frames to the tester without copying them",
    Mode.NATIVE: "the driver copies each frame to the tester once",
    Mode.GENERIC: "the kernel builds a buffer of its own for each frame, which is slower than the card by far",
}


class Xdp(Examination):
    """The kernel, the veth pairs of a lab, and each interface that a device stands behind."""

    kind = "xdp"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        kernel, flags, cards = await kernel_of(host), await ask_flags(host), await interfaces(host)
        queues = await count_queues(host, (card.name for card in cards))
        lacking = await kernel_lacks(host)
        checks = [judge_kernel(lacking)]
        for card in cards:
            can = abilities(card.driver, flags.get(card.name), kernel, queues.get(card.name))
            checks.append(judge(card, can, lacking))
        lab = (await ask_flags_within(host, IN_A_LAB)).get(LAB_DEVICE)
        can = abilities("veth", lab, kernel)
        refusal = await _refusal(host) if lacking is None and interface_lacks(LAB_DEVICE, can) is None else None
        return (*checks, judge_lab(can, lacking, refusal))


async def _refusal(host: Host) -> str | None:
    """Why the engine's programs are not taken in a lab, as the engine says; None where they are, or it is not there."""
    port = {"name": LAB_DEVICE, "kind": "xdp", "device": LAB_DEVICE}
    try:
        return await refusal_of_ports(host, [port], prefix=IN_A_LAB)
    except NicbenchError:
        return None


def judge_kernel(lacking: Lack | None) -> Check:
    """Worth a warning only: AF_XDP is there instead."""
    name = "frames made by XDP"
    if lacking is not None:
        return warning(name, f"{lacking.reason}, so `driver: xdp` does not work; {lacking.next_step}")
    return ok(name, "the kernel makes them (BPF_PROG_RUN with live frames), so `driver: xdp` works")


def judge(interface: Interface, can: Abilities, kernel_lacking: Lack | None) -> Check:
    """Generic AF_XDP is worth a warning on an interface that could be measured: nothing fast is left then."""
    name = f"XDP on {interface.name}"
    text = f"{_tester(interface.name, can, kernel_lacking)}; {_af_xdp(can)}"
    details = _details(interface.name, can, kernel_lacking)
    if interface.reaches_others:
        return ok(name, f"{text}; it carries the default route, so it is not for measuring", details)
    if can.mode is Mode.GENERIC:
        return warning(
            name,
            f"{text}; give the port by its PCI address to a driver of DPDK, or try a newer kernel",
            details=details,
        )
    return ok(name, text, details)


def judge_lab(can: Abilities, kernel_lacking: Lack | None, refusal: str | None = None) -> Check:
    """A veth has no memory that a card writes to, so native is the best there is. ``refusal`` is the engine's."""
    name = "XDP in a lab"
    details = _details("veth pairs", can, kernel_lacking)
    lacking = kernel_lacking or interface_lacks("veth pairs", can)
    why_not = refusal or (lacking and lacking.reason)
    chosen = f"a lab uses net_af_xdp, because {why_not}" if why_not else f"a lab uses xdp: {BY_THE_KERNEL}"
    text = f"{_tester('veth pairs', can, kernel_lacking)}; {chosen}; {_af_xdp(can)}"
    details |= {"driver_in_a_lab": "net_af_xdp" if why_not else "xdp"}
    if can.mode is Mode.GENERIC:
        return warning(name, f"{text}; a kernel from 4.19 on has it native", details=details)
    return ok(name, text, details)


def _tester(device: str, can: Abilities, kernel_lacking: Lack | None) -> str:
    """Whether it can carry the tester inside the kernel."""
    lacking = interface_lacks(device, can)
    if lacking is not None:
        return f"cannot carry `driver: xdp`: {lacking.reason}"
    since = f" since Linux {can.native_since}" if can.native_since else ""
    queues = f", {can.queues} {'queue' if can.queues == 1 else 'queues'}" if can.queues else ""
    stamps = ", stamps received frames" if "time stamp" in (can.receive_metadata or ()) and can.driver != "veth" else ""
    can_carry = "could carry `driver: xdp` on another kernel" if kernel_lacking else "can carry `driver: xdp`"
    return f"{can_carry} ({can.driver} runs XDP programs itself{since}{queues}{stamps})"


def _af_xdp(can: Abilities) -> str:
    return f"AF_XDP is {can.mode.value}: {_MEANS[can.mode]}"


def _details(device: str, can: Abilities, kernel_lacking: Lack | None) -> dict[str, Any]:
    lacking = kernel_lacking or interface_lacks(device, can)
    why_not = {} if lacking is None else {"no_xdp_tester_because": str(lacking)}
    return {**asdict(can), "af_xdp": can.mode.value, "can_carry_xdp_tester": lacking is None, **why_not}
