"""Open vSwitch between the DUT's ports (`ovs`), with its datapath in the kernel, in user space, or on DPDK.

The switch is one of nicbench's own, with a database, sockets and a bridge of its own, independent of any that runs
already. It has one OpenFlow flow for each port, and no controller; a frame that matches no flow is dropped. The flows
count what they forward.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.machine import DutWork
from nicbench.core.quantity import Bytes
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import transparent_addressing
from nicbench.testbed.duts._dpdk import DpdkOptions, DutCores, dut_cores, file_prefix, remove_runtime_files
from nicbench.testbed.duts._kernel import PassageDut, Passed, dut_devices, link_packets, require_host
from nicbench.testbed.duts._process import DutProcess, require_programs
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.preparation import raise_huge_pages
from nicbench.tuning.undo.files import RemovePath
from nicbench.tuning.undo.network import DeleteDatapath, DeleteLink, EndPromiscuity

# Open vSwitch's datapath on DPDK (`ovs`, `datapath: dpdk`): its program, its settings, and what its threads count.
#
# The switch makes its EAL arguments of settings of its database (Open_vSwitch(5), ``other_config``), and adds
# ``--in-memory`` where memory is in huge pages. Its ports are the DUT's kernel interfaces, by DPDK's driver af_packet.


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
    """The switch that is built with DPDK, and what it says of its version; NotReadyError where it is missing."""
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


BRIDGE: Final = "nicbench-ovs"
_SCHEMA: Final = "/usr/share/openvswitch/vswitch.ovsschema"
_INSTALL: Final = "apt-get install openvswitch-switch"
_WITHIN_S: Final = 60.0  # the EAL zeroes its memory page by page
_BETWEEN_TRIES_S: Final = 0.1
_UNTIL_CPUS_ARE_COUNTED_S: Final = 11.0
"""Open vSwitch 3.1 counts no CPU in the first ten seconds after a boot, and then handles no frame that has no flow."""
_PACKETS: Final = re.compile(r"n_packets=(\d+)")


class OvsOptions(Frozen):
    """``dut: {kind: ovs}``."""

    datapath: Literal["kernel", "user", "dpdk"] = "kernel"
    """`kernel` is the kernel's module `openvswitch`; `user` is the datapath `netdev` of the switch itself, which takes
    frames from the ports by packet sockets; `dpdk` is that datapath with threads that poll the ports by DPDK.
    """
    dpdk: OvsDpdk = OvsDpdk()
    """Cores, memory and arguments of `datapath: dpdk`."""

    @model_validator(mode="after")
    def _check_dpdk(self) -> Self:
        if "dpdk" in self.model_fields_set and self.datapath != "dpdk":
            raise ValueError(f"`dpdk` is of no use with `datapath: {self.datapath}`: write `datapath: dpdk`")
        return self


class Ovs(PassageDut):
    """The DUT's host switches between its ports by OpenFlow."""

    kind = "ovs"
    layer = "Open vSwitch"
    Options = OvsOptions
    fewest_ports = 2
    options: OvsOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._host: Host | None = None
        self._devices: tuple[str, ...] = ()
        self._folder = ""
        self._processes: list[DutProcess] = []
        self._commands: list[str] = []
        self._version = ""
        self._program = "ovs-vswitchd"
        self._cores: DutCores | None = None

    @property
    def processes(self) -> Sequence[DutProcess]:
        return self._processes

    def programs(self) -> Mapping[str, str]:
        return dict.fromkeys(("ovs-vswitchd", "ovsdb-server", "ovs-vsctl"), _INSTALL)

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        self._devices = (await dut_devices(testbed, self.kind)).names
        await require_programs(host, self.programs())
        self._host = host
        if self.options.datapath == "dpdk":
            self._program, self._version = await find_program(host)
            self._cores = dut_cores(testbed, self.options.dpdk.cores, self.kind)
        else:
            self._version = (await host.run(("ovs-vswitchd", "--version"))).stdout.splitlines()[0]
        self._folder = (await host.run(("mktemp", "-d", "--tmpdir", "nicbench-ovs.XXXXXX"))).stdout.strip()
        await changes.make(host, RemovePath(path=self._folder))
        if self.options.datapath == "kernel":
            uptime_s = float((await host.read_file("/proc/uptime") or "inf").split()[0])
            await asyncio.sleep(max(0.0, _UNTIL_CPUS_ARE_COUNTED_S - uptime_s))
            await changes.make(host, DeleteDatapath(datapath="ovs-system"), self._require_no_datapath)
        else:
            for device in ("ovs-netdev", BRIDGE):
                await changes.make(host, DeleteLink(device=device))
        for device in self._devices:
            await changes.make(host, EndPromiscuity(device=device))
        if self.options.datapath == "dpdk" and self.options.dpdk.huge_pages:
            await raise_huge_pages(
                changes, host, self.options.dpdk.memory + testbed.promised_bytes, "dut.dpdk.huge_pages"
            )
        await self._start(host, changes, testbed)
        await self._make_bridge(host)

    async def _require_no_datapath(self) -> None:
        """NotReadyError where the kernel has no Open vSwitch, or has a datapath of somebody else in this namespace."""
        host = self._require_up()
        await host.run(("modprobe", "openvswitch"), check=False)
        shown = await host.run(("ovs-dpctl", "dump-dps"), check=False)
        if shown.status != 0 or "ovs_datapath" in shown.stderr:
            raise NotReadyError(
                f"the kernel has no Open vSwitch: {shown.stderr.strip()}",
                place=f"dut, on {host.name}",
                next_step="modprobe openvswitch, on a kernel that has it; or `datapath: user` under `dut`",
            )

    async def _start(self, host: Host, changes: Changes, testbed: Testbed) -> None:
        """Starts the database and the switch, and waits until the switch answers."""
        folder, own = self._folder, self.options.dpdk
        await host.run(("ovsdb-tool", "create", f"{folder}/conf.db", _SCHEMA))
        database = (f"{folder}/conf.db", f"--remote=punix:{folder}/db.sock", f"--unixctl={folder}/database.ctl")
        await self._start_one(host, changes, ("ovsdb-server", *database), "db.sock")
        cpus = testbed.cores.dut
        prefix: tuple[str, ...] = ()
        if self._cores is not None:
            name = file_prefix(changes.run_id)
            await remove_runtime_files(changes, host, name)
            set_up = ("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings(own, self._cores, name))
            await self._run(host, *self._vsctl, *set_up)
            cpus, prefix = (self._cores.main, *self._cores.workers), own.scheduling.prefix()
        switch = (self._program, f"unix:{folder}/db.sock", f"--unixctl={folder}/switch.ctl")
        await self._start_one(
            host, changes, (*prefix, "taskset", "-c", ",".join(map(str, cpus)), *switch), "switch.ctl"
        )

    async def _start_one(self, host: Host, changes: Changes, command: tuple[str, ...], socket: str) -> None:
        """Starts the database or the switch, and waits for its ``socket``."""
        name = "ovsdb-server" if command[0] == "ovsdb-server" else "ovs-vswitchd"
        environment = {**self.options.dpdk.environment, "OVS_RUNDIR": self._folder, "OVS_LOGDIR": self._folder}
        self._processes.append(await DutProcess.start(host, changes, command, name, environment))
        self._commands.append(" ".join(command))
        await self._wait_for(host, f"{self._folder}/{socket}")

    @property
    def _vsctl(self) -> tuple[str, ...]:
        return ("ovs-vsctl", f"--db=unix:{self._folder}/db.sock", f"--timeout={_WITHIN_S:.0f}")

    async def _wait_for(self, host: Host, path: str) -> None:
        for _ in range(int(_WITHIN_S / _BETWEEN_TRIES_S)):
            if (await host.run(("test", "-e", path), check=False)).status == 0:
                return
            if failed := await self.failure():
                raise NotReadyError(f"Open vSwitch does not start: {failed}", place=f"dut, on {host.name}")
            await asyncio.sleep(_BETWEEN_TRIES_S)
        raise NotReadyError(f"Open vSwitch did not make {path}", place=f"dut, on {host.name}", next_step=_INSTALL)

    async def _make_bridge(self, host: Host) -> None:
        kind = "system" if self.options.datapath == "kernel" else "netdev"
        words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, f"datapath_type={kind}", "fail_mode=secure"]
        for index, device in enumerate(self._devices):
            words += ["--", "add-port", BRIDGE, device, "--", "set", "interface", device, f"ofport_request={index + 1}"]
            words += port_words(self.options.dpdk, index, device) if self._cores is not None else ()
        await self._run(host, *self._vsctl, *words)
        # An interface that could not be opened is no error of the command: the database has it.
        wrong = await host.run((*self._vsctl, "--bare", "--columns=error", "list", "interface"))
        if wrong.stdout.strip():
            raise NotReadyError(
                f"Open vSwitch cannot use its ports: {' '.join(wrong.stdout.split())}", place=f"dut, on {host.name}",
                next_step="modprobe openvswitch, or `datapath: user` under `dut`",
            )  # fmt: skip
        for here, there in ((1, 2), (2, 1)):
            await self._run(host, "ovs-ofctl", "add-flow", self._management, f"in_port={here},actions=output:{there}")

    @property
    def _management(self) -> str:
        return f"unix:{self._folder}/{BRIDGE}.mgmt"

    async def _run(self, host: Host, *command: str) -> None:
        await host.run(command, timeout_s=_WITHIN_S + _BETWEEN_TRIES_S)
        self._commands.append(" ".join(command))

    async def _read_passed(self) -> Passed:
        """Reads the counters of the flows, once the switch has gathered them, and of the ports."""
        host = self._require_up()
        await host.run(("ovs-appctl", "-t", f"{self._folder}/switch.ctl", "revalidator/wait"))
        shown = (await host.run(("ovs-ofctl", "dump-flows", self._management))).stdout
        counted = [int(found) for found in _PACKETS.findall(shown)]
        if len(counted) != 2:
            raise HostError("the flows of Open vSwitch are not those that were set", place=f"dut, on {host.name}")
        counts = await link_packets(host, *self._devices)
        return Passed(sum(counted), sum(counted), sum(sent for _, sent in counts.values()))

    def _require_up(self) -> Host:
        if self._host is None:
            raise UsageError("Open vSwitch is not set up", next_step="call up first")
        return self._host

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        return super().cpus(testbed) if self.options.datapath == "kernel" else ()  # its own time would count

    async def _statistics(self) -> dict[str, int]:
        """What the polling threads count; nothing without such threads, or where the switch has ended."""
        if self._cores is None or await self.failure():
            return {}
        asked = ("ovs-appctl", "-t", f"{self._folder}/switch.ctl", "dpif-netdev/pmd-stats-show")
        return parse_statistics((await self._require_up().run(asked)).stdout)

    async def drops(self) -> dict[str, int]:
        return drops_of(await self._statistics())

    async def work(self) -> DutWork | None:
        return work_of(await self._statistics())

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "version": self._version,
            "datapath": self.options.datapath,
            **({} if self._cores is None else _disclose_dpdk(self.options.dpdk, self._cores)),
            "flows": "one for each port, by in_port; no controller",
            "commands": list(self._commands),
        }


def _disclose_dpdk(options: OvsDpdk, cores: DutCores) -> dict[str, Any]:
    """Cores and memory of the datapath on DPDK, for the report."""
    return {
        "core_cpus": list(cores.workers),
        "main_cpu": cores.main,
        "driver": "net_af_packet",
        "memory": f"{options.memory // 2**20} MiB, {'huge' if options.huge_pages else 'ordinary'} pages",
        "devargs": options.devargs or "none",
        "environment": dict(options.environment),
        "scheduling": " ".join(options.scheduling.prefix()) or "the system's",
    }
