"""The testbed of a session of ``nicbench serve``: that of a run, with an engine that generates single flows."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import UsageError
from nicbench.core.events import Bus, StageStarted
from nicbench.core.frozen import frozen
from nicbench.core.judging import Thresholds
from nicbench.engine.client import Conversation
from nicbench.engine.generator import Generator
from nicbench.measure.health.reader import HealthReader
from nicbench.measure.ledger.reader import LedgerReader
from nicbench.measure.surroundings import Surroundings
from nicbench.monitor.base import Monitors
from nicbench.stages.hosts import describe_making, require_named
from nicbench.stages.machine import claims, hold_for_run
from nicbench.stages.plan import describe, disclose
from nicbench.stages.rigs import FrameRig, TurnSetting, run_monitors
from nicbench.stages.testbed import make_dut, touches_machine
from nicbench.stages.tuning import tune_hosts
from nicbench.stages.turns import make_run_started, one_turn
from nicbench.store.folder import RunFolder
from nicbench.testbed.duts.base import FrameDut
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.testers.packets import ALWAYS, EngineOptions, Packets
from nicbench.tuning.changes import Changes

OnEvent = Callable[[dict[str, Any]], None]


@frozen
class Bed:
    """What a session works on: the engine, its testbed, and the readers of counters and hardware."""

    conversation: Conversation
    generator: Generator
    testbed: Testbed
    changes: Changes
    dut: FrameDut
    surroundings: Surroundings
    monitors: Monitors
    thresholds: Thresholds
    began: float
    """When the session did (monotonic)."""
    folder: RunFolder
    bus: Bus
    largest_frame_bytes: int
    """What every port takes, with FCS."""
    tag_bytes: int
    """How much longer a frame with a VLAN tag may be."""
    folder_elsewhere: str | None
    """Where the engine writes captures, on a tester's machine that has not this one's files."""


class _ServedRig(FrameRig):
    """A rig without traffic of its own: clients define the flows."""

    generates = True

    async def make_dut(self) -> None:
        self.dut = await make_dut(self.setting.bench, self._testbed, self.setting.changes)
        self._addressing = ()

    def disclosure(self) -> dict[str, Any]:
        return {**super().disclosure(), "traffic": {}}  # what is sent is in the configurations that clients set

    def _traffic_statements(self) -> tuple[str, ...]:
        return ()

    async def make_bed(self, on_event: OnEvent, monitors: Monitors) -> Bed:
        """Hands the started engine over to a session."""
        setting = self.setting
        assert self._tester is not None  # noqa: S101 - start_tester() made it
        conversation = self._tester.converse(on_event)
        return Bed(
            conversation=conversation,
            generator=Generator(conversation),
            testbed=self._testbed,
            changes=setting.changes,
            dut=self.dut,
            surroundings=Surroundings(
                self.dut,
                await LedgerReader.of(self._testbed),
                await HealthReader.of(self._testbed),
                monitors,
                self._testbed.programmed,
            ),
            monitors=monitors,
            thresholds=setting.thresholds,
            began=setting.began,
            folder=setting.folder,
            bus=setting.bus,
            largest_frame_bytes=self._facts.maximum_frame_bytes,
            tag_bytes=self._facts.tag_bytes,
            folder_elsewhere=self._tester.folder_elsewhere,
        )


_NOT_SERVED: Final = {
    "workers": "one worker sends and receives all flows: leave it out, or name its CPU by `worker_cpu`",
    "timestamps": "frames are stamped by the worker: leave it out",
    "capture": "clients capture by the API: leave it out",
    "per_flow": "each transmission has its flows in a file: leave it out",
}
"""Options of the tester that a session has no use for, with what to do."""


def _refuse_options(options: EngineOptions, place: str) -> None:
    """Raises UsageError for the first option that a session would ignore."""
    usual = EngineOptions()
    for name, step in _NOT_SERVED.items():
        if getattr(options, name) != getattr(usual, name):
            what, _, next_step = step.partition(": ")
            raise UsageError(f"`tester.{name}` cannot be served: {what}", place=place, next_step=next_step)


def require_servable(bench: BenchFile) -> BenchFile:
    """Returns the bench file with a driver that can generate flows. UsageError where its tester cannot."""
    tester = bench.tester_kind()
    if not isinstance(tester, Packets):
        raise UsageError(
            f"the tester `{bench.tester.kind}` cannot be driven by clients",
            place=str(bench.path),
            next_step="leave `tester` out: nicbench's own engine is then used",
        )
    _refuse_options(tester.options, str(bench.path))
    if tester.driver == "xdp" or any(port.driver == "xdp" for port in bench.ports.values()):
        raise UsageError(
            "programs in the kernel send by the trial, and no single flow",
            place=str(bench.path),
            next_step=f"leave `driver: xdp` out: {ALWAYS} is then used",
        )
    return bench.with_driver(ALWAYS) if tester.leaves_driver else bench


def locations_of(bench: BenchFile) -> tuple[str, ...]:
    """Returns the names among which those of the tester's ports are, before the testbed is made."""
    if bench.lab is None:
        return tuple(bench.ports)
    count = getattr(bench.lab.options, "ports", None)
    return tuple(f"t{number}" for number in range(count)) if isinstance(count, int) else ()


@asynccontextmanager
async def served_bed(
    bench: BenchFile,
    folder: RunFolder,
    bus: Bus,
    on_event: OnEvent,
    *,
    engine_path: str | None = None,
    wait_s: float = 0.0,
) -> AsyncIterator[Bed]:
    """Makes the testbed of a session; whatever ends it, the machine is restored.

    BusyError where somebody else uses a machine for longer than ``wait_s``, NotReadyError where it lacks something.
    """
    began = time.monotonic()
    bus.publish(make_run_started(bench, folder.run_id, resumed=False, redacted=folder.redactor is not None))
    turn = bench.turns[0]
    await require_named(bench)
    async with (
        hold_for_run(folder, bus, touched=touches_machine(bench), elsewhere=claims(bench), wait_s=wait_s) as changes,
        one_turn(turn, changes, bus),
    ):
        setting = TurnSetting(bench, bench, turn, folder, changes, bus, engine_path, began)
        async with _ServedRig(setting) as rig:
            bus.publish(StageStarted(stage="testbed", text=describe_making(bench)))
            await rig.make_testbed()
            tuned = await tune_hosts(bench, turn, rig.test_hosts, changes, folder, bus)
            await rig.make_dut()
            await rig.start_tester()
            await tuned.see_start()
            async with run_monitors(setting, rig) as monitors:
                plan = describe(bench, folder.run_id, rig.dut, setting.thresholds, monitors.plans, **rig.disclosure())
                await disclose(bench, turn, plan, tuned.hosts, folder)
                folder.raw.mkdir(exist_ok=True)
                yield await rig.make_bed(on_event, monitors)
