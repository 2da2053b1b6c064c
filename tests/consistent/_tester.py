"""A tester without frames that draws what it reads: a DUT of some capacity, a tester of some limit, and disturbances.

What it gives is what an engine could: every frame has one fate, percentiles are those of the histogram, and looks at a
core agree with how much of it the DUT had.
"""

from __future__ import annotations

import base64
import math
import random
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from nicbench.core.machine import DutWork
from nicbench.core.pattern import Way, forward_of, frames_of_ways, share_of_load
from nicbench.core.reading import Arrivals, Counts, FlowGroup, Flows, Intervals, Reordering, Silence, Variation
from nicbench.core.trial import (
    CpuTime,
    Health,
    Latency,
    Looks,
    PortReading,
    Purpose,
    Reading,
    SharedCore,
    StreamReading,
    TrialRequest,
)
from nicbench.stats.latency import histogram_of, percentiles_ns
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.simulated import Simulated
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.labs.simulated import SimulatedLab
from nicbench.testbed.testers.base import During, Tester, TesterFacts
from nicbench.tuning.changes import Changes

DUT_CPU = 1
LOOKS_PER_S = 1000


@dataclass
class Nature:
    """What the DUT and its tester are like, and how often they are disturbed; rates are of one port."""

    capacity_frames_per_s: float = math.inf
    softness: float = 0.0
    """Over which share of the capacity its losses begin."""
    rare_loss: float = 0.0
    """The chance of each frame, below the capacity."""
    is_dead: bool = False
    tester_frames_per_s: float = math.inf
    tester_share: float = 1.0
    """Of what is asked for, of a tester that always falls short."""
    has_sink: bool = True
    neighbours: float = 0.0
    """The chance of a trial on a shared core; its speed is then less."""
    held_up: float = 0.0
    stolen: float = 0.0
    latency_ns: float = 20_000.0
    tail: float = 0.003
    knows_order: bool = True
    known_rate_frames_per_s: float | None = None
    faults: float = 0.0
    """The chance of each frame to be doubled, reordered or broken."""

    @classmethod
    def drawn(cls, draw: random.Random, line_rate_frames_per_s: float) -> Nature:
        """Any of them: sharp, soft or rare losses, a dead one, a tester that is capped, neighbours."""
        made = cls(
            capacity_frames_per_s=max(500.0, line_rate_frames_per_s * 10.0 ** draw.uniform(-3.0, 0.3)),
            softness=draw.choice((0.0, 0.0, 0.05, 0.5)),
            rare_loss=draw.choice((0.0, 0.0, 0.0, 1e-6, 1e-4)),
            is_dead=draw.random() < 0.05,
            has_sink=draw.random() < 0.6,
            latency_ns=10.0 ** draw.uniform(3.0, 6.0),
            tail=draw.choice((0.0, 0.003, 0.05)),
            knows_order=draw.random() < 0.85,
            faults=draw.choice((0.0, 0.0, 1e-5, 1e-3)),
        )
        kind = draw.choice(("quiet", "quiet", "neighbours", "held up", "stolen", "all"))
        made.neighbours = draw.choice((0.2, 0.9)) if kind in ("neighbours", "all") else 0.0
        made.held_up = draw.choice((0.1, 0.7)) if kind in ("held up", "all") else 0.0
        made.stolen = draw.choice((0.1, 1.0)) if kind in ("stolen", "all") else 0.0
        limit = draw.choice(("none", "none", "capped", "short"))
        if limit == "capped":
            made.tester_frames_per_s = max(1_000.0, made.capacity_frames_per_s * draw.choice((0.4, 1.001, 1.2, 3.0)))
        elif limit == "short":
            made.tester_share = draw.choice((0.997, 0.6))
        if draw.random() < 0.1:
            made.known_rate_frames_per_s = made.capacity_frames_per_s * draw.choice((1.0, 1.0, 1.3))
        return made


@dataclass
class DrawnTester(Tester):
    """The tester of one turn; what it draws depends on the seed and the number of the trial alone."""

    nature: Nature
    seed: int
    link_bits_per_s: float
    ports: int
    work: list[DutWork] = field(default_factory=list)

    async def start(self) -> TesterFacts:
        return TesterFacts(
            description={"engine": {"engine": "drawn", "version": "0"}, "ports": []},
            minimum_frame_bytes=64,
            maximum_frame_bytes=9018,
            link_bits_per_s=self.link_bits_per_s,
        )

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: During | None = None
    ) -> Reading:
        if during is not None:
            await during()
        draw = random.Random(self.seed * 100_003 + number)
        every = [(way.transmit, way.receive) for way in addressing]
        ways = tuple(every if request.bidirectional else forward_of(every))
        nature = self.nature
        shared = draw.uniform(0.05, 1.0) if draw.random() < nature.neighbours else draw.choice((0.0, 0.001, 0.01))
        capacity = nature.capacity_frames_per_s * (1.0 - 0.4 * shared)
        phases = list(request.phases) or [None]
        streams = []
        frames = (None,) * len(ways) if request.frames is None else frames_of_ways(ways, request.frames)
        for at, phase in enumerate(phases):
            for way, exactly in zip(ways, frames, strict=True):
                streams.append(self._stream(draw, request, way, phase, at, capacity, ways, exactly))
        counts = Counts.sum_of(stream.counts for stream in streams)
        if request.frames is None:
            transmit_ns = int(1e9 * request.duration_s) + draw.randrange(2_000)
        else:
            load = request.load_frames_per_s or 1.0
            transmit_ns = max(1, int(1e9 * request.frames / load))
        held_up_ns = int(1e6 * draw.uniform(21.0, 60.0)) if draw.random() < nature.held_up else draw.randrange(300_000)
        reading = Reading(
            transmit_ns=transmit_ns,
            sending_ns=transmit_ns,
            sent_while_sending=counts.sent,
            counts=counts,
            streams=tuple(streams),
            ports=tuple(
                PortReading(
                    name=f"t{port}", foreign=draw.choice((0, 0, 3)), corrupted_unattributed=0, receive_overrun=0
                )
                for port in range(self.ports)
            ),
            latency=self._latency(draw, counts.received, counts.lost, shared),
            health=Health(
                longest_gap_ns=held_up_ns,
                total_gap_ns=held_up_ns * 2,
                gap_floor_ns=100_000,
                gaps=2,
                iterations=1_000_000,
                idle_iterations=10,
                clock_step_ns=0,
                cpus=(self._cpu(draw, transmit_ns, shared),),
            ),
            unexplained=counts.lost or None,
        )
        return reading

    def _stream(
        self,
        draw: random.Random,
        request: TrialRequest,
        way: Way,
        phase: Any,
        at: int,
        capacity: float,
        ways: Sequence[Way],
        exactly: int | None,
    ) -> StreamReading:
        nature = self.nature
        load, duration_s = request.load_frames_per_s, request.duration_s
        if phase is not None:
            load, duration_s = phase.load_frames_per_s, phase.duration_s
        most = min(nature.tester_frames_per_s, self.link_bits_per_s / ((request.frame_bytes + 20) * 8))
        asked = most if load is None else load
        share = share_of_load(ways)
        intended = math.floor(asked * share * duration_s) if exactly is None else exactly
        if exactly is not None:
            duration_s = exactly / (asked * share)
        sent = min(intended, int(most * share * duration_s) + 1) if load is not None else intended
        sent = int(sent * nature.tester_share) if load is not None and nature.tester_share < 1.0 else sent
        into_sink = request.purpose is Purpose.CEILING
        alone = request.purpose is Purpose.TESTER_LATENCY
        received = 0 if into_sink else sent if alone else self._passed(draw, sent, duration_s, capacity * share)
        lost = 0 if into_sink else sent - received
        broken = doubled = swapped = 0
        if nature.faults and not into_sink and not alone:
            broken, doubled, swapped = (min(received // 4, _binomial(draw, received, nature.faults)) for _ in range(3))
            received -= broken
        counts = Counts(
            intended=intended,
            sent=sent,
            unsent_tester=intended - sent,
            received=received,
            lost=lost,
            late=0,
            duplicated=doubled if nature.knows_order else None,
            reordered=swapped if nature.knows_order else None,
            corrupted=broken,
            foreign=0,
        )
        end_ns = int(1e9 * request.duration_s)
        slots = 10
        return StreamReading(
            name=f"{way[0]}->{way[1]}",
            counts=counts,
            maximum_burst=32,
            latency=self._latency(draw, received, lost, 0.0) if len(ways) > 1 else None,
            checked_bytes=18,
            reordering=Reordering(maximum_extent=3, mean_extent=1.5, measured=swapped, by_three_or_more=0)
            if swapped and nature.knows_order
            else None,
            variation=Variation(pairs=max(0, received - 1), mean_ns=150.0, maximum_ns=9_000) if received > 1 else None,
            intervals=Intervals(
                interval_ns=max(1, int(1e9 * duration_s / slots)),
                received=_spread(received, slots),
                missing=_spread(lost, slots),
            ),
            arrivals=Arrivals(
                first_ns=10_000,
                last_ns=end_ns,
                silence=Silence(from_ns=end_ns // 3, to_ns=end_ns // 3 + draw.randrange(1, max(2, end_ns // 3))),
            )
            if received > 1
            else None,
            last_jump_ns=int(1e9 * duration_s * draw.random()) if lost else None,
            phase=None if phase is None else at + 1,
            groups=(FlowGroup(first_flow=0, flows=256, received=received),),
            flows=Flows(
                flows=256,
                silent=0,
                with_loss=min(256, lost),
                with_reordering=min(256, swapped),
                with_duplicates=0,
                with_corruption=min(256, broken),
            ),
        )

    def _passed(self, draw: random.Random, sent: int, duration_s: float, capacity: float) -> int:
        """How many of the frames come back."""
        nature = self.nature
        if nature.is_dead or not sent:
            return 0
        bears = capacity * duration_s * draw.gauss(1.0, 0.001) + 256
        load = sent / bears
        lost = max(0.0, sent - bears)
        if nature.softness and 1.0 - nature.softness < load:
            lost = max(lost, sent * 0.02 * (load - 1.0 + nature.softness) / nature.softness)
        lost += _binomial(draw, sent, nature.rare_loss)
        return max(0, sent - int(lost))

    def _latency(self, draw: random.Random, received: int, lost: int, shared: float) -> Latency | None:
        if not received:
            return None
        base = self.nature.latency_ns * (3.0 if lost else 1.0)
        picks = min(received, 60)
        left, counted = received, []
        for pick in range(picks):
            value = max(1, int(base * math.exp(draw.gauss(0.0, 0.2))))
            rare = pick > picks // 2 and draw.random() < self.nature.tail * 10
            value = int(value * draw.uniform(5.0, 200.0)) if rare else value
            count = left if pick == picks - 1 else max(1, min(left - (picks - pick - 1), 1 if rare else left // 3))
            left -= count
            counted.append((value, count))
        histogram = histogram_of(counted)
        slowest = max(value for value, _ in counted)
        part = [(value, count // 4) for value, count in counted if count > 3]
        return Latency(
            source="software",
            resolution_ns=1.0,
            uncertainty_ns=draw.choice((None, 40.0, 2_300.0)),
            count=received,
            minimum_ns=min(value for value, _ in counted),
            mean_ns=sum(value * count for value, count in counted) / received,
            maximum_ns=slowest,
            percentiles_ns=percentiles_ns(histogram, maximum_ns=slowest),
            histogram=histogram,
            shared_core=SharedCore(count=sum(count for _, count in part), histogram=histogram_of(part))
            if shared > 0.04
            else None,
        )

    def _cpu(self, draw: random.Random, transmit_ns: int, shared: float) -> CpuTime:
        slots = max(1, int(transmit_ns * LOOKS_PER_S / 1e9))
        seen = min(slots, 4000)
        slow = round(shared * seen)
        at = sorted(draw.sample(range(seen), slow))
        shares = bytearray([98] * seen)
        for place in at:
            shares[place] = 55
        stolen = int(0.2 * transmit_ns) if draw.random() < self.nature.stolen else 0
        return CpuTime(
            cpu=DUT_CPU,
            user_ns=0,
            nice_ns=0,
            system_ns=transmit_ns // 100,
            softirq_ns=transmit_ns // 2,
            irq_ns=0,
            steal_ns=stolen,
            idle_ns=max(0, transmit_ns // 3),
            other_tasks_ns=transmit_ns // 200,
            speed_samples=seen,
            slow_samples=slow,
            longest_pause_ns=draw.randrange(1_000_000),
            looks=Looks(
                begins_ns=0,
                slot_ns=max(1, transmit_ns // seen),
                shares=base64.b64encode(zlib.compress(bytes(shares))).decode(),
            ),
        )

    async def close(self) -> None:
        """There is nothing to give back."""


class DrawnLab(SimulatedLab):
    """A lab in which the tester can be measured by itself, where its nature has a sink."""

    nature = Nature()

    @asynccontextmanager
    async def without_dut(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield self.nature.has_sink

    @asynccontextmanager
    async def cable(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield self.nature.has_sink


class DrawnDut(Simulated):
    """The DUT whose nature is drawn: with a dedicated core, an account of its work, and perhaps a known rate."""

    nature = Nature()
    handled = 0

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        return self.nature.known_rate_frames_per_s

    async def work(self) -> DutWork | None:
        self.handled += 1_000_000
        return DutWork(
            source="its own record",
            packets=self.handled,
            tsc_cycles=300 * self.handled,
            tsc_hz=2.6e9,
            core_clock_hz=(3.1e9,),
        )


def _binomial(draw: random.Random, of: int, chance: float) -> int:
    """Nearly: by the normal distribution where there are many."""
    mean = of * chance
    if mean < 30.0:
        found, sum_ = 0, draw.expovariate(1.0)
        while sum_ < mean:
            found, sum_ = found + 1, sum_ + draw.expovariate(1.0)
        return min(of, found)
    return max(0, min(of, round(draw.gauss(mean, math.sqrt(mean)))))


def _spread(frames: int, slots: int) -> tuple[int, ...]:
    each, rest = divmod(frames, slots)
    return tuple(each + (slot < rest) for slot in range(slots))
