"""Switching by flows of the traffic control of Linux (`flower`): a filter on each port redirects to the other.

The filter is ``cls_flower``, which cards with a switch of their own take into hardware. It matches the tester's MAC
address behind the other port; frames that match nothing stay in the machine. The filters count what they redirect.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import tester_macs, transparent_addressing
from nicbench.testbed.duts._kernel import PassageDut, Passed, dut_devices, link_packets, require_host
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteClsact, EndPromiscuity

_WORDS: Final = {"auto": (), "software": ("skip_hw",), "hardware": ("skip_sw",)}


class FlowerOptions(Frozen):
    """``dut: {kind: flower}``."""

    offload: Literal["auto", "software", "hardware"] = "auto"
    """Where the flows are: `auto` lets the driver decide, and the report says what it did; with `hardware` a card that
    does not take them is an error (`skip_sw`), with `software` it is not asked (`skip_hw`).
    """
    other_flows: int = Field(default=0, ge=0, le=100_000)
    """Flows of each port that no frame matches, with the same mask."""


class Flower(PassageDut):
    """The DUT's host redirects frames between its ports by flows of traffic control."""

    kind = "flower"
    layer = "the flows of traffic control"
    Options = FlowerOptions
    fewest_ports = 2
    options: FlowerOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._host: Host | None = None
        self._devices: tuple[str, ...] = ()
        self._commands: list[str] = []
        self._in_hardware: dict[str, bool] = {}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        self._devices = (await dut_devices(testbed, self.kind)).names
        macs = tester_macs(testbed)
        for number, device in enumerate(self._devices):
            await self._add_hook(host, changes, device)
            other = self._devices[1 - number]
            lines = [self._filter(device, other, _unused_mac(flow)) for flow in range(self.options.other_flows)]
            own = self._filter(device, other, macs[1 - number])
            try:
                await host.run(("tc", "-batch", "-"), input_text="\n".join([*lines, own, ""]))
            except HostError as error:
                raise NotReadyError(
                    f"traffic control takes no flow on {device}: {error.message}",
                    place=f"dut, on {host.name}",
                    next_step="modprobe cls_flower act_mirred; or another `offload`, where the card takes no flows",
                ) from error
            self._commands.append(f"tc {own}")
        self._host = host
        self._in_hardware = {device: flow.get("in_hw", False) for device, flow in (await self._read_flows()).items()}

    async def _add_hook(self, host: Host, changes: Changes, device: str) -> None:
        """Adds the hook for filters, and takes frames to any MAC address in; NotReadyError where somebody uses it."""
        command = ("tc", "qdisc", "add", "dev", device, "clsact")
        listed = json.loads((await host.run(("tc", "-j", "qdisc", "show", "dev", device))).stdout or "[]")
        if any(one.get("kind") in ("clsact", "ingress") for one in listed):
            raise NotReadyError(
                f"{device} has a hook for filters already",
                place=f"dut, on {host.name}",
                next_step=f"remove it: tc qdisc del dev {device} clsact",
            )

        async def add() -> None:
            await host.run(command)

        async def listen() -> None:
            await host.run(("ip", "link", "set", "dev", device, "promisc", "on"))

        await changes.make(host, DeleteClsact(device=device), add)
        await changes.make(host, EndPromiscuity(device=device), listen)
        self._commands.append(" ".join(command))

    def _filter(self, device: str, other: str, mac: str) -> str:
        """The filter from one port to the other, as a line for ``tc -batch``."""
        where = " ".join(("flower", *_WORDS[self.options.offload], "dst_mac", mac))
        return f"filter add dev {device} ingress protocol all pref 10 {where} action mirred egress redirect dev {other}"

    async def _read_flows(self) -> dict[str, dict[str, Any]]:
        """Reads by device the flow that is used: the one with the most frames."""
        host = self._require_up()
        found: dict[str, dict[str, Any]] = {}
        for device in self._devices:
            shown = await host.run(("tc", "-s", "-j", "filter", "show", "dev", device, "ingress"))
            flows = [
                flow["options"] for flow in json.loads(shown.stdout or "[]") if "actions" in flow.get("options", {})
            ]
            found[device] = max(flows, key=packets_of, default={})
        return found

    async def _read_passed(self) -> Passed:
        host = self._require_up()
        redirected = sum(packets_of(flow) for flow in (await self._read_flows()).values())
        counts = await link_packets(host, *self._devices)
        return Passed(redirected, redirected, sum(sent for _, sent in counts.values()))

    def _require_up(self) -> Host:
        if self._host is None:
            raise UsageError("traffic control is not set up", next_step="call up first")
        return self._host

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "offload": self.options.offload,
            "in_hardware": dict(self._in_hardware),
            "other_flows": self.options.other_flows,
            "commands": list(self._commands),
        }


def _unused_mac(flow: int) -> str:
    """A locally administered MAC address that nobody has."""
    return f"02:ff:{flow >> 16:02x}:{flow >> 8 & 255:02x}:{flow & 255:02x}:00"


def packets_of(flow: dict[str, Any]) -> int:
    """The packets that the actions of a flow counted, as ``tc -s -j filter show`` has it."""
    return max((int(action.get("stats", {}).get("packets", 0)) for action in flow.get("actions", [])), default=0)
