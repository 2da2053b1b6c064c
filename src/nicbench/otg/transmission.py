"""Repeated tallies of the engine with their times, from which rates and link changes follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from nicbench.core.errors import EngineError, NicbenchError
from nicbench.core.events import Note, ResultReady, TrialFinished
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.trial import Purpose, Reading, Trial
from nicbench.core.turn import DEFAULT
from nicbench.engine.generator import ColumnTally, FlowColumns, FlowState, FlowTally, Generator, PortCounts, Tally
from nicbench.measure.surroundings import Look
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.otg.configuration import LARGEST_CAPTURE_BYTES, Configuration
from nicbench.otg.counters import TEST, Sent, reading_of, request_of, results_of
from nicbench.otg.model import OtgError
from nicbench.stages.served import Bed

LOOK_S: Final = 0.1
"""How often a transmission is looked at."""
_RATE_S: Final = 0.5
"""Rates are taken over at least so long, where a flow has been sending for that long."""
_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tally with its time (monotonic). ``flows`` has one value for each flow of the configuration, by its number."""

    at_s: float
    flows: FlowColumns
    ports: Sequence[PortCounts]


class Counting:
    """Asks the engine for tallies, and keeps the last ones."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._history: list[Snapshot] = []
        self.latest: ColumnTally | None = None
        """The last counts of all flows: what is left of a transmission whose engine is gone."""
        self._links: dict[str, tuple[bool | None, int]] = {}

    def forget(self) -> None:
        """Drops earlier tallies, when flows were replaced or begin anew: rates do not reach back beyond that."""
        self._history = []

    async def count(self) -> Snapshot:
        """Counts all flows and ports now."""
        self.latest = tally = await self._generator.tally_columns()
        now = Snapshot(time.monotonic(), tally.columns, tally.ports)
        if not self._history or now.at_s - self._history[-1].at_s >= LOOK_S / 2:
            self._history = [*self._history[1 - _KEPT :], now]
        for port in tally.ports:
            if port.name not in self._links or self._links[port.name][0] != port.link_up:
                self._links[port.name] = (port.link_up, time.time_ns())
        return now

    def before(self, now: Snapshot) -> Snapshot | None:
        """Returns the youngest tally that is old enough to take rates from, or the oldest."""
        old = [each for each in self._history if now.at_s - each.at_s >= _RATE_S]
        oldest = self._history[0] if self._history and self._history[0] is not now else None
        return old[-1] if old else oldest

    def link_changed_ns(self, port: str) -> int:
        """Returns when the link of a port was seen to change, or first seen (UNIX time); 0 where it never was."""
        return self._links[port][1] if port in self._links else 0


class Capturing:
    """The captures in progress, and the files of those that have ended, by the names of their ports."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._configuration = Configuration({}, (), {})
        self._going: set[str] = set()
        self._files: dict[str, Path] = {}
        self._begun = 0

    @property
    def going(self) -> Collection[str]:
        """The ports with a capture in progress."""
        return self._going

    async def configure(self, configuration: Configuration) -> None:
        """Ends all captures, and takes those of a new configuration, of which none is begun."""
        await self.stop_all()
        self._configuration, self._files = configuration, {}

    async def control(self, action: str, names: Iterable[str]) -> None:
        """Starts or stops the captures of these ports; without names, all captures of the configuration."""
        configured = self._configuration.captures
        wanted = list(names) or list(configured)
        if action == "start" and not wanted:
            raise OtgError(["control_state.port.capture: the configuration has no capture: add one with its ports"])
        for index, name in enumerate(wanted):
            if name not in configured:
                path = f"control_state.port.capture.port_names[{index}]"
                raise OtgError([f"{path}: no capture of the configuration has port {name[:80]!r}"])
        if action == "start":
            await self._start([name for name in wanted if name not in self._going])
        else:
            await self._stop([name for name in wanted if name in self._going])

    async def stop_all(self) -> None:
        """Ends all captures. EngineError where a file is incomplete, HostError where it cannot be fetched."""
        await self._stop(list(self._going))

    def file(self, name: str) -> Path:
        """Returns the file of a port's capture, which has ended. OtgError without one."""
        if name not in self._configuration.ports:
            raise OtgError([f"capture_request.port_name: no port of the configuration is called {name[:80]!r}"])
        if name not in self._files:
            raise OtgError([f"capture_request.port_name: nothing was captured at {name!r}: start and stop its capture"])
        return self._files[name]

    async def _start(self, names: list[str]) -> None:
        folder = self._bed.folder_elsewhere or self._bed.folder.raw
        for name in names:
            capture = self._configuration.captures[name]
            self._begun += 1
            await self._bed.generator.start_capture(
                [self._configuration.ports[name].number],
                f"{folder}/capture-{self._begun:04d}-",
                filters=list(capture.filters),
                at_most_bytes=LARGEST_CAPTURE_BYTES,
                overwrite=capture.overwrite,
                format=capture.form,
                snap_bytes=capture.snap_bytes,
            )
            self._going.add(name)
            self._files.pop(name, None)

    async def _stop(self, names: list[str]) -> None:
        for name in names:
            ports = [self._configuration.ports[name].number]
            self._going.discard(name)
            (file,) = await self._bed.generator.stop_capture(ports)
            if file.error:
                raise EngineError(f"the capture at {name} is not whole: {file.error}", kind="capture")
            self._files[name] = await self._fetch(file.path)

    async def _fetch(self, path: str) -> Path:
        if self._bed.folder_elsewhere is None:
            return Path(path)
        host, copy = self._bed.testbed.tester, self._bed.folder.raw / PurePosixPath(path).name
        await host.get(path, copy)
        await host.run(("rm", "-f", "--", path))
        return copy


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
