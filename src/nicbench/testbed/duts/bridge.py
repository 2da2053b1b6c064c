"""A Linux bridge between the DUT's ports (`bridge`), which switches frames by MAC address.

No spanning tree (a port would be silent for its forward delay), and no multicast snooping unless asked for. Each tester
MAC is a static entry of the forwarding database, so that no frame is flooded and nothing is learnt while a trial runs;
the report says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, tester_macs, transparent_addressing
from nicbench.testbed.duts._bridge_features import ASKING, Output, Policing, Snooping, police, slow_down
from nicbench.testbed.duts._ports import dut_devices, require_host
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteLink

_LIMIT: Final = Path(__file__).with_name("_bridge_limit.py")


class BridgeOptions(Frozen):
    """``dut: {kind: bridge}``; ``device`` names the bridge, ``ageing_s`` is how long it remembers a MAC."""

    device: str = Field(default="nicbench-br", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$")
    """The name of the bridge."""
    ageing_s: int = Field(default=300, ge=0, le=1_000_000)
    """How long the bridge remembers an address, in seconds."""
    most_learned: int | None = Field(default=None, ge=1, le=10_000_000)
    """The most addresses that it learns (`fdb_max_learned`, Linux 6.7); without it as many as memory takes. Needs
    Python on the DUT's host.
    """
    snooping: Snooping | None = None
    """Multicast snooping, with keys of its own; without it frames to groups go to every port."""
    output: Output | None = None
    """Slow ports with a queue of known length; without it ports send as fast as they can."""
    police: tuple[Policing, ...] = ()
    """Policers of what is forwarded, by DSCP."""


class Bridge(FrameDut):
    """The DUT's host switches between its ports. A frame for the port that it came in on is filtered (IEEE 802.1D)."""

    kind = "bridge"
    Options = BridgeOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    options: BridgeOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._commands: list[tuple[str, ...]] = []
        self._entries: dict[str, str] = {}
        self._host: Host | None = None

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        await self._make_bridge(host, changes)
        if self.options.most_learned is not None:
            await self._limit_learned(host, self.options.most_learned)
        self._host = host
        macs = tester_macs(testbed)
        for device, mac in zip(devices.names, macs, strict=True):
            # Leaving the bridge and the end of the static entry come with the bridge's deletion.
            await self._run(host, "ip", "link", "set", "dev", device, "master", self.options.device)
            await self._run(host, "bridge", "fdb", "replace", mac, "dev", device, "master", "static")
            if self.options.snooping is not None and self.options.snooping.fast_leave:
                await self._run(host, "bridge", "link", "set", "dev", device, "fastleave", "on")
            if self.options.output is not None:
                await slow_down(host, changes, device, self.options.output)
        self._entries = dict(zip(devices.names, macs, strict=True))
        if self.options.police:
            await police(host, changes, self.options.police)
        await self._run(host, "ip", "link", "set", "dev", self.options.device, "up")
        if self.options.snooping is not None:
            await self._run(host, "ip", "link", "set", "dev", self.options.device, *ASKING)

    async def begin_trial(self, number: int) -> None:
        """Lets it forget all groups, and snoop again where it had too many: both come with the end of snooping."""
        if self._host is None or self.options.snooping is None:
            return
        for is_on in ("1", "0", "1"):
            await self._host.run(
                ("ip", "link", "set", "dev", self.options.device, "type", "bridge", "mcast_snooping", is_on)
            )

    async def _make_bridge(self, host: Host, changes: Changes) -> None:
        """Makes the bridge without IPv6, so that it sends nothing by itself; with it where it is to ask by MLD."""
        device = self.options.device
        if (await host.run(("ip", "link", "show", "dev", device), check=False)).status == 0:
            raise NotReadyError(
                f"there is already an interface {device}",
                place=host.name,
                next_step=f"remove it (ip link delete dev {device}), or give the bridge another `device` under `dut`",
            )
        # `ip` takes hundredths of a second.
        ageing = str(self.options.ageing_s * 100)
        snooping = self.options.snooping
        multicast = snooping.words() if snooping is not None else ("mcast_snooping", "0")
        kind = ("type", "bridge", "stp_state", "0", *multicast, "ageing_time", ageing)
        await changes.make(
            host, DeleteLink(device=device), lambda: self._run(host, "ip", "link", "add", "name", device, *kind)
        )
        silent = f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"
        if await host.read_file(silent) is None:
            return
        if snooping is not None and snooping.mld:
            # It asks from its address, at once.
            await host.write_file(f"/proc/sys/net/ipv6/conf/{device}/accept_dad", "0")
            await host.write_file(silent, "0")
        else:
            await host.write_file(silent, "1")

    async def _limit_learned(self, host: Host, most: int) -> None:
        """Sets the limit, and reads it back: a kernel that has none ignores it. It goes with the bridge."""
        done = await host.run(("python3", "-c", _LIMIT.read_text(), self.options.device, str(most)))
        if done.stdout.strip() != str(most):
            raise NotReadyError(
                f"its kernel does not limit how many addresses a bridge learns to {most}",
                place=host.name,
                next_step="use Linux 6.7 or newer, or remove `most_learned` under `dut`",
            )

    async def _run(self, host: Host, *command: str) -> None:
        await host.run(command)
        self._commands.append(command)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return transparent_addressing(testbed, ip)

    async def drops(self) -> dict[str, int]:
        """No counters of its own: those of the kernel are read on every host (``nicbench.measure.ledger``)."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "bridge": self.options.device,
            "spanning_tree": False,
            "multicast_snooping": False if (snooping := self.options.snooping) is None else snooping.model_dump(),
            "ageing_s": self.options.ageing_s,
            "most_learned": self.options.most_learned,
            "output": None if self.options.output is None else self.options.output.model_dump(),
            "police": [one.model_dump() for one in self.options.police],
            "static_entries": dict(self._entries),
            "learning": "none is needed: the tester's MAC addresses are static entries of the forwarding database",
            "commands": [" ".join(command) for command in self._commands],
        }
