"""The tester on two machines: one engine on each, which share every trial, and whose clocks are mapped around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from nicbench.core.clocks import ClockMapping, PtpState
from nicbench.core.errors import HostError
from nicbench.core.lists import without_none
from nicbench.core.pattern import Way
from nicbench.core.reading import LearntFlows
from nicbench.core.trial import Latency, Reading, StreamReading, TrialRequest
from nicbench.engine.pair import EnginePair, PairStart
from nicbench.hosts.base import Host
from nicbench.stats.latency import merge
from nicbench.system.ptp import bound_between, describe_ptp, parse_ptp, ptp_script
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._packet_engine import Engine, PacketsOptions, PacketsTester
from nicbench.testbed.testers.base import During, TesterFacts

# The PTP of a tester's two machines: looked at before, in and after each trial, where both are synchronised.


EVERY_S: Final = 1.0
"""The time between two looks in a trial: offsets are logged, and a look is one command on each machine."""
READING_NS: Final = 200.0
"""What reading an engine's clock and the time of the day beside each other may be off, of both machines together."""


class PtpWatch:
    """Looks at ptp4l of both machines, by their names in the report."""

    def __init__(self, hosts: tuple[tuple[str, Host], ...]) -> None:
        self._hosts = hosts
        self._seen: list[tuple[PtpState | None, ...]] = []

    async def look(self) -> tuple[PtpState | None, ...]:
        """The state of each machine now; None where it has no ptp4l, or does not answer."""
        states = await asyncio.gather(*(_look(name, host) for name, host in self._hosts))
        self._seen.append(tuple(states))
        return tuple(states)

    @property
    def is_running(self) -> bool:
        """Whether a ptp4l answered on both machines when it was looked last."""
        return bool(self._seen) and all(state is not None for state in self._seen[-1])

    def forget(self) -> None:
        """Begins anew, but for the last look."""
        self._seen = self._seen[-1:]

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Looks once a second meanwhile, where the machines were synchronised when it was looked last."""
        looking = asyncio.ensure_future(self._go_on()) if self.bound_ns is not None else None
        try:
            yield
        finally:
            if looking is not None:
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.look()

    @property
    def bound_ns(self) -> float | None:
        """By how much the times of both machines differ at most, of all looks; None where one found no synchrony."""
        bounds = [bound_between(states) for states in self._seen]
        known = without_none(bounds)
        return max(known) + READING_NS if known and len(known) == len(bounds) else None

    @property
    def worst(self) -> tuple[PtpState, ...]:
        """Of each machine the state with the largest bound of all looks."""
        found = []
        for states in zip(*self._seen, strict=True):
            known = without_none(states)
            found += [max(known, key=lambda state: state.bound_ns)] if known else []
        return tuple(found)

    def describe(self) -> dict[str, str]:
        """What the last look found of each machine, in words."""
        last = self._seen[-1] if self._seen else (None,) * len(self._hosts)
        return {name: describe_ptp(state) for (name, _), state in zip(self._hosts, last, strict=True)}


async def _look(name: str, host: Host) -> PtpState | None:
    try:
        # ptp4l is the machine's, whatever namespace the ports are in.
        done = await host.machine.run(("sh", "-c", ptp_script()), check=False)
    except HostError:
        return None
    return parse_ptp(name, done.stdout)


# Before the first trial the clocks are watched for so long, in so many steps: their drift is then known to a millionth
# where the fastest frames differ by a microsecond.
WATCHED_S: Final = 1.0
WATCHED_STEP_S: Final = 0.25
# Where no frames come back there is nothing to watch: the control path has to do.
LONGEST_WATCH_S: Final = 3.0
MOST_TRIES: Final = 3
# Numbers of the transmissions that compare the clocks; those of trials and learning frames are far below.
_COMPARING: Final = 2**29


class PairTester(PacketsTester):
    """Two engine processes on two hosts; ``far_ports`` are the numbers of the second one's ports."""

    learning_frames = 32
    # Both begin at a moment that was agreed upon, which an engine may miss that waits for a processor.
    learning_catch_up_s = 0.1

    def __init__(
        self,
        hosts: tuple[Host, Host],
        binary: str,
        options: PacketsOptions,
        far_ports: frozenset[int],
        far_configure: Mapping[str, Any],
    ) -> None:
        super().__init__(hosts[0], binary, options)
        self._far = hosts[1]
        self._far_ports = far_ports
        self._far_configure = far_configure
        self._comparisons = 0
        self._measured: PairStart | None = None
        self._ptp = PtpWatch((("tester", hosts[0]), ("peer", hosts[1])))

    async def _connect(self) -> Engine:
        near, far = await self._start_engine(self._host), await self._start_engine(self._far)
        self._pair = EnginePair(near, far, self._far_ports, self._far_configure)
        return self._pair

    async def start(self) -> TesterFacts:
        facts = await super().start()
        await self._ptp.look()
        names = [str(port["name"]) for port in self._options.ports]
        second = {"host": self._far.name, "ports": [names[number] for number in sorted(self._far_ports)]}
        told = {"second_machine": second, "ptp": self._ptp.describe()}
        return replace(facts, description={**facts.description, **told})

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        await self._watch_clocks(request, addressing)
        return await super().learn(number, request, addressing)

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        await self._watch_clocks(request, addressing)
        learnt = await super().teach(number, request, addressing, frames_per_flow)
        # Learning frames at a high rate wait for one another.
        await self._compare_clocks(request, addressing)
        return learnt

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        self._ptp.forget()
        async with self._ptp.going_on():
            reading = await super().trial(number, request, addressing, during)
        self._measured = self._pair.last_start
        return reading

    async def complete(self, reading: Reading, request: TrialRequest, addressing: tuple[Addressing, ...]) -> Reading:
        """The reading with how the clocks were mapped, once they were compared after the trial too."""
        await self._compare_clocks(request, addressing)
        mapping = None if self._measured is None else self._pair.mapping(self._measured)
        if mapping is not None and self._ptp.bound_ns is not None:
            mapping = mapping.replace(ptp=self._ptp.worst)
        return self._with_clocks(reading, mapping)

    async def _watch_clocks(self, request: TrialRequest, addressing: tuple[Addressing, ...]) -> None:
        """Compares the clocks until their drift is known; once it is, nothing is sent."""
        began = time.monotonic()
        while self._pair.watched_s < WATCHED_S and time.monotonic() - began < LONGEST_WATCH_S:
            await self._compare_clocks(request, addressing)
            await asyncio.sleep(WATCHED_STEP_S)

    async def _compare_clocks(self, request: TrialRequest, addressing: tuple[Addressing, ...]) -> None:
        """Sends a few frames both ways, which nobody counts: the fastest of each way tell how the clocks differ.

        Again where none came one of the ways, or all came late, as on a machine that is busy.
        """
        if self._ptp.is_running:
            await self._ptp.look()
        if self._ptp.bound_ns is not None:
            await self._pair.compare_by_ptp(self._ptp.bound_ns)
        before_ns = self._pair.last_compared_ns
        for _ in range(MOST_TRIES):
            self._comparisons += 1
            await self._learn(_COMPARING + self._comparisons, request, addressing)
            if self._pair.has_compared_well(before_ns):
                return

    def _with_clocks(self, reading: Reading, mapping: ClockMapping | None) -> Reading:
        """The reading with the mapping; latencies between the machines have its uncertainty, or are unknown."""
        streams = tuple(self._map_stream(one, mapping) for one in reading.streams)
        latency = merge([one.latency for one in streams if one.latency])
        return reading.replace(streams=streams, latency=latency, clocks=mapping)

    def _map_stream(self, stream: StreamReading, mapping: ClockMapping | None) -> StreamReading:
        transmit, receive = (int(port) for port in stream.name.split(" ")[0].split("->"))
        if stream.latency is None or (transmit in self._far_ports) == (receive in self._far_ports):
            return stream
        return stream.replace(latency=_map_latency(stream.latency, mapping))


def _map_latency(latency: Latency, mapping: ClockMapping | None) -> Latency | None:
    if mapping is None:
        return None
    return latency.replace(uncertainty_ns=(latency.uncertainty_ns or 0.0) + mapping.uncertainty_ns)
