"""The tester by itself: how many frames per second it sends, and how long a frame takes, without a DUT."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from nicbench.core.events import CeilingFound, TesterLatencyFound
from nicbench.core.frame_size import Size, mean_bytes, size_label, size_parameters, words_of
from nicbench.core.pattern import Ways
from nicbench.core.reading import Counts
from nicbench.core.trial import CALIBRATION, Latency, Purpose, Trial, TrialRequest
from nicbench.core.units import format_rate
from nicbench.testbed.labs.base import FrameLab, Testbed
from nicbench.tuning.changes import Changes

if TYPE_CHECKING:
    from nicbench.measure.trials import TrialMaker

# The best of several short floods: a disturbance can only make a flood slower.
FLOODS = 3
FLOOD_S = 0.3
SETTLE_S = 0.02
# A load at which nothing queues, so that what remains is the tester's own time.
LOW_LOAD_FRAMES_PER_S = 10_000.0
LOW_LOAD_S = 0.3


def calibration_s(ceilings: int, latencies: int) -> float:
    """Estimate of the time in seconds that ``Ceilings.calibrate`` takes for these numbers of frame sizes."""
    return ceilings * FLOODS * (FLOOD_S + 3 * SETTLE_S) + latencies * (LOW_LOAD_S + 3 * SETTLE_S)


class Ceilings:
    """Measures the tester's limits and remembers them.

    ``lab`` is ``None`` for a testbed of real machines, which has no sink of ours. The same ways are flooded at once as
    carry the load of the trials that the ceiling bounds, and it is on their basis (``Ways.basis``).
    """

    def __init__(
        self,
        maker: TrialMaker,
        lab: FrameLab | None,
        testbed: Testbed,
        changes: Changes,
        ways: Ways,
    ) -> None:
        self._maker = maker
        self._lab = lab
        self._testbed = testbed
        self._changes = changes
        self._bus = maker.log.bus
        self._ways = ways
        self._known: dict[str, float | None] = {}
        self._own_latency: dict[str, Latency | None] = {}

    async def calibrate(self, ceilings: Iterable[Size], latencies: Iterable[Size]) -> None:
        """The ceiling and the latency at these sizes; the sink and the cable are laid once for all of them."""
        of_sizes = ({size_label(size): size for size in sizes}.values() for sizes in (ceilings, latencies))
        flooded, timed = of_sizes
        await self._find_ceilings([size for size in flooded if size_label(size) not in self._known])
        await self._find_latencies([size for size in timed if size_label(size) not in self._own_latency])

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        """Frames per second per port, None where no sink can be had; measured now where it is not known yet."""
        if size_label(size) not in self._known:
            await self._find_ceilings([size])
        return self._known[size_label(size)]

    async def latency(self, size: Size) -> Latency | None:
        """The tester's own latency at a low load over a cable in place of the DUT; None where none can be had."""
        if size_label(size) not in self._own_latency:
            await self._find_latencies([size])
        return self._own_latency[size_label(size)]

    async def _find_ceilings(self, sizes: Sequence[Size]) -> None:
        self._known.update({size_label(size): None for size in sizes})
        keys = [_ceiling_key(size, flood) for size in sizes for flood in range(FLOODS)]
        if self._lab is None or not sizes:
            return
        if all(self._maker.has(key) for key in keys):
            await self._flood_all(sizes)
            return
        async with (
            self._lab.without_dut(self._testbed, self._changes) as the_labs_own,
            self._sink(the_labs_own) as there_is_a_sink,
        ):
            if there_is_a_sink:
                await self._flood_all(sizes)

    async def _flood_all(self, sizes: Sequence[Size]) -> None:
        for size in sizes:
            ceiling = max([_rate(await self._flood(size, flood)) for flood in range(FLOODS)]) / self._ways.times_load
            self._known[size_label(size)] = ceiling
            self._bus.publish(
                CeilingFound(
                    configuration=self._maker.log.turn.configuration,
                    run=self._maker.log.turn.run,
                    frame_bytes=mean_bytes(size),
                    mix=None if isinstance(size, int) else size.name,
                    ceiling_frames_per_s=ceiling,
                    calibrated=True,
                    text=f"without a DUT the tester sends {format_rate(ceiling)} of {words_of(size)} {self._of}",
                )
            )

    @asynccontextmanager
    async def _sink(self, the_labs_own: bool) -> AsyncIterator[bool]:
        """The lab's sink; where it has none, the DUT as one."""
        if the_labs_own:
            yield True
            return
        async with self._maker.dut.as_sink() as is_sink:
            yield is_sink

    @property
    def _of(self) -> str:
        """What a ceiling is the rate of, to end a sentence: "on a port"."""
        senders = len({transmit for transmit, _ in self._ways.loaded})
        if senders > self._ways.times_load:
            return f"on {senders} ports together"
        return "on a port" if senders == 1 else f"on each of {senders} ports"

    async def _flood(self, size: Size, flood: int) -> Trial:
        request = _request(size, None, FLOOD_S, Purpose.CEILING)
        request = request.replace(bidirectional=self._ways.bidirectional)
        return await self._maker.make(_ceiling_key(size, flood), CALIBRATION, size_parameters(size), request, flood)

    async def _find_latencies(self, sizes: Sequence[Size]) -> None:
        self._own_latency.update({size_label(size): None for size in sizes})
        returns = all(transmit == receive for transmit, receive in self._ways.forward)
        if self._lab is None or not sizes or returns:  # no cable joins a port with itself
            return
        if all(self._maker.has(_cable_key(size)) for size in sizes):
            await self._time_all(sizes)
            return
        async with self._lab.cable(self._testbed, self._changes) as there_is_a_cable:
            if there_is_a_cable:
                await self._time_all(sizes)

    async def _time_all(self, sizes: Sequence[Size]) -> None:
        for size in sizes:
            request = _request(size, LOW_LOAD_FRAMES_PER_S, LOW_LOAD_S, Purpose.TESTER_LATENCY)
            trial = await self._maker.make(_cable_key(size), CALIBRATION, size_parameters(size), request, 0)
            latency = trial.reading.latency
            self._own_latency[size_label(size)] = latency
            median_ns = latency.percentiles_ns.get("50") if latency else None
            if median_ns is not None:
                self._bus.publish(
                    TesterLatencyFound(
                        configuration=self._maker.log.turn.configuration,
                        run=self._maker.log.turn.run,
                        frame_bytes=mean_bytes(size),
                        mix=None if isinstance(size, int) else size.name,
                        latency_p50_ns=median_ns,
                        text=f"over a cable in the DUT's place {words_of(size)} take {median_ns / 1e3:.1f} µs (median)"
                        f"{_lost_words(trial.reading.counts)}",
                    )
                )


def _request(size: Size, load_frames_per_s: float | None, duration_s: float, purpose: Purpose) -> TrialRequest:
    return TrialRequest(
        frame_bytes=mean_bytes(size),
        mix=None if isinstance(size, int) else size,
        load_frames_per_s=load_frames_per_s,
        duration_s=duration_s,
        drain_s=SETTLE_S,
        settle_s=SETTLE_S,
        purpose=purpose,
    )


def _lost_words(counts: Counts) -> str:
    """What to say of frames that were lost on the cable, which itself loses none; "" without any."""
    if not counts.lost:
        return ""
    return f"; {counts.lost} of {counts.sent} were lost on it, by the tester or the lab: a DUT's losses include such"


def _ceiling_key(size: Size, flood: int) -> str:
    return f"ceiling/{size_label(size)}/{flood}"


def _cable_key(size: Size) -> str:
    return f"cable/{size_label(size)}/0"


def _rate(trial: Trial) -> float:
    """Of all ports: what had left them when the sending ended, without what filled their rings or the wait for it."""
    reading = trial.reading
    if reading.sent_while_sending is None:
        return reading.counts.sent * 1e9 / reading.transmit_ns
    return reading.sent_while_sending * 1e9 / reading.offering_ns
