"""What is read around the frames of a trial: counters of DUT and hosts before and after, and what rose meanwhile.

It is added to the reading of the frames, with the places where frames were lost.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from nicbench.core.dut_work import DutWork
from nicbench.core.trial import Purpose, Reading
from nicbench.measure.health.reader import HealthReader, Snapshot, compare
from nicbench.measure.learning import OF_THE_TESTER
from nicbench.measure.ledger.losses import add_ledger, add_left_to_kernel, add_overruns
from nicbench.measure.ledger.reader import Counters, LedgerReader
from nicbench.testbed.duts.base import FrameDut

PortQueues = tuple[tuple[int, ...], ...]
"""Frames by port and queue."""


@dataclass(frozen=True, slots=True)
class Before:
    """What was read before the first frame; ``began_ns`` is when that was done (monotonic)."""

    hardware: Snapshot | None
    counters: Counters
    drops: Mapping[str, int]
    left: Mapping[str, int]
    overruns: Mapping[int, int]
    work: DutWork | None
    queues: PortQueues
    waited_ns: int | None
    began_ns: int


class Surroundings:
    """What surrounds the frames: the DUT, the counters of the hosts, and the hardware where it is read."""

    def __init__(self, dut: FrameDut, ledger: LedgerReader, health: HealthReader | None) -> None:
        self._dut = dut
        self._ledger = ledger
        self._health = health

    async def look(self, purpose: Purpose) -> Before:
        """Reads everything that may rise; frames are sent next. HostError where a host does not answer."""
        dut = self._dut
        if purpose not in OF_THE_TESTER:
            await dut.mark_passage()
        return Before(
            hardware=await self._read_hardware(),
            counters=await self._read_counters(purpose),
            drops=await dut.drops(),
            left=await dut.left_to_kernel(),
            overruns=await dut.overruns(),
            work=await self._read_work(purpose),
            queues=await dut.queue_frames(),
            waited_ns=await dut.waiting_ns(),
            began_ns=time.monotonic_ns(),
        )

    async def add(self, reading: Reading, before: Before, purpose: Purpose, receivers: Collection[int]) -> Reading:
        """Returns the reading with all that rose since ``before``, and with its ledger.

        ``receivers`` are the numbers of the tester's ports at which its frames were to arrive.
        """
        dut = self._dut
        waiting = _share_of_time(before.waited_ns, await dut.waiting_ns(), time.monotonic_ns() - before.began_ns)
        reading = reading.model_copy(update={"dut_waiting_share": waiting})
        if purpose not in OF_THE_TESTER:
            await dut.check_passage()
        reading = add_overruns(reading, before.overruns, await dut.overruns())
        counters = (before.counters, await self._read_counters(purpose))
        view_of = self._ledger.view_of_port
        reading = add_ledger(reading, before.drops, await dut.drops(), counters, view_of, receivers)
        reading = add_left_to_kernel(reading, before.left, await dut.left_to_kernel())
        reading = reading.model_copy(update={"dut_queues": _subtract(before.queues, await dut.queue_frames())})
        if before.hardware is not None and (later := await self._read_hardware()) is not None:
            reading = reading.model_copy(update={"machine": compare(before.hardware, later)})
        if before.work is not None and (worked := await self._read_work(purpose)) is not None:
            reading = reading.model_copy(update={"dut_work": worked.subtract(before.work)})
        return reading

    async def _read_hardware(self) -> Snapshot | None:
        return await self._health.read() if self._health is not None else None

    async def _read_counters(self, purpose: Purpose) -> Counters:
        """Those of the hosts; none in trials of the tester alone, whose frames end in a sink."""
        return Counters() if purpose in OF_THE_TESTER else await self._ledger.read()

    async def _read_work(self, purpose: Purpose) -> DutWork | None:
        """The DUT's own account of its work, where the trial asks for it."""
        return await self._dut.work() if purpose is Purpose.AVERAGE else None


def _share_of_time(before_ns: int | None, after_ns: int | None, elapsed_ns: int) -> float | None:
    """None where one of the ends is not known."""
    if before_ns is None or after_ns is None:
        return None
    return max(0, after_ns - before_ns) / max(1, elapsed_ns)


def _subtract(before: PortQueues, after: PortQueues) -> PortQueues:
    """What each queue received meanwhile; nothing where a count is not known at both ends."""
    if [*map(len, before)] != [*map(len, after)]:
        return ()
    return tuple(
        tuple(max(0, end - start) for start, end in zip(*pair, strict=True)) for pair in zip(before, after, strict=True)
    )
