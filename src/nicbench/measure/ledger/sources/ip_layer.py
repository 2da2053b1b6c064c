"""Frames that the DUT's IP layer threw away instead of forwarding them (RFC 4293; ``/proc/net/snmp``, ``snmp6``).

Only of the DUT: beside the sockets of a tester the kernel sees copies, and discards them.
"""

from __future__ import annotations

from nicbench.measure.ledger.base import Count, Side, Source, Stage, View

_IPV4 = {
    "Ip": ("InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "OutNoRoutes"),
    # The kernel keeps this one apart, because RFC 4293 came after the file's format.
    "IpExt": ("InNoRoutes",),
    # Frames from where no route leads back (rp_filter): in none of the others.
    "TcpExt": ("IPReversePathFilter",),
}
_IPV6 = (
    "Ip6InHdrErrors",
    "Ip6InTooBigErrors",
    "Ip6InNoRoutes",
    "Ip6InAddrErrors",
    "Ip6InTruncatedPkts",
    "Ip6InDiscards",
    "Ip6OutDiscards",
    "Ip6OutNoRoutes",
)


class IpLayer(Source):
    """IPv4 and IPv6 losses of the DUT's namespace."""

    kind = "ip"
    sides = frozenset({Side.DUT})

    def script(self, view: View) -> str:
        return "cat /proc/net/snmp /proc/net/netstat /proc/net/snmp6" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        found = {
            f"ipv4 {name}": table[name]
            for title, names in _IPV4.items()
            for table in (snmp_table(text, title),)
            for name in names
            if name in table
        }
        ipv6 = snmp_ipv6(text)
        found |= {f"ipv6 {name}": ipv6[name] for name in _IPV6 if name in ipv6}
        return tuple(
            Count(
                key=f"{view.side}: {name}", name=name, frames=frames, stage=Stage.DUT_IP, place=f"{view.side}, IP layer"
            )
            for name, frames in found.items()
        )


def snmp_table(text: str, table: str) -> dict[str, int]:
    """One table (``Ip``) of ``/proc/net/snmp`` or ``netstat``: a line of names, then a line of values."""
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{table}:")]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        return {}
    return {name: int(value) for name, value in zip(*rows, strict=True)}


def snmp_ipv6(text: str) -> dict[str, int]:
    """``/proc/net/snmp6``: a name and a value in each line."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0].startswith("Ip6")}
