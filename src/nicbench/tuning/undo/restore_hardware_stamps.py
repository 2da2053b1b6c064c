"""Has a card stamp again what it stamped before."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.system.adapters.hardware_stamps import ALL_FRAMES, StampSetting, parse_stamp_setting
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo

_NO_SUCH_COMMAND = 127
_INSTEAD = "use `timestamps: tsc`"


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


async def read_stamp_setting(host: Host, device: str) -> StampSetting:
    """NotReadyError where the tool is missing, or the driver does not say."""
    return await _call(host, device)


async def write_stamp_setting(host: Host, device: str, setting: StampSetting) -> StampSetting:
    """Gives what the driver made of it: it may stamp more than it was asked for. NotReadyError where it refuses."""
    return await _call(host, device, "-t", str(setting.transmit), "-r", str(setting.receive))


async def _call(host: Host, device: str, *arguments: str) -> StampSetting:
    place = f"{host.name}, {device}"
    try:
        done = await host.run(("hwstamp_ctl", "-i", device, *arguments), check=False)
    except NicbenchError as error:
        raise _without_tool(place) from error
    if done.status == _NO_SUCH_COMMAND:
        raise _without_tool(place)
    try:
        if done.status != 0:
            raise ValueError(" ".join(done.stderr.split()) or f"exit status {done.status}")
        return parse_stamp_setting(done.stdout)
    except ValueError as error:
        raise NotReadyError(
            f"the time stamps of the card cannot be {'set' if arguments else 'read'}: {error}",
            place=place,
            next_step=_INSTEAD,
        ) from error


def _without_tool(place: str) -> NotReadyError:
    return NotReadyError(
        "hwstamp_ctl, which switches the time stamps of cards on, is not installed",
        place=place,
        next_step=f"apt-get install linuxptp, or {_INSTEAD}",
    )
