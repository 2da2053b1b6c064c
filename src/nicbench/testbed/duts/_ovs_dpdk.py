"""Open vSwitch's datapath on DPDK (`ovs`, `datapath: dpdk`): its program, its settings, and what its threads count.

The switch makes its EAL arguments of settings of its database (Open_vSwitch(5), ``other_config``), and adds
``--in-memory`` where memory is in huge pages. Its ports are the DUT's kernel interfaces, by DPDK's driver af_packet.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from nicbench.core.errors import NotReadyError
from nicbench.core.machine import DutWork
from nicbench.core.quantity import Bytes
from nicbench.hosts.base import Host
from nicbench.testbed.duts._dpdk import DpdkOptions, DutCores

_PROGRAMS: Final = ("ovs-vswitchd", "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
"""The switch as the system's choice, and where Debian's package has it; either may be the one without DPDK."""
_COUNTER: Final = re.compile(
    r"^ +(packets received|miss with (?:success|failed) upcall|processing cycles): (\d{1,20})\b", re.M
)


class OvsDpdk(DpdkOptions):
    """``dpdk: {cores: 1}`` under ``dut: {kind: ovs, datapath: dpdk}``."""

    memory: Bytes = Field(default=256 * 2**20, ge=192 * 2**20)
    """Memory for its DPDK; the switch asks for a pool of 32768 frames, which 128 MiB hold."""
    cores: int = Field(default=1, ge=1, le=128)
    """Cores whose threads poll the ports (`pmd-cpu-mask`); each port has one queue, so that more than two idle."""


async def find_program(host: Host) -> tuple[str, str]:
    """The switch that is built with DPDK, and what it says of its version; NotReadyError where there is none."""
    for program in _PROGRAMS:
        said = await host.run((program, "--version"), check=False)
        if said.status == 0 and "DPDK" in said.stdout:
            return program, ", ".join(said.stdout.split("\n")[:2])
    raise NotReadyError(
        "there is no Open vSwitch that is built with DPDK",
        place=f"dut, on {host.name}",
        next_step="apt-get install openvswitch-switch-dpdk, or `datapath: user` under `dut`",
    )


def settings(options: OvsDpdk, cores: DutCores, prefix: str) -> tuple[str, ...]:
    """The settings for the database, in the form ``column:key=value``; the EAL's files are called by ``prefix``."""
    memory = () if options.huge_pages else ("--no-huge", "--legacy-mem", "--no-shconf")
    eal = ("-m", str(options.memory // 2**20), "--no-pci", f"--file-prefix={prefix}", "--no-telemetry", *memory)
    return (
        "other_config:dpdk-init=true",
        f"other_config:dpdk-lcore-mask={_mask((cores.main,))}",
        f"other_config:pmd-cpu-mask={_mask(cores.workers)}",
        f'other_config:dpdk-extra="{" ".join((*eal, *options.eal))}"',
    )


def port_words(options: OvsDpdk, number: int, device: str) -> tuple[str, ...]:
    """What makes an interface of the bridge a port of DPDK, as arguments of ``set interface``."""
    devargs = f"net_af_packet{number},iface={device}" + (f",{options.devargs}" if options.devargs else "")
    return ("type=dpdk", f'options:dpdk-devargs="{devargs}"')


def _mask(cpus: tuple[int, ...]) -> str:
    return hex(sum(1 << cpu for cpu in set(cpus)))


def parse_statistics(shown: str) -> dict[str, int]:
    """The counters of ``dpif-netdev/pmd-stats-show`` that are read here, by name, each the sum of all threads."""
    counted: dict[str, int] = {}
    for name, value in _COUNTER.findall(shown):
        counted[name] = counted.get(name, 0) + int(value)
    return counted


def work_of(counted: dict[str, int]) -> DutWork | None:
    """The work of the polling threads; None where they count no cycles."""
    if "processing cycles" not in counted:
        return None
    return DutWork(
        source="Open vSwitch's dpif-netdev/pmd-stats-show",
        packets=counted.get("packets received", 0),
        tsc_cycles=counted["processing cycles"],
    )


def drops_of(counted: dict[str, int]) -> dict[str, int]:
    """Frames that the threads dropped, as no flow could be set up for them."""
    return {"upcall failed": counted["miss with failed upcall"]} if "miss with failed upcall" in counted else {}
