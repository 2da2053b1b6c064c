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
from nicbench.system.xdp import drivers
from nicbench.system.xdp.asking import Flags, Kernel, ask_flags, kernel_of

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
    """Unknown is None. ``redirects`` is what arrives here, ``redirect_target`` what is redirected to this interface."""

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
    since = drivers.native_since(driver)
    if flags is None:
        zero_copy = drivers.has_zero_copy(driver, kernel)
        native = zero_copy or drivers.is_native(driver, kernel)
        target = native and drivers.is_redirect_target(driver)
        with_program = target and drivers.is_target_with_program(driver)
        return Abilities(driver, native, since, native, target, with_program, zero_copy, None, None, None, None, queues)
    told = flags.features
    native, says_target = bool(told & _BASIC), bool(told & _TARGET)
    with_program = native and not says_target and drivers.is_target_with_program(driver)
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
