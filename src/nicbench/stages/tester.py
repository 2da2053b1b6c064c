"""The tester: its driver where a bench file names none, the tester on the ports, and its limits without a DUT."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nicbench.bench_file.checks import explain_objection
from nicbench.bench_file.frame_sizes import explain_no_room, is_tagged, list_frame_sizes, sizes_of
from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import BenchFileError, NotReadyError
from nicbench.core.events import Bus, DriverChosen, RoundFinished, StageStarted, TrialFinished
from nicbench.core.frame_size import Size
from nicbench.core.frozen import frozen
from nicbench.core.trial import CALIBRATION, Purpose, TrialRequest
from nicbench.core.turn import Turn
from nicbench.core.units import count_of, format_duration_s
from nicbench.engine.client import refusal_of_ports
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.measure.ceiling import Ceilings, calibration_s
from nicbench.stages.hosts import machine_of_lab
from nicbench.stages.machine import hold_machines, undo_at_end
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.store.folder import RunFolder, new_run_id
from nicbench.system.xdp.abilities import (
    BY_THE_KERNEL,
    IN_A_LAB,
    LAB_DEVICE,
    abilities_of,
    card_stamp_lack,
    interface_lacks,
    kernel_lacks,
    xdp_lacks,
)
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.interfaces.host_interfaces import check_interface, interfaces_of
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.real_hosts import TESTER
from nicbench.testbed.testers.base import Setting, Tester, TesterFacts
from nicbench.testbed.testers.packets import ALWAYS
from nicbench.tuning.changes import Changes, by_others
from nicbench.tuning.preparation import leave_tags, receive_by_first_queues, stamp_all_frames, switch_off
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RemovePath
from nicbench.tuning.undo.network import EndPromiscuity
from nicbench.tuning.xdp import expect_program

# The driver of the tester's kernel interfaces where a bench file names none: one for a run, chosen as it begins.
# ``xdp``, programs in the kernel, where the tests, the traffic and the tester's options can be with it and every
# interface of every configuration carries it, which is tried; else ``net_af_xdp``, unless the frames or the
# interfaces are too large for it and ``net_af_packet`` takes them, which is tried, too. The choice is journaled, and
# a resumed run keeps it: rates of two drivers are not compared.

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
    """Returns what is known of the choice before a host is touched; None if nothing is left to choose."""
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


# The tester on the testbed's ports, and its own limits without a DUT, before the first test.


async def make_promiscuous(changes: Changes, host: Host, device: str, by_engine: bool) -> None:
    """Has an adapter take all frames, also of VLANs that it does not know; the engine of DPDK does so itself.

    Nothing where the interface does so already, or is not there.
    """
    shown = await host.run(("ip", "-j", "link", "show", "dev", device), check=False)
    links = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    if shown.status == 0 and not (links and "PROMISC" in links[0].get("flags", ())):
        command = ("ip", "link", "set", "dev", device, "promisc", "on")
        await changes.make(host, EndPromiscuity(device=device), by_others if by_engine else lambda: _run(host, command))


def make_tester(
    bench: BenchFile,
    testbed: Testbed,
    dut_cpus: tuple[int, ...],
    run_id: str,
    engine_folder: str | None,
    fault: dict[str, float] | None = None,
    neighbours: tuple[tuple[dict[str, Any], ...], ...] = (),
    run_folder: Path | None = None,
    generates: bool = False,
) -> Tester:
    """The tester, not started yet. ``fault`` is for tests; ``neighbours``: addresses each port answers for.

    Without ``run_folder`` no files are written. ``generates``: flows begin and end on their own.
    """
    setting = Setting(
        testbed=testbed,
        traffic=bench.traffic,
        seed=bench.seed,
        run_id=run_id,
        place=str(bench.path),
        in_a_lab=bench.lab is not None,
        dut_cpus=dut_cpus,
        neighbours=neighbours,
        engine_folder=engine_folder,
        run_folder=run_folder,
        fault=fault,
        generates=generates,
    )
    return bench.tester_kind().make(setting)


async def start_tester(
    tester: Tester, bench: BenchFile, testbed: Testbed, changes: Changes
) -> tuple[TesterFacts, Testbed]:
    """Starts it and checks that its ports hold the frames; the testbed comes back with the speed the ports told."""
    for port in testbed.tester_ports:
        host = testbed.host_of(port)
        if port.device is not None and port.engine.get("kind") == "xdp":
            await _require_xdp(host, port.device)
            if bench.tester_kind().timestamps == "card":
                await _stamp_by_card(changes, host, port.device)
        if bench.lab is None and port.device is not None:
            await _prepare_card(bench, host, port.device, str(port.engine.get("kind")), port.name, changes)
    if (folder := tester.folder_elsewhere) is not None:
        machine, command = testbed.tester.machine, ("mkdir", "-m", "700", folder)
        await changes.make(machine, RemovePath(path=folder), lambda: _run(machine, command))
    undo = await tester.prepare()
    if undo is not None and os.geteuid() == 0:  # records are root's, and what is changed elsewhere needs no root
        await changes.make(LocalHost(), undo)
    facts = await tester.start()
    _check_frame_sizes(bench, facts)
    # Of an interface of the kernel the speed is known already, and that of a veth pair is no wire's.
    is_told_first = bench.lab is None and all(port.device is None for port in testbed.tester_ports)
    if is_told_first and testbed.link_is_nominal and facts.link_bits_per_s is not None:
        testbed = replace(testbed, link_bits_per_s=facts.link_bits_per_s, link_is_nominal=False)
    return facts, testbed


_MERGING: Final = ("lro", "rx-gro-hw", "gro")
"""Offloads by which segments of TCP arrive as one packet."""


async def _prepare_card(bench: BenchFile, host: Host, device: str, kind: str, port: str, changes: Changes) -> None:
    """Has an interface outside of a lab give the tester every frame, with its tags."""
    if kind in ("xdp", "af_xdp") and is_tagged(bench.traffic.port_streams()):
        await leave_tags(changes, host, device)
    if kind == "af_packet":
        await switch_off(changes, host, device, *_MERGING)
    if kind == "af_xdp":
        # The kernel itself does so for a program that it runs for the driver (generic XDP), and leaves it off.
        await switch_off(changes, host, device, "lro")
        await receive_by_first_queues(changes, host, device, bench.tester_kind().receivers_at(port))
        await expect_program(changes, host, device)  # a killed engine would leave it behind
    await make_promiscuous(changes, host, device, by_engine=kind != "xdp")


async def _require_xdp(host: Host, device: str) -> None:
    """NotReadyError where the interface cannot carry the tester inside the kernel."""
    lack = await xdp_lacks(host, device)
    if lack is not None:
        raise NotReadyError(lack.reason, place=f"{host.name}, {device}", next_step=lack.next_step)


async def _stamp_by_card(changes: Changes, host: Host, device: str) -> None:
    """Has the interface's card stamp all frames; NotReadyError where it cannot, or XDP would not see the stamps."""
    lack = await card_stamp_lack(host, device)
    if lack is not None:
        raise NotReadyError(lack.reason, place=f"{host.name}, {device}", next_step=lack.next_step)
    await stamp_all_frames(changes, host, device)


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)


def _check_frame_sizes(bench: BenchFile, facts: TesterFacts) -> None:
    """Refuses, before the first trial, a frame size that a port cannot hold."""
    largest = facts.longest_frame_bytes(is_tagged=is_tagged(bench.traffic.port_streams()))
    for test in bench.tests:
        for size in test.build().frame_sizes():
            for frame_bytes in sizes_of(size, bench.traffic):
                if not facts.minimum_frame_bytes <= frame_bytes <= largest:
                    raise BenchFileError(
                        f"test {test.name}: the ports hold frames of {facts.minimum_frame_bytes} to "
                        f"{largest} bytes (FCS included), not {frame_bytes}",
                        place=str(bench.path),
                        next_step="choose another frame size, or raise the MTU of the lab or the interface",
                    )


@frozen
class Calibration:
    """At which frame sizes what will be calibrated before the first test; a DUT may turn out not to be the sink that
    its lab lacks.
    """

    ceilings: tuple[Size, ...]
    latencies: tuple[Size, ...]

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The frame sizes, each once."""
        return tuple(dict.fromkeys((*self.ceilings, *self.latencies)))

    @property
    def estimate_s(self) -> float:
        """Time in seconds."""
        return calibration_s(len(self.ceilings), len(self.latencies))

    def __str__(self) -> str:
        """The plan as a line for the user."""
        parts = (("ceiling", self.ceilings), ("latency", self.latencies))
        what = " and ".join(f"{name} at {count_of(len(sizes), 'frame size')}" for name, sizes in parts if sizes)
        if not what:
            return "no calibration before the first test"
        duration = format_duration_s(float(round(self.estimate_s, 1)))
        return f"calibration before the first test: the tester's own {what}, about {duration}"


def plan_calibration(bench: BenchFile) -> Calibration:
    """What ``calibrate`` will do."""
    lab = bench.lab.plugin if bench.lab and bench.measures == "frames" else None
    if lab is None:
        return Calibration((), ())
    has_sink = lab.has_sink or bench.dut.plugin.can_be_sink
    return Calibration(
        ceilings=list_frame_sizes(bench, of=lambda method: method.needs_ceiling) if has_sink else (),
        latencies=list_frame_sizes(bench, of=lambda method: method.needs_tester_latency) if lab.has_cable else (),
    )


def estimate_s(bench: BenchFile) -> float:
    """Upper estimate of one turn, seconds: calibration and tests, without repeats and the making of the testbed."""
    tests_s: float = sum(test.build().estimate_s() for test in bench.tests)
    return plan_calibration(bench).estimate_s + tests_s


def turns_s(bench: BenchFile, turns: Iterable[Turn]) -> float:
    """Returns an upper estimate for these turns of a bench file, in seconds."""
    return sum(estimate_s(bench.of_turn(turn)) for turn in turns)


async def calibrate(bench: BenchFile, ceilings: Ceilings, bus: Bus) -> None:
    """Measures what can be measured; a size that is not known beforehand is calibrated when a test comes to it."""
    plan = plan_calibration(bench)
    if plan.sizes:
        bus.publish(StageStarted(stage=CALIBRATION, text="calibrating the tester without a DUT"))
        await ceilings.calibrate(plan.ceilings, plan.latencies)


# A short flood through the DUT of a bench file, before a run: about how fast it is. It is no measurement.

_REQUEST: Final = TrialRequest(
    frame_bytes=64, load_frames_per_s=None, duration_s=0.3, drain_s=0.1, settle_s=0.05, purpose=Purpose.SEARCH
)


async def flood(bench: BenchFile, bus: Bus, wait_s: float = 0.0) -> float:
    """Returns how many frames of 64 bytes per second came back of as many as the tester could send, in a lab that is
    made for it and undone.
    """
    run_id = new_run_id("flood")
    changes = UndoStack(run_id, None)
    async with hold_machines(run_id, (), bus, wait_s), undo_at_end(changes, bus):
        _, testbed = await make_testbed(bench, changes)
        dut = await make_dut(bench, testbed, changes)
        _, addressing = lay_out_ways(bench, testbed, dut)
        tester = make_tester(bench, testbed, dut.cpus(testbed), run_id, None, neighbours=dut.neighbours(testbed))
        try:
            await start_tester(tester, bench, testbed, changes)
            reading = await tester.trial(1, _REQUEST, addressing)
        finally:
            await tester.close()
    return reading.counts.received * 1e9 / reading.offering_ns
