"""Which CPUs work on which queue in software: RPS, RFS and XPS (Documentation/networking/scaling.rst)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from nicbench.core.errors import UnknownFactError
from nicbench.core.machine import parse_cpu_list
from nicbench.core.plan import Values
from nicbench.hosts.asking import values_of
from nicbench.tuning.items._adapter import assign_in_turn, device_of
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError, cpu_mask, same_value

_QUEUE = re.compile(r"/queues/([rt]x-(\d+)/\w+)$")
_NONE = "none"


def _check(text: str) -> str:
    if text != _NONE and not parse_cpu_list(text):
        raise ValueError("write CPUs, as 0-3,8, or none")
    return text


Cpus = Annotated[
    str, StringConstraints(pattern=r"^(none|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*)$"), AfterValidator(_check)
]


class PacketSteeringOptions(DeviceOptions):
    """``receive``: the CPUs that take over received frames, all of them for every queue (RPS).

    ``send``: the CPUs that send, one for each transmit queue in turn (XPS). ``flows``: entries of each receive queue's
    flow table (RFS); the whole table is the sysctl ``net.core.rps_sock_flow_entries``. ``none`` is off.
    """

    receive: Cpus | None = None
    send: Cpus | None = None
    flows: int | None = Field(default=None, ge=0, le=2**24)


class PacketSteering(Item):
    """After the channels, whose number is that of the queues."""

    kind = "packet_steering"
    Options = PacketSteeringOptions
    options: PacketSteeringOptions
    scope = "device"
    phase = Phase.STEERING

    async def read(self, place: Place) -> Values:
        base = f"/sys/class/net/{device_of(place)}/queues"
        files = ("rx-*/rps_cpus", "rx-*/rps_flow_cnt", "tx-*/xps_cpus")
        try:
            found = await values_of(place.host, tuple(f"{base}/{file}" for file in files))
        except UnknownFactError as error:
            raise CannotSetError("the kernel steers no packets of it") from error
        return {match[1]: value for path, value in found.items() if (match := _QUEUE.search(path))}

    def target_values(self, now: Values) -> Values:
        asked: Values = {}
        for file, cpus in (("rps_cpus", self.options.receive), ("xps_cpus", self.options.send)):
            keys = sorted((key for key in now if key.endswith(f"/{file}")), key=_number)
            if cpus is None:
                continue
            if not keys:
                raise CannotSetError(f"it has no {file}; with one transmit queue there is nothing to choose")
            chosen = () if cpus == _NONE else parse_cpu_list(cpus)
            each = assign_in_turn(chosen, len(keys)) if chosen else []
            for number, key in enumerate(keys):
                asked[key] = cpu_mask((each[number],) if file == "xps_cpus" and each else chosen)
        if self.options.flows is not None:
            asked |= {key: str(self.options.flows) for key in now if key.endswith("/rps_flow_cnt")}
        return asked

    async def write(self, place: Place, values: Values) -> None:
        for key, value in values.items():
            await place.host.write_file(f"/sys/class/net/{device_of(place)}/queues/{key}", str(value))

    def is_same(self, key: str, one: object, other: object) -> bool:
        return same_value(key, str(one), str(other))


def _number(key: str) -> int:
    return int(key.partition("-")[2].partition("/")[0])
