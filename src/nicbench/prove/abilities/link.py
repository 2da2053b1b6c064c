"""A link that goes down while frames are sent: whether it is seen, and frames pass again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from nicbench.core.errors import HostError
from nicbench.core.proof import Finding
from nicbench.prove.abilities.frames import describe_damage
from nicbench.prove.base import Ability, absent, failed, proven
from nicbench.prove.loop import Loop
from nicbench.testbed.testers.base import During
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.network import SetLinkUp

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
        await loop.wait_for_links()
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
        await loop.wait_for_links()
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
