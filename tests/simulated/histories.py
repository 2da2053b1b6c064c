"""Whole runs in simulated time: one seed draws a DUT, a tester, what befalls both, and a bench file: a history.

Everything between the bench file and the report is nicbench's own. A ``Stand`` takes the place of tester and DUT, and a
clock that only trials and sleeping advance that of the machine's; every tenth history is played by the engine with
simulated ports, which every method of frames can use, and every twentieth by machines whose tools fail, begin late or
are disturbed. What of a history is wrong is said by ``judged.py``.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import io
import itertools
import math
import random
import selectors
import time
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from rich.console import Console
from tests.consistent._rounds import METHODS as ROUND_METHODS
from tests.consistent._rounds import draw_rounds, round_bench
from tests.run.simulated_bench import nothing_told
from tests.simulated.sessions import serve
from tests.simulated.worlds import CLASSES, World, draw_world

from nicbench.bench_file import load
from nicbench.cli.summary_table import print_summary
from nicbench.core.errors import NicbenchError
from nicbench.core.events import Bus, ResultReady, TrialFinished
from nicbench.core.pattern import Way
from nicbench.core.reading import Arrivals, Change, ChangeAction, ChangeKind, Counts, PathChanges
from nicbench.core.result import Result, Summary
from nicbench.core.round import Round
from nicbench.core.trial import Health, Latency, PortReading, Reading, StreamReading, Trial, TrialRequest
from nicbench.report.gather import gather
from nicbench.run import run
from nicbench.stages import machine, rigs
from nicbench.stages import plan as stages_of_plan
from nicbench.stages.tester import make_tester
from nicbench.store.folder import RunFolder
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers.base import During, Tester, TesterFacts

T = TypeVar("T")

# Simulated time.


class Clock:
    """Time that passes where somebody lets it pass; ``thinking`` threads take none."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.thinking = 0

    def monotonic(self) -> float:
        """In the place of ``time.monotonic``."""
        return self.now_s


class _Waits(selectors.EpollSelector):
    """Where nothing is to be done before a timer ends, the clock moves on to it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self._clock.thinking:
            return super().select(None)  # a thread will wake it
        self._clock.now_s += timeout
        return []


def run_in_simulated_time(clock: Clock, main: Any) -> Any:
    """Runs a coroutine to its end; the thread of a search takes no time, whatever the machine is doing."""

    # The loop counts a thread in where it gives it something to do, and out where it sees that it waits or is done.
    def waits() -> None:
        clock.thinking -= 1

    class Answer(concurrent.futures.Future[T]):
        def result(self, timeout: float | None = None) -> T:
            loop.call_soon_threadsafe(waits)
            return super().result(timeout)

        def set_result(self, result: T) -> None:
            clock.thinking += 1
            super().set_result(result)

        def set_exception(self, exception: BaseException | None) -> None:
            clock.thinking += 1
            super().set_exception(exception)

    class Threads(concurrent.futures.ThreadPoolExecutor):
        def submit(self, do: Any, /, *given: Any, **more: Any) -> Any:
            clock.thinking += 1
            future = super().submit(do, *given, **more)

            # Behind asyncio's own, which hands over what came of it: otherwise the clock might move on before that.
            def done(_: Any) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed: what it was asked for is done
                    loop.call_soon_threadsafe(loop.call_soon, waits)

            loop.call_soon(future.add_done_callback, done)
            return future

    answers = SimpleNamespace(Future=Answer, ThreadPoolExecutor=Threads)
    loop = asyncio.SelectorEventLoop(_Waits(clock))
    loop.set_default_executor(Threads(1))
    try:
        with (
            mock.patch("nicbench.measure.frame_context.concurrent", SimpleNamespace(futures=answers)),
            mock.patch.object(time, "monotonic", clock.monotonic),
        ):
            return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


# What may befall a tester or a DUT beside what its class is.


class Mishap(StrEnum):
    """Something that breaks a trial: no figure may rest on it as if it had not happened."""

    FLAP = "a link flaps"
    CHANGE = "somebody changes the ruleset of the DUT"
    DEAF = "nothing comes back any more for some seconds"
    GONE = "nothing comes back any more"
    LATE = "frames come after the drain"
    MORE_THAN_SENT = "the tester says that more came back than was sent"
    NEGATIVE = "the tester says that a negative number was lost"
    SUM = "the streams do not add up to the total"


_CHANGED = PathChanges(changes=(Change(network="dut", kind=ChangeKind.RULESET, action=ChangeAction.CHANGED),))
LIES = (Mishap.MORE_THAN_SENT, Mishap.NEGATIVE, Mishap.SUM)


@dataclass
class Stand(Tester):
    """The tester and the DUT of a history; ``broken`` are the numbers of the trials in which a mishap took place."""

    clock: Clock
    world: World
    delay_s: float = 0.0
    duplicated: float = 0.0
    reordered: float = 0.0
    corrupted: float = 0.0
    mishap: Mishap | None = None
    mishap_at: int = 0
    """The number of the first trial of the mishap."""
    mishap_for: int = 1
    deaf_until_s: float = 0.0
    broken: list[int] = field(default_factory=list)
    made: int = 0
    busy: list[float] = field(default_factory=list)
    """When it began and ended to send frames."""

    async def start(self) -> TesterFacts:
        return TesterFacts({"engine": {"engine": "stand", "version": "0"}, "ports": []}, 64, 9018, None)

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        is_deaf = self.clock.now_s < self.deaf_until_s  # frames are sent at once, and then waited for
        self.clock.now_s += request.settle_s
        is_gone = self.mishap is Mishap.GONE and self._is_befallen(self.made)
        if is_gone or is_deaf or self.delay_s > request.settle_s:
            return frozenset((way.transmit, way.receive) for way in addressing)
        return frozenset()

    def _is_befallen(self, made: int) -> bool:
        long = math.inf if self.mishap is Mishap.GONE else self.mishap_for
        return self.mishap is not None and self.mishap_at <= made < self.mishap_at + long

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: During | None = None
    ) -> Reading:
        self.made += 1
        phases = [(one.load_frames_per_s, one.duration_s) for one in request.phases]
        load = request.load_frames_per_s if request.load_frames_per_s is not None else self.world.maximum
        if not phases:
            seconds = request.duration_s if request.frames is None else request.frames / load
            phases = [(load, seconds)]
        readings = [
            self._read(index + 1 if request.phases else None, load_there, seconds, request.drain_s)
            for index, (load_there, seconds) in enumerate(phases)
        ]
        streams, health = [one for one, _ in readings], _add_health([one for _, one in readings])
        seconds = sum(one for _, one in phases)
        self.busy.append(self.clock.now_s)
        self.clock.now_s += seconds + request.drain_s
        self.busy.append(self.clock.now_s)
        counts = Counts.sum_of(stream.counts for stream in streams)
        befallen = self._is_befallen(self.made - 1)
        if befallen and self.mishap is Mishap.DEAF:
            self.deaf_until_s = self.clock.now_s + 3.0
        if counts.late or (befallen and self.mishap is not Mishap.LATE):
            self.broken.append(number)
        if befallen and self.mishap in LIES:
            counts, streams = _lie(self.mishap, counts, streams)
        timed = [stream.latency for stream in streams if stream.latency is not None]
        return Reading(
            transmit_ns=round(1e9 * seconds),
            counts=counts,
            streams=tuple(streams),
            ports=tuple(
                PortReading(
                    name=f"t{port}",
                    arrived=_arrived(counts) if port else 0,
                    foreign=0,
                    stale=0,
                    corrupted_unattributed=0,
                    receive_overrun=0,
                    link_changed=befallen and self.mishap is Mishap.FLAP,
                )
                for port in (0, 1)
            ),
            latency=timed[0] if len(timed) == 1 else None,
            health=health,
            changes=_CHANGED if befallen and self.mishap is Mishap.CHANGE else None,
        )

    def _read(self, phase: int | None, load: float, seconds: float, drain_s: float) -> tuple[StreamReading, Health]:
        sample = self.world.measure(load, seconds)
        befallen, counts = self._is_befallen(self.made - 1), sample.counts
        draw = np.random.default_rng([self.world.seed, self.made, 7])
        lost, late, received = counts.lost, 0, counts.received
        if befallen and self.mishap in (Mishap.FLAP, Mishap.CHANGE, Mishap.DEAF, Mishap.GONE):
            share = 1.0 if self.mishap is Mishap.GONE else 0.3
            dropped = int(share * received)
            received, lost = received - dropped, lost + dropped
        latest_s = self.delay_s + (1.0 if befallen and self.mishap is Mishap.LATE else 0.0)
        if latest_s > drain_s:
            late = min(received, int(load * (latest_s - drain_s)))
            received -= late
        corrupted = int(draw.binomial(received, self.corrupted))
        received -= corrupted
        whole = counts.replace(
            received=received,
            lost=lost,
            late=late,
            corrupted=corrupted,
            duplicated=int(draw.binomial(received, self.duplicated)),
            reordered=int(draw.binomial(received, self.reordered)),
        )
        queued_ns = round(1e9 * (sample.queued_s or 0.0))
        least_ns = round(1e9 * self.delay_s) + 2000
        reading = StreamReading(
            name="0->1" if phase is None else f"0->1 {phase}",
            counts=whole,
            phase=phase,
            latency=_latency(received, least_ns, queued_ns),
            arrivals=Arrivals(first_ns=least_ns, last_ns=round(1e9 * seconds) + least_ns + queued_ns)
            if received
            else None,
        )
        health = Health(
            longest_gap_ns=round(1e9 * seconds * sample.longest_pause_share),
            total_gap_ns=round(1e9 * seconds * sample.held_up_share),
            gap_floor_ns=100_000,
            gaps=int(sample.held_up_share > 0),
            iterations=1,
            idle_iterations=0,
        )
        return reading, health

    async def close(self) -> None:
        pass


def _arrived(counts: Counts) -> int:
    return counts.received + (counts.duplicated or 0) + (counts.corrupted or 0)


def _lie(mishap: Mishap | None, counts: Counts, streams: list[StreamReading]) -> tuple[Counts, list[StreamReading]]:
    (stream, *others) = streams
    if mishap is Mishap.SUM:
        return counts.replace(received=counts.received + 7, lost=counts.lost - 7), streams
    change = (
        {"received": counts.sent * 3 + 10**6}
        if mishap is Mishap.MORE_THAN_SENT
        else {"lost": -1, "received": stream.counts.received + stream.counts.lost + 1}
    )
    told = stream.replace(counts=stream.counts.replace(**change))
    every = [told, *others]
    return Counts.sum_of(one.counts for one in every), every


def _latency(received: int, least_ns: int, queued_ns: int) -> Latency | None:
    if not received:
        return None
    steps = [least_ns + 1000 + round(queued_ns * part / 20) for part in range(21)]
    histogram, counted = HdrHistogram(1, 2**40, 3), Counter[int]()
    for number, value in enumerate(steps):
        counted[value] += (received + 20 - number) // 21
    for value, frames in counted.items():
        histogram.record_value(value, frames)
    ordered = {f"{share:g}": steps[min(20, int(share / 100.0 * 21))] for share in (50.0, 90.0, 99.0, 99.9, 99.99)}
    return Latency(
        source="software",
        resolution_ns=1.0,
        uncertainty_ns=50.0,
        count=received,
        minimum_ns=least_ns,
        mean_ns=least_ns + 1000 + queued_ns / 2.0,
        maximum_ns=steps[-1],
        percentiles_ns=ordered,
        histogram=histogram.encode().decode("ascii"),
    )


def _add_health(every: Sequence[Health]) -> Health:
    longest = max(one.longest_gap_ns or 0 for one in every)
    total, gaps = sum(one.total_gap_ns or 0 for one in every), sum(one.gaps or 0 for one in every)
    return every[0].replace(longest_gap_ns=longest, total_gap_ns=total, gaps=gaps)


# Drawing a history.


@dataclass
class History:
    """One seed: the world and its bench file. ``is_plain`` worlds are of one class, whose true rate is known."""

    seed: int
    name: str
    features: tuple[str, ...]
    bench: str
    trial_s: float
    stand: Stand | None = None
    """None: the engine plays it, or machines whose tools are drawn (``is_of_rounds``)."""
    is_plain: bool = False
    is_of_rounds: bool = False
    is_served: bool = False
    """Whether it is a session, whose frames a client asks for."""

    @property
    def mishap(self) -> Mishap | None:
        """What befell it, where that breaks trials."""
        return self.stand.mishap if self.stand else None


def draw_history(seed: int) -> History:
    """Returns the history of a seed: of every second one the true rate is known."""
    draw = random.Random(f"history/{seed}")
    if seed % 200 == 39:
        bench = f"nicbench: 1\ntitle: A history\nlab: {{{_draw_lab(draw, 2)[1]}}}\ndut: simulated\n"
        return History(seed, "session", (), bench, 0.1, is_served=True)
    if seed % 10 == 9:
        return _draw_engine(seed, draw)
    if seed % 20 == 7:
        method = ROUND_METHODS[seed // 20 % len(ROUND_METHODS)]
        return History(seed, method, (), round_bench(draw, method)[1], 0.0, is_of_rounds=True)
    names = tuple(CLASSES)
    is_plain = seed % 2 == 0
    name = names[seed // 2 % len(names)] if is_plain else draw.choice(names)
    stand = Stand(Clock(), draw_world(name, seed))
    features = ()
    if not is_plain:
        features = tuple(draw.sample(sorted(_FEATURES), draw.randint(1, 5)))
        for feature in features:
            _FEATURES[feature](stand, draw)
        stand.world.trial_s = draw.choice((0.1, 0.2, 0.5, 1.0, 5.0))
    bench = _write_bench(draw, stand.world, is_plain=is_plain)
    return History(seed, name, features, bench, stand.world.trial_s, stand, is_plain)


def draw_together(seed: int) -> list[History]:
    """Returns two to five histories that ask for one machine, of which that of the seed is the first."""
    count = random.Random(f"together/{seed}").randint(2, 5)
    stands = (draw_history(number) for number in itertools.count(seed) if number % 10 != 9 and number % 20 != 7)
    return list(itertools.islice(stands, count))


def _change(stand: Stand, **given: float) -> None:
    stand.world.dut = replace(stand.world.dut, **given)


def _befall(stand: Stand, draw: random.Random) -> None:
    stand.mishap = draw.choice(tuple(Mishap))
    stand.mishap_at, stand.mishap_for = draw.randint(0, 25), draw.randint(1, 3)


_FEATURES = {
    "queue": lambda stand, draw: _change(stand, queue=10.0 ** draw.uniform(0, 5)),
    "floor": lambda stand, draw: _change(stand, floor=10.0 ** draw.uniform(-6, -2)),
    "noise": lambda stand, draw: _change(stand, noise=draw.uniform(0.002, 0.03), alike=draw.choice((0.0, 0.8))),
    "drift": lambda stand, draw: _change(stand, drift_per_s=draw.choice((-1, 1)) * draw.uniform(0.0001, 0.001)),
    "neighbour": lambda stand, draw: _change(stand, slope=draw.uniform(0.1, 0.5)),
    "livelock": lambda stand, draw: _change(stand, livelock=draw.uniform(0.05, 1.0)),
    "soft": lambda stand, draw: _change(stand, early=10.0 ** draw.uniform(-5, -2)),
    "rare": lambda stand, draw: _change(stand, bursts_per_s=0.01, burst=draw.randint(1, 500)),
    "bucket": lambda stand, draw: _change(stand, bucket=float(draw.randint(1, 1000))),
    "pauses": lambda stand, draw: setattr(stand.world, "pauses", draw.uniform(0.1, 5.0)),
    "ceiling": lambda stand, draw: setattr(stand.world, "ceiling", stand.world.maximum * draw.uniform(0.05, 1.0)),
    "share": lambda stand, draw: setattr(stand.world, "sent_share", draw.uniform(0.7, 0.9999)),
    "delay": lambda stand, draw: setattr(stand, "delay_s", 10.0 ** draw.uniform(-4, 0.5)),
    "duplicates": lambda stand, draw: setattr(stand, "duplicated", 10.0 ** draw.uniform(-5, -1)),
    "reordering": lambda stand, draw: setattr(stand, "reordered", 10.0 ** draw.uniform(-5, -1)),
    "corruption": lambda stand, draw: setattr(stand, "corrupted", 10.0 ** draw.uniform(-7, -2)),
    "mishap": _befall,
}  # fmt: skip

_SEARCHES = ("guided", "mlr", "step-down")
_AFTER = {
    "latency": "at: throughput, of: NDR, loads: [100 %, 50 %], frame_bytes: {sizes}, trial: {{{times}}}",
    "back-to-back": "at: throughput, of: NDR, frame_bytes: {sizes}, repetitions: 3,"
    " trial: {{drain: 100 ms, settle: 50 ms}}",
    "maximum-forwarding-rate": "at: throughput, load_step: 10 %, frame_bytes: {sizes}, trial: {{{times}}}",
    "system-recovery": "at: throughput, of: NDR, frame_bytes: {sizes}, repetitions: 2,"
    " trial: {{overload_time: 1 s, recovery_time: 1 s, drain: 100 ms, settle: 50 ms}}",
    "frame-loss": "frame_bytes: {sizes}, trial: {{{times}}}",
    "load-sweep": "frame_bytes: {sizes}, loads: [100 %, 50 %, 10 %], trial: {{{times}}}",
    "soak": "at: throughput, of: NDR, load: 90 %, frame_bytes: {sizes},"
    " trial: {{duration: 6 s, interval: 2 s, drain: 100 ms, settle: 50 ms}}",
    "impairments": "rate: {rate:.0f} pps, frame_bytes: {sizes}, trial: {{{times}}}",
}  # fmt: skip


def _write_bench(draw: random.Random, world: World, *, is_plain: bool) -> str:
    sizes = [64] if is_plain else draw.sample([64, 128, 512, 1518], draw.randint(1, 2))
    times = f"duration: {world.trial_s:g} s, drain: 100 ms, settle: 50 ms"
    search = f"kind: {draw.choice(_SEARCHES) if not is_plain else 'guided'}, minimum_load: 1 pps"
    if is_plain:
        search += ", time: 5 min"
    elif draw.random() < 0.5:
        search += f", time: {draw.choice((5, 20, 60))} s"
    if world.limited_by == "maximum_load":
        search += f", maximum_load: {world.maximum!r} pps"
    link = (math.ceil(world.maximum * 1.5) if "maximum_load" in search else world.maximum) * (64 + 20) * 8
    given = {"sizes": sizes, "times": times, "rate": world.maximum * draw.uniform(0.001, 0.5)}
    others = draw.sample(sorted(_AFTER), draw.randint(0, 2)) if not is_plain else []
    tests = [f"{{name: {name}, method: {name}, {_AFTER[name].format(**given)}}}" for name in others]
    searched = (
        f"{{name: throughput, method: throughput, frame_bytes: {sizes}, search: {{{search}}}, trial: {{{times}}}}}"
    )
    return "\n".join(
        [
            "nicbench: 1",
            "title: A history",
            f"seed: {draw.randrange(1000)}",
            f"lab: {{kind: simulated, link: {link:.3f} b/s}}",
            "dut: simulated",
            "tests:",
            *(f"  - {test}" for test in [searched, *tests]),
            "",
        ]
    )


_TIMES = "trial: {duration: 100 ms, drain: 20 ms, settle: 5 ms}"
_BURSTS = "trial: {drain: 20 ms, settle: 5 ms}"
_GROUPS = "trial: {pause: 10 ms, drain: 20 ms, settle: 5 ms}"
_AGEING = "trial: {ageing: 100 ms, pause: 10 ms, drain: 20 ms}"
_PLAYED_BY_ENGINE = {
    "throughput": (2, "", _TIMES),
    "broadcast-throughput": (4, "one-to-many", _TIMES),
    "broadcast-latency": (4, "one-to-many", f"at: throughput, {_TIMES}"),
    "congestion-control": (4, "full-mesh", _TIMES),
    "connection-capacity": (2, "", f"connections: 200, rate: 2 kpps, {_BURSTS}"),
    "ecn-marking": (2, "", f"rate: 5 kpps, {_TIMES}"),
    "microburst": (4, "full-mesh", f"most: 256, receivers: [1], {_BURSTS}"),
    "multicast-throughput": (4, "one-to-many", _TIMES),
    "multicast-latency": (4, "one-to-many", f"at: throughput, {_TIMES}"),
    "multicast-capacity": (4, "one-to-many", f"most: 16, {_GROUPS}"),
    "multicast-membership": (
        4,
        "one-to-many",
        "repetitions: 2, trial: {member: 100 ms, after: 200 ms, drain: 20 ms, settle: 5 ms}",
    ),
    "pause-reaction": (2, "", f"repetitions: 2, {_BURSTS}"),
    "head-room": (2, "", f"most: 64, {_BURSTS}"),
    "port-shares": (4, "full-mesh", f"repetitions: 2, {_TIMES}"),
    "reset": (
        2,
        "",
        f"at: throughput, command: ['true'], repetitions: 1, {_TIMES[:-1]}, after: 50 ms}}",
    ),
    "single-core": (2, "", _TIMES),
    "address-learning": (4, "full-mesh", f"addresses: 32, {_AGEING}"),
    "address-caching": (4, "full-mesh", f"most: 64, {_AGEING}"),
    "impairments": (2, "", f"rate: 2 kpps, {_TIMES}"),
    "frame-loss": (2, "", _TIMES),
    "latency": (2, "", f"at: throughput, {_TIMES}"),
    "back-to-back": (2, "", f"at: throughput, repetitions: 2, {_BURSTS}"),
    "system-recovery": (
        2,
        "",
        f"at: throughput, repetitions: 2, {_BURSTS[:-1]}, overload_time: 100 ms, recovery_time: 100 ms}}",
    ),
    "soak": (
        2,
        "",
        "at: throughput, load: 90 %, trial: {duration: 300 ms, interval: 100 ms, drain: 20 ms, settle: 5 ms}",
    ),
}
_OF_THE_LAB = {
    "queue": lambda draw: f"queue_frames: {draw.randint(0, 2000)}",
    "delay": lambda draw: f"delay: {draw.choice((1, 20, 500, 30_000))} us",
    "jitter": lambda draw: f"jitter: {draw.choice((1, 50, 500))} us",
    "loss": lambda draw: f"loss: {100.0 * 10.0 ** draw.uniform(-5, -1):.6f} %",
    "duplicates": lambda draw: f"duplicate: {draw.uniform(0, 1):.3f} %",
    "reordering": lambda draw: f"reorder: {draw.uniform(0, 1):.3f} %",
    "corruption": lambda draw: f"corrupt: {draw.uniform(0, 1):.3f} %",
    "foreign": lambda draw: f"foreign: {draw.randint(1, 2000)} pps",
    "ceiling": lambda draw: f"tester_ceiling: {draw.randint(500, 20_000)} pps",
    "pauses": lambda draw: f"pause_every: {draw.randint(50, 500)} ms, pause: {draw.randint(1, 30)} ms",
}


def _draw_engine(seed: int, draw: random.Random) -> History:
    method = sorted(_PLAYED_BY_ENGINE)[seed // 10 % len(_PLAYED_BY_ENGINE)]
    ports, pattern, options = _PLAYED_BY_ENGINE[method]
    features, lab = _draw_lab(draw, ports)
    tests = [f"{{name: {method}, method: {method}, frame_bytes: [{draw.choice((64, 512))}], {options}}}"]
    if "at: throughput" in options:
        search = f"search: {{precision: 5 %, kind: {draw.choice(_SEARCHES)}}}"
        tests.insert(0, f"{{name: throughput, method: throughput, frame_bytes: [64, 512], {search}, {_TIMES}}}")
    bench = [
        "nicbench: 1",
        "title: A history",
        f"seed: {draw.randrange(1000)}",
        f"lab: {{{lab}, seed: {draw.randrange(1000)}}}",
        "dut: simulated",
        *([f"traffic: {{pattern: {pattern}}}"] if pattern else []),
        "tests:",
        *(f"  - {test}" for test in tests),
        "",
    ]
    return History(seed, method, features, "\n".join(bench), 0.1)


def _draw_lab(draw: random.Random, ports: int) -> tuple[tuple[str, ...], str]:
    features = tuple(draw.sample(sorted(_OF_THE_LAB), draw.randint(0, 5)))
    drawn = [f"capacity: {draw.randint(1, 12)} kpps", *(_OF_THE_LAB[name](draw) for name in features)]
    return features, ", ".join([f"kind: simulated, ports: {ports}, link: 20 Mb/s", *drawn])


# Running and judging it.


@dataclass
class Ran:
    """What became of a history; ``said`` are the sentences and tables that a user reads."""

    history: History
    folder: RunFolder
    error: NicbenchError | None
    summary: Summary | None
    trials: tuple[Trial, ...]
    rounds: tuple[Round, ...]
    published: tuple[Result, ...]
    said: dict[str, str]
    searched: tuple[World, ...]
    """The state of the world when its first search had ended."""
    told: tuple[dict[str, Any], ...] = ()
    """What the client of a session was told of the flows of each transmission, by name."""


@dataclass
class _Begun:
    """A history in its new folder, and what is noted while it is played."""

    history: History
    folder: RunFolder
    bus: Bus = field(default_factory=Bus)
    published: list[Result] = field(default_factory=list)
    searched: list[World] = field(default_factory=list)
    error: NicbenchError | None = None

    def note(self, event: Any) -> None:
        """Notes a result, and with the first one the state of the world."""
        if isinstance(event, ResultReady):
            self.published.append(event.result)
            if not self.searched and self.history.stand is not None:
                world = self.history.stand.world
                self.searched.append(replace(world, trials=list(world.trials), shares=list(world.shares)))

    async def run(self, wait_s: float = 0.0) -> None:
        """Runs it to its end, or notes why there is none."""
        _STAND.set(self.history.stand)
        try:
            await run(load(self.folder.path / "bench.yaml"), self.folder, self.bus, wait_s=wait_s)
        except NicbenchError as error:
            self.error = error


_STAND = ContextVar("stand")
"""That of the run that asks for a tester."""


def play(history: History, parent: Path) -> Ran:
    """Runs a history in a new folder."""
    if history.is_served:
        return _serve(history, parent)
    (ran,) = play_together([history], parent)
    return ran


def play_together(histories: Sequence[History], parent: Path) -> list[Ran]:
    """Runs histories at once, each in a new folder; several ask for the same machine, and some do not wait for it."""
    first, *others = histories
    with (
        mock.patch.object(rigs, "make_tester", side_effect=lambda *a, **k: _STAND.get() or make_tester(*a, **k)),
        mock.patch.object(stages_of_plan, "collect", nothing_told),
        mock.patch("nicbench.run.see_machines", nothing_told),
        mock.patch("os.fsync", new=int),  # nothing falls on this machine while a history is played
        pytest.MonkeyPatch.context() as patch,
    ):
        begun = [_begin(history, parent) for history in histories]
        if others:
            _share_a_machine(patch, random.Random(f"together/{first.seed}"), parent / "machine")
        if first.is_of_rounds:
            draw_rounds(patch, random.Random(f"rounds/{first.seed}"))
        if first.stand is None:
            asyncio.run(begun[0].run())
        else:
            for history in histories:
                history.stand.clock = first.stand.clock
            run_in_simulated_time(first.stand.clock, _run_together(begun))
    return [_tell(one) for one in begun]


def _serve(history: History, parent: Path) -> Ran:
    told = list[dict[str, Any]]()
    parent.mkdir(parents=True, exist_ok=True)
    with mock.patch("nicbench.store.folder.new_run_id", return_value=f"2026-01-01T000000Z-history-{history.seed}"):
        folder = asyncio.run(serve(history.seed, history.bench, parent, told))
    published = [event.result for event in folder.journal.events() if isinstance(event, ResultReady)]
    return replace(_tell(_Begun(history, folder, published=published)), told=tuple(told))


def _begin(history: History, parent: Path) -> _Begun:
    parent.mkdir(parents=True, exist_ok=True)
    name = f"2026-01-01T000000Z-history-{history.seed}"
    with mock.patch("nicbench.store.folder.new_run_id", return_value=name):
        begun = _Begun(history, RunFolder.create(parent, history.bench, "A history"))
    begun.bus.subscribe(begun.folder.journal.append)
    begun.bus.subscribe(begun.note)
    return begun


def _share_a_machine(patch: pytest.MonkeyPatch, draw: random.Random, runtime: Path) -> None:
    """Has runs take the machine, as those do that change one."""
    patch.setattr("nicbench.run.touches_machine", lambda _: True)
    for taken in (machine.HostLock, machine.Place):
        patch.setattr(machine, taken.__name__, partial(taken, runtime=runtime))
    patch.setattr(machine, "restore_stale", nothing_stale)
    patch.setattr(machine, "_try_again_s", lambda: draw.uniform(1.0, 3.0))


async def nothing_stale() -> list[str]:
    """In the place of what looks for runs that are dead."""
    return []


async def _run_together(begun: Sequence[_Begun]) -> None:
    # Every third does not wait: it is refused, and says who has the machine.
    await asyncio.gather(*(one.run(0.0 if number % 3 == 2 else math.inf) for number, one in enumerate(begun)))


def _tell(begun: _Begun) -> Ran:
    """Reads what became of a history from its folder."""
    folder = begun.folder
    folder.journal.close()
    trials = tuple(event.trial for event in folder.journal.events() if isinstance(event, TrialFinished))
    rounds = tuple(folder.journal.rounds().values())
    summary = folder.summary()
    said = {}
    if summary is not None:
        printed = io.StringIO()
        print_summary(Console(file=printed, width=200), summary)
        report = gather(folder)
        said = {"terminal": printed.getvalue(), "headline": report.headline, "details": " ".join(report.details)}
        said["verdict"] = report.verdict_text
    published, searched = tuple(begun.published), tuple(begun.searched)
    return Ran(begun.history, folder, begun.error, summary, trials, rounds, published, said, searched)
