"""PTP hardware clocks: which interfaces can stamp frames themselves, and whether every frame or those of PTP only.

Source: Documentation/networking/timestamping.rst; ethtool(8), ``--show-time-stamping``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.doctor.base import Check, Examination, ok
from nicbench.doctor.checks._interfaces import select_measurable
from nicbench.hosts.base import Host
from nicbench.system.adapters.ethtool import parse_time_stamping
from nicbench.system.inventory.base import NOT_UNDERSTOOD

_NAME = "hardware clock"
_BY_SOFTWARE = "latencies are stamped by software, with the TSC"


class HardwareClocks(Examination):
    """From ``ethtool -T`` of each interface that a device stands behind and that could be measured."""

    kind = "hardware_clocks"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        checks = []
        for interface in await select_measurable(host):
            done = await host.run(("ethtool", "--show-time-stamping", interface.name), check=False)
            try:
                checks.append(judge(interface.name, parse_time_stamping(done.stdout)))
            except NOT_UNDERSTOOD:
                checks.append(ok(f"{_NAME} of {interface.name}", f"{interface.driver} has none: {_BY_SOFTWARE}"))
        return tuple(checks) or (ok(_NAME, f"no interface to measure on has one: {_BY_SOFTWARE}"),)


def judge(device: str, stamping: Mapping[str, Any]) -> Check:
    """Never a lack: software stamps work everywhere, and the report says their uncertainty."""
    name = f"{_NAME} of {device}"
    clock, can = stamping["clock"], set(stamping["capabilities"])
    if clock is None or not {"hardware-transmit", "hardware-receive"} <= can:
        return ok(name, f"none that stamps frames: {_BY_SOFTWARE}")
    where = f"/dev/ptp{clock}"
    if "all" in stamping["receive_filters"]:
        way = "the port by its PCI address, or `driver: xdp` where its driver gives stamps to XDP"
        return ok(name, f"{where} stamps every frame; `timestamps: card` needs {way}")
    return ok(name, f"{where} stamps frames of PTP only, not those of a test: {_BY_SOFTWARE}")
