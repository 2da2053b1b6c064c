"""Frames as they come back: by which drivers, unaltered, with tags, how many a second, and after the link was down."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.proof import DRIVERS, Finding
from nicbench.core.trial import Reading
from nicbench.prove.base import Ability, absent, failed, proven, untried
from nicbench.prove.loop import NOT_TAKEN, Loop, Session
from nicbench.system.xdp.abilities import Mode, abilities_of
from nicbench.testbed.testers.base import During
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.network import SetLinkUp

_SIZES: Final = (64, 65, 127, 512, 1518)
_ODD: Final = (67, 129, 1001, 1517)
_TAGGED: Final = (68, 129, 1518)
_VLAN: Final = 100
_TAG: Final = b"\x81\x00" + _VLAN.to_bytes(2)
_ENHANCED_PACKET: Final = 6
_LONGEST_S: Final = 10.0
_FRAMES: Final = 4_000
_TRIES: Final = 3
_FRAMES_AGAIN: Final = 12_000
"""More than before, so that what is lost seldom is lost again."""


def describe_damage(reading: Reading) -> str | None:
    """Says what became of frames that did not come back as they were sent; None where all of them did, if late."""
    counts = reading.counts
    wrong = {
        "lost": counts.lost,
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
    """Sends frames of each size both ways; says at which size what went wrong, of loss: at every pace.

    A loss at the slowest pace must come ``_TRIES`` times in a row where the counters of frames that nobody took in
    time account for all of it: the machine may have been busy.
    """
    for size in sizes:
        sent = await session.send(size, frames=_FRAMES, both_ways=True)
        tries = _TRIES
        while (damage := describe_damage(sent.reading)) or sent.reading.counts.late:
            if _is_altered(sent.reading):
                return f"frames of {size} bytes: {damage}"
            if not session.slow_down():
                tries -= 1
                if damage is None:
                    break  # at its slowest, a busy machine still has some late
                if tries == 0 or sent.where_lost(NOT_TAKEN) is None:
                    return f"frames of {size} bytes: {damage}"
            frames = min(_FRAMES_AGAIN, round(session.rate_frames_per_s * _LONGEST_S))
            sent = await session.send(size, frames=frames, both_ways=True)
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
                async with loop.session(driver) as session:
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


def frames_of(capture: bytes) -> Iterator[bytes]:
    """Yields the frames of a capture that the tester wrote (pcapng, its own byte order)."""
    at = 0
    while at + 8 <= len(capture):
        kind, length = struct.unpack_from("=II", capture, at)
        if kind == _ENHANCED_PACKET:
            (size,) = struct.unpack_from("=I", capture, at + 20)
            yield capture[at + 28 : at + 28 + size]
        at += max(length, 12)


def _read_captures(folder: Path) -> list[bytes]:
    return [frame for file in folder.rglob("*.pcapng") for frame in frames_of(file.read_bytes())]


def is_udp_checksum_right(frame: bytes) -> bool:
    """Whether an untagged frame of IPv4 and UDP has the checksum of its addresses and bytes (RFC 768)."""
    udp = 14 + 4 * (frame[14] & 15)
    length = int.from_bytes(frame[udp + 4 : udp + 6])
    summed = frame[26:34] + struct.pack("!HH", 17, length) + frame[udp : udp + length] + bytes(length % 2)
    words: tuple[int, ...] = struct.unpack(f"!{len(summed) // 2}H", summed)
    return sum(words) % 0xFFFF == 0


class Alterations(Ability):
    """Whether frames with tags, checksums and odd lengths come back as they were sent."""

    kind = "alterations"
    order = 3
    tries = "tagged frames, and odd lengths with UDP checksums, by each driver"
    estimate_s = 10.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for driver in loop.working:
            odd, captured, headers = await self._pass(loop, driver, _ODD, udp_checksum=True)
            yield _judge_payload(f"alterations.odd_lengths_{driver}", odd)
            yield _judge_captured(f"alterations.checksums_{driver}", captured, is_udp_checksum_right, "UDP checksum")
            is_of_a_flow = partial(_is_of_a_flow, headers)
            yield _judge_captured(f"alterations.headers_{driver}", captured, is_of_a_flow, "addresses and ports")
            tags, captured, _ = await self._pass(loop, driver, _TAGGED, vlan=_VLAN)
            yield _judge_payload(f"alterations.tags_{driver}", tags)
            with_tag = [frame for frame in captured if frame[12:14] == _TAG[:2]]  # sockets show it beside the frame
            yield _judge_captured(f"alterations.vlan_{driver}", with_tag, lambda frame: frame[12:16] == _TAG, "VLAN")

    async def _pass(
        self, loop: Loop, driver: str, sizes: tuple[int, ...], **traffic: Any
    ) -> tuple[str | None, list[bytes], frozenset[bytes]]:
        """Says what was wrong with frames of these sizes, None where nothing was.

        Gives those captured, too, and the addresses and ports (IPv4, UDP) of each flow.
        """
        with TemporaryDirectory() as folder:
            capture = {"capture": {"frames": _FRAMES}}
            async with loop.session(driver, capture, Path(folder), **traffic) as session:
                damage = await pass_all(session, sizes)
                headers = frozenset(session.headers())
            return damage, await asyncio.to_thread(_read_captures, Path(folder)), headers


def _is_of_a_flow(headers: frozenset[bytes], frame: bytes) -> bool:
    return frame[26:38] in headers


def _judge_payload(name: str, damage: str | None) -> Finding:
    return failed(name, damage) if damage else proven(name, "every frame came back with its payload")


def _judge_captured(name: str, captured: list[bytes], is_right: Callable[[bytes], bool], what: str) -> Finding:
    """Judges a field of captured frames, ``what`` it is called."""
    if not captured:
        return untried(name, "no frame was captured with it")
    if wrong := sum(not is_right(frame) for frame in captured):
        return failed(name, f"{wrong:,} of {len(captured):,} captured frames have the wrong {what}")
    return proven(name, f"{len(captured):,} captured frames have the right {what}")


class Rates(Ability):
    """How many frames a second the ports carry without the tester's pacing."""

    kind = "rates"
    order = 6
    tries = "as many frames as the tester can send, at three sizes"
    estimate_s = 4.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for driver in loop.working[:1]:
            async with loop.session(driver) as session:
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


# The card in other hands: DPDK's driver by its PCI address, and its virtual functions (SR-IOV).

_SIZES_OF_CARDS: Final = (64, 512, 1518)


async def _judge(name: str, loop: Loop, changes: UndoStack, driver: str | None, by: str) -> Finding:
    """Makes the ports, has frames pass both ways, and says what became of them."""
    try:
        await loop.make(changes)
        async with loop.session(driver) as session:
            damage = await pass_all(session, _SIZES_OF_CARDS)
            rate = session.rate_frames_per_s
    except NotReadyError as error:
        return absent(name, error.message)
    except NicbenchError as error:
        return failed(name, error.message)
    if damage is not None:
        return failed(name, f"{by}: {damage}")
    return proven(name, f"{by}: every frame came back unaltered, at {rate:,.0f} a second")


class Dpdk(Ability):
    """Whether DPDK drives the card by its PCI address, and the kernel has it back afterwards."""

    kind = "dpdk"
    order = 9
    tries = "frames of three sizes by DPDK's own driver, behind the IOMMU"
    changes = "the kernel has no interfaces of the cards meanwhile"
    estimate_s = 20.0
    is_apart = True

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        yield await _judge("dpdk.pci", loop.instead(bind="vfio-pci"), changes, None, "by vfio-pci")


class VirtualFunctions(Ability):
    """Whether the card makes a virtual function that passes frames, and removes it."""

    kind = "functions"
    order = 10
    tries = "a virtual function of each port is made, frames pass through it, and it is removed"
    changes = "the card has virtual functions meanwhile"
    estimate_s = 20.0
    is_apart = True

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        yield await _judge(
            "functions.sriov", loop.of_functions(), changes, "net_af_packet", "through virtual functions"
        )


# A link that goes down while frames are sent: whether it is seen, and frames pass again.

_BEFORE_S: Final = 0.5
_DOWN_S: Final = 0.3


class LinkFlap(Ability):
    """Whether the end of a link, or a restart of its port, is seen in mid-trial, and frames pass again."""

    kind = "link"
    order = 7
    tries = "while frames are sent, the link of the second port goes down for 0.3 s, and is negotiated anew"
    changes = "the link goes down twice"
    estimate_s = 12.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        device = loop.devices[-1]

        async def take_down() -> None:
            await loop.host.run(("ip", "link", "set", "dev", device, "down"))

        async def flap() -> None:
            await asyncio.sleep(_BEFORE_S)
            await changes.make(loop.host, SetLinkUp(device=device), take_down)
            await asyncio.sleep(_DOWN_S)
            await loop.host.run(("ip", "link", "set", "dev", device, "up"))

        async def restart() -> None:
            await asyncio.sleep(_BEFORE_S)
            done = await loop.host.run(("ethtool", "--negotiate", device), check=False)
            if done.status != 0:
                raise HostError(done.stderr.strip())

        before = await loop.read_settings()
        yield await self._disturb("link.seen", loop, flap)
        after = await loop.read_settings()
        forgotten = [line for old, new in zip(before, after, strict=True) for line in new if line not in old]
        if forgotten:
            yield failed("link.settings", f"other settings than before: {'; '.join(map(str.strip, forgotten))}")
        else:
            yield proven("link.settings", "every setting is what it was before")
        yield await self._pass("link.again", loop)
        try:
            yield await self._disturb("link.restart", loop, restart)
        except HostError as error:
            yield absent("link.restart", error.message)
            return
        yield await self._pass("link.restart_again", loop)

    async def _disturb(self, name: str, loop: Loop, event: During) -> Finding:
        """Sends frames while the event takes the link away, and says whether the ports saw it."""
        async with loop.session() as session:
            reading = (await session.send(128, duration_s=2.0, during=event)).reading
        counts = reading.counts
        gone = counts.lost + counts.unsent_tester + counts.unsent_backpressure
        seen = f"{gone:,} of {counts.intended:,} frames did not arrive"
        if any(port.link_changed for port in reading.ports):
            return proven(name, f"{seen}, and the change of the link was seen", lost_frames=gone)
        return absent(name, f"{seen}; the ports do not say why, and runs go by the kernel's messages")

    async def _pass(self, name: str, loop: Loop) -> Finding:
        """Whether frames pass after it."""
        async with loop.session() as session:
            damage = describe_damage((await session.send(128, frames=5_000, both_ways=True)).reading)
        if damage is not None:
            return failed(name, f"once the link was there again: {damage}")
        return proven(name, "frames pass again")
