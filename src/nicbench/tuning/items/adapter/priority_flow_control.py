"""Which priorities are paused on their own (IEEE 802.1Qbb): ``dcb pfc`` (dcb-pfc(8))."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nicbench.core.plan import Values
from nicbench.system.adapters.traffic_control import PRIORITIES, parse_pfc
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Priority = Annotated[int, Field(ge=0, lt=PRIORITIES)]


class PriorityFlowControlOptions(DeviceOptions):
    """``priority_flow_control: [3]``; none are an empty list."""

    priorities: tuple[Priority, ...] = Field(max_length=PRIORITIES)


class PriorityFlowControl(Item):
    """The other end has to be set to the same: under ``all``, or on the switch."""

    kind = "priority_flow_control"
    Options = PriorityFlowControlOptions
    options: PriorityFlowControlOptions
    scope = "device"
    phase = Phase.LINK
    alone = "priorities"

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_pfc, "dcb", "-j", "pfc", "show", "dev", device_of(place))
        return {"priorities": list(found["priorities"]), "classes_possible": found["classes_possible"]}

    def target_values(self, now: Values) -> Values:
        asked, most = sorted(set(self.options.priorities)), now["classes_possible"]
        if isinstance(most, int) and len(asked) > most:
            raise CannotSetError(f"{len(asked)} priorities are more than the adapter's {most}")
        return {"priorities": list(asked)}

    async def write(self, place: Place, values: Values) -> None:
        priorities = values["priorities"]
        on = [f"{priority}:on" for priority in priorities] if isinstance(priorities, list) else []
        await run_setter(place, "dcb", "pfc", "set", "dev", device_of(place), "prio-pfc", "all:off", *on)
