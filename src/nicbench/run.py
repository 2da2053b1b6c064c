"""A run, from the bench file to the summary: every stage by name. A resumed run is one whose journal holds trials."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.errors import NicbenchError, NothingMeasuredError
from nicbench.events import Bus, RunFinished, StageStarted
from nicbench.health.reader import HealthReader
from nicbench.hosts.local import LocalHost
from nicbench.judge.thresholds import Thresholds
from nicbench.ledger.reader import LedgerReader
from nicbench.model.result import Summary
from nicbench.model.turn import Turn
from nicbench.monitor.beside import WatchedTester
from nicbench.rounds.maker import RoundMaker
from nicbench.rounds.player import HostPlayer
from nicbench.stages.calibrate import calibrate
from nicbench.stages.disclose import disclose
from nicbench.stages.endpoints import clocks_of, make_endpoints, make_server
from nicbench.stages.hosts import making_in_words
from nicbench.stages.machine import machine
from nicbench.stages.measure import measure, measure_rounds
from nicbench.stages.monitor import busy_cpus, monitored
from nicbench.stages.plan import describe, describe_rounds
from nicbench.stages.sharing import claims
from nicbench.stages.start import refuse_changed_bench, started, wall_time
from nicbench.stages.summary import summarise
from nicbench.stages.testbed import laid_out, make_dut, make_testbed, touches_machine
from nicbench.stages.tester import make_tester, start_tester
from nicbench.stages.tune import tune_hosts
from nicbench.stages.turns import one_turn, turns_left
from nicbench.store.folder import RunFolder
from nicbench.trials.ceiling import Ceilings
from nicbench.trials.maker import TrialMaker
from nicbench.tuning.stack import UndoStack


async def run(
    bench: BenchFile, folder: RunFolder, bus: Bus, *, engine_path: str | None = None, wait_s: float = 0.0
) -> Summary:
    """Runs every test in every turn; whatever ends it, the machine is restored and what was measured is kept.

    Where somebody else uses a machine, it waits for it so long, and then fails.
    """
    began = time.monotonic()
    refuse_changed_bench(bench, folder.journal.events())
    turns = turns_left(bench, folder.journal, bus)
    resumed = bool(folder.journal.trials() or folder.journal.rounds())
    bus.publish(started(bench, folder.run_id, resumed=resumed, redacted=folder.redactor is not None))
    try:
        async with machine(
            folder, bus, touched=touches_machine(bench), elsewhere=claims(bench), wait_s=wait_s
        ) as changes:
            for turn in turns:
                async with one_turn(turn, changes, bus):
                    await _MEASURE[bench.measures](bench, turn, folder, changes, bus, engine_path, began)
    except BaseException as error:
        try:
            _finish(bench, folder, bus, complete=False)
        except NicbenchError:  # a full disk, for instance, which was the first error as well: that one is told
            if not isinstance(error, NicbenchError):
                raise
        raise
    summary = _finish(bench, folder, bus, complete=True)
    if not summary.results:
        raise NothingMeasuredError("no test gave a result", place=folder.run_id)
    return summary


def _finish(bench: BenchFile, folder: RunFolder, bus: Bus, *, complete: bool) -> Summary:
    summary = summarise(bench, folder.journal.results(), folder.run_id, complete=complete)
    bus.publish(RunFinished(verdict=summary.verdict, complete=complete, wall_time=wall_time()))
    folder.finish(summary, bench.measures)
    return summary


async def _measure_frames(
    whole: BenchFile, turn: Turn, folder: RunFolder, changes: UndoStack, bus: Bus, engine_path: str | None, began: float
) -> None:
    """One turn of frames, from its testbed to its last result."""
    bench = whole.of_turn(turn)
    bus.publish(StageStarted(stage="testbed", text=making_in_words(bench)))
    lab, testbed = await make_testbed(bench, changes)
    tuned = await tune_hosts(bench, turn, testbed.test_hosts, changes, folder, bus)
    dut = await make_dut(bench, testbed, changes)
    ways, addressing = laid_out(bench, testbed, dut, bus)
    cpus, neighbours = dut.cpus(testbed), dut.neighbours(testbed)
    tester = make_tester(
        bench, testbed, cpus, folder.run_id, engine_path, neighbours=neighbours, run_folder=folder.path
    )
    try:
        bus.publish(StageStarted(stage="tester", text="starting the tester"))
        facts, testbed = await start_tester(tester, bench, testbed, changes)
        await tuned.see_start()
        watched = (() if testbed.simulated else testbed.test_hosts, busy_cpus(bench, testbed, dut))
        async with monitored(bench, *watched, folder, bus, engine_path, began) as monitors:
            thresholds = Thresholds(**bench.thresholds)
            plan = describe(bench, folder.run_id, testbed, dut, facts, ways, addressing, thresholds, monitors.plans)
            await disclose(whole, turn, plan, testbed.test_hosts, folder)
            hosts = {"local": LocalHost("local"), "tester": testbed.tester, "dut": testbed.dut or testbed.tester}
            beside, journaled = WatchedTester(tester, monitors), folder.journal.trials()
            readers = (await LedgerReader.of(testbed), await HealthReader.of(testbed))
            maker = TrialMaker(beside, dut, addressing, thresholds, cpus, journaled, bus, hosts, turn, began, *readers)
            ceilings = Ceilings(maker, lab, testbed, changes, bus, ways)
            await calibrate(bench, ceilings, bus)
            await measure(bench, testbed.link_bits_per_s, ways, maker, ceilings, bus)
    finally:
        await tester.close()


async def _measure_rounds(
    whole: BenchFile, turn: Turn, folder: RunFolder, changes: UndoStack, bus: Bus, engine_path: str | None, began: float
) -> None:
    """One turn of rounds of workloads, from its testbed to its last result."""
    bench = whole.of_turn(turn)
    bus.publish(StageStarted(stage="testbed", text=making_in_words(bench)))
    testbed = await make_endpoints(bench, changes)
    tuned = await tune_hosts(bench, turn, testbed.test_hosts, changes, folder, bus)
    dut = await make_server(bench, testbed, changes)
    await tuned.see_start()
    clocks = await clocks_of(testbed, bus)
    async with monitored(bench, testbed.test_hosts, None, folder, bus, engine_path, began) as monitors:
        thresholds = Thresholds(**bench.thresholds)
        plan = describe_rounds(bench, folder.run_id, testbed, dut, thresholds, monitors.plans, clocks)
        await disclose(whole, turn, plan, testbed.test_hosts, folder)
        player = HostPlayer(testbed, folder.path, changes, folder.redactor, engine_path, dut)
        maker = RoundMaker(player, monitors, thresholds, folder.journal.rounds(), bus, turn, began)
        await measure_rounds(bench, testbed, maker, bus, dut.mounts())


_MEASURE: Final = MappingProxyType({"frames": _measure_frames, "rounds": _measure_rounds})
