"""IP forwarding by the Linux kernel: between ports (`kernel-forward`), and with source NAT (`nat`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_interface
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.headers import LARGEST_PORT
from nicbench.core.quantity import Seconds
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost, outermost
from nicbench.system.adapters.conntrack import COUNT, LIMIT, SETTINGS
from nicbench.testbed.duts._kernel import ForwardingDut, ForwardingPort, neighbour_of, require_host, set_up_table
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes

# Linux IP forwarding between ports (`kernel-forward`), IPv4 and IPv6, if asked for behind a packet filter.
#
# Addresses, neighbours and routes are those of ``duts/_kernel.py``. Forwarding is switched on only by this kind of DUT,
# ``xdp-forward`` and the router.


MAXIMUM_RULES = 100_000
FILTER_TABLE = "nicbench_filter"
# No frame has these sources: IPv4's reserved block (RFC 1112 section 4), IPv6's for documentation (RFC 3849).
_FIRST_SOURCE = {"ip": IPv4Address("240.0.0.1"), "ip6": IPv6Address("2001:db8::1")}


def filter_ruleset(family: str, rules: int) -> str:
    """The text for nft of one table of ``family`` (``ip`` or ``ip6``) with ``rules`` rules."""
    first = _FIRST_SOURCE[family]
    lines = [f"    {family} saddr {first + number} drop" for number in range(rules)]
    return "\n".join(
        [
            f"table {family} {FILTER_TABLE} {{",
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
        await set_up_table(host, changes, family, FILTER_TABLE, text, **words)


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
    neighbour_age: Annotated[Seconds, Field(ge=0.1, le=86_400.0)] | None = None
    """The router finds the tester by ARP and neighbour discovery, and asks again after this time; without it, the
    tester is a static neighbour.
    """


class KernelForward(ForwardingDut):
    """The DUT's host forwards between its ports."""

    kind = "kernel-forward"
    Options = KernelForwardOptions
    options: KernelForwardOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self.neighbour_age_s = self.options.neighbour_age
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

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self._disclose_routes(),
            "filter_rules": self.options.filter_rules,
            "neighbour_age_s": self.neighbour_age_s,
            "backlog_frames": None if self._backlog is None else int(self._backlog),
            "rps_cpus": {device: None if mask is None else mask.strip() for device, mask in self._rps.items()},
        }


def _outermost(host: Host) -> Host:
    """The host outside all namespaces, for settings of the whole machine."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return host


# Source NAT of the Linux kernel (`nat`): the first port is inside, the second outside, and connections are tracked.
#
# Addresses, neighbours and routes are those of ``duts/_kernel.py``. What leaves by the outside port gets an outside
# address (nftables, ``masquerade`` or ``snat``); what comes in there is forwarded only where it belongs to a
# connection that began inside, as on any such router. So traffic goes one way, from inside. The table of rules is
# deleted afterwards, and settings get their old values back.


NAT_TABLE: Final = "nicbench_nat"
_FAMILY: Final = "inet"
_BUCKETS: Final = f"{SETTINGS}/nf_conntrack_buckets"
_UDP_TIMEOUT: Final = f"{SETTINGS}/nf_conntrack_udp_timeout"
_TRIES: Final = 100
_BETWEEN_TRIES_S: Final = 0.05
_ROOM: Final = 2
"""The factor of what the machine tracks itself that a limit of the whole machine leaves to it."""


def _is_a_range(ports: tuple[int, int]) -> tuple[int, int]:
    if ports[0] > ports[1]:
        raise ValueError(f"the range ends before it begins: write [{ports[1]}, {ports[0]}]")
    return ports


def _whole_seconds(seconds: float) -> float:
    if seconds != int(seconds):
        raise ValueError("the kernel's timeouts are whole seconds")
    return seconds


_Port = Annotated[int, Field(ge=1, le=LARGEST_PORT)]


class NatOptions(Frozen):
    """``dut: {kind: nat}``."""

    addresses: int = Field(default=1, ge=1, le=128)
    """Outside addresses. `1` is the address of the outside port (`masquerade`). More are a pool (`snat`): those that
    follow the tester's address in the outside port's network.
    """
    ports: Annotated[tuple[_Port, _Port], AfterValidator(_is_a_range)] | None = None
    """The first and the last source port outside, as `[1024, 65535]`. Without it a connection keeps its port where
    that is free.
    """
    random: bool = False
    """Each connection gets a random source port (`fully-random`)."""
    table_size: int | None = Field(default=None, ge=16, le=2**31 - 1)
    """The most connections that are tracked at once (`nf_conntrack_max`); without it, it is left alone. It is a setting
    of the whole machine where the kernel has none for each network namespace.
    """
    udp_timeout: Annotated[Seconds, Field(ge=1.0, le=86_400.0), AfterValidator(_whole_seconds)] | None = None
    """How long a UDP connection is remembered that nobody answered (`nf_conntrack_udp_timeout`); without it, it is left
    alone.
    """
    empty_table: bool = False
    """Each trial begins with an empty table, as `connection-capacity` needs it: the
    outside address is taken away for a moment, upon which the kernel forgets what it translated to it. Not with a pool.
    """

    @model_validator(mode="after")
    def _empties_what_is_masqueraded(self) -> Self:
        if self.empty_table and self.addresses > 1:
            raise ValueError(
                "`empty_table` does not go with a pool: the kernel forgets only what `masquerade` translated"
            )
        return self


def nat_ruleset(outside: ForwardingPort, options: NatOptions) -> str:
    """The text for nft of the table; NotReadyError where the pool does not fit into the outside port's network."""
    to = "" if options.ports is None else f":{options.ports[0]}-{options.ports[1]}"
    transport = "" if options.ports is None else " meta l4proto { tcp, udp }"
    random = " fully-random" if options.random else ""
    leaving = f'oifname "{outside.device}"'
    if options.addresses == 1:
        rules = [f"{leaving}{transport} masquerade{to and f' to {to}'}{random}"]
    else:
        rules = []
        for address in outside.addresses:
            first, last = pool_of(address, options.addresses)
            version = ("ipv6", "ip6") if ":" in address else ("ipv4", "ip")
            pool = f"[{first}]-[{last}]" if to and ":" in address else f"{first}-{last}"
            rules.append(f"{leaving} meta nfproto {version[0]}{transport} snat {version[1]} to {pool}{to}{random}")
    return "\n".join(
        [
            f"table {_FAMILY} {NAT_TABLE} {{",
            "  chain forward {",
            "    type filter hook forward priority filter; policy accept;",
            "    ct state established,related accept",
            f'    iifname "{outside.device}" drop',
            "  }",
            "  chain postrouting {",
            "    type nat hook postrouting priority srcnat; policy accept;",
            *(f"    {rule}" for rule in rules),
            "  }",
            "}",
            "",
        ]
    )


def pool_of(address: str, addresses: int) -> tuple[str, str]:
    """The first and the last of the pool: those that follow the tester's address in the network of ``address``."""
    network = ip_interface(address).network
    first = ip_interface(neighbour_of(address)).ip + 1
    last = first + (addresses - 1)
    if last not in network or last == network.broadcast_address:
        raise NotReadyError(
            f"{addresses} outside addresses after {first - 1} do not fit into {network}",
            place="dut, addresses",
            next_step="lower `addresses`, or give the outside port an address at the beginning of a wider network",
        )
    return str(first), str(last)


class Nat(ForwardingDut):
    """The DUT's host translates the source addresses of what goes from its first port to its second."""

    kind = "nat"
    Options = NatOptions
    fewest_ports = 2
    most_ports = 2
    returns_on_same_port = False
    forwards_both_ways = False
    options: NatOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._rules = ""
        self._tracking: dict[str, int | None] = {}

    def programs(self) -> Mapping[str, str]:
        return {"nft": "apt-get install nftables"}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        await self._set_up_routes(testbed, changes)
        self._rules = nat_ruleset(self._ports[1], self.options)
        await set_up_rules(host, changes, self._rules)  # first, for they load the module that has the settings
        if self.options.table_size is not None:
            await set_limit(host, changes, self.options.table_size)
        if self.options.udp_timeout is not None:
            await changes.set_file(host, _UDP_TIMEOUT, str(int(self.options.udp_timeout)))
        self._tracking = {
            "table_size": await _read_number(host, LIMIT),
            "hash_buckets": await _read_number(host, _BUCKETS),
            "udp_timeout_s": await _read_number(host, _UDP_TIMEOUT),
        }

    async def begin_trial(self, number: int) -> None:
        """Empties the table, if asked for; HostError where connections stay."""
        host = self._host
        if host is None or not self.options.empty_table:
            return
        outside = self._ports[1]
        for address in outside.addresses:
            if ":" not in address or self._has_ipv6:
                await host.run(("ip", "address", "del", address, "dev", outside.device))
        await self.mend()
        for _ in range(_TRIES):
            if not (left := await _read_number(host, COUNT)):
                return
            await asyncio.sleep(_BETWEEN_TRIES_S)
        raise HostError(
            f"{left} connections are still tracked after the outside address was taken away",
            place=f"dut, empty_table, on {host.name}",
            next_step="something else tracks connections there: leave `empty_table` out, and let them time out",
        )

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self._disclose_routes(),
            "rules": [line.strip() for line in self._rules.splitlines() if line.strip()],
            "connection_tracking": dict(self._tracking),
        }


async def set_up_rules(host: Host, changes: Changes, text: str) -> None:
    """Puts the rules in place, undo first; NotReadyError where the host cannot, or has a table of that name."""
    words = {"what": "the address translation", "needs": "nf_tables, nft_nat and nft_masq"}
    await set_up_table(host, changes, _FAMILY, NAT_TABLE, text, **words)


async def set_limit(host: Host, changes: Changes, connections: int) -> None:
    """Sets the size of the table; on the machine, where its namespaces have no limit of their own.

    NotReadyError where the machine would lose some of the connections that it tracks itself.
    """
    if (await host.run(("test", "-w", LIMIT), check=False)).status != 0:
        host = outermost(host)
        own = await _read_number(host, COUNT) or 0
        if connections < _ROOM * own:
            raise NotReadyError(
                f"the size of the table is the whole machine's, which tracks {own} connections itself: with "
                f"{connections} it would lose some",
                place=f"dut, table_size, on {host.name}",
                next_step=f"make it {_ROOM * own} or more, or use a machine of its own (docs/vm.md)",
            )
    await changes.set_file(host, LIMIT, str(connections))


async def _read_number(host: Host, path: str) -> int | None:
    text = await host.read_file(path)
    return None if text is None else int(text)
