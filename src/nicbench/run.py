"""A run, from the bench file to the summary: every stage by name. A resumed run is one whose journal holds samples."""

from __future__ import annotations

import contextlib
import time

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import LostFolderError, NicbenchError, UnwrittenError, explain
from nicbench.core.events import Bus, RunFinished, StageStarted
from nicbench.core.result import Summary
from nicbench.report.answer.of_run import in_brief
from nicbench.stages.hosts import describe_making, require_named
from nicbench.stages.machine import claims, hold_for_run, see_machines
from nicbench.stages.plan import describe, disclose
from nicbench.stages.rigs import TurnSetting, rig_of, run_monitors
from nicbench.stages.testbed import touches_machine
from nicbench.stages.tuning import tune_hosts
from nicbench.stages.turns import (
    find_nothing_measured,
    iterate_turns_left,
    make_run_started,
    one_turn,
    refuse_changed_bench,
    summarise,
    wall_time,
)
from nicbench.store.folder import RunFolder
from nicbench.store.marks import end_where_asked, forget_request


async def run(
    bench: BenchFile,
    folder: RunFolder,
    bus: Bus,
    *,
    engine_path: str | None = None,
    wait_s: float = 0.0,
    on_other_machines: bool = False,
) -> Summary:
    """Runs every test in every turn; whatever ends it, the machine is restored and what was measured is kept.

    Where somebody else uses a machine, it waits for it so long, and then fails. ``on_other_machines``: go on also where
    the run began on others.
    """
    began = time.monotonic()
    refuse_changed_bench(bench, folder.journal.events())
    turns = iterate_turns_left(bench, folder.journal, bus)
    resumed = bool(folder.journal.samples())
    forget_request(folder.path)
    bus.publish(make_run_started(bench, folder.run_id, resumed=resumed, redacted=folder.redactor is not None))
    try:
        await require_named(bench)
        async with hold_for_run(
            folder, bus, touched=touches_machine(bench), elsewhere=claims(bench), wait_s=wait_s
        ) as changes:
            await see_machines(bench, folder, bus, others_allowed=on_other_machines)
            for turn in turns:
                if turn.number > 1:
                    end_where_asked(folder.path, f"turn {turn.number}")
                async with one_turn(turn, changes, bus):
                    setting = TurnSetting(bench.of_turn(turn), bench, turn, folder, changes, bus, engine_path, began)
                    await _measure(bench, setting)
    except BaseException:
        with contextlib.suppress(Exception):  # a full disk, for instance, which was the first error as well
            _finish(bench, folder, bus, complete=False)
        raise
    summary = finish_measured(bench, folder, bus)
    _refuse_nothing(bench, folder, summary)
    return summary


async def _measure(whole: BenchFile, setting: TurnSetting) -> None:
    """One turn, of trials of frames or of rounds of workloads, from its testbed to its last result."""
    bench, folder, bus = setting.bench, setting.folder, setting.bus
    async with rig_of(setting) as rig:
        bus.publish(StageStarted(stage="testbed", text=describe_making(bench)))
        await rig.make_testbed()
        tuned = await tune_hosts(bench, setting.turn, rig.test_hosts, setting.changes, folder, bus)
        await rig.make_dut()
        await rig.start_tester()
        await tuned.see_start()
        async with run_monitors(setting, rig) as monitors:
            plan = describe(bench, folder.run_id, rig.dut, setting.thresholds, monitors.plans, **rig.disclosure())
            await disclose(whole, setting.turn, plan, tuned.hosts, folder)
            await rig.make_maker(monitors)
            await rig.calibrate()
            await rig.measure()


def finish_again(bench: BenchFile, folder: RunFolder) -> Summary:
    """Writes what follows from the journal of a run that came to its end, and was killed before it had written that.

    It raises what the run itself would have: the error of one that measured nothing.
    """
    summary = finish_measured(bench, folder)
    _refuse_nothing(bench, folder, summary)
    return summary


def finish_measured(bench: BenchFile, folder: RunFolder, bus: Bus | None = None) -> Summary:
    """Writes what follows from the journal of a run that has measured everything.

    UnwrittenError where that fails, whatever the reason: what was measured stands. A run without a ``bus`` has said
    already that it came to its end.
    """
    try:
        return _finish(bench, folder, bus, complete=True)
    except LostFolderError:  # nothing is kept
        raise
    except Exception as error:
        told = error if isinstance(error, NicbenchError) else None
        raise UnwrittenError(
            f"everything was measured and is kept, but its summary could not be written: {explain(error)}",
            place=told.place if told is not None else str(folder.path),
            next_step=f"mend that, then: nicbench resume {folder.path}",
        ) from error


def _refuse_nothing(bench: BenchFile, folder: RunFolder, summary: Summary) -> None:
    """Raises the error of a run that came to its end without a figure."""
    nothing = find_nothing_measured(bench, summary.results, folder.journal.samples(), str(folder.path))
    if nothing is not None:
        raise nothing


def _finish(bench: BenchFile, folder: RunFolder, bus: Bus | None, *, complete: bool) -> Summary:
    summary = summarise(bench, folder.journal, folder.run_id, complete=complete)
    if bus is not None:
        bus.publish(RunFinished(verdict=summary.verdict, complete=complete, wall_time=wall_time()))
    summary = summary.replace(headline=in_brief(summary))
    folder.finish(summary, bench.measures)
    return summary
