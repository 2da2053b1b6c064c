"""The largest read that an adapter asks of memory (MaxReadReq): bits 14:12 of its Device Control register.

The register stands 8 bytes into the PCI Express capability (PCIe 5.0, 7.5.3.4), which ``setpci`` finds by its name
(``CAP_EXP``, setpci(8)); only those bits are written (``=VALUE:MASK``).
"""

from __future__ import annotations

from typing import Literal

from nicbench.core.plan import Values
from nicbench.system.adapters.pci import parse_register, read_request_bytes, set_read_request
from nicbench.tuning.items._adapter import address_of, answer_of, run_setter
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place

_REGISTER = "CAP_EXP+8.w"
_MASK = 0x7000


class ReadRequestOptions(DeviceOptions):
    """``pci_read_request: 1024``. ``devices`` may be PCI addresses too, of adapters that DPDK has."""

    bytes: Literal[128, 256, 512, 1024, 2048, 4096]


class PciReadRequest(Item):
    """A function that is reset gets its old value from the firmware, so it comes before what uses the adapter."""

    kind = "pci_read_request"
    Options = ReadRequestOptions
    options: ReadRequestOptions
    scope = "device"
    phase = Phase.FUNCTION
    alone = "bytes"

    async def read(self, place: Place) -> Values:
        address = await address_of(place)
        size = await answer_of(
            place, lambda text: read_request_bytes(parse_register(text)), "setpci", "-s", address, _REGISTER
        )
        return {"read_request_bytes": size}

    def target_values(self, now: Values) -> Values:
        return {"read_request_bytes": self.options.bytes}

    async def write(self, place: Place, values: Values) -> None:
        bits = set_read_request(0, int(str(values["read_request_bytes"])))
        await run_setter(place, "setpci", "-s", await address_of(place), f"{_REGISTER}={bits:04x}:{_MASK:04x}")
