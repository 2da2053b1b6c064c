"""Which frames a card stamps, as its driver is set (SIOCGHWTSTAMP), by hwstamp_ctl of linuxptp.

Source: Documentation/networking/timestamping.rst; hwstamp_ctl(8).
"""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.hosts.base import Host

ALL_FRAMES = 1
"""HWTSTAMP_FILTER_ALL of linux/net_tstamp.h."""
_NO_SUCH_COMMAND = 127
_INSTEAD = "use `timestamps: tsc`"


@dataclass(frozen=True, slots=True)
class StampSetting:
    """The numbers of linux/net_tstamp.h: HWTSTAMP_TX_* and HWTSTAMP_FILTER_*."""

    transmit: int
    receive: int


def parse_stamp_setting(text: str) -> StampSetting:
    """Of what hwstamp_ctl prints, the last setting: it prints the old one before it sets another."""
    found = dict[str, int]()
    for row in text.splitlines():
        name, _, number = row.partition(" ")
        if name in ("tx_type", "rx_filter") and number.strip().isdecimal():
            found[name] = int(number)
    if len(found) != 2:
        raise ValueError("neither tx_type nor rx_filter in it" if not found else "only one of tx_type and rx_filter")
    return StampSetting(found["tx_type"], found["rx_filter"])


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
