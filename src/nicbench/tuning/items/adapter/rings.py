"""How many frames each queue of an adapter holds: ``ethtool -G`` (ethtool(8))."""

from __future__ import annotations

from pydantic import Field

from nicbench.tuning.items._adapter import Amount, LimitsItem
from nicbench.tuning.items.base import DeviceOptions, Phase


class RingOptions(DeviceOptions):
    """Frames, or ``maximum``. Where a driver rounds them, the refusal says what it made of it."""

    rx: Amount | None = Field(default=None)
    tx: Amount | None = Field(default=None)
    rx_mini: Amount | None = Field(default=None)
    rx_jumbo: Amount | None = Field(default=None)


class Rings(LimitsItem):
    """Most drivers stop all queues for it, so it comes before steering."""

    kind = "rings"
    Options = RingOptions
    options: RingOptions
    scope = "device"
    phase = Phase.RINGS
    read_option = "-g"
    write_option = "-G"
