"""One transmission: from the start of the first flow until all flows have stopped and the drain has passed.

Counters along the path are read before and after it; what became of it goes to the journal as a trial, is laid to
places by the ledger, and is judged, as every trial is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from nicbench.core.errors import NicbenchError
from nicbench.core.events import Note, ResultReady, TrialFinished
from nicbench.core.trial import Purpose, Reading, Trial
from nicbench.core.turn import DEFAULT
from nicbench.core.verdict import Finding, Reason, Verdict
from nicbench.engine.generator import FlowState, FlowTally, PortCounts, Tally
from nicbench.measure.surroundings import Look
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.otg.configuration import Configuration
from nicbench.otg.record import TEST, Sent, reading_of, request_of, results_of
from nicbench.stages.served import Bed

FILE: Final = "raw/transmission-{number:04d}.json"


class Transmission:
    """A transmission that goes on. ``number`` counts those of the session."""

    def __init__(
        self, number: int, bed: Bed, configuration: Configuration, before: Look, ports: Sequence[PortCounts]
    ) -> None:
        self.number = number
        self._bed = bed
        self._configuration = configuration
        self._before = before
        self._ports = ports
        self._earlier: list[Sent] = []
        self._is_kept = False
        self.started: set[int] = set()
        """The numbers of the flows that were started in it."""

    @classmethod
    async def begin(cls, number: int, bed: Bed, configuration: Configuration) -> Transmission:
        """Reads all counters, and has the monitors keep off; nothing is sent yet."""
        tally = await bed.generator.tally([])
        await bed.dut.begin_trial(number)
        before = await bed.surroundings.look(Purpose.SERVED)
        await bed.monitors.begin_trial(number, None)
        return cls(number, bed, configuration, before, tally.ports)

    async def note_start(self, flows: Sequence[int]) -> None:
        """Keeps the counts of flows that are about to be started anew; those that are sending go on, and count on."""
        again = sorted(self.started.intersection(flows))
        if again:
            tally = await self._bed.generator.tally(again, histograms=True)
            self._earlier += [
                Sent(self._configuration.flows[each.flow], each)
                for each in tally.flows
                if each.state is FlowState.STOPPED
            ]
        self.started.update(flows)

    async def finish(self, drain_s: float) -> Trial:
        """Reads all counters again, and publishes the trial and its results."""
        bed = self._bed
        tally = await bed.generator.tally(sorted(self.started), histograms=True)
        sent = self._sent(tally)
        reading = await asyncio.to_thread(reading_of, sent, (self._ports, tally.ports), tally.health, drain_s)
        await bed.monitors.end_trial()
        failure = await bed.dut.failure()
        if failure is None:  # else its counters are gone
            receivers = {self._configuration.ports[name].number for each in sent for name in each.flow.receive}
            reading = await bed.surroundings.add(reading, self._before, Purpose.SERVED, receivers)
        broken = None if failure is None else f"the DUT {failure}"
        evidence = Evidence.of(reading, dut_cpus=self._dut_cpus(), peer_failure=broken)
        verdict = judge(evidence, bed.thresholds)
        late = self._late(sent) if reading.health.longest_gap_ns is None else ()
        return await self._keep(sent, tally.ports, reading, verdict.replace(findings=(*late, *verdict.findings)))

    async def abandon(self, last: Tally | None, error: NicbenchError) -> None:
        """Publishes what was counted ``last``, where it could not be finished; the verdict says why.

        Where frames were lost is not told: counters along the path went on after the last count.
        """
        bed = self._bed
        await bed.monitors.end_trial()
        if self._is_kept:
            return
        counted = None if last is None else last.replace(flows=self._flows_of(last))
        sent = self._earlier if counted is None else self._sent(counted)
        if not sent:
            text = f"transmission {self.number} was cut off before anything was counted: {error.message}"
            bed.bus.publish(Note(level="error", text=text))
            return
        ports = self._ports if counted is None else counted.ports
        health = None if counted is None else counted.health
        reading = reading_of(sent, (self._ports, ports), health, 0.0, is_cut=True)
        cut = Finding(
            reason=Reason.TESTER_FAILED,
            threshold="tester_failed",
            value=1.0,
            limit=0.0,
            text=f"it was cut off, and has the last counts before that: {error.message}",
        )
        await self._keep(sent, ports, reading, Verdict(findings=(cut,)))

    def _flows_of(self, last: Tally) -> tuple[FlowTally, ...]:
        return tuple(each for each in last.flows if each.flow in self.started)

    def _sent(self, tally: Tally) -> list[Sent]:
        return [*self._earlier, *(Sent(self._configuration.flows[each.flow], each) for each in tally.flows)]

    async def _keep(
        self, sent: Sequence[Sent], ports: Sequence[PortCounts], reading: Reading, verdict: Verdict
    ) -> Trial:
        """Writes what was counted of each flow, with its latency distribution, and publishes trial and results."""
        bed = self._bed
        trial = Trial(
            id=Trial.id_of(self.number),
            key=f"{TEST}/{self.number}/0",
            test=TEST,
            configuration=DEFAULT,
            parameters={"transmission": self.number},
            repeat=0,
            request=request_of(sent, reading.drain_s or 0.0),
            reading=reading,
            verdict=verdict,
            at_s=round(time.monotonic() - bed.began, 3),
        )
        await asyncio.to_thread(self._write, sent, ports)
        bed.bus.publish(TrialFinished(trial=trial))
        self._is_kept = True
        findings = [finding.text for finding in verdict.findings]
        is_cut = Reason.TESTER_FAILED in verdict.reasons
        for result in results_of(self.number, trial.id, sent, reading, findings, is_cut=is_cut):
            bed.bus.publish(ResultReady(test=TEST, result=result))
        return trial

    def _write(self, sent: Sequence[Sent], ports: Sequence[PortCounts]) -> None:
        flows = [{"name": each.flow.name, "counted": each.flow.counted, **each.tally.model_dump()} for each in sent]
        counted = {"flows": flows, "ports": [port.model_dump() for port in ports]}
        self._bed.folder.write_json(FILE.format(number=self.number), counted)

    def _dut_cpus(self) -> tuple[int, ...]:
        return () if self._bed.testbed.simulated else self._bed.dut.cpus(self._bed.testbed)

    def _late(self, sent: Sequence[Sent]) -> tuple[Finding, ...]:
        """Where the engine does not tell its gaps, frames that left late show them."""
        late_ms = max((each.tally.late_maximum_ns for each in sent), default=0) / 1e6
        limit = self._bed.thresholds.longest_gap_ms
        if late_ms <= limit:
            return ()
        text = f"frames left up to {late_ms:.1f} ms later than they were due"
        return (Finding(reason=Reason.DISTURBED, threshold="longest_gap_ms", value=late_ms, limit=limit, text=text),)
