"""The rules for single flows of an interface, as ``ethtool -n`` prints them. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nicbench.core.headers import FlowRule
from nicbench.system.adapters._rows import rows_of

# rxclass.c of ethtool: rxclass_print_nfc_spec_ext, rxclass_print_ipv4_rule and its neighbours.
_HEAD: Final = re.compile(r"^Total (\d+) rules", re.MULTILINE)
_RULE: Final = re.compile(r"^Filter: (\d+)\s*$", re.MULTILINE)
_MASKED: Final = re.compile(r"^(?P<value>\S+) mask: (?P<mask>\S+)$")
_TYPES: Final = {
    "TCP over IPv4": "tcp4",
    "UDP over IPv4": "udp4",
    "SCTP over IPv4": "sctp4",
    "TCP over IPv6": "tcp6",
    "UDP over IPv6": "udp6",
    "SCTP over IPv6": "sctp6",
}
_FIELDS: Final = {
    "Src IP addr": "source_address",
    "Dest IP addr": "destination_address",
    "Src port": "source_port",
    "Dest port": "destination_port",
}
_QUEUE: Final = re.compile(r"^Direct to queue (\d+)$")
_DROP: Final = "Drop"


@dataclass(frozen=True, slots=True)
class PlacedRule:
    """A rule at its place; ``rule`` is None where it says more than ``FlowRule`` can, and ``text`` is all of it."""

    place: int
    rule: FlowRule | None
    text: str


def parse_flow_rules(text: str) -> tuple[PlacedRule, ...]:
    """Returns the rules by their places. ValueError where the text is no list of rules, or not all of it."""
    head = _HEAD.search(text)
    if head is None:
        raise ValueError("no list of rules in it")
    parts = _RULE.split(text)[1:]
    found = [PlacedRule(int(place), _rule_of(block), " ".join(block.split())) for place, block in _pairs(parts)]
    if len(found) != int(head[1]):
        raise ValueError(f"{head[1]} rules are announced, and {len(found)} follow")
    return tuple(sorted(found, key=lambda each: each.place))


def _pairs(parts: list[str]) -> list[tuple[str, str]]:
    return list(zip(parts[::2], parts[1::2], strict=True))


def _rule_of(block: str) -> FlowRule | None:
    given: dict[str, object] = {}
    rows = dict(rows_of(block))
    flow = _TYPES.get(rows.pop("Rule Type", ""))
    action = rows.pop("Action", "")
    queue = _QUEUE.match(action)
    if flow is None or (queue is None and action != _DROP):
        return None
    for name, value in rows.items():
        known = _known(name, value)
        if known is None:
            return None
        given |= known
    try:
        return FlowRule.model_validate({"flow": flow, "queue": int(queue[1]) if queue else None, **given})
    except ValueError:
        return None


def _known(name: str, value: str) -> Mapping[str, object] | None:
    """The field of a row whose mask is whole, nothing where it does not count; None for anything else.

    ethtool prints what is left out of the comparison as ones.
    """
    masked = _MASKED.match(value)
    if masked is None:
        return None
    ignored = _bits(masked["mask"])
    if name not in _FIELDS:
        return {} if ignored and not ignored & (ignored + 1) else None
    if ignored is None:
        return None
    if ignored == 0:
        plain = masked["value"]
        return {_FIELDS[name]: plain if "address" in _FIELDS[name] else int(plain, 0)}
    return {} if ignored & (ignored + 1) == 0 and ignored.bit_length() in (16, 32, 128) else None


def _bits(mask: str) -> int | None:
    try:
        return int(mask, 0)
    except ValueError:
        pass
    try:
        return int(ipaddress.ip_address(mask))
    except ValueError:
        return None
