"""Which frames a card stamps, as its driver is set (SIOCGHWTSTAMP), by hwstamp_ctl of linuxptp.

Source: Documentation/networking/timestamping.rst; hwstamp_ctl(8).
"""

from __future__ import annotations

from dataclasses import dataclass

ALL_FRAMES = 1
"""HWTSTAMP_FILTER_ALL of linux/net_tstamp.h."""


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
