"""What surrounds the frames of a trial: the tester, the DUT, and the counters that are read before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any

from nicbench.core.frozen import frozen
from nicbench.core.pattern import forward_of
from nicbench.core.traffic import Learning
from nicbench.core.trial import OF_THE_TESTER, Purpose, Reading, TrialRequest
from nicbench.hosts.base import Host
from nicbench.measure.health.reader import HealthReader, Snapshot, compare
from nicbench.measure.ledger.losses import add_ledger, add_left_to_kernel, add_overruns
from nicbench.measure.ledger.reader import Counters, LedgerReader
from nicbench.measure.power.meter import Meter
from nicbench.measure.queues import QueueReader
from nicbench.measure.trial_verdict import leave_out, leave_out_programs
from nicbench.monitor.base import Monitors
from nicbench.testbed.duts.base import Addressing, DutLook, FrameDut, PortQueues
from nicbench.testbed.testers.base import Tester
from nicbench.tuning.changes import Changes

# What trials of frames are made with: the tester, the DUT, and what is read on their hosts around each trial.


@frozen
class TrialSetup:
    """What trials are made with: tester and DUT, and what is read on their hosts around each trial."""

    tester: Tester
    dut: FrameDut
    addressing: tuple[Addressing, ...] = ()
    """With what frames are addressed on each way between the tester's ports."""
    dut_cpus: Collection[int] = ()
    """The cores on which the DUT works in the kernel: other programs on them disturb a trial."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Those on which a command may run in the midst of a trial: ``dut``, ``tester``, ``local``."""
    dut_links: Mapping[str, str] = field(default_factory=dict)
    """The interface of each port of the DUT whose link may go down in the midst of a trial."""
    changes: Changes | None = None
    """Where the undo of such a link is written."""
    ledger: LedgerReader = field(default_factory=LedgerReader)
    health: HealthReader | None = None
    meter: Meter | None = None
    """What reads the power of the machines; None where no test asks for it."""
    queues: QueueReader | None = None
    """What reads receive queues and cores; None where nobody may ask for them."""
    monitors: Monitors | None = None
    """What watches the path of frames; None where nothing is there to be watched."""
    programmed: Collection[str] = ()
    """The devices of the tester's ports of which it exchanges the XDP programs itself."""
    port_names: tuple[str, ...] = ()
    """The names of the tester's ports, by their numbers in ``addressing``."""
    smallest_frame_bytes: int = 64
    """The smallest frame that tester and traffic allow."""
    learning: Learning = field(default_factory=Learning)
    """How the DUT is taught the flows before a trial."""

    def counted_ways(self, request: TrialRequest) -> tuple[Addressing, ...]:
        """The ways whose frames a trial counts."""
        if request.bidirectional:
            return self.addressing
        forward = set(forward_of([(way.transmit, way.receive) for way in self.addressing]))
        return tuple(way for way in self.addressing if (way.transmit, way.receive) in forward)


# What is read around the frames of a trial: counters of DUT and hosts before and after, and what rose meanwhile.
#
# It is added to the reading of the frames, with the places where frames were lost.


@frozen
class Look:
    """Everything that may rise, at one time."""

    hardware: Snapshot | None
    counters: Counters
    dut: DutLook


class Surroundings:
    """What surrounds the frames: the DUT, the counters of the hosts, and the hardware where it is read."""

    def __init__(
        self,
        dut: FrameDut,
        ledger: LedgerReader,
        health: HealthReader | None,
        monitors: Monitors | None = None,
        programmed: Collection[str] = (),
    ) -> None:
        """``programmed`` are the devices of which the tester exchanges the XDP programs."""
        self._programmed = programmed
        self._dut = dut
        self._monitors = monitors
        self._ledger = ledger
        self._health = health

    async def look(self, purpose: Purpose) -> Look:
        """Reads everything that may rise; frames are sent next. HostError where a host does not answer.

        From now on the path is watched, until ``add``.
        """
        if self._monitors is not None:
            await self._monitors.watch()
        if purpose not in OF_THE_TESTER:
            await self._dut.mark_passage()
        return await self._look(purpose)

    async def add(self, reading: Reading, before: Look, purpose: Purpose, receivers: Collection[int]) -> Reading:
        """Returns the reading with all that rose since ``before``, and with its ledger.

        ``receivers`` are the numbers of the tester's ports at which its frames were to arrive.
        """
        changes = None if self._monitors is None else await self._monitors.changes()
        changes = leave_out_programs(changes, self._programmed)
        if purpose not in OF_THE_TESTER:
            await self._dut.check_passage()
        after = await self._look(purpose)
        reading = add_overruns(reading, before.dut.overruns, after.dut.overruns)
        counters, view_of = (before.counters, after.counters), self._ledger.view_of_port
        reading = add_ledger(reading, before.dut.drops, after.dut.drops, counters, view_of, receivers)
        reading = add_left_to_kernel(reading, before.dut.left, after.dut.left)
        update: dict[str, Any] = {
            "dut_waiting_share": _waiting_share(before.dut, after.dut),
            "dut_queues": _subtract(before.dut.queues, after.dut.queues),
            "changes": leave_out(reading.changes if changes is None else changes, self._dut.changes_itself),
        }
        if before.hardware is not None and after.hardware is not None:
            update["machine"] = compare(before.hardware, after.hardware)
        if before.dut.work is not None and after.dut.work is not None:
            update["dut_work"] = after.dut.work.subtract(before.dut.work)
        return reading.replace(**update)

    async def _look(self, purpose: Purpose) -> Look:
        """Reads all at once."""
        of_dut = self._dut.look(with_work=purpose is Purpose.AVERAGE)
        return Look(*await asyncio.gather(self._read_hardware(), self._read_counters(purpose), of_dut))

    async def _read_hardware(self) -> Snapshot | None:
        return await self._health.read() if self._health is not None else None

    async def _read_counters(self, purpose: Purpose) -> Counters:
        """Those of the hosts; none in trials of the tester alone, whose frames end in a sink."""
        return Counters() if purpose in OF_THE_TESTER else await self._ledger.read()


def _waiting_share(before: DutLook, after: DutLook) -> float | None:
    """The share of the time between the two in which the DUT waited for a CPU; None where one end is not known."""
    if before.waited_ns is None or after.waited_ns is None:
        return None
    return max(0, after.waited_ns - before.waited_ns) / max(1, after.at_ns - before.at_ns)


def _subtract(before: PortQueues, after: PortQueues) -> PortQueues:
    """What each queue received meanwhile; nothing where a count is not known at both ends."""
    if [*map(len, before)] != [*map(len, after)]:
        return ()
    return tuple(
        tuple(max(0, end - start) for start, end in zip(*pair, strict=True)) for pair in zip(before, after, strict=True)
    )
