"""A router that tracks connections (`firewall`), with limits at once and anew in a second, NAT, and a SYN proxy.

It forwards as the router does. Behind that nftables drops what belongs to no connection and the SYNs that
are too many, as a firewall does; the table of rules is deleted afterwards. Where a limit is set, it is known to the
last connection, so that methods of connections can be tried on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.system.adapters.conntrack import LIMIT, SETTINGS
from nicbench.testbed.duts._kernel import set_up_table
from nicbench.testbed.duts.kernel_forward import set_limit
from nicbench.testbed.duts.router import Router, RouterOptions
from nicbench.testbed.labs.base import EndpointTestbed
from nicbench.tuning.changes import Changes

TABLE: Final = "nicbench_firewall"
_FAMILY: Final = "inet"
_LOOSE: Final = f"{SETTINGS}/nf_conntrack_tcp_loose"
_TIMEOUTS: Final = ("established", "time_wait", "close", "syn_sent")
# IPCTNL_MSG_CT_DELETE of ctnetlink without a filter, to be acknowledged: what `conntrack -F` sends.
_FLUSH: Final = """command -v conntrack >/dev/null && exec conntrack -F
exec perl -e 'socket(KERNEL, 16, 3, 12) && send(KERNEL, pack("L S2 L2 C2 n", 20, 0x102, 5, 1, 0, 0, 0, 0), 0)
  && sysread(KERNEL, $reply, 64) or die "$!\\n"; ($! = -unpack("x16 l", $reply)) && die "$!\\n"'"""


class FirewallOptions(RouterOptions):
    """``dut: {kind: firewall, host: NAME}``."""

    connections: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """The most connections at once (`ct count`); without it as many as the kernel tracks."""
    connection_rate: int | None = Field(default=None, ge=1, le=10_000_000)
    """The most new connections a second (`limit rate`, which saves up `burst`); without it as many as come."""
    burst: int = Field(default=5, ge=1, le=1_000_000)
    """How many more may come at once."""
    over: Literal["drop", "reset"] = "drop"
    """What becomes of SYNs that are too many: they are dropped, or answered by a RST."""
    masquerade: bool = False
    """What goes out of another port than the first gets that port's address (NAT)."""
    syn_proxy: bool = False
    """SYNs are answered by the firewall, and go on when they were acknowledged (`synproxy`)."""
    table_size: int | None = Field(default=None, ge=16, le=2**31 - 1)
    """The most connections that are tracked at once (`nf_conntrack_max`); without it, it is left alone. It is a setting
    of the whole machine where the kernel has none for each network namespace.
    """
    empty_table: bool = True
    """Each round begins with an empty table: the firewall forgets every connection (`conntrack -F`, or by Perl)."""

    @model_validator(mode="after")
    def _counts_what_it_sees_begin(self) -> Self:
        if self.syn_proxy and (self.connections is not None or self.connection_rate is not None):
            raise ValueError("`syn_proxy` answers SYNs before they are counted: leave out the limit, or `syn_proxy`")
        return self


def firewall_ruleset(options: FirewallOptions, ports: Sequence[str]) -> str:
    """The text for nft of the table. ``ports`` are interfaces, the one that is inside first."""
    begins = "tcp flags & (fin|syn|rst|ack) == syn"
    anew = f"ct state new {begins}"
    refused = "drop" if options.over == "drop" else "reject with tcp reset"
    rules = ["ct state established,related accept"]
    if options.syn_proxy:
        rules.append("meta l4proto tcp ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm")
    rules.append("ct state invalid drop")
    if options.connection_rate is not None:
        limit = f"limit rate over {options.connection_rate}/second burst {options.burst} packets"
        rules.append(f"{anew} {limit} counter {refused}")
    if options.connections is not None:
        rules.append(f"{anew} ct count over {options.connections} counter {refused}")
    rules += [f"{anew} accept", "meta l4proto { icmp, ipv6-icmp } accept"]
    chains = [_chain("forward", "filter hook forward priority filter; policy drop", rules)]
    if options.syn_proxy:
        rules = [f"iifname {_set_of(ports)} {begins} notrack"]
        chains.append(_chain("before", "filter hook prerouting priority raw; policy accept", rules))
    if options.masquerade:
        rules = [f"oifname {_set_of(ports[1:])} masquerade"]
        chains.append(_chain("leaving", "nat hook postrouting priority srcnat; policy accept", rules))
    return "\n".join([f"table {_FAMILY} {TABLE} {{", *chains, "}", ""])


def _chain(name: str, kind: str, rules: list[str]) -> str:
    lines = [f"  chain {name} {{", f"    type {kind};", *(f"    {rule}" for rule in rules), "  }"]
    return "\n".join(lines)


def _set_of(ports: Sequence[str]) -> str:
    names = ", ".join(f'"{port}"' for port in ports)
    return f"{{ {names} }}"


class Firewall(Router):
    """The measured host is a router that tracks connections, with limits if they are asked for."""

    kind = "firewall"
    Options = FirewallOptions
    options: FirewallOptions

    def __init__(self, options: FirewallOptions) -> None:
        super().__init__(options)
        self._host: Host | None = None
        self._rules = ""
        self._tracking: dict[str, int] = {}

    def programs(self) -> Mapping[str, str]:
        return {**super().programs(), "nft": "apt-get install nftables"}

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        await super().up(testbed, changes)
        self._host = host = testbed.server.network
        words = {
            "what": "the firewall",
            "needs": "nf_tables, nft_ct, nft_limit, nft_connlimit, nft_masq and nft_synproxy",
        }
        self._rules = firewall_ruleset(self.options, [str(end.facts.device) for end in testbed.servers])
        await set_up_table(host, changes, _FAMILY, TABLE, self._rules, **words)
        if self.options.syn_proxy:  # else the first segment behind a handshake would begin a connection of its own
            await changes.set_file(host, _LOOSE, "0")
        if self.options.table_size is not None:
            await set_limit(host, changes, self.options.table_size)
        settings = {"table_size": LIMIT}
        settings |= {f"tcp_timeout_{name}_s": f"{SETTINGS}/nf_conntrack_tcp_timeout_{name}" for name in _TIMEOUTS}
        for name, path in settings.items():
            if (text := await host.read_file(path)) is not None:
                self._tracking[name] = int(text)

    async def begin_round(self) -> None:
        """Empties the table, if asked for; NotReadyError where it cannot be emptied."""
        if self._host is None or not self.options.empty_table:
            return
        try:
            await self._host.run(("sh", "-c", _FLUSH))
        except HostError as error:
            raise NotReadyError(
                f"the table of connections cannot be emptied: {error.message}",
                place=f"dut, empty_table, on {self._host.name}",
                next_step="apt-get install conntrack, or write `empty_table: false`",
            ) from error

    def disclosure(self) -> dict[str, Any]:
        return {
            **super().disclosure(),
            "kind": self.kind,
            "name": self.options.name or "firewall",
            "rules": [line.strip() for line in self._rules.splitlines() if line.strip()],
            "connection_tracking": {**self._tracking, "emptied": self.options.empty_table},
        }
