"""What a kernel and an interface can do with XDP: asked, judged, and explained where the tester lacks something."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.system.identity import driver_of
from nicbench.system.xdp import live_frames_trial, netdev_query

# Asks a host about XDP by two programs without dependencies, which its Python reads from stdin.  That works on every
# host (ssh, namespaces, containers) that has a Python, and copies nothing to it. A host without one does not say, and
# the callers go by its kernel's version and its drivers.

Kernel = tuple[int, int]
_TIMEOUT_S = 20.0


@frozen
class Flags:
    """What the kernel says of one interface; None is what it does not know of yet (Linux 6.3 to 6.7)."""

    features: int
    receive_metadata: int | None = None
    socket: int | None = None


@frozen
class Attempt:
    """Whether the kernel made a frame by XDP; None where nobody could try. ``reason`` is the kernel's."""

    works: bool | None
    reason: str = ""


async def ask_flags(host: Host) -> dict[str, Flags]:
    """The flags of every interface in the host's network namespace; empty where the kernel does not say."""
    return parse_flags(await _output_of(host, netdev_query))


async def ask_flags_within(host: Host, prefix: tuple[str, ...]) -> dict[str, Flags]:
    """As ``ask_flags``, by a command that runs another (``unshare --net ..``)."""
    return parse_flags(await _output_of(host, netdev_query, prefix))


def queues_command(host: Host) -> tuple[tuple[str, ...], str]:
    """The command by which the kernel says what each receive queue got, and its standard input."""
    return (*python_of(host), "queues"), _source_of(netdev_query)


async def try_live_frames(host: Host) -> Attempt:
    """Has the kernel make one frame, which the program that makes it drops."""
    return parse_attempt(await _output_of(host, live_frames_trial))


async def kernel_of(host: Host) -> Kernel | None:
    """The kernel's version, None where it cannot be read."""
    return parse_kernel(await host.read_file("/proc/sys/kernel/osrelease") or "")


def python_of(host: Host) -> tuple[str, ...]:
    """The command that runs a program from its stdin: our own Python where it is the same machine."""
    return (sys.executable if host.shares_files else "python3", "-I", "-")


async def _output_of(host: Host, program: ModuleType, prefix: tuple[str, ...] = ()) -> str:
    text = _source_of(program)
    try:
        return (await host.run((*prefix, *python_of(host)), input_text=text, timeout_s=_TIMEOUT_S, check=False)).stdout
    except NicbenchError:
        return ""


def _source_of(program: ModuleType) -> str:
    return Path(str(program.__file__)).read_text(encoding="utf-8")


def parse_flags(text: str) -> dict[str, Flags]:
    """Flags by interface of what ``netdev_query.py`` prints; empty where the kernel does not say."""
    return {
        name: Flags(flags["features"], _number(flags, "receive_metadata"), _number(flags, "socket"))
        for name, flags in _object(text).items()
        if isinstance(flags, dict) and _number(flags, "features") is not None
    }


def parse_received(text: str) -> dict[str, tuple[int, ...]]:
    """Frames of each receive queue, from 0 on, by interface, of what ``netdev_query.py queues`` prints; an interface
    whose driver does not tell the kernel is left out.
    """
    found = {}
    for name, queues in _object(text).items():
        if isinstance(queues, dict) and set(queues) == {str(number) for number in range(len(queues))}:
            frames = [_number(queues, str(number)) for number in range(len(queues))]
            if frames and None not in frames:
                found[name] = tuple(each or 0 for each in frames)
    return found


def parse_attempt(text: str) -> Attempt:
    """Of what ``live_frames_trial.py`` prints; unknown where it is nothing."""
    found = _object(text)
    works, reason = found.get("works"), found.get("reason")
    if not isinstance(works, bool):
        return Attempt(None)
    return Attempt(works, reason if isinstance(reason, str) else "")


def parse_kernel(release: str) -> Kernel | None:
    """``6.1.0-21-amd64`` is 6.1."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return (int(found[1]), int(found[2])) if found else None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(flags: Mapping[str, Any], name: str) -> int | None:
    value = flags.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# What one interface can do with XDP: by the kernel's own word where it gives one, else by driver and version.  Source
# of the flags: include/uapi/linux/netdev.h, Documentation/netlink/specs/netdev.yaml.

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


@frozen
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


# Whether the tester inside the kernel (``driver: xdp``) can work on a host and an interface, and if not, why.  It
# makes frames by an XDP program (BPF_PROG_RUN with live frames, Linux 5.18), redirects them to the interface, and
# reads what arrives in the driver's own hook: the interface must run programs itself and take redirected frames.

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


@frozen
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
