"""Counters of the kernel that explain lost frames: interfaces, queues, the IP layer, and packet filters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from nicbench.measure.ledger.base import Count, Echo, Side, Source, Stage, View
from nicbench.system.adapters.conntrack import STATISTICS, read_statistics

_RECEIVE = ("dropped", "missed_errors", "errors", "nohandler")
_TRANSMIT = ("dropped", "errors")
_OUT_OF_ROOM = "missed_errors"


class Links(Source):
    """What interfaces dropped, by the kernel's own statistics of them (``struct rtnl_link_stats64``, ``ip -s link``).

    Of the errors only those are read that others do not include (include/uapi/linux/if_link.h): ``errors`` holds
    ``over_errors``, ``length_errors``, ``crc_errors``, ``frame_errors``, ``fifo_errors``; ``missed_errors`` is apart.
    ``rx_nohandler`` are frames for an interface that is not in use (an inactive port of a bond). ``rx_dropped`` also
    counts frames that nobody wanted (LLDP where no daemon runs), and ``rx_errors`` what a cable or the DUT spoilt.

    Both directions of each interface of the path, and of the bridges that they are ports of.
    """

    kind = "links"

    def script(self, view: View) -> str:
        return "ip -j -s -s link show" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        shown = {str(link["ifname"]): link for link in json.loads(text)} if text.strip() else {}
        return tuple(
            count
            for device in view.devices
            if device in shown
            for count in _device_counts(device, shown[device].get("stats64", {}), view)
        )


def _device_counts(device: str, statistics: dict[str, Any], view: View) -> list[Count]:
    receive, transmit = statistics.get("rx", {}), statistics.get("tx", {})
    # A veth has no card: its queues are its peer's, and are emptied on the CPU of whoever sends.
    by_tester = view.side is not Side.DUT and view.kinds.get(device) != "veth"
    counts = [
        Count(
            key=view.key(device, f"rx_{name}"),
            name=f"{device} rx_{name}",
            # `ip` leaves this one out while it is 0.
            frames=int(receive.get(name, 0)),
            stage=view.stage(Stage.TESTER_RECEIVE, Stage.DUT_RECEIVE),
            place=_receive_place(device, view),
            has_machine_wide=name == "dropped",
            by_tester=by_tester and name == _OUT_OF_ROOM,
        )
        for name in _RECEIVE
        if name in receive or name == "nohandler"
    ]
    for name in _TRANSMIT:
        if name in transmit:
            counts.append(
                Count(
                    key=view.key(device, f"tx_{name}"),
                    name=f"{device} tx_{name}",
                    frames=int(transmit[name]),
                    stage=view.stage(Stage.TESTER_TRANSMIT, Stage.DUT_TRANSMIT),
                    place=_transmit_place(device, view),
                    echo=_echo(device, view) if name == "dropped" else None,
                    by_tester=by_tester,
                )
            )
    return counts


def _echo(device: str, view: View) -> Echo | None:
    """A veth hands a frame to its peer's side itself, and counts what is dropped there too, unless that side polls."""
    if view.kinds.get(device) != "veth" or device not in view.peers:
        return None
    side, peer = view.peers[device]
    key = Side(side)
    return Echo(of=f"{key}: {peer} rx_dropped", unless=f"{key}: {peer} polled")


def _receive_place(device: str, view: View) -> str:
    kind = "bridge" if view.kinds.get(device) == "bridge" else "receive side of"
    return f"{view.side}, {kind} {device}"


def _transmit_place(device: str, view: View) -> str:
    """A veth has no ring of its own to send from: what it cannot send is what its peer's queue has no room for."""
    if view.kinds.get(device) == "veth" and device in view.peers:
        side, peer = view.peers[device]
        return f"{side}, queue of {peer} (veth peer of {device})"
    return f"{view.side}, transmit side of {device}"


_DROPPED, _CPU = 1, 12


class Softnet(Source):
    """Frames that found the backlog in front of a CPU full (``/proc/net/softnet_stat``; net.core.netdev_max_backlog).

    The kernel counts them here, for the whole machine and all its namespaces, and in the receiving device's
    ``rx_dropped``.

    One counter for each online CPU.
    """

    kind = "softnet"
    once_per_machine = True

    def script(self, view: View) -> str:
        return "cat /proc/net/softnet_stat"

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        return tuple(
            Count(
                key=f"{view.side}: softnet cpu{cpu}",
                name=f"softnet_backlog cpu{cpu}",
                frames=frames,
                stage=view.stage(Stage.TESTER_BACKLOG, Stage.DUT_BACKLOG),
                place=f"{view.side}, backlog of CPU {cpu}",
                machine_wide=True,
                by_tester=view.side is not Side.DUT,
            )
            for cpu, frames in softnet_drops(text).items()
        )


def softnet_drops(text: str) -> dict[int, int]:
    """Frames dropped at the full backlog of each CPU (hexadecimal; one line an online CPU)."""
    dropped = {}
    for number, line in enumerate(text.splitlines()):
        fields = line.split()
        if len(fields) <= _DROPPED:
            continue
        # Since Linux 5.14 the line names its CPU; before, only the order did.
        cpu = int(fields[_CPU], 16) if len(fields) > _CPU else number
        dropped[cpu] = int(fields[_DROPPED], 16)
    return dropped


_HOOKS = ("ingress", "clsact")


class Qdisc(Source):
    """What queueing disciplines dropped (``tc -s qdisc``): the root of each interface, and the hooks of its tc filters.

    A root counts what its classes and leaves dropped as well (``qdisc_tree_reduce_backlog``, the sum in ``mq_dump``),
    so that only roots are read.

    Per interface: the root's drops, and the drops of filters at its ingress hook.
    """

    kind = "qdisc"

    def script(self, view: View) -> str:
        return "tc -s -j qdisc show" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        counts = []
        for qdisc in json.loads(text) if text.strip() else ():
            device, kind = str(qdisc.get("dev")), str(qdisc.get("kind"))
            hook = kind in _HOOKS
            if device not in view.devices or not (hook or qdisc.get("root")):
                continue
            handle = f" {qdisc['handle']}" if qdisc.get("handle", "0:") != "0:" else ""
            ingress = view.stage(Stage.TESTER_INGRESS, Stage.DUT_INGRESS)
            counts.append(
                Count(
                    key=view.key(device, f"qdisc {kind}{handle}"),
                    name=f"{device} qdisc {kind}{handle} drops",
                    frames=int(qdisc.get("drops", 0)),
                    stage=ingress if hook else view.stage(Stage.TESTER_QDISC, Stage.DUT_QDISC),
                    place=f"{view.side}, {'tc filter' if hook else f'{kind} qdisc'} of {device}",
                    by_tester=view.side is not Side.DUT and not hook,
                )
            )
        return tuple(counts)


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
    """Frames that the DUT's IP layer threw away instead of forwarding them (RFC 4293; ``/proc/net/snmp``, ``snmp6``).

    Read on the DUT alone: where a tester has sockets, the kernel sees copies and discards them.

    IPv4 and IPv6 losses of the DUT's namespace.
    """

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


OWN_TABLE = "nicbench_filter"
"""The table of `filter_rules` (``duts/_kernel.py``): its rules count nothing, and may be a hundred thousand."""
_VERDICTS = ("drop", "reject")
# They let every frame on to the next statement.
_PASSING = ("log", "counter", "mangle", "set", "notrack", "meta", "ct helper", "comment")
_LIMIT_BYTES = 4_000_000


class Nftables(Source):
    """What rules of the DUT's packet filter (nftables, iptables-nft) dropped, where a rule counts.

    A rule's counter is of what reached it: only one that stands right before the verdict, with nothing that could still
    let a frame go its way, counts drops. A ``drop`` without a counter leaves no trace anywhere; its frames stay
    unexplained.

    Each rule with a counter of what it drops, by its comment or its place.
    """

    kind = "nftables"
    sides = frozenset({Side.DUT})

    def script(self, view: View) -> str:
        tables = f"nft list tables | grep -vw {OWN_TABLE}"
        each = 'while read -r _ family table; do nft -j list table "$family" "$table"; done'
        return f"{tables} | {each} | head -c {_LIMIT_BYTES}" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        return tuple(
            count for line in text.splitlines() if line.strip() for count in _table_counts(json.loads(line), view)
        )


def _table_counts(listing: Mapping[str, Any], view: View) -> list[Count]:
    objects = listing["nftables"]
    named = {one["counter"]["name"]: int(one["counter"]["packets"]) for one in objects if "counter" in one}
    counts = {}
    for rule in (one["rule"] for one in objects if "rule" in one):
        found = drops_of_rule(rule["expr"], named)
        if found is None:
            continue
        packets, counter = found
        where = f"{rule['family']} {rule['table']} {rule['chain']}"
        # A named counter is one, however many rules count with it.
        name = f"counter {counter}" if counter else f"rule {rule.get('comment') or rule['handle']}"
        counts[f"{where} {name}"] = Count(
            key=f"{view.side}: nft {where} {counter or rule['handle']}",
            name=f"nft {where}, {name}",
            frames=packets,
            stage=Stage.DUT_FIREWALL,
            place=f"{view.side}, firewall ({where})",
        )
    return list(counts.values())


def drops_of_rule(expressions: list[Mapping[str, Any]], named: Mapping[str, int]) -> tuple[int, str | None] | None:
    """Frames that a rule dropped, and the name of its counter where it has one; None where the rule does not tell."""
    found: tuple[int, str | None] | None = None
    for expression in expressions:
        ((kind, value),) = expression.items()
        if kind in _VERDICTS:
            return found
        if kind == "counter":
            if isinstance(value, str):
                found = (named[value], value) if value in named else None
            elif isinstance(value, Mapping):
                found = (int(value["packets"]), None)
        elif kind not in _PASSING:
            found = None
    return None


_PLACES: Final = {
    "drop": "connection tracking, its table full (nf_conntrack_max)",
    "insert_failed": "connection tracking, a connection like it was there already",
    "early_drop": None,
}
"""The columns and the places of lost frames. Of ``early_drop``, connections that made room for others, none is lost."""
REPLACED: Final = "nf_conntrack early_drop"
"""The name of the counter of connections that made room for others."""


class Conntrack(Source):
    """Frames that the DUT's connection tracking dropped: a full table, or two connections that were translated into
    one.

    The sum over all CPUs of each column.
    """

    kind = "conntrack"
    sides = frozenset({Side.DUT})

    def script(self, view: View) -> str:
        return f"cat {STATISTICS}" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        counts = read_statistics(text)
        return tuple(
            Count(
                key=f"{view.side}: conntrack {column}",
                name=f"nf_conntrack {column}",
                frames=counts[column],
                stage=Stage.DUT_FIREWALL,
                place=place and f"{view.side}, {place}",
                # Which kernels count such a frame in `drop` as well depends on why it could not be inserted.
                within=(f"{view.side}: conntrack drop",) if column == "insert_failed" else (),
            )
            for column, place in _PLACES.items()
            if column in counts
        )
