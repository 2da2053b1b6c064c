"""After how long, or how many frames, an adapter interrupts: ``ethtool -C`` (ethtool(8))."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nicbench.adapters.coalescing import parse_coalescing
from nicbench.model.tuning import Values
from nicbench.tuning.items._adapter import answer_of, device_of, set_by
from nicbench.tuning.items.base import CannotSetError, DeviceOptions, Item, Phase, Place

Count = Annotated[int, Field(ge=0, lt=2**32)]


class CoalescingOptions(DeviceOptions):
    """Microseconds and frames in ethtool's words; ``adaptive`` lets the driver choose them by the load."""

    adaptive_rx: bool | None = None
    adaptive_tx: bool | None = None
    rx_usecs: Count | None = None
    rx_frames: Count | None = None
    rx_usecs_irq: Count | None = None
    rx_frames_irq: Count | None = None
    tx_usecs: Count | None = None
    tx_frames: Count | None = None
    tx_usecs_irq: Count | None = None
    tx_frames_irq: Count | None = None
    cqe_mode_rx: bool | None = None
    cqe_mode_tx: bool | None = None


class Coalescing(Item):
    """All in one command: drivers refuse times beside an adaptive mode that is still on."""

    kind = "coalescing"
    Options = CoalescingOptions
    options: CoalescingOptions
    scope = "device"
    phase = Phase.RINGS

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_coalescing, "ethtool", "-c", device_of(place))
        return dict(found)

    def wanted(self, now: Values) -> Values:
        asked = self.options.model_dump(exclude={"devices"}, exclude_none=True)
        if lacking := [name for name in asked if name not in now]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)}; it has: {', '.join(now) or 'none'}")
        return dict(asked)

    async def write(self, place: Place, values: Values) -> None:
        arguments: list[str] = []
        # The modes first: ethtool sends all of them at once, and a reader sees what decides over the rest.
        for name, value in sorted(values.items(), key=lambda pair: not isinstance(pair[1], bool)):
            arguments += [name.replace("_", "-"), _word(value)]
        await set_by(place, "ethtool", "-C", device_of(place), *arguments)


def _word(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
