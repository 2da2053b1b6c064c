"""Single trials on a testbed that is made for them, without a run around them."""

from __future__ import annotations

from pathlib import Path

from nicbench.bench_file import parse
from nicbench.core.trial import Reading, TrialRequest
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.tuning.stack import UndoStack

Fault = dict[str, float] | None


async def readings(run_id: str, bench_text: str, trials: list[tuple[TrialRequest, Fault]]) -> list[Reading]:
    """The reading of each trial; each has an engine of its own, so that a fault ends with its trial."""
    bench = parse(bench_text.encode(), Path("bench.yaml"))
    changes = UndoStack(run_id, None)
    try:
        _, testbed = await make_testbed(bench, changes)
        dut = await make_dut(bench, testbed, changes)
        _, addressing = lay_out_ways(bench, testbed, dut)
        taken = []
        for number, (request, fault) in enumerate(trials, 1):
            tester = make_tester(bench, testbed, (), run_id, None, fault)
            await tester.start()
            try:
                taken.append(await tester.trial(number, request, addressing))
            finally:
                await tester.close()
        return taken
    finally:
        await changes.undo_all()
