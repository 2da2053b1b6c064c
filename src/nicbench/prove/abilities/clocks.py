"""Clocks and meters: the tester's own clock and the card's, whether they run evenly, and whether power can be read."""

from __future__ import annotations

import asyncio
import itertools
import re
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.proof import Finding
from nicbench.hosts.base import Host
from nicbench.measure.power import base
from nicbench.prove.base import Ability, absent, failed, proven, untried
from nicbench.prove.loop import Loop
from nicbench.system.adapters.ethtool import parse_time_stamping
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.tuning.stack import UndoStack

_READINGS: Final = 24
_APART_S: Final = 0.25
_MOST_PPM: Final = 150.0
"""A card's clock runs within 100 ppm of its nominal rate (IEEE 802.3 section 35.5.2.3), a system's clock within 50."""
_LEAST_STEP_NS: Final = 400.0
_SPREADS: Final = 4.0
"""A step is larger than the first, and than the median difference of two readings times the second."""
_SIDE: Final = 6
"""Readings before and after a step whose medians are compared."""
_OFFSET: Final = re.compile(r"offset from CLOCK_REALTIME is (-?\d+)ns")


def judge_clock(name: str, readings: Sequence[tuple[float, float]]) -> Finding:
    """Judges a card's clock by its offsets from the system's: seconds, and nanoseconds by which it is ahead then.

    A line is laid through them by the median of slopes (Theil-Sen); a step moves the median of all that follow, and a
    late reading does not.
    """
    slope = statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(readings, 2))
    rests = [offset - slope * at for at, offset in readings]
    spread = statistics.median(abs(b - a) for a, b in itertools.pairwise(rests))
    splits = range(_SIDE, len(rests) - _SIDE + 1)
    largest = max(
        (statistics.median(rests[at : at + _SIDE]) - statistics.median(rests[at - _SIDE : at]) for at in splits),
        key=abs,
    )
    figures = {"drift_ppm": round(slope / 1e3, 3), "largest_step_ns": round(largest), "spread_ns": round(spread)}
    if abs(slope / 1e3) > _MOST_PPM:
        return failed(name, f"it drifts by {slope / 1e3:.0f} ppm against the system's clock", **figures)
    if abs(largest) > max(_LEAST_STEP_NS, _SPREADS * spread):
        return failed(name, f"it stepped by {largest:,.0f} ns, where its readings vary by {spread:,.0f}", **figures)
    return proven(name, f"even to {spread:,.0f} ns, {slope / 1e3:.1f} ppm against the system's clock", **figures)


async def _prove_card_clock(host: Host, device: str, name: str) -> Finding:
    """Compares the clock of the interface's card with the system's for some seconds."""
    shown = await host.run(("ethtool", "--show-time-stamping", device), check=False)
    try:
        clock = parse_time_stamping(shown.stdout)["clock"]
    except NOT_UNDERSTOOD:
        clock = None
    if clock is None:
        return absent(name, "the driver has no clock of the card (ethtool -T)")
    readings: list[tuple[float, float]] = []
    for _ in range(_READINGS):
        asked = await host.run(("phc_ctl", f"/dev/ptp{clock}", "cmp"), check=False)
        found = _OFFSET.search(asked.stdout)
        if found is None:
            why = asked.stderr.strip() or asked.stdout.strip() or "no phc_ctl"
            return untried(name, f"/dev/ptp{clock} was not read by phc_ctl (linuxptp): {why}")
        readings.append((time.monotonic(), -float(found[1])))
        await asyncio.sleep(_APART_S)
    return judge_clock(name, readings)


class Power(Ability):
    """Whether some meter of the machine says what it draws."""

    kind = "power"
    order = 11
    tries = "the power meters of processor, machine and management controller are read"
    estimate_s = 1.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        machine = loop.host.machine
        found = list[str]()
        for method, script, parse in (
            (base.RAPL_METHOD, base.RAPL_SCRIPT, base.parse_rapl),
            (base.HWMON_METHOD, base.HWMON_SCRIPT, base.parse_hwmon),
            (base.IPMI_METHOD, base.IPMI_SCRIPT, base.parse_dcmi),
        ):
            printed = (await machine.run(("sh", "-c", script), check=False)).stdout
            try:
                found += [f"{method} {each.name}" for each in parse(printed)]
            except NOT_UNDERSTOOD as error:
                yield failed(f"power.{method.lower()}", f"its words were not understood: {error}")
        yield proven("power.read", ", ".join(found)) if found else absent("power.read", "the machine has no meter")


class Clocks(Ability):
    """Whether latencies of a cable are what a cable's can be."""

    kind = "clocks"
    order = 4
    tries = "frames over the cable, timed by the processor's clock and by the card's"
    changes = "the card stamps all frames"
    estimate_s = 8.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for place in loop.places:
            device = str(place.device)
            yield await _prove_card_clock(loop.host, device, f"clocks.ptp_{loop.name_of(device)}")
        for source, driver in (("tsc", loop.working[0]), ("card", "xdp")):
            name = f"clocks.{source}"
            if driver not in loop.working:
                yield absent(name, "the card's stamps are read by `driver: xdp`, which does not work here")
                continue
            try:
                async with loop.session(driver, tester={"timestamps": source}) as session:
                    reading = (await session.send(128, duration_s=1.0, both_ways=True)).reading
            except NotReadyError as error:
                yield absent(name, error.message)
                continue
            except NicbenchError as error:
                yield failed(name, error.message)
                continue
            latency = reading.latency
            if latency is None:
                yield absent(name, "no frame was timed")
                continue
            figures: dict[str, float | int | str] = {
                "minimum_ns": latency.minimum_ns,
                "median_ns": latency.percentiles_ns.get("50", 0),
                "p99_ns": latency.percentiles_ns.get("99", 0),
            }
            stamps = [port.timestamps for port in reading.ports if port.timestamps is not None]
            if latency.resolution_ns is not None:
                figures["resolution_ns"] = latency.resolution_ns
            wrong = {
                "frames arrived before they were sent": latency.negative,
                "steps of the clock": sum(each.steps for each in stamps),
                "frames without a stamp": sum(each.unstamped for each in stamps),
                "stamps outside of the transmission": sum(each.implausible for each in stamps),
                "stamps later than the frame was read": sum(each.early for each in stamps),
            }
            told = ", ".join(f"{number:,} {what}" for what, number in wrong.items() if number)
            if told:
                yield failed(name, told, **figures)
            else:
                span = f"{latency.minimum_ns:,} to {latency.maximum_ns:,} ns"
                seen = f"{latency.count:,} frames in {span}, none before it was sent"
                yield proven(name, seen, **figures)
