"""The root queueing discipline of an interface: ``tc qdisc`` (tc(8)), in the place of the kernel's default."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.plan import Values
from nicbench.system.adapters.traffic_control import parse_qdiscs
from nicbench.tuning.items._adapter import answer_of, device_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/%-]*$", max_length=64)]
_HANDLE = "6e62:"  # in hex; so that the undo knows its own


class QdiscOptions(DeviceOptions):
    """``qdisc: {kind: fq, parameters: [limit, 10000]}``: tc's words, as after ``tc qdisc replace dev X root``."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=32)]
    parameters: tuple[Word, ...] = Field(default=(), max_length=64)


class Qdisc(Item):
    """Replaced only where the kernel's default is, which is what comes back when ours is deleted."""

    kind = "qdisc"
    Options = QdiscOptions
    options: QdiscOptions
    scope = "device"
    phase = Phase.STEERING  # undone after sysctls: what comes back is the default by then

    async def read(self, place: Place) -> Values:
        listed = await answer_of(place, parse_qdiscs, "tc", "-j", "qdisc", "show", "dev", device_of(place))
        root = next((entry for entry in listed if entry["parent"] == "root"), None)
        if root is None:
            raise CannotSetError("it has no root queueing discipline")
        # The kernel gives its defaults the handle 0:, and whoever sets one gets or names another.
        handle = str(root["handle"])
        return {"kind": str(root["kind"]), "by": {"0:": "kernel", _HANDLE: "nicbench"}.get(handle, handle)}

    def target_values(self, now: Values) -> Values:
        if now["by"] not in ("kernel", "nicbench"):
            raise CannotSetError(
                f"somebody set a {now['kind']} (handle {now['by']}), which could not be put back exactly"
            )
        return {"kind": self.options.kind, "by": "nicbench"}

    async def write(self, place: Place, values: Values) -> None:
        device = device_of(place)
        if values.get("by") == "kernel":
            await run_setter(place, "tc", "qdisc", "del", "dev", device, "root")
            return
        words = (self.options.kind, *self.options.parameters)
        await run_setter(place, "tc", "qdisc", "replace", "dev", device, "root", "handle", _HANDLE, *words)
