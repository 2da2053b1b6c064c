"""What rules of the DUT's packet filter (nftables, iptables-nft) dropped, where a rule counts.

A rule's counter is of what reached it: only one that stands right before the verdict, with nothing that could still let
a frame go its way, counts drops. A ``drop`` without a counter leaves no trace anywhere; its frames stay unexplained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicbench.measure.ledger.base import Count, Side, Source, Stage, View

OWN_TABLE = "nicbench_filter"
"""The table of `filter_rules` (``duts/_kernel.py``): its rules count nothing, and may be a hundred thousand."""
_VERDICTS = ("drop", "reject")
# They let every frame on to the next statement.
_PASSING = ("log", "counter", "mangle", "set", "notrack", "meta", "ct helper", "comment")
_LIMIT_BYTES = 4_000_000


class Nftables(Source):
    """Each rule with a counter of what it drops, by its comment or its place."""

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
    counts: dict[str, Count] = {}
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
