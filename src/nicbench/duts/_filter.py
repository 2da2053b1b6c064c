"""A packet filter in front of forwarding: a chain of nftables rules that each frame passes, and none matches."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import DeleteNftTable

MAXIMUM_RULES = 100_000
TABLE = "nicbench_filter"
# Sources that no frame has: IPv4's reserved block (RFC 1112 section 4), IPv6's for documentation (RFC 3849).
_FIRST_SOURCE = {"ip": IPv4Address("240.0.0.1"), "ip6": IPv6Address("2001:db8::1")}


def ruleset(family: str, rules: int) -> str:
    """One table of ``family`` (``ip`` or ``ip6``) with ``rules`` rules, as nft reads it."""
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
        await _refuse_where_taken(host, family)
        text = ruleset(family, rules)

        async def apply(text: str = text) -> None:
            await host.run(("nft", "-f", "-"), input_text=text)

        try:
            await changes.make(host, DeleteNftTable(family=family, table=TABLE), apply)
        except HostError as error:
            raise NotReadyError(
                f"no packet filter can be set up: {error.message}",
                place=f"dut, filter_rules, on {host.name}",
                next_step="apt-get install nftables, on a kernel with nf_tables; or leave filter_rules out",
            ) from error


async def _refuse_where_taken(host: Host, family: str) -> None:
    shown = await host.run(("nft", "list", "table", family, TABLE), check=False)
    if shown.status == 0:
        raise NotReadyError(
            f"there is a table {family} {TABLE} already",
            place=host.name,
            next_step=f"it is left from a run that died: nicbench restore RUN, or nft delete table {family} {TABLE}",
        )
