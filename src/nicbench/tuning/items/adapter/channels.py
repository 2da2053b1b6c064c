"""How many queues an adapter has: ``ethtool -L`` (ethtool(8))."""

from __future__ import annotations

from pydantic import Field

from nicbench.tuning.items._adapter import Amount, LimitsItem
from nicbench.tuning.items.base import DeviceOptions, Phase


class ChannelOptions(DeviceOptions):
    """Queues, or ``maximum``; ``combined`` where a channel both sends and receives, as with most cards."""

    combined: Amount | None = Field(default=None)
    rx: Amount | None = Field(default=None)
    tx: Amount | None = Field(default=None)
    other: Amount | None = Field(default=None)


class Channels(LimitsItem):
    """Before rings and steering, which are of each queue."""

    kind = "channels"
    Options = ChannelOptions
    options: ChannelOptions
    scope = "device"
    phase = Phase.QUEUES
    read_option = "-l"
    write_option = "-L"
