"""The driver of the tester's kernel interfaces where a bench file names none: one for a run, chosen as it begins.

``xdp``, programs in the kernel, where the tests, the traffic and the tester's options can be with it and every
interface of every configuration carries it, which is tried; else ``net_af_xdp``, unless the frames or the interfaces
are too large for it and ``net_af_packet`` takes them, which is tried, too. The choice is journaled, and a resumed run
keeps it: rates of two drivers are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicbench.bench_file.checks import explain_objection
from nicbench.bench_file.frame_sizes import explain_no_room
from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import NotReadyError
from nicbench.core.events import Bus, DriverChosen, RoundFinished, TrialFinished
from nicbench.engine.attempt import refusal_of_ports
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.stages.hosts import machine_of_lab
from nicbench.store.folder import RunFolder
from nicbench.system.xdp.abilities import abilities_of
from nicbench.system.xdp.tester import BY_THE_KERNEL, IN_A_LAB, LAB_DEVICE, interface_lacks, kernel_lacks
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.interfaces.host_interfaces import check_interface, interfaces_of
from nicbench.testbed.real_hosts import TESTER
from nicbench.testbed.testers.packets import ALWAYS

XDP: Final = "xdp"
_LAST: Final = "net_af_packet"
"""The driver for what no AF_XDP socket holds: large frames and MTUs."""


def leaves_driver(bench: BenchFile) -> bool:
    """Whether a configuration has kernel interfaces of the tester, and leaves their driver to the run."""
    if bench.measures != "frames" or not bench.tester_kind().leaves_driver:
        return False
    if bench.lab is not None:
        return bool(bench.lab.plugin.port_kind == "kernel")
    return any(_is_open(port) for port in bench.ports.values())


def foretell_driver(whole: BenchFile) -> str | None:
    """What can be said of the choice before a host is touched; None where there is none."""
    open_ones = [each for each in whole.configurations if leaves_driver(each)]
    if not open_ones:
        return None
    reason = _objection(whole, open_ones)
    if reason is not None:
        return f"{ALWAYS}, because {reason}"
    return f"{XDP} where the kernel and the interfaces can, else {ALWAYS} (chosen when the run starts)"


async def settle_driver(
    bench: BenchFile,
    whole: BenchFile,
    hosts: Mapping[str, Host],
    folder: RunFolder,
    bus: Bus,
    engine_folder: str | None = None,
) -> tuple[BenchFile, str | None]:
    """The configuration with its driver, and why it is that; unchanged, and None, where it leaves none open.

    ``hosts`` are those of the configuration, live. What is chosen is published, once.
    """
    if not leaves_driver(bench):
        return bench, None
    chosen = _chosen_before(folder)
    if chosen is None:
        chosen = await _choose(bench, whole, hosts, engine_folder)
        bus.publish(chosen)
    return bench.with_driver(chosen.driver), chosen.reason


def _chosen_before(folder: RunFolder) -> DriverChosen | None:
    """The driver of the samples that the run has, also of one that was begun when runs did not choose.

    A session that ended before the first sample may have chosen another: the last choice before that sample holds.
    """
    if not folder.journal.samples():
        return None
    chosen = None
    for event in folder.journal.events():
        if isinstance(event, TrialFinished | RoundFinished):
            break
        chosen = event if isinstance(event, DriverChosen) else chosen
    if chosen is not None:
        return chosen
    plan = folder.plan()
    known = plan.tester.get("options", {}).get("driver") if plan is not None else None
    return DriverChosen(driver=known or ALWAYS, reason="the run was begun with it")


async def _choose(
    bench: BenchFile, whole: BenchFile, hosts: Mapping[str, Host], engine_folder: str | None
) -> DriverChosen:
    open_ones = [each for each in whole.configurations if leaves_driver(each)]
    reason = _objection(whole, open_ones)
    tried: set[str] = set()
    for each in open_ones:
        if reason is not None:
            break
        is_now = each.configuration == bench.configuration
        lack = await _lack(each, hosts if is_now else build_hosts(each.hosts), tried, engine_folder, is_now=is_now)
        reason = None if lack is None else _of(whole, each, lack)
    if reason is None:
        return DriverChosen(driver=XDP, reason=BY_THE_KERNEL)
    for each in open_ones:
        if each.lab is None and each.configuration == bench.configuration:
            lack = await _lack_of_sockets(each, hosts[TESTER], engine_folder)
            if lack is not None:
                return DriverChosen(driver=_LAST, reason=f"{reason}; and {ALWAYS} cannot: {_of(whole, each, lack)}")
    return DriverChosen(driver=ALWAYS, reason=reason)


async def _lack_of_sockets(bench: BenchFile, host: Host, engine_folder: str | None) -> str | None:
    """Why AF_XDP cannot drive the tester's own interfaces where packet sockets can; None where neither or it can."""
    if explain_objection(bench.with_driver(_LAST)) is not None:
        return None
    room = explain_no_room(bench, ALWAYS)
    devices = [str(port.device) for port in bench.ports.values() if _is_open(port)]
    if isinstance(host, NetnsHost) and not await host.exists():
        host = host.inner
    interfaces = await interfaces_of(host)
    try:
        for device in devices:
            check_interface(interfaces, device, f"{host.name}, {device}", for_tester=True)
    except NotReadyError:
        return room
    if room is None:
        sockets = [
            {"name": each, "kind": "af_xdp", "device": each, "queue": 0, "xdp_program": None} for each in devices
        ]
        room = await refusal_of_ports(host, sockets, engine_folder)
    packets = [{"name": each, "kind": "af_packet", "device": each} for each in devices]
    return room if room is not None and await refusal_of_ports(host, packets, engine_folder) is None else None


def _objection(whole: BenchFile, open_ones: Sequence[BenchFile]) -> str | None:
    """Why what the bench file asks for cannot be with programs in the kernel."""
    for each in open_ones:
        lack = explain_objection(each.with_driver(XDP)) or explain_no_room(each, XDP) or _other_port(each)
        if lack is not None:
            return _of(whole, each, lack)
    return None


def _other_port(bench: BenchFile) -> str | None:
    """Why a port of the tester stands in the way: either all of them are in the kernel or none."""
    if bench.lab is not None:
        return None
    for name, port in bench.ports.items():
        if port.host == TESTER and not _is_open(port) and port.driver != XDP:
            how = f"has `driver: {port.driver}`" if port.device is not None else "is driven by DPDK"
            return f"the port {name} {how}, and the kernel makes the frames of all ports or of none"
        if port.host == TESTER and port.is_made:
            return f"the port {name} is created by the run, so it cannot be tested beforehand"
    return None


def _is_open(port: Port) -> bool:
    """Whether it is a kernel interface of the tester whose driver nobody names."""
    return port.host == TESTER and port.device is not None and port.driver is None


def _of(whole: BenchFile, bench: BenchFile, reason: str) -> str:
    """The reason with the configuration that it is of, where there are several."""
    return f"in the configuration {bench.configuration} {reason}" if len(whole.configurations) > 1 else reason


async def _lack(
    bench: BenchFile, hosts: Mapping[str, Host], tried: set[str], engine_folder: str | None, *, is_now: bool
) -> str | None:
    """Why the tester of a configuration cannot be in the kernel; None where it can, or was tried already.

    Of a configuration whose turn is later, machines that are not there yet are passed over.
    """
    host = machine_of_lab(bench, hosts) if bench.lab is not None else hosts[TESTER]
    devices = [port.device for port in bench.ports.values() if port.host == TESTER and port.device is not None]
    key = f"{host.spec()} {devices}"
    if key in tried or (not is_now and (host.machine.made_here or isinstance(host, ContainerHost))):
        return None
    tried.add(key)
    if bench.lab is not None:
        return await _try(host, [LAB_DEVICE], engine_folder, IN_A_LAB)
    if isinstance(host, NetnsHost) and not await host.exists():
        host = host.inner  # the run makes the namespace, and moves the interfaces into it
    interfaces = await interfaces_of(host)
    for device in devices:
        try:  # nothing is tried on an interface that somebody uses
            check_interface(interfaces, device, f"{host.name}, {device}", for_tester=True)
        except NotReadyError as error:
            return error.message
        # Some drivers take redirected frames only while a program is attached: the tester's own is.
        lacking = interface_lacks(device, await abilities_of(host, device))
        if lacking is not None:
            return lacking.reason
    return await _try(host, devices, engine_folder)


async def _try(
    host: Host, devices: Sequence[str], engine_folder: str | None, prefix: tuple[str, ...] = ()
) -> str | None:
    """Has the kernel make a frame, and the engine load its programs into the hook of these interfaces."""
    lacking = await kernel_lacks(host)
    if lacking is not None:
        return lacking.reason
    ports: list[dict[str, Any]] = [{"name": device, "kind": "xdp", "device": device} for device in devices]
    return await refusal_of_ports(host, ports, engine_folder, prefix)
