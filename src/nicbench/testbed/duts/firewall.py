"""A router that tracks connections and lets only so many pass (`firewall`): at once, and anew in a second.

Forwarding and routes are those of the router. Behind it nftables drops what belongs to no connection and the SYNs that
are too many, as a firewall does; the table of rules is deleted afterwards. Where a limit is set, it is known to the
last connection, so that methods of connections can be tried on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.testbed.duts._packet_filter import set_up_table
from nicbench.testbed.duts.router import Router, RouterOptions
from nicbench.testbed.labs.base import EndpointTestbed
from nicbench.tuning.changes import Changes

TABLE: Final = "nicbench_firewall"
_FAMILY: Final = "inet"


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


def firewall_ruleset(options: FirewallOptions) -> str:
    """The text for nft of the table."""
    anew = "ct state new tcp flags & (fin|syn|rst|ack) == syn"
    refused = "drop" if options.over == "drop" else "reject with tcp reset"
    rules = ["ct state established,related accept", "ct state invalid drop"]
    if options.connection_rate is not None:
        limit = f"limit rate over {options.connection_rate}/second burst {options.burst} packets"
        rules.append(f"{anew} {limit} counter {refused}")
    if options.connections is not None:
        rules.append(f"{anew} ct count over {options.connections} counter {refused}")
    rules += [f"{anew} accept", "meta l4proto { icmp, ipv6-icmp } accept"]
    return "\n".join(
        [
            f"table {_FAMILY} {TABLE} {{",
            "  chain forward {",
            "    type filter hook forward priority filter; policy drop;",
            *(f"    {rule}" for rule in rules),
            "  }",
            "}",
            "",
        ]
    )


class Firewall(Router):
    """The measured host is a router that tracks connections, with limits if they are asked for."""

    kind = "firewall"
    Options = FirewallOptions
    options: FirewallOptions

    def programs(self) -> Mapping[str, str]:
        return {**super().programs(), "nft": "apt-get install nftables"}

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        await super().up(testbed, changes)
        host = testbed.server.network
        words = {"what": "the firewall", "needs": "nf_tables, nft_ct, nft_limit and nft_connlimit"}
        await set_up_table(host, changes, _FAMILY, TABLE, firewall_ruleset(self.options), **words)

    def disclosure(self) -> dict[str, Any]:
        rules = [line.strip() for line in firewall_ruleset(self.options).splitlines() if line.strip()]
        return {**super().disclosure(), "kind": self.kind, "name": self.options.name or "firewall", "rules": rules}
