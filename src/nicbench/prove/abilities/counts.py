"""Counters: ours against those of the port, to the frame and the byte, paced and in overload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from nicbench.core.proof import Finding, Outcome
from nicbench.prove.base import Ability, absent, failed, proven
from nicbench.prove.loop import Loop, Sent, Session
from nicbench.tuning.stack import UndoStack

_AMOUNTS: Final = (12_007, 9_011)
_LONGEST_S: Final = 7.0
_SIZES: Final = (128, 1024)


def counters_that_rose_by(rose: Mapping[str, int], amount: int) -> list[str]:
    """The counters that rose by exactly this number, the driver's own first."""
    return sorted((name for name, by in rose.items() if by == amount), key=lambda name: name.startswith("link: "))


def judge_count(name: str, kernel: str, sent: tuple[Mapping[str, int], ...], amounts: tuple[int, ...]) -> Finding:
    """Judges the counters of one port over several transmissions. ``kernel`` is the kernel's own counter of them.

    That one must be right, or not count such frames at all: it is what people look at.
    """
    exact = [
        one
        for one in counters_that_rose_by(sent[0], amounts[0])
        if all(rose.get(one) == amount for rose, amount in zip(sent, amounts, strict=True))
    ]
    told = [rose.get(kernel, 0) for rose in sent]
    frames = " and ".join(f"{amount:,}" for amount in amounts)
    if any(told) and told != list(amounts):
        rises = " and ".join(f"{each:,}" for each in told)
        return failed(name, f"{kernel.removeprefix('link: ')} rose by {rises}, where {frames} frames passed")
    if not exact:
        return absent(name, f"no counter rose by the {frames} frames that passed")
    return proven(name, f"to the frame: {', '.join(each.removeprefix('link: ') for each in exact)}")


def judge_bytes(name: str, kernel: str, sent: tuple[Mapping[str, int], ...], amounts: tuple[int, ...]) -> Finding:
    """Judges a counter of bytes over transmissions of two sizes: it must grow by a byte a frame for each byte more."""
    each = [rose.get(kernel, 0) / amount for rose, amount in zip(sent, amounts, strict=True)]
    if not any(each):
        return absent(name, f"{kernel.removeprefix('link: ')} does not count such frames")
    left_out = [size - one for size, one in zip(_SIZES, each, strict=True)]
    if left_out[0] != left_out[1]:
        seen = " and ".join(f"{one:g} at {size}" for size, one in zip(_SIZES, each, strict=True))
        return failed(name, f"{kernel.removeprefix('link: ')}: {seen} bytes a frame")
    less = f"without {left_out[0]:g}" if left_out[0] >= 0 else f"with {-left_out[0]:g} more"
    return proven(name, f"to the byte, {less} for each frame (FCS included)", left_out_bytes=left_out[0])


class Counts(Ability):
    """Whether counters of the port say how many frames and bytes passed."""

    kind = "counts"
    order = 2
    tries = "two exact numbers of frames of two sizes by each driver, against every counter of the ports; an overload"
    estimate_s = 6.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        for driver in loop.working:
            async with loop.session(driver) as session:
                while True:
                    sent = await self._send(session)
                    findings = self._judge(driver, sent)
                    is_whole = all(one.reading.counts.lost == 0 for one in sent)  # no slow machine loses none
                    has_failed = any(each.outcome is Outcome.FAILED for each in findings)
                    if not has_failed or is_whole or not session.slow_down():
                        break
                for finding in findings:
                    yield finding
                if driver == loop.working[0]:
                    yield await self._overload(session)

    async def _send(self, session: Session) -> tuple[Sent, ...]:
        most = round(session.rate_frames_per_s * _LONGEST_S)
        amounts = [min(amount, most - number) for number, amount in enumerate(_AMOUNTS)]
        return tuple([await session.send(size, frames=amount) for size, amount in zip(_SIZES, amounts, strict=True)])

    def _judge(self, driver: str, sent: tuple[Sent, ...]) -> list[Finding]:
        left = tuple(one.reading.counts.sent for one in sent)
        came = tuple(one.reading.counts.received for one in sent)
        near, far = (tuple(one.rose[port] for one in sent) for port in (0, -1))
        found = [
            judge_count(f"counts.sent_{driver}", "link: tx packets", near, left),
            judge_count(f"counts.received_{driver}", "link: rx packets", far, left),
            judge_bytes(f"counts.sent_bytes_{driver}", "link: tx bytes", near, left),
            judge_bytes(f"counts.received_bytes_{driver}", "link: rx bytes", far, left),
        ]
        name = f"counts.delivered_{driver}"
        if came == left:
            found.append(proven(name, "every frame that the port received came to the tester"))
        else:
            lost = sum(left) - sum(came)
            found.append(failed(name, f"{lost:,} of {sum(left):,} frames never came to the tester"))
        return found

    async def _overload(self, session: Session) -> Finding:
        """Sends as much as can be sent, and looks for the counter of what is lost."""
        name = "counts.overload"
        sent = await session.send(128, is_paced=False, duration_s=0.5)
        counts = sent.reading.counts
        if not counts.lost:
            return proven(name, f"nothing was lost of {counts.sent:,} frames sent at once", lost_frames=0)
        if where := sent.where_lost():
            return proven(name, f"{counts.lost:,} of {counts.sent:,} frames were lost, to the frame as {where} says")
        told = ", ".join(f"{counter} {by:,}" for counter, by in sent.dropped().items()) or "none rose"
        return absent(name, f"{counts.lost:,} of {counts.sent:,} frames were lost, and no counter says where ({told})")
