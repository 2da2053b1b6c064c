"""How RDMA over Ethernet slows down and comes back where packets are marked (DCQCN): the driver's own parameters.

Sources: NVIDIA, "DCQCN CC Parameters" (``/sys/class/net/X/ecn`` of MLNX_OFED); drivers/infiniband/hw/mlx5/cong.c of the
kernel (``cc_params`` in debugfs); README of Broadcom's bnxt_re, "Congestion Control" (configfs, made effective by the
file ``apply``); Intel Ethernet 800 Series Linux Flow Control Configuration Guide for RDMA (configfs, ``irdma``).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from nicbench.core.errors import UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import output_of, values_of
from nicbench.system.adapters.rdma import parse_rdma_links
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.tuning.items._adapter import address_of, device_of
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError, plain_value

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]
_APPLY: Final = "apply"
"""bnxt_re takes over what was written once this file is written."""
_WORD: Final = re.compile(r"(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_FOLDERS_MADE_BY_HAND: Final = ("bnxt_re", "irdma")


class RdmaCongestionOptions(DeviceOptions):
    """``rdma_congestion: {values: {rpg_ai_rate: 5, rpg_hai_rate: 50}}``, by the driver's names."""

    values: dict[Name, bool | int | str] = Field(min_length=1, max_length=64)


class RdmaCongestion(Item):
    """Those of mlx5, bnxt_re and irdma. Whether marks are answered at all is ``ecn`` with mlx5."""

    kind = "rdma_congestion"
    Options = RdmaCongestionOptions
    options: RdmaCongestionOptions
    scope = "device"
    phase = Phase.LINK

    async def read(self, place: Place) -> Values:
        return {name: plain_value(text) for name, (_, text) in (await _parameters(place)).items() if name != _APPLY}

    def target_values(self, now: Values) -> Values:
        for name in self.options.values:
            if name not in now:
                raise CannotSetError(f"the driver has no {name}; it has {', '.join(sorted(now))}")
        return {name: int(value) if isinstance(value, bool) else value for name, value in self.options.values.items()}

    async def write(self, place: Place, values: Values) -> None:
        there = await _parameters(place)
        for name, value in values.items():
            if name not in there:
                raise CannotSetError(f"the driver has no {name} any more")
            await place.host.write_file(there[name][0], str(value))
        if _APPLY in there:
            await place.host.write_file(there[_APPLY][0], "0x1")

    def is_same(self, key: str, one: object, other: object) -> bool:
        return _number(one) == _number(other)


async def _parameters(place: Place) -> dict[str, tuple[str, str]]:
    """Path and text of each parameter by its name; CannotSetError, with the next step, where there is none."""
    rdma = await _rdma_device(place)
    try:
        found = await values_of(place.host, await _patterns(place, rdma))
    except UnknownFactError as error:
        raise CannotSetError(_why_none(rdma)) from error
    named: dict[str, tuple[str, str]] = {}
    for path, text in found.items():
        named.setdefault(path.rpartition("/")[2], (path, text))
    return named


async def _patterns(place: Place, rdma: str | None) -> tuple[str, ...]:
    net = f"/sys/class/net/{device_of(place)}/ecn"
    patterns = [f"{net}/roce_np/*", f"{net}/roce_rp/*"]
    with suppress(CannotSetError):  # what is no adapter on a PCI bus has none in debugfs
        patterns.append(f"/sys/kernel/debug/mlx5/{await address_of(place)}/cc_params/*")
    if rdma is not None:
        patterns += [f"/sys/kernel/config/bnxt_re/{rdma}/ports/1/cc/*", f"/sys/kernel/config/irdma/{rdma}/*"]
    return tuple(patterns)


async def _rdma_device(place: Place) -> str | None:
    """The RDMA device over the interface; None where there is none."""
    try:
        links = parse_rdma_links(await output_of(place.host, "rdma", "-j", "link", "show"))
    except (UnknownFactError, *NOT_UNDERSTOOD):
        return None
    return next((str(link["ifname"]) for link in links if link.get("netdev") == device_of(place)), None)


def _why_none(rdma: str | None) -> str:
    if rdma is None:
        return "it has no RDMA device, or its driver tells nothing of congestion control"
    folders = " or ".join(f"`mkdir /sys/kernel/config/{folder}/{rdma}`" for folder in _FOLDERS_MADE_BY_HAND)
    return f"the driver of {rdma} shows no parameters of congestion control; {folders} shows those of bnxt_re or irdma"


def _number(value: object) -> object:
    text = str(value).strip()
    return int(text, 0) if _WORD.fullmatch(text) and not re.fullmatch(r"0[0-9]+", text) else text
