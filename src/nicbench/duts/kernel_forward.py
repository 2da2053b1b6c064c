"""Linux IP forwarding between ports (`kernel-forward`), IPv4 and IPv6.

The benchmark networks of RFC 2544 appendix C.2.2 and RFC 5180 section 8 are routed to the tester's ports, whose MAC
addresses are static neighbours: no ARP or neighbour discovery runs during a trial. Forwarding is switched on only here,
on purpose. Every address, neighbour and route that is added is removed afterwards, and every setting gets its old value
back.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from nicbench.duts._filter import MAXIMUM_RULES, set_up_filter
from nicbench.duts._forwarding import ForwardingPort, forwarding_ports, set_up_forwarding
from nicbench.duts._networks import MOST_PORTS
from nicbench.duts._ports import dut_devices, require_host
from nicbench.duts._transparent import tester_macs
from nicbench.duts._ways import routed, ways_back, ways_between
from nicbench.duts.base import Addressing, FrameDut
from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.model.pattern import Way
from nicbench.tuning.changes import Changes

# One backlog for the whole machine: it is not to be seen in a namespace.
_BACKLOG_PATH = "/proc/sys/net/core/netdev_max_backlog"


class KernelForwardOptions(Frozen):
    """``dut: {kind: kernel-forward}``.

    ``backlog_frames`` is net.core.netdev_max_backlog, the queue in front of a CPU that RPS sends frames to; left as it
    is where it is not given. ``filter_rules`` puts as many rules of a packet filter (nftables) before forwarding: each
    frame passes them all, none matches.
    """

    backlog_frames: int | None = Field(default=None, ge=1, le=10_000_000)
    filter_rules: int = Field(default=0, ge=0, le=MAXIMUM_RULES)


class KernelForward(FrameDut):
    """The DUT's host forwards between its ports."""

    kind = "kernel-forward"
    Options = KernelForwardOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    options: KernelForwardOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._ports: tuple[ForwardingPort, ...] = ()
        self._has_ipv6: bool | None = None
        self._commands: tuple[tuple[str, ...], ...] = ()
        self._settings: dict[str, str] = {}
        self._backlog: str | None = None
        self._rps: dict[str, str | None] = {}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._has_ipv6 = await host.read_file("/proc/sys/net/ipv6/conf/all/forwarding") is not None
        self._ports = forwarding_ports(testbed, devices, tester_macs(testbed))
        self._settings, self._commands = await set_up_forwarding(host, changes, self._ports, ipv6=self._has_ipv6)
        if self.options.filter_rules:
            await set_up_filter(host, changes, self.options.filter_rules, ipv6=self._has_ipv6)
        outer = _outermost(host)
        if self.options.backlog_frames is not None:
            await changes.set_file(outer, _BACKLOG_PATH, str(self.options.backlog_frames))
        self._backlog = await outer.read_file(_BACKLOG_PATH)
        for device in devices.names:
            self._rps[device] = await host.read_file(f"/sys/class/net/{device}/queues/rx-0/rps_cpus")

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        if not self._ports:
            raise UsageError("kernel forwarding is not up", place="dut", next_step="call up first")
        if ip == 6 and not self._has_ipv6:
            raise UsageError("the DUT's kernel has no IPv6", place="dut", next_step="use `traffic: {ip: 4}`")
        return tuple(self._way(ip, way) for way in ways_between(len(self._ports)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(self._way(ip, way) for way in ways_back(len(self._ports)))

    def _way(self, ip: int, way: Way) -> Addressing:
        here = self._ports[way[0]]
        return routed(ip, len(self._ports), way, source_mac=here.tester_mac, destination_mac=here.mac)

    async def drops(self) -> dict[str, int]:
        """None of its own: the kernel's are read on every host of the path (``nicbench.ledger``)."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "settings": dict(self._settings),
            "commands": [" ".join(command) for command in self._commands],
            "ports": {
                port.device: {"mac": port.mac, "addresses": list(port.addresses), "tester_mac": port.tester_mac}
                for port in self._ports
            },
            "ipv6": self._has_ipv6,
            "filter_rules": self.options.filter_rules,
            "backlog_frames": None if self._backlog is None else int(self._backlog),
            "rps_cpus": {device: None if mask is None else mask.strip() for device, mask in self._rps.items()},
        }


def _outermost(host: Host) -> Host:
    """The host that holds the namespace, for settings of the whole machine."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return host
