"""Time stamps: of the tester's own clock and of the card's, whether they run evenly and are believable."""

from __future__ import annotations

from collections.abc import AsyncIterator

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.proof import Finding
from nicbench.prove.base import Ability, absent, failed, proven
from nicbench.prove.loop import Loop
from nicbench.tuning.stack import UndoStack


class Clocks(Ability):
    """Whether latencies of a cable are what a cable's can be."""

    kind = "clocks"
    order = 4
    tries = "frames over the cable, timed by the processor's clock and by the card's"
    changes = "the card stamps all frames"
    estimate_s = 8.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for source, driver in (("tsc", loop.working[0]), ("card", "xdp")):
            name = f"clocks.{source}"
            if driver not in loop.working:
                yield absent(name, "the card's stamps are read by `driver: xdp`, which does not work here")
                continue
            try:
                async with loop.session(changes, driver, tester={"timestamps": source}) as session:
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
