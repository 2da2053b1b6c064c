"""The tester by itself: how many frames per second it sends, and how long a frame takes, when there is no DUT."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nicbench.events import Bus, CeilingFound
from nicbench.labs.base import Lab, Testbed
from nicbench.model.frame_size import Size, mean_bytes, size_label, size_parameters, words_of
from nicbench.model.trial import Latency, Purpose, Trial, TrialRequest
from nicbench.trials.maker import TrialMaker
from nicbench.tuning.changes import Changes

# The best of several short floods: a disturbance can only make a flood slower.
FLOODS = 3
FLOOD_S = 0.3
FLOOD_SETTLE_S = 0.02
# A load at which nothing queues, so that what remains is the tester's own time.
LOW_LOAD_FRAMES_PER_S = 10_000.0
LOW_LOAD_S = 0.3


class Ceilings:
    """Calibrates on demand and remembers. ``lab`` is None for a testbed of real machines, which has no sink of ours."""

    def __init__(self, maker: TrialMaker, lab: Lab | None, testbed: Testbed, changes: Changes, bus: Bus) -> None:
        self._maker = maker
        self._lab = lab
        self._testbed = testbed
        self._changes = changes
        self._bus = bus
        self._known: dict[str, float | None] = {}
        self._own_latency: dict[str, Latency | None] = {}

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        """Frames per second per port, None where no sink can be had."""
        if size_label(size) not in self._known:
            self._known[size_label(size)] = await self._calibrate(size)
        return self._known[size_label(size)]

    async def latency(self, size: Size) -> Latency | None:
        """The tester's own latency at a low load over a cable in place of the DUT; None where none can be had."""
        if size_label(size) not in self._own_latency:
            self._own_latency[size_label(size)] = await self._time_cable(size)
        return self._own_latency[size_label(size)]

    async def _time_cable(self, size: Size) -> Latency | None:
        if self._lab is None:
            return None
        key = f"cable/{size_label(size)}/0"
        request = TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=LOW_LOAD_FRAMES_PER_S,
            duration_s=LOW_LOAD_S,
            drain_s=FLOOD_SETTLE_S,
            settle_s=FLOOD_SETTLE_S,
            purpose=Purpose.TESTER_LATENCY,
        )
        if self._maker.has(key):
            trial = await self._maker.make(key, "calibration", size_parameters(size), request, 0)
        else:
            async with self._lab.cable(self._testbed, self._changes) as there_is_a_cable:
                if not there_is_a_cable:
                    return None
                trial = await self._maker.make(key, "calibration", size_parameters(size), request, 0)
        return trial.reading.latency

    async def _calibrate(self, size: Size) -> float | None:
        if self._lab is None:
            return None
        if all(self._maker.has(_key(size, flood)) for flood in range(FLOODS)):
            trials = [await self._flood(size, flood) for flood in range(FLOODS)]
        else:
            async with (
                self._lab.without_dut(self._testbed, self._changes) as the_labs_own,
                self._sink(the_labs_own) as there_is_a_sink,
            ):
                if not there_is_a_sink:
                    return None
                trials = [await self._flood(size, flood) for flood in range(FLOODS)]
        ceiling = max(_rate(trial) for trial in trials)
        self._bus.publish(
            CeilingFound(
                frame_bytes=mean_bytes(size),
                mix=None if isinstance(size, int) else size.name,
                ceiling_frames_per_s=ceiling,
                calibrated=True,
                text=f"without a DUT the tester sends {ceiling / 1e6:.3f} Mpps of {words_of(size)} on a port",
            )
        )
        return ceiling

    @asynccontextmanager
    async def _sink(self, the_labs_own: bool) -> AsyncIterator[bool]:
        """The lab's sink; where it has none, the DUT as one."""
        if the_labs_own:
            yield True
            return
        async with self._maker.dut.as_sink() as is_sink:
            yield is_sink

    async def _flood(self, size: Size, flood: int) -> Trial:
        request = TrialRequest(
            frame_bytes=mean_bytes(size),
            mix=None if isinstance(size, int) else size,
            load_frames_per_s=None,
            duration_s=FLOOD_S,
            drain_s=FLOOD_SETTLE_S,
            settle_s=FLOOD_SETTLE_S,
            purpose=Purpose.CEILING,
        )
        return await self._maker.make(_key(size, flood), "calibration", size_parameters(size), request, flood)


def _key(size: Size, flood: int) -> str:
    return f"ceiling/{size_label(size)}/{flood}"


def _rate(trial: Trial) -> float:
    return trial.reading.counts.sent * 1e9 / trial.reading.transmit_ns
