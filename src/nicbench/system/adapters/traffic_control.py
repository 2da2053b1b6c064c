"""What dcb and tc say of how an interface queues frames: priorities, classes, disciplines. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# ``dcb -j``: priority flow control (IEEE 802.1Qbb), traffic classes (802.1Qaz), and what a port trusts.


PRIORITIES = 8


def parse_pfc(text: str) -> dict[str, Any]:
    """``dcb -j pfc show``: the priorities that are paused on their own, and for how many classes the port can."""
    answer = _object(text)
    switches = answer.get("prio_pfc")
    if not isinstance(switches, list) or len(switches) != PRIORITIES:
        raise ValueError("prio_pfc is not a list of 8")
    return {
        "priorities": [priority for priority, on in enumerate(switches) if on is True or on == "on"],
        "classes_possible": answer.get("pfc_cap"),
        "delay_bits": answer.get("delay"),
    }


def parse_trust(text: str) -> list[str]:
    """``dcb -j apptrust show`` (iproute2 6.3): what a port believes of a frame, in order: ``dscp``, ``pcp``."""
    order = _object(text).get("order")
    if not isinstance(order, list):
        raise ValueError("no order of trust in it")
    return [str(selector) for selector in order]


def parse_dscp(text: str) -> dict[str, int]:
    """``dcb -j app show dscp-prio``: DSCP to priority."""
    pairs = _object(text).get("dscp_prio") or []
    return {str(dscp): int(priority) for dscp, priority in pairs}


def parse_classes(text: str) -> dict[str, Any]:
    """``dcb -j ets show``: traffic class of each priority, share of the bandwidth and algorithm of each class."""
    answer = _object(text)
    return {
        "class_by_priority": answer.get("prio_tc"),
        "bandwidth_percent": answer.get("tc_bw"),
        "algorithms": answer.get("tc_tsa"),
    }


def _object(text: str) -> Mapping[str, Any]:
    answer = json.loads(text)
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    return answer


# ``tc -j qdisc show``: queueing disciplines of an interface.


def parse_qdiscs(text: str) -> list[dict[str, Any]]:
    """Root first, then what hangs under it; parameters in tc's own words."""
    listed = json.loads(text)
    if not isinstance(listed, list):
        raise ValueError("not a list of queueing disciplines")
    return [
        {
            "kind": entry["kind"],
            "handle": entry.get("handle"),
            "parent": "root" if entry.get("root") else entry.get("parent"),
            "parameters": entry.get("options") or {},
        }
        for entry in listed
    ]
