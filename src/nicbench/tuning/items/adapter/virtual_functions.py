"""How many virtual functions an adapter has (SR-IOV): ``device/sriov_numvfs`` (Documentation/PCI/pci-iov-howto.rst)."""

from __future__ import annotations

from pydantic import Field

from nicbench.core.plan import Values
from nicbench.tuning.items._adapter import device_of
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError


class VirtualFunctionOptions(DeviceOptions):
    """``virtual_functions: 4``."""

    count: int = Field(ge=0, le=65535)


class VirtualFunctions(Item):
    """From none only: addresses, VLANs, drivers and users of functions that are there could not be put back."""

    kind = "virtual_functions"
    Options = VirtualFunctionOptions
    options: VirtualFunctionOptions
    scope = "device"
    phase = Phase.FUNCTION
    alone = "count"

    async def read(self, place: Place) -> Values:
        folder = _folder(place)
        now = await place.host.read_file(f"{folder}/sriov_numvfs")
        most = await place.host.read_file(f"{folder}/sriov_totalvfs")
        if now is None or most is None:
            raise CannotSetError("the adapter, or its driver, has no virtual functions")
        return {"virtual_functions": int(now), "virtual_functions_maximum": int(most)}

    def target_values(self, now: Values) -> Values:
        most = now["virtual_functions_maximum"]
        if isinstance(most, int) and self.options.count > most:
            raise CannotSetError(f"{self.options.count} are more than the adapter's {most}")
        if now["virtual_functions"] not in (0, self.options.count):
            raise CannotSetError(
                f"it has {now['virtual_functions']} virtual functions already, and what is set on them "
                "could not be put back; remove them yourself"
            )
        return {"virtual_functions": self.options.count}

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(f"{_folder(place)}/sriov_numvfs", str(values["virtual_functions"]))


def _folder(place: Place) -> str:
    return f"/sys/class/net/{device_of(place)}/device"
