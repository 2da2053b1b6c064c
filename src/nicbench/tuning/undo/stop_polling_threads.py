"""Has an interface polled by interrupts again, not by threads of the kernel (threaded NAPI)."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class StopPollingThreads(Undo):
    """Switch threaded NAPI off, which ends the threads; the device may have lost its XDP program since.

    The kernel takes the setting only of a device that polls. A veth without a program polls while it has GRO.
    """

    kind: Literal["stop_polling_threads"] = "stop_polling_threads"
    device: str

    async def undo(self, host: Host) -> str | None:
        path = f"/sys/class/net/{self.device}/threaded"
        if await show_link(host, self.device) is None or (await host.read_file(path) or "0").strip() == "0":
            return None
        write = ("sh", "-c", 'echo 0 >"$1"', "write", path)
        if (await host.run(write, check=False)).status == 0:
            return None
        await host.run(("ethtool", "-K", self.device, "gro", "on"))
        try:
            await host.run(write)
        finally:
            await host.run(("ethtool", "-K", self.device, "gro", "off"))
        return None
