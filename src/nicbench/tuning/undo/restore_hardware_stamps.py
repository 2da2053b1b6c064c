"""Has a card stamp again what it stamped before."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.system.adapters.hardware_stamps import (
    ALL_FRAMES,
    StampSetting,
    read_stamp_setting,
    write_stamp_setting,
)
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class RestoreHardwareStamps(Undo):
    """Give the card of an interface its setting of time stamps back; all frames were stamped meanwhile."""

    kind: Literal["restore_hardware_stamps"] = "restore_hardware_stamps"
    device: str
    transmit: int
    receive: int

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is None:
            return None
        before, now = StampSetting(self.transmit, self.receive), await read_stamp_setting(host, self.device)
        if now.receive != ALL_FRAMES:
            if now == before:
                return None
            return f"{self.device} stamps other frames (rx_filter {now.receive}) than we set: left as it is"
        await write_stamp_setting(host, self.device, before)
        return None
