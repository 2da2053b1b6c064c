"""A run, from the bench file to the summary: every stage by name. A resumed run is one whose journal holds trials."""

from __future__ import annotations

from nicbench.bench_file.models import BenchFile
from nicbench.errors import NothingMeasuredError
from nicbench.events import Bus, RunFinished, StageStarted
from nicbench.hosts.local import LocalHost
from nicbench.inventory.collect import collect
from nicbench.judge.thresholds import Thresholds
from nicbench.model.result import Summary
from nicbench.stages.calibrate import calibrate
from nicbench.stages.machine import machine
from nicbench.stages.measure import measure
from nicbench.stages.plan import describe
from nicbench.stages.start import refuse_changed_bench, started
from nicbench.stages.summary import summarise
from nicbench.stages.testbed import laid_out, make_dut, make_testbed, touches_machine
from nicbench.stages.tester import make_tester, start_tester
from nicbench.store.folder import RunFolder
from nicbench.trials.ceiling import Ceilings
from nicbench.trials.maker import TrialMaker


async def run(bench: BenchFile, folder: RunFolder, bus: Bus, *, engine_path: str | None = None) -> Summary:
    """Runs every test; whatever ends it, the machine is restored and the folder holds what was measured."""
    journaled = folder.journal.trials()
    refuse_changed_bench(bench, folder.journal.events())
    bus.publish(started(bench, folder.run_id, resumed=bool(journaled)))
    complete = False
    try:
        async with machine(folder, bus, touched=touches_machine(bench)) as changes:
            bus.publish(StageStarted(stage="testbed", text="making the testbed"))
            lab, testbed = await make_testbed(bench, changes)
            dut = await make_dut(bench, testbed, changes)
            ways, addressing = laid_out(bench, testbed, dut, bus)
            dut_cpus = dut.cpus(testbed)
            tester = make_tester(
                bench,
                testbed,
                dut_cpus,
                folder.run_id,
                engine_path,
                neighbours=dut.neighbours(testbed),
                run_folder=folder.path,
            )
            try:
                bus.publish(StageStarted(stage="tester", text="starting the tester"))
                facts, testbed = await start_tester(tester, bench, testbed, changes)
                thresholds = Thresholds(**bench.thresholds)
                folder.write_json(
                    "plan.json", describe(bench, folder.run_id, testbed, dut, facts, ways, addressing, thresholds)
                )
                folder.write_json("inventory.json", await collect(testbed))
                hosts = {"local": LocalHost("local"), "tester": testbed.tester, "dut": testbed.dut or testbed.tester}
                maker = TrialMaker(tester, dut, addressing, thresholds, dut_cpus, journaled, bus, hosts)
                ceilings = Ceilings(maker, lab, testbed, changes, bus, ways)
                await calibrate(bench, ceilings, bus)
                results = await measure(bench, testbed.link_bits_per_s, ways, maker, ceilings, bus)
                complete = True
            finally:
                await tester.close()
    finally:
        summary = summarise(bench.title, results if complete else folder.journal.results(), complete=complete)
        bus.publish(RunFinished(verdict=summary.verdict, complete=complete))
        folder.finish(summary)
    if not summary.results:
        raise NothingMeasuredError("no test gave a result", place=folder.run_id)
    return summary
