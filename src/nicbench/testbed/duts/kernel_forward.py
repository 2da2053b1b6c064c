"""Linux IP forwarding between ports (`kernel-forward`), IPv4 and IPv6, if asked for behind a packet filter.

Addresses, neighbours and routes are those of ``_forwarding.py``. Forwarding is switched on only by this kind of DUT,
``xdp-forward`` and the router.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.duts._forwarding import ForwardingDut
from nicbench.testbed.duts._packet_filter import set_up_table
from nicbench.testbed.duts._ports import require_host
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

MAXIMUM_RULES = 100_000
TABLE = "nicbench_filter"
# No frame has these sources: IPv4's reserved block (RFC 1112 section 4), IPv6's for documentation (RFC 3849).
_FIRST_SOURCE = {"ip": IPv4Address("240.0.0.1"), "ip6": IPv6Address("2001:db8::1")}


def filter_ruleset(family: str, rules: int) -> str:
    """The text for nft of one table of ``family`` (``ip`` or ``ip6``) with ``rules`` rules."""
    first = _FIRST_SOURCE[family]
    lines = [f"    {family} saddr {first + number} drop" for number in range(rules)]
    return "\n".join(
        [
            f"table {family} {TABLE} {{",
            "  chain forward {",
            "    type filter hook forward priority filter; policy accept;",
            *lines,
            "  }",
            "}",
            "",
        ]
    )


async def set_up_filter(host: Host, changes: Changes, rules: int, *, ipv6: bool) -> None:
    """Puts the rules in place, undo first; NotReadyError where the host has no nftables or a table of that name."""
    for family in ("ip", "ip6") if ipv6 else ("ip",):
        text = filter_ruleset(family, rules)
        words = {"what": "the packet filter", "option": "filter_rules", "needs": "nf_tables; or leave filter_rules out"}
        await set_up_table(host, changes, family, TABLE, text, **words)


# The backlog is a setting of the whole machine, and its file does not exist in a namespace.
_BACKLOG_PATH = "/proc/sys/net/core/netdev_max_backlog"


class KernelForwardOptions(Frozen):
    """``dut: {kind: kernel-forward}``.

    ``backlog_frames`` is net.core.netdev_max_backlog, the queue in front of a CPU that RPS sends frames to; None leaves
    it unchanged. ``filter_rules`` is the number of nftables rules before forwarding, which never match.
    """

    backlog_frames: int | None = Field(default=None, ge=1, le=10_000_000)
    """The queue before the DUT's CPU (`netdev_max_backlog`); without it, it is left alone."""
    filter_rules: int = Field(default=0, ge=0, le=MAXIMUM_RULES)
    """nftables rules that each frame passes."""


class KernelForward(ForwardingDut):
    """The DUT's host forwards between its ports."""

    kind = "kernel-forward"
    Options = KernelForwardOptions
    options: KernelForwardOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._backlog: str | None = None
        self._rps: dict[str, str | None] = {}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await self._set_up_routes(testbed, changes)
        if self.options.filter_rules:
            await set_up_filter(host, changes, self.options.filter_rules, ipv6=bool(self._has_ipv6))
        outer = _outermost(host)
        if self.options.backlog_frames is not None:
            await changes.set_file(outer, _BACKLOG_PATH, str(self.options.backlog_frames))
        self._backlog = await outer.read_file(_BACKLOG_PATH)
        for device in devices.names:
            self._rps[device] = await host.read_file(f"/sys/class/net/{device}/queues/rx-0/rps_cpus")

    async def drops(self) -> dict[str, int]:
        """No counters of its own: those of the kernel are read on every host (``nicbench.measure.ledger``)."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self._disclose_routes(),
            "filter_rules": self.options.filter_rules,
            "backlog_frames": None if self._backlog is None else int(self._backlog),
            "rps_cpus": {device: None if mask is None else mask.strip() for device, mask in self._rps.items()},
        }


def _outermost(host: Host) -> Host:
    """The host outside all namespaces, for settings of the whole machine."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return host
