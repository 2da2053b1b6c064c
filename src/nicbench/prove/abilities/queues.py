"""Receive queues: whether each gets the flows that the hash of the card sends there, to the frame."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from nicbench.core.machine import PortQueues
from nicbench.core.pattern import way_of_stream
from nicbench.core.proof import Finding
from nicbench.core.trial import Reading
from nicbench.prove.base import Ability, absent, failed, proven
from nicbench.prove.loop import Loop
from nicbench.tuning.stack import UndoStack

_FRAMES: Final = 6_403
_SIZE: Final = 128


def judge_sum(name: str, reading: Reading) -> Finding:
    """Whether the counters of the queues of each port add up to the frames that came to it."""
    queues = reading.queues
    if queues is None or not queues.ports:
        return absent(name, queues.unread[0] if queues is not None and queues.unread else "no queue was read")
    for port in queues.ports:
        ways = [(way_of_stream(stream.name), stream.counts.received) for stream in reading.streams]
        came = sum(received for way, received in ways if way is not None and way[1] == port.port)
        if sum(port.frames) != came:
            return failed(name, f"{port.device}: its queues counted {sum(port.frames):,} frames, and {came:,} came")
    most = max(len(port.frames) for port in queues.ports)
    return proven(name, f"{queues.ports[0].source}: {most} receive queues, whose frames add up", queues=most)


def judge_spread(name: str, reading: Reading) -> Finding:
    """Whether each queue of each port got the frames of the flows that the hash and the rules send to it."""
    queues = reading.queues
    if queues is None or not queues.ports:
        return absent(name, queues.unread[0] if queues is not None and queues.unread else "no queue was read")
    for port in queues.ports:
        if port.expected is None:
            return absent(name, f"{port.device}: {port.why_not}")
        if port.expected != port.frames:
            return failed(name, f"{port.device}: {_differing(port)}")
    told = " and ".join(f"{port.device}: {_numbers(port.frames)}" for port in queues.ports)
    return proven(name, f"each queue got the flows of the hash, to the frame ({told})")


def _differing(port: PortQueues) -> str:
    return f"its queues got {_numbers(port.frames)} frames, and {_numbers(port.expected or ())} were to come"


def _numbers(frames: tuple[int, ...]) -> str:
    return ", ".join(f"{each:,}" for each in frames)


async def spread(loop: Loop) -> Reading:
    """Sends frames of all flows both ways, slower until none is lost, and reads the queues."""
    driver = next((each for each in ("xdp", "net_af_packet") if each in loop.working), loop.working[0])
    async with loop.session(driver) as session:
        while True:
            reading = (await session.send(_SIZE, frames=_FRAMES, both_ways=True)).reading
            if not reading.counts.lost or not session.slow_down():
                return reading


class Queues(Ability):
    """Which queue gets which flow. Settings of the hash are tried with the other settings."""

    kind = "queues"
    order = 5
    tries = "frames of 64 flows both ways, against the counters of each receive queue and the hash of the card"
    estimate_s = 4.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        reading = await spread(loop)
        yield judge_sum("queues.sum", reading)
        yield judge_spread("queues.hash", reading)
