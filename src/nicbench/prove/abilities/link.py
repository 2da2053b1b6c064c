"""A link that goes down while frames are sent: whether it is seen, and frames pass again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from nicbench.core.proof import Finding
from nicbench.prove.abilities.frames import describe_damage
from nicbench.prove.base import Ability, absent, failed, proven
from nicbench.prove.loop import Loop
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.network import SetLinkUp

_DOWN_S = 0.3


class LinkFlap(Ability):
    """Whether the end of a link in mid-trial is seen, and what came of the frames."""

    kind = "link"
    order = 8
    tries = "the link of the second port goes down for 0.3 s while frames are sent"
    changes = "the link goes down for 0.3 s"
    estimate_s = 8.0

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        device = loop.devices[-1]

        async def take_down() -> None:
            await loop.host.run(("ip", "link", "set", "dev", device, "down"))

        async def flap() -> None:
            await asyncio.sleep(0.5)
            await changes.make(loop.host, SetLinkUp(device=device), take_down)
            await asyncio.sleep(_DOWN_S)
            await loop.host.run(("ip", "link", "set", "dev", device, "up"))

        before = await loop.read_settings()
        async with loop.session(changes) as session:
            reading = (await session.send(128, duration_s=2.0, during=flap)).reading
        counts = reading.counts
        gone = counts.lost + counts.unsent_tester + counts.unsent_backpressure
        told = any(port.link_changed for port in reading.ports)
        seen = f"{gone:,} of {counts.intended:,} frames did not arrive"
        if not told:
            yield absent("link.seen", f"{seen}; the ports do not say why, and runs go by the kernel's messages")
        else:
            yield proven("link.seen", f"{seen}, and the change of the link was seen", lost_frames=gone)
        await loop.wait_for_links()
        after = await loop.read_settings()
        forgotten = [line for old, new in zip(before, after, strict=True) for line in new if line not in old]
        if forgotten:
            yield failed("link.settings", f"other settings than before: {'; '.join(map(str.strip, forgotten))}")
        else:
            yield proven("link.settings", "every setting is what it was before")
        async with loop.session(changes) as session:
            damage = describe_damage((await session.send(128, frames=5_000, both_ways=True)).reading)
        if damage is None:
            yield proven("link.again", "frames pass again")
        else:
            yield failed("link.again", f"once the link was there again: {damage}")
