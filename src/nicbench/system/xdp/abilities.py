"""What one interface can do with XDP: by the kernel's own word where it gives one, else by driver and version.

Source of the flags: include/uapi/linux/netdev.h, Documentation/netlink/specs/netdev.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nicbench.core.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.system.kernel_driver import driver_of
from nicbench.system.xdp.asking import Flags, Kernel, ask_flags, kernel_of, parse_kernel

# What Linux's network drivers do with XDP, and since which kernel. Pure.  The kernel says it itself since 6.3
# (``asking.py``); these tables are for older ones, and for what no flag tells.  Source: the history of drivers/net;
# commit 66c0e13ad236 (drivers: net: turn on XDP features), which lists what each driver had by then.

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


# NETDEV_XDP_ACT_*
_BASIC, _REDIRECT, _TARGET, _ZERO_COPY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_RECEIVE_FRAGMENTS, _TRANSMIT_FRAGMENTS = 1 << 5, 1 << 6
# NETDEV_XDP_RX_METADATA_*, NETDEV_XSK_FLAGS_*
TIME_STAMP = "time stamp"
_RECEIVE_METADATA = {1 << 0: TIME_STAMP, 1 << 1: "hash", 1 << 2: "VLAN tag"}
_TRANSMIT_METADATA = {1 << 0: TIME_STAMP, 1 << 1: "checksum", 1 << 2: "launch time"}
# Names of interfaces hold neither blanks nor slashes; one that does not exist has no line.
_COUNT_QUEUES = 'for name; do set -- "/sys/class/net/$name/queues"/rx-*; [ -e "$1" ] && echo "$name $#"; done; true'


class Mode(StrEnum):
    """How frames come from the driver to an AF_XDP socket."""

    ZERO_COPY = "zero-copy"
    NATIVE = "native"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Abilities:
    """None means unknown. ``redirects``: frames that arrive here; ``redirect_target``: frames that are redirected to
    it.
    """

    driver: str
    native: bool
    native_since: str | None
    redirects: bool
    redirect_target: bool
    needs_program_as_target: bool
    """It takes redirected frames only while an XDP program is attached to it."""
    zero_copy: bool
    multi_buffer_receive: bool | None
    multi_buffer_transmit: bool | None
    receive_metadata: tuple[str, ...] | None
    transmit_metadata: tuple[str, ...] | None
    queues: int | None

    @property
    def mode(self) -> Mode:
        """How AF_XDP works here."""
        if self.zero_copy:
            return Mode.ZERO_COPY
        return Mode.NATIVE if self.native and self.redirects else Mode.GENERIC


def abilities(driver: str, flags: Flags | None, kernel: Kernel | None, queues: int | None = None) -> Abilities:
    """By the kernel's word where it gives one (``flags``), else by driver and version."""
    since = native_since(driver)
    if flags is None:
        zero_copy = has_zero_copy(driver, kernel)
        native = zero_copy or is_native(driver, kernel)
        target = native and is_redirect_target(driver)
        with_program = target and is_target_with_program(driver)
        return Abilities(driver, native, since, native, target, with_program, zero_copy, None, None, None, None, queues)
    told = flags.features
    native, says_target = bool(told & _BASIC), bool(told & _TARGET)
    with_program = native and not says_target and is_target_with_program(driver)
    return Abilities(
        driver=driver,
        native=native,
        native_since=since,
        redirects=bool(told & _REDIRECT),
        redirect_target=says_target or with_program,
        needs_program_as_target=with_program,
        zero_copy=bool(told & _ZERO_COPY),
        multi_buffer_receive=bool(told & _RECEIVE_FRAGMENTS),
        multi_buffer_transmit=bool(told & _TRANSMIT_FRAGMENTS) if says_target else None,
        receive_metadata=_names(_RECEIVE_METADATA, flags.receive_metadata),
        transmit_metadata=_names(_TRANSMIT_METADATA, flags.socket),
        queues=queues,
    )


async def abilities_of(host: Host, device: str) -> Abilities:
    """Asks a host about one interface of its network namespace."""
    network = host.network
    flags, counts = await ask_flags(network), await count_queues(network, (device,))
    return abilities(await driver_of(network, device), flags.get(device), await kernel_of(network), counts.get(device))


async def count_queues(host: Host, devices: Iterable[str]) -> dict[str, int]:
    """The receive queues of each interface; one that does not exist is left out."""
    try:
        done = await host.run(("sh", "-c", _COUNT_QUEUES, "sh", *devices), check=False)
    except NicbenchError:
        return {}
    return parse_queues(done.stdout)


def parse_queues(text: str) -> dict[str, int]:
    """Of rows of an interface's name and a number."""
    rows = (row.split() for row in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isascii() and row[1].isdecimal()}


def _names(table: Mapping[int, str], flags: int | None) -> tuple[str, ...] | None:
    return None if flags is None else tuple(name for bit, name in table.items() if flags & bit)
