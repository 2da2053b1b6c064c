"""One transmission: from the first flow that a client starts, until all have stopped and the drain has passed.

Counters along the path are read before and after it; what became of it goes to the journal as a trial, is laid to
places by the ledger, and is judged, as every trial is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.core.events import ResultReady, TrialFinished
from nicbench.core.trial import Trial
from nicbench.core.turn import DEFAULT
from nicbench.core.verdict import Finding, Reason, Verdict
from nicbench.engine.generator import PortCounts
from nicbench.measure.health.reader import Snapshot, compare
from nicbench.measure.ledger.base import Side
from nicbench.measure.ledger.losses import add_ledger
from nicbench.measure.ledger.reader import Counters
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.otg.configuration import Configuration
from nicbench.otg.record import TEST, Sent, reading_of, request_of, results_of
from nicbench.stages.served import Bed

FILE: Final = "raw/transmission-{number:04d}.json"


@dataclass(slots=True)
class _Before:
    """What was read before the first frame."""

    counters: Counters
    drops: Mapping[str, int]
    health: Snapshot
    ports: Sequence[PortCounts]


class Transmission:
    """A transmission that goes on. ``number`` counts those of the session."""

    def __init__(self, number: int, bed: Bed, configuration: Configuration, before: _Before) -> None:
        self.number = number
        self._bed = bed
        self._configuration = configuration
        self._before = before
        self._earlier: list[Sent] = []
        self.started: set[int] = set()
        """The numbers of the flows that were started in it."""

    @classmethod
    async def begin(cls, number: int, bed: Bed, configuration: Configuration) -> Transmission:
        """Reads all counters; nothing is sent yet."""
        tally = await bed.generator.tally([])
        before = _Before(await bed.ledger.read(), await bed.dut.drops(), await bed.health.read(), tally.ports)
        return cls(number, bed, configuration, before)

    async def note_start(self, flows: Sequence[int]) -> None:
        """Is told before flows are started: the counts of one that is started anew would be gone."""
        again = sorted(self.started.intersection(flows))
        if again:
            tally = await self._bed.generator.tally(again, histograms=True)
            self._earlier += [Sent(self._configuration.flows[each.flow], each) for each in tally.flows]
        self.started.update(flows)

    async def finish(self, drain_s: float) -> Trial:
        """Reads all counters again, and publishes the trial and its results."""
        bed = self._bed
        flows = sorted(self.started)
        tally = await bed.generator.tally(flows, histograms=True)
        sent = [*self._earlier, *(Sent(self._configuration.flows[each.flow], each) for each in tally.flows)]
        reading = reading_of(sent, (self._before.ports, tally.ports), tally.health, drain_s)
        after, drops, health = await bed.ledger.read(), await bed.dut.drops(), await bed.health.read()
        receivers = {self._configuration.ports[name].number for each in sent for name in each.flow.receive}
        counters = (self._before.counters, after)
        reading = add_ledger(reading, self._before.drops, drops, counters, bed.ledger.view(Side.TESTER), receivers)
        reading = reading.model_copy(update={"machine": compare(self._before.health, health)})
        trial = Trial(
            id=Trial.id_of(self.number),
            key=f"{TEST}/{self.number}/0",
            test=TEST,
            configuration=DEFAULT,
            parameters={"transmission": self.number},
            repeat=0,
            request=request_of(sent, drain_s),
            reading=reading,
            verdict=self._judge(sent, reading.health.longest_gap_ns, Evidence.of(reading, dut_cpus=self._dut_cpus())),
            at_s=round(time.monotonic() - bed.began, 3),
        )
        self._keep(sent, tally.ports)
        bed.bus.publish(TrialFinished(trial=trial))
        findings = [finding.text for finding in trial.verdict.findings]
        for result in results_of(self.number, trial.id, sent, reading, findings):
            bed.bus.publish(ResultReady(test=TEST, result=result))
        return trial

    def _dut_cpus(self) -> tuple[int, ...]:
        return () if self._bed.testbed.simulated else self._bed.dut.cpus(self._bed.testbed)

    def _judge(self, sent: Sequence[Sent], longest_gap_ns: int | None, evidence: Evidence) -> Verdict:
        """The verdict of every trial; where the engine does not tell its gaps, frames that left late show them."""
        verdict = judge(evidence, self._bed.thresholds)
        late_ms = max((each.tally.late_maximum_ns for each in sent), default=0) / 1e6
        limit = self._bed.thresholds.longest_gap_ms
        if longest_gap_ns is not None or late_ms <= limit:
            return verdict
        late = Finding(
            reason=Reason.DISTURBED,
            threshold="longest_gap_ms",
            value=late_ms,
            limit=limit,
            text=f"frames left up to {late_ms:.1f} ms later than they were due",
        )
        return verdict.model_copy(update={"findings": (late, *verdict.findings)})

    def _keep(self, sent: Sequence[Sent], ports: Sequence[PortCounts]) -> None:
        """Writes what was counted of each flow, with its whole latency distribution, into the run folder."""
        self._bed.folder.raw.mkdir(exist_ok=True)
        flows = [{"name": each.flow.name, "counted": each.flow.counted, **each.tally.model_dump()} for each in sent]
        self._bed.folder.write_json(
            FILE.format(number=self.number), {"flows": flows, "ports": [port.model_dump() for port in ports]}
        )
