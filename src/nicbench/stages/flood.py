"""A short flood through the DUT of a bench file, before a run: about how fast it is. It is no measurement."""

from __future__ import annotations

from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.events import Bus
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.stages.machine import hold_machines, undo_at_end
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester, start_tester
from nicbench.store.folder import new_run_id
from nicbench.tuning.stack import UndoStack

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
