"""What Linux's network drivers do with XDP, and since which kernel. Pure.

The kernel says it itself since 6.3 (``asking.py``); these tables are for older ones, and for what no flag tells.

Source: the history of drivers/net; commit 66c0e13ad236 (drivers: net: turn on XDP features), which lists what each
driver had by then.
"""

from __future__ import annotations

from nicbench.system.xdp.asking import Kernel, parse_kernel

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
    "5.5": "ice mvneta sfc",
    "5.6": "ena hv_netvsc",
    "5.10": "igb",
    "5.13": "fsl_enetc igc stmmac",
}
# These say that they are a redirect target only while an XDP program is attached: it gives them the queues for it.
_TARGETS_WITH_A_PROGRAM = "bnxt_en ena fec funeth gve i40e ice idpf igb igc ixgbe mlx5_core rvu_nicpf virtio_net"
# Those that say it at all times. Not among either: mlx4_core, nfp, ixgbevf, hv_netvsc.
_TARGETS_ALWAYS = (
    "atlantic fsl_dpa fsl_dpaa2_eth fsl_enetc mana mtk_soc_eth mvneta mvpp2 netsec qede sfc stmmac tun veth"
)


def native_since(driver: str) -> str | None:
    """The first kernel in which the driver ran XDP programs itself, None where that is not known here."""
    return _since(_NATIVE_SINCE, driver)


def is_native(driver: str, kernel: Kernel | None) -> bool:
    """Whether the driver of this kernel runs XDP programs itself, as far as is known here."""
    return _has_come(native_since(driver), kernel)


def has_zero_copy(driver: str, kernel: Kernel | None) -> bool:
    """Whether the driver of this kernel shares buffers with AF_XDP sockets, as far as is known here."""
    return _has_come(_since(_ZERO_COPY_SINCE, driver), kernel)


def is_target_with_program(driver: str) -> bool:
    """Whether the driver takes redirected frames once an XDP program is attached to its interface."""
    return driver in _TARGETS_WITH_A_PROGRAM.split()


def is_redirect_target(driver: str) -> bool:
    """Whether the driver takes redirected frames, at all times or once an XDP program is attached."""
    return is_target_with_program(driver) or driver in _TARGETS_ALWAYS.split()


def _since(table: dict[str, str], driver: str) -> str | None:
    return next((since for since, drivers in table.items() if driver in drivers.split()), None)


def _has_come(since: str | None, kernel: Kernel | None) -> bool:
    first = parse_kernel(since or "")
    return first is not None and kernel is not None and kernel >= first
