"""Whether the tester inside the kernel (``driver: xdp``) can work on a host and an interface, and if not, why.

It makes frames by an XDP program (BPF_PROG_RUN with live frames, Linux 5.18), redirects them to the interface, and
reads what arrives in the driver's own hook: the interface must run programs itself and take redirected frames.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nicbench.hosts.base import Host
from nicbench.system.xdp.abilities import TIME_STAMP, Abilities, abilities_of
from nicbench.system.xdp.asking import Attempt, Kernel, kernel_of, try_live_frames

LIVE_FRAMES_SINCE: Kernel = (5, 18)
_INSTEAD = "use `driver: net_af_xdp`"
_BY_SOFTWARE = "use `timestamps: tsc`"
# Buses of devices that are made by software.
_SIMULATED_BUSES = frozenset({"netdevsim"})

BY_THE_KERNEL = "frames are made and judged in the kernel"
"""Why `driver: xdp` is chosen where it can be."""

LAB_DEVICE = "nbtry0"
_MAKE_A_VETH = (
    f"{{ ip link add {LAB_DEVICE} type veth peer name nbtry1 && ethtool -K nbtry1 gro on && "
    f'ip link set dev {LAB_DEVICE} up && ip link set dev nbtry1 up; }} >&2; exec "$@"'
)
IN_A_LAB = ("unshare", "--net", "sh", "-c", _MAKE_A_VETH, "sh")
"""Runs a command next to ``LAB_DEVICE``, an end of a veth pair like that of a lab: both ends are up, and the other one
has GRO, without which it takes no redirected frames. Its namespace has no name and ends with the command: nothing
remains.
"""

# linux/capability.h. Before Linux 5.8, and still, CAP_SYS_ADMIN stands for the last two.
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]{1,16})$", re.MULTILINE)
_SYS_ADMIN = 21
_NEEDED = {12: "CAP_NET_ADMIN", 38: "CAP_PERFMON", 39: "CAP_BPF"}
_COVERED_BY_SYS_ADMIN = frozenset({38, 39})


@dataclass(frozen=True, slots=True)
class Lack:
    """Why something cannot be, and what to do about it."""

    reason: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.next_step}"


async def xdp_lacks(host: Host, device: str) -> Lack | None:
    """Why ``device`` of ``host`` cannot carry ``driver: xdp``; None where it can.

    ``host`` is where the tester runs: its privileges count, and the interface is looked up in its network namespace.
    """
    return await kernel_lacks(host) or interface_lacks(device, await abilities_of(host, device))


async def kernel_lacks(host: Host) -> Lack | None:
    """Why no interface of the host can carry ``driver: xdp``: rights, or frames that its kernel cannot make."""
    without = missing_capabilities(await host.read_file("/proc/self/status") or "")
    if without:
        return Lack(f"the tester inside the kernel lacks {', '.join(without)}", f"run as root, or {_INSTEAD}")
    return judge_kernel(await kernel_of(host), await try_live_frames(host))


async def card_stamp_lack(host: Host, device: str) -> Lack | None:
    """Why frames that ``driver: xdp`` receives at ``device`` cannot bear its card's stamps; None where they can."""
    shown = await host.run(("ip", "-d", "-j", "link", "show", "dev", device), check=False)
    links = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    return judge_card_stamps(device, links[0] if links else {}, await abilities_of(host, device))


def judge_card_stamps(device: str, link: Mapping[str, Any], can: Abilities) -> Lack | None:
    """By an object of ``ip -d -j link`` and what the driver gives to XDP."""
    if link.get("parentdev") is None or link.get("parentbus") in _SIMULATED_BUSES:
        return Lack(f"no card stands behind {device}, so there are no time stamps of one", _BY_SOFTWARE)
    if can.receive_metadata is None:
        return Lack("this kernel does not say whether drivers give stamps to XDP", f"boot Linux 6.8, or {_BY_SOFTWARE}")
    if TIME_STAMP not in can.receive_metadata:
        return Lack(f"{can.driver or 'its driver'} gives XDP no time stamps of frames at {device}", _BY_SOFTWARE)
    return None


def judge_kernel(kernel: Kernel | None, attempt: Attempt) -> Lack | None:
    """By the attempt where there was one, as distributions add to old kernels what newer ones have; else by version."""
    if attempt.works:
        return None
    is_old = kernel is not None and kernel < LIVE_FRAMES_SINCE
    version = f"Linux {kernel[0]}.{kernel[1]}" if kernel else "this kernel"
    if is_old or (kernel is None and attempt.works is None):
        return Lack(
            f"{version} cannot make frames by XDP (BPF_PROG_RUN with live frames)",
            f"boot Linux {LIVE_FRAMES_SINCE[0]}.{LIVE_FRAMES_SINCE[1]} or newer, or {_INSTEAD}",
        )
    if attempt.works is None:
        return None
    because = f" ({attempt.reason})" if attempt.reason else ""
    return Lack(
        f"{version} refuses to make frames by XDP{because}", f"run as root outside of a container, or {_INSTEAD}"
    )


def interface_lacks(device: str, can: Abilities) -> Lack | None:
    """Why an interface cannot carry ``driver: xdp`` on a kernel that can make frames."""
    driver = can.driver or "its driver"
    if not can.native:
        return Lack(f"{driver} does not run XDP programs itself on {device}", f"try a newer kernel, or {_INSTEAD}")
    if can.redirect_target:
        return None
    if can.driver == "veth":
        return Lack(
            f"the other end of the veth pair of {device} takes no redirected frames: it has neither GRO nor a program",
            f"bring both ends up and switch GRO on at the other one (ethtool -K NAME gro on), or {_INSTEAD}",
        )
    return Lack(f"{driver} takes no frames that XDP redirects to {device}", f"try a newer kernel, or {_INSTEAD}")


def missing_capabilities(status: str) -> tuple[str, ...]:
    """Of the text of ``/proc/self/status``; none where it does not say."""
    found = _CAPABILITIES.search(status)
    if found is None:
        return ()
    held = int(found[1], 16)
    covered = _COVERED_BY_SYS_ADMIN if held >> _SYS_ADMIN & 1 else frozenset()
    return tuple(name for bit, name in _NEEDED.items() if not held >> bit & 1 and bit not in covered)
