"""Trials on a veth lab in which frames are made to disappear at places of our choice, with the ledger around them."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from nicbench.bench_file import parse
from nicbench.core.events import Bus
from nicbench.core.judging import Thresholds
from nicbench.core.pattern import Way
from nicbench.core.traffic import Learning
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.measure.ledger.reader import LedgerReader
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.testbed.duts.base import Addressing, Dut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.stack import UndoStack

BENCH = """
nicbench: 1
title: Lost on purpose
lab: {{kind: veth, rps: {rps}}}
dut: {{kind: {kind}{dut}}}
traffic: {{flows: {flows}, udp_checksum: true}}
tester: {{receive_descriptors: {descriptors}}}
tests:
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    of: 10 kpps
    trial: {{duration: 200 ms, drain: 200 ms, settle: 20 ms}}
"""
RING = 4096
Fault = dict[str, float]
Witness = Callable[[], Awaitable[dict[str, int]]]


@dataclass
class Lab:
    """A lab that is up: its host of the DUT takes the provocations."""

    testbed: Testbed
    dut: Dut
    addressing: tuple[Addressing, ...]
    run_id: str
    options: dict[str, str]

    async def on_dut(self, *command: str) -> str:
        """Runs a command there; its output."""
        return (await self.testbed.dut.run(command)).stdout

    async def link(self, device: str) -> dict[str, int]:
        """The kernel's own statistics of an interface of either side, e.g. ``tx_dropped``."""
        host = self.testbed.tester if device.startswith("t") else self.testbed.dut
        shown = await host.run(("ip", "-j", "-s", "link", "show", "dev", device))
        statistics = json.loads(shown.stdout)[0]["stats64"]
        return {f"{side}_{name}": count for side in ("rx", "tx") for name, count in statistics[side].items()}

    async def poll_slowly(self, device: str, every_ms: int) -> None:
        """The DUT's end polls its queue of 256 frames only so often, by a timer: what comes between fills the queue."""
        await self.on_dut("ethtool", "-K", device, "gro", "on")
        folder = f"/sys/class/net/{device}"
        await self.testbed.dut.write_file(f"{folder}/gro_flush_timeout", str(every_ms * 1_000_000))
        await self.testbed.dut.write_file(f"{folder}/napi_defer_hard_irqs", "1000000000")

    async def trial(
        self,
        request: TrialRequest,
        witness: Witness | None = None,
        *,
        descriptors: int = RING,
        fault: Fault | None = None,
    ) -> tuple[Reading, dict[str, int]]:
        """One trial by a tester of its own, and by how much the witness's counters rose over it."""
        text = BENCH.format(descriptors=descriptors, **self.options)
        bench = parse(text.encode(), Path("bench.yaml"))
        tester = make_tester(bench, self.testbed, (), self.run_id, None, fault)
        await tester.start()
        try:
            ledger = await LedgerReader.of(self.testbed)
            setup = TrialSetup(tester, self.dut, self.addressing, ledger=ledger, learning=Learning(flows="few"))
            maker = TrialMaker(setup, Thresholds(), SampleLog({}, Bus()))
            # Learning frames are lost at the same places, perhaps all of them; the witness must not see them either.
            await tester.learn(1, request, self.addressing)
            tester.learn = learn_nothing  # type: ignore[method-assign]
            before = await witness() if witness else {}
            trial = await maker.make("t/0/0", "t", {}, request, 0)
            after = await witness() if witness else {}
            return trial.reading, {name: count - before[name] for name, count in after.items()}
        finally:
            await tester.close()


async def learn_nothing(*_: object) -> frozenset[Way]:
    """In place of learning frames, where they were sent already."""
    return frozenset()


@asynccontextmanager
async def lab(
    *, rps: bool = False, kind: str = "kernel-forward", dut: str = "", flows: int = 256
) -> AsyncIterator[Lab]:
    """Makes it and removes it."""
    run_id = f"nb-test-{secrets.token_hex(3)}"
    options = {"rps": str(rps).lower(), "kind": kind, "dut": dut, "flows": str(flows)}
    bench = parse(BENCH.format(descriptors=RING, **options).encode(), Path("bench.yaml"))
    changes = UndoStack(run_id, None)
    try:
        _, testbed = await make_testbed(bench, changes)
        made = await make_dut(bench, testbed, changes)
        _, addressing = lay_out_ways(bench, testbed, made)
        yield Lab(testbed, made, addressing, run_id, options)
    finally:
        assert await changes.undo_all() == []


def request(load_frames_per_s: float = 20_000.0, duration_s: float = 0.2, drain_s: float = 0.2) -> TrialRequest:
    """A short trial."""
    return TrialRequest(
        frame_bytes=64,
        load_frames_per_s=load_frames_per_s,
        duration_s=duration_s,
        drain_s=drain_s,
        settle_s=0.02,
        purpose=Purpose.LOSS,
    )


def lost_at(reading: Reading) -> dict[str, int]:
    """Rows of the ledger by place, without what was not sent."""
    return {row.place: row.frames for row in reading.ledger if not row.unsent}


def printed(reading: Reading) -> str:
    """The ledger, for a failed test's output."""
    counts = reading.counts
    rows = [f"{row.place} | {row.counter} | {row.frames}{' unsent' if row.unsent else ''}" for row in reading.ledger]
    return "\n".join([f"{counts!r}, unexplained {reading.unexplained}", *rows, *map(str, reading.ledger_faults)])
