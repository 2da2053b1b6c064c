"""After how long, or how many frames, an adapter interrupts: ``ethtool -C`` (ethtool(8))."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool_queues import parse_coalescing
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_ADAPTIVE = MappingProxyType({"adaptive_rx": "rx", "adaptive_tx": "tx"})
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
    """Times and counts while no adaptive mode decides over them: drivers refuse or overwrite them beside one."""

    kind = "coalescing"
    Options = CoalescingOptions
    options: CoalescingOptions
    scope = "device"
    phase = Phase.RINGS

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_coalescing, "ethtool", "-c", device_of(place))
        return dict(found)

    def target_values(self, now: Values) -> Values:
        asked = self.options.model_dump(exclude={"devices"}, exclude_none=True)
        if lacking := [name for name in asked if name not in now]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)}; it has: {', '.join(now) or 'none'}")
        return dict(asked)

    async def write(self, place: Place, values: Values) -> None:
        adaptive = {name for name in _ADAPTIVE if values.get(name) is True}
        # The modes first: ethtool sends all of them at once, and a reader sees what decides over the rest.
        modes_first = sorted(values.items(), key=lambda pair: not isinstance(pair[1], bool))
        fixed = [(name, value) for name, value in modes_first if name not in adaptive]
        switched_off = [(name, False) for name in sorted(adaptive) if _adaptive_keys(name, values)]
        for group in (switched_off + fixed, [(name, True) for name in sorted(adaptive)]):
            if group:
                await run_setter(place, "ethtool", "-C", device_of(place), *_arguments(group))

    def find_differing(self, one: Values, other: Values) -> Values:
        """What an adaptive mode chooses changes with the load: it is no other setting than before."""
        differing = super().find_differing(one, other)
        for name in _ADAPTIVE:
            if one.get(name) is True and other.get(name) is True:
                differing = {key: value for key, value in differing.items() if key not in _adaptive_keys(name, one)}
        return differing


def _adaptive_keys(mode: str, values: Values) -> list[str]:
    """Of ``adaptive_rx`` the times and counts of ``rx``, of ``adaptive_tx`` those of ``tx``."""
    return [key for key in values if key.startswith(f"{_ADAPTIVE[mode]}_")]


def _arguments(values: Iterable[tuple[str, object]]) -> Iterable[str]:
    for name, value in values:
        yield from (name.replace("_", "-"), ("on" if value else "off") if isinstance(value, bool) else str(value))
