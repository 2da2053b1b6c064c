"""The tester on the testbed's ports, and its own limits without a DUT, before the first test."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nicbench.bench_file.frame_sizes import is_tagged, list_frame_sizes, sizes_of
from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import BenchFileError, NotReadyError
from nicbench.core.events import Bus, StageStarted
from nicbench.core.frame_size import Size
from nicbench.core.trial import CALIBRATION
from nicbench.core.turn import Turn
from nicbench.core.units import format_duration_s
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.ceiling import Ceilings, calibration_s
from nicbench.system.xdp.tester import card_stamp_lack, xdp_lacks
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.testers.base import Setting, Tester, TesterFacts
from nicbench.tuning.changes import Changes
from nicbench.tuning.preparation import stamp_all_frames
from nicbench.tuning.undo.files import RemovePath
from nicbench.tuning.undo.network import EndPromiscuity
from nicbench.tuning.xdp import expect_program


async def expect_promiscuity(changes: Changes, host: Host, device: str) -> None:
    """Writes the undo down before the engine sets it; nothing where the interface has it already, or is not there."""
    shown = await host.run(("ip", "-j", "link", "show", "dev", device), check=False)
    links = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    if shown.status == 0 and not (links and "PROMISC" in links[0].get("flags", ())):
        await changes.make(host, EndPromiscuity(device=device), _by_the_engine)


async def _by_the_engine() -> None:
    """What follows is done by another process."""


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
        # In a lab the program ends with its interface; on a real one a killed engine would leave it behind.
        if bench.lab is None and port.device is not None and port.engine.get("kind") == "af_xdp":
            await expect_program(changes, host, port.device)
        if bench.lab is None and port.device is not None:
            await expect_promiscuity(changes, host, port.device)
    if (folder := tester.folder_elsewhere) is not None:
        machine, command = testbed.tester.machine, ("mkdir", "-m", "700", folder)
        await changes.make(machine, RemovePath(path=folder), lambda: _run(machine, command))
    undo = await tester.prepare()
    if undo is not None and os.geteuid() == 0:  # records are root's, and what is changed elsewhere needs no root
        await changes.make(LocalHost(), undo, _by_the_engine)
    facts = await tester.start()
    _check_frame_sizes(bench, facts)
    # Of an interface of the kernel the speed is known already, and that of a veth pair is no wire's.
    is_told_first = bench.lab is None and all(port.device is None for port in testbed.tester_ports)
    if is_told_first and testbed.link_is_nominal and facts.link_bits_per_s is not None:
        testbed = replace(testbed, link_bits_per_s=facts.link_bits_per_s, link_is_nominal=False)
    return facts, testbed


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


@dataclass(frozen=True, slots=True)
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
        what = " and ".join(
            f"{name} at {len(sizes)} frame size{'' if len(sizes) == 1 else 's'}" for name, sizes in parts if sizes
        )
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
    """Upper estimate of so many turns of a bench file, seconds."""
    return sum(estimate_s(bench.of_turn(turn)) for turn in turns)


async def calibrate(bench: BenchFile, ceilings: Ceilings, bus: Bus) -> None:
    """Measures what can be measured; a size that is not known beforehand is calibrated when a test comes to it."""
    plan = plan_calibration(bench)
    if plan.sizes:
        bus.publish(StageStarted(stage=CALIBRATION, text="calibrating the tester without a DUT"))
        await ceilings.calibrate(plan.ceilings, plan.latencies)
