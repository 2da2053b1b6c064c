"""AF_XDP on each interface: zero-copy, native with a copy, or generic, which is slower than the card by far.

The kernel says it itself since 6.3 (``_netdev.py``); for older ones it is known from the driver and the version.
"""

from __future__ import annotations

import json
import re
import sys
from enum import StrEnum
from pathlib import Path

from nicbench.doctor import _netdev
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._interfaces import Interface, interfaces
from nicbench.hosts.base import Host

_ASK = (sys.executable, "-I", str(Path(_netdev.__file__)))
_VETH = "ip link add nbdoc0 type veth peer name nbdoc1"
# In a namespace without a name, which ends with its shell: nothing remains.
_ASK_A_VETH = ("unshare", "--net", "sh", "-c", f'{_VETH} && exec "$@"', "sh", *_ASK)
# NETDEV_XDP_ACT_* of include/uapi/linux/netdev.h
_BASIC, _REDIRECT, _ZERO_COPY = 1 << 0, 1 << 1, 1 << 3
# The kernels that brought it, by driver, for kernels that do not say themselves.
_ZERO_COPY_SINCE = {
    "4.20": "i40e ixgbe",
    "5.3": "mlx5_core",
    "5.5": "ice",
    "5.13": "stmmac",
    "5.14": "igc",
    "5.18": "nfp",
}
_NATIVE_SINCE = {
    "4.8": "mlx4_core mlx4_en",
    "4.9": "mlx5_core",
    "4.10": "nfp qede virtio_net",
    "4.11": "bnxt_en",
    "4.13": "i40e",
    "4.14": "ixgbe",
    "4.15": "tun",
    "4.17": "ixgbevf",
    "4.19": "veth",
    "5.0": "fsl_dpaa2_eth",
    "5.5": "mvneta sfc",
    "5.6": "ena hv_netvsc",
    "5.10": "igb",
    "5.13": "fsl_enetc igc",
}


class Mode(StrEnum):
    """How frames come from the driver to an AF_XDP socket."""

    ZERO_COPY = "zero-copy"
    NATIVE = "native"
    GENERIC = "generic"


class AfXdp(Examination):
    """One check for each interface of a device, and one for the veth pairs of a lab."""

    kind = "af_xdp"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        kernel = kernel_version(await host.read_file("/proc/sys/kernel/osrelease") or "")
        told = parse_features((await host.run(_ASK, check=False)).stdout)
        checks = [judge(found, mode(found.driver, told.get(found.name), kernel)) for found in await interfaces(host)]
        lab = parse_features((await host.run(_ASK_A_VETH, check=False)).stdout)
        return (*checks, judge_lab(mode("veth", lab.get("nbdoc0"), kernel)))


def parse_features(text: str) -> dict[str, int]:
    """What ``_netdev.py`` prints: features by interface; empty where the kernel does not say."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: features for name, features in found.items() if isinstance(features, int)}


def kernel_version(release: str) -> tuple[int, int] | None:
    """``6.1.0-21-amd64`` is 6.1."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return (int(found[1]), int(found[2])) if found else None


def mode(driver: str, features: int | None, kernel: tuple[int, int] | None) -> Mode:
    """By the kernel's word where it gives one, else by driver and version."""
    if features is not None:
        if features & _ZERO_COPY:
            return Mode.ZERO_COPY
        return Mode.NATIVE if features & _BASIC and features & _REDIRECT else Mode.GENERIC
    for known, table in ((Mode.ZERO_COPY, _ZERO_COPY_SINCE), (Mode.NATIVE, _NATIVE_SINCE)):
        for since, drivers in table.items():
            if kernel is not None and driver in drivers.split() and kernel >= (kernel_version(since) or kernel):
                return known
    return Mode.GENERIC


_MEANS = {
    Mode.ZERO_COPY: "the driver can give frames to the tester without copying them",
    Mode.NATIVE: "the driver copies each frame to the tester once",
    Mode.GENERIC: "the kernel builds a buffer of its own for each frame, which is slower than the card by far",
}


def judge(interface: Interface, found: Mode) -> Check:
    """Generic is worth a warning on an interface that could be measured."""
    name = f"AF_XDP on {interface.name}"
    text = f"{found.value} ({interface.driver}): {_MEANS[found]}"
    if interface.reaches_others:
        return ok(name, f"{text}; it carries the default route, so it is not for measuring")
    if found is Mode.GENERIC:
        return warning(name, f"{text}: give the port by its PCI address to a driver of DPDK, or try a newer kernel")
    return ok(name, text)


def judge_lab(found: Mode) -> Check:
    """A veth has no memory that a card writes to, so native is the best there is."""
    name = "AF_XDP in a lab"
    if found is Mode.GENERIC:
        return warning(name, f"generic on veth pairs: {_MEANS[found]}; a kernel from 4.19 on has it native")
    return ok(name, f"{found.value} on veth pairs: {_MEANS[found]}")
