"""Has a card stamp every frame that it receives, through the undo stack."""

from __future__ import annotations

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.system.adapters.hardware_stamps import ALL_FRAMES, StampSetting
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.restore_hardware_stamps import (
    RestoreHardwareStamps,
    read_stamp_setting,
    write_stamp_setting,
)


async def stamp_all_frames(changes: Changes, host: Host, device: str) -> None:
    """Undo first; nothing where the card stamps all frames already. NotReadyError where it will not."""
    before = await read_stamp_setting(host, device)
    if before.receive == ALL_FRAMES:
        return

    async def apply() -> None:
        after = await write_stamp_setting(host, device, StampSetting(before.transmit, ALL_FRAMES))
        if after.receive != ALL_FRAMES:
            raise NotReadyError(
                f"the card stamps only some of the frames that it receives (rx_filter {after.receive})",
                place=f"{host.name}, {device}",
                next_step="use `timestamps: tsc`",
            )

    undo = RestoreHardwareStamps(device=device, transmit=before.transmit, receive=before.receive)
    await changes.make(host, undo, apply)
