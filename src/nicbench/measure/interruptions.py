"""What is done to the DUT in the midst of a trial: a command runs, or a link goes down, and later it is taken back."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from nicbench.core.errors import HostError
from nicbench.core.reading import InterruptionTimes
from nicbench.core.trial import Interruption
from nicbench.measure.surroundings import TrialSetup
from nicbench.tuning.undo.network import SetLinkUp


class Interrupter:
    """Carries one interruption out while frames are sent, and takes it back also where the trial fails."""

    def __init__(self, setup: TrialSetup, asked: Interruption) -> None:
        self._setup = setup
        self._asked = asked
        self._host = setup.hosts[asked.on]
        self._device = None if asked.link is None else setup.dut_links[asked.link]
        self.times: InterruptionTimes | None = None
        """When the commands ran; None before the first of them ended."""

    async def interrupt(self) -> None:
        """Waits, interrupts, and after ``lasts_s`` takes it back; the transmission begins with the call."""
        asked, transmission = self._asked, time.monotonic()
        await asyncio.sleep(asked.after_s)
        began_s = time.monotonic() - transmission
        try:
            await self._run(await self._command())
            ended_s = time.monotonic() - transmission
            self.times = InterruptionTimes(began_s=began_s, ended_s=ended_s)
            if asked.lasts_s is None:
                return
            await asyncio.sleep(asked.lasts_s)
        except BaseException:  # also a command that failed may have done a part
            if asked.lasts_s is not None:
                with suppress(HostError):
                    await self._restore()
            raise
        restore_began_s = time.monotonic() - transmission
        await self._restore()
        restored_s = time.monotonic() - transmission
        self.times = self.times.replace(restore_began_s=restore_began_s, restored_s=restored_s)

    async def _command(self) -> tuple[str, ...]:
        """Returns the command that interrupts; the undo of a link is written before it goes down."""
        if self._device is None:
            return self._asked.command
        if self._setup.changes is not None:
            await self._setup.changes.make(self._host, SetLinkUp(device=self._device))
        return self._set_link("down")

    async def _restore(self) -> None:
        if self._device is None:
            await self._run(self._asked.restore)
            return
        await self._run(self._set_link("up"))
        await self._setup.dut.mend()  # a link that goes down loses the addresses and neighbours that nicbench gave it

    def _set_link(self, state: str) -> tuple[str, ...]:
        return ("ip", "link", "set", "dev", str(self._device), state)

    async def _run(self, command: tuple[str, ...]) -> None:
        await self._host.run(command, timeout_s=self._asked.timeout_s)
