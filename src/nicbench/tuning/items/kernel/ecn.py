"""Explicit congestion notification of RDMA over Ethernet, by priority: ``/sys/class/net/X/ecn`` of mlx5_core.

That of TCP is the sysctl ``net.ipv4.tcp_ecn``. Source: NVIDIA MLNX_OFED documentation, "ECN".
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from nicbench.core.errors import UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import values_of
from nicbench.tuning.items._adapter import device_of
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_FILE = re.compile(r"/ecn/(roce_[nr]p/enable/([0-7]))$")
Priority = Annotated[int, Field(ge=0, le=7)]


class EcnOptions(DeviceOptions):
    """``ecn: [3]``: the priorities whose congestion is notified (notification point) and obeyed (reaction point)."""

    priorities: tuple[Priority, ...] = Field(max_length=8)


class Ecn(Item):
    """Both points together: one without the other does nothing."""

    kind = "ecn"
    Options = EcnOptions
    options: EcnOptions
    scope = "device"
    phase = Phase.LINK
    alone = "priorities"

    async def read(self, place: Place) -> Values:
        base = f"/sys/class/net/{device_of(place)}/ecn"
        try:
            found = await values_of(place.host, (f"{base}/roce_np/enable/*", f"{base}/roce_rp/enable/*"))
        except UnknownFactError as error:
            raise CannotSetError("the driver has no congestion notification by priority") from error
        return {match[1]: value == "1" for path, value in found.items() if (match := _FILE.search(path))}

    def target_values(self, now: Values) -> Values:
        return {key: int(key.rpartition("/")[2]) in self.options.priorities for key in now}

    async def write(self, place: Place, values: Values) -> None:
        for key, on in values.items():
            await place.host.write_file(f"/sys/class/net/{device_of(place)}/ecn/{key}", "1" if on else "0")
