"""Frames as they come back: by which drivers, unaltered, with tags, and how many a second."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar, Final

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.proof import Finding
from nicbench.core.trial import Reading
from nicbench.prove.base import Ability, absent, failed, proven, untried
from nicbench.prove.loop import Loop, Session
from nicbench.system.xdp.abilities import Mode, abilities_of
from nicbench.tuning.stack import UndoStack

DRIVERS: Final = ("xdp", "net_af_xdp", "net_af_packet")
"""The tester's drivers for kernel interfaces, the fastest first."""
_SIZES: Final = (64, 65, 127, 512, 1518)
_FRAMES: Final = 4_000
_FRAMES_AGAIN: Final = 12_000
"""More than before, so that what is lost seldom is lost again."""


def describe_damage(reading: Reading) -> str | None:
    """Says what became of frames that did not come back as they were sent; None where all of them did."""
    counts = reading.counts
    wrong = {
        "lost": counts.lost,
        "late": counts.late,
        "altered": (counts.corrupted or 0) + (counts.corrupted_unattributed or 0),
        "twice": counts.duplicated or 0,
        "out of order": counts.reordered or 0,
        "at the wrong port": counts.misdirected or 0,
    }
    named = ", ".join(f"{number:,} {what}" for what, number in wrong.items() if number)
    return f"{named} of {counts.sent:,}" if named else None


def _is_altered(reading: Reading) -> bool:
    """Whether something became of frames that no slow machine does to them."""
    counts = reading.counts
    return bool(counts.corrupted or counts.corrupted_unattributed or counts.duplicated or counts.misdirected)


async def pass_all(session: Session, sizes: tuple[int, ...]) -> str | None:
    """Sends frames of each size both ways; says at which size what went wrong, of loss: at every pace."""
    for size in sizes:
        frames = _FRAMES
        while damage := describe_damage(reading := (await session.send(size, frames=frames, both_ways=True)).reading):
            if _is_altered(reading) or not session.slow_down():
                return f"frames of {size} bytes: {damage}"
            frames = _FRAMES_AGAIN
    return None


class Drivers(Ability):
    """Which drivers of the tester pass every frame."""

    kind = "drivers"
    order = 1
    tries = "frames of five sizes, both ways, by each driver of the tester"
    estimate_s: ClassVar[float] = 8.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for device in loop.devices:
            can = await abilities_of(loop.host, device)
            name = f"drivers.native_{loop.name_of(device)}"
            if can.native:
                yield proven(name, f"{can.driver} runs XDP programs itself; AF_XDP: {can.mode.value}")
            else:
                yield absent(name, f"{can.driver} does not run XDP programs itself; AF_XDP: {Mode.GENERIC.value}")
        errors: list[NicbenchError] = []
        for driver in DRIVERS:
            name = f"drivers.{driver}"
            try:
                async with loop.session(changes, driver) as session:
                    damage = await pass_all(session, _SIZES)
                    rate = session.rate_frames_per_s
            except NotReadyError as error:
                yield absent(name, error.message)
            except NicbenchError as error:
                errors.append(error)
                yield failed(name, error.message)
            else:
                if damage is None:
                    loop.working.append(driver)
                    loop.rates[driver] = rate
                    sizes = f"{', '.join(map(str, _SIZES[:-1]))} and {_SIZES[-1]}"
                    yield proven(name, f"every frame of {sizes} bytes came back unaltered, at {rate:,.0f} a second")
                else:
                    yield failed(name, f"{damage}, at {rate:,.0f} a second")
        if len(errors) == len(DRIVERS):  # it is the machine that lacks something
            raise errors[0]
        yield untried("drivers.pci", "the card stays with its kernel driver: it was not given to DPDK")


class Alterations(Ability):
    """Whether frames with tags, checksums and odd lengths come back as they were sent."""

    kind = "alterations"
    order = 3
    tries = "tagged frames, and odd lengths with UDP checksums, by each driver"
    estimate_s = 10.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for driver in loop.working:
            async with loop.session(changes, driver, udp_checksum=True) as session:
                odd = await pass_all(session, (67, 129, 1001, 1517))
            async with loop.session(changes, driver, vlan=100) as session:
                tagged = await pass_all(session, (68, 129, 1518))
            for thing, damage in (("odd_lengths", odd), ("tags", tagged)):
                name = f"alterations.{thing}_{driver}"
                yield failed(name, damage) if damage else proven(name, "every frame came back with its payload")


class Rates(Ability):
    """How many frames a second the ports carry without the tester's pacing."""

    kind = "rates"
    order = 6
    tries = "as many frames as the tester can send, at three sizes"
    estimate_s = 4.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for driver in loop.working[:1]:
            async with loop.session(changes, driver) as session:
                for size in (64, 512, 1518):
                    reading = (await session.send(size, is_paced=False, duration_s=0.5)).reading
                    sent = reading.counts.sent * 1e9 / reading.offering_ns
                    received = reading.counts.received * 1e9 / reading.offering_ns
                    yield proven(
                        f"rates.flood_{size}",
                        f"{round(sent):,} frames a second were sent, {round(received):,} came back",
                        sent_frames_per_s=round(sent),
                        received_frames_per_s=round(received),
                    )
