"""Which BIOS attributes change network results, most first: by their names, which every maker chooses for himself.

Names are those of Dell's and HPE's attribute registries, of Supermicro, Lenovo and of OpenBMC machines; a maker's new
name that fits no pattern stands among the others, and is disclosed all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

GROUPS: Final[Mapping[str, str]] = {
    "workload profile": r"workload_?(profile|config|opt)|^sysprofile$|system_?profile|operating_?mode",
    "power": r"power_?(profile|regulator|technology|performance|policy)|pwrperf|energy_?(perf|effic)|perf_?bias|"
    r"^proc_?pwr|determinism|uncore_?freq|^cpupower|tdp",
    "C-states": r"c_?states?(?![a-z])|c_?state_?|c1_?e|c6|idle_?power|min_?proc_?idle|monitor_?mwait|package_?c_?state",
    "turbo": r"turbo|boost|cpb$",
    "SMT": r"logical_?proc|hyper_?thread|smt(?![a-z])|smt_?(mode|control|ctrl|enable)",
    "NUMA": r"numa|cluster|(^|_)snc|nps\d?(?![a-z])|node_?interleav|nodes_?per_?socket|llc_?as",
    "virtualisation and IOMMU": r"virtuali|vt_?d|vt_?for|iommu|amd_?io_?vt|x2_?apic|dma_?(protect|remap)|(^|_)svm",
    "SR-IOV": r"sr_?iov",
    "PCI Express": r"aspm|max_?pay_?load|max_?read_?req|relaxed_?order|pci_?e?_?(power|speed|gen|link|ari|bifur)|"
    r"ddio|direct_?cache|io_?non_?posted|pref_?io",
    "memory": r"mem(ory)?_?(freq|speed|clock|op_?mode|interleav|patrol|refresh)|mem_?bus|patrol_?scrub|max_?mem",
    "prefetchers": r"prefetch|(^|_)dcu|adj(acent)?_?cache|streamer",
    "interconnect": r"upi|infinity|xgmi|df_?c_?state|snoop",
}
"""Heading and what names of its attributes hold, whatever their case; the first that fits counts."""


def group_of(name: str) -> str | None:
    """The heading under which an attribute stands, None among the others."""
    return next((group for group, pattern in _COMPILED if pattern.search(name)), None)


def by_relevance(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The same, those that matter first; within a group, and among the others, in the controller's order."""
    order = {group: place for place, group in enumerate(GROUPS)}
    return dict(sorted(attributes.items(), key=lambda pair: order.get(group_of(pair[0]) or "", len(order))))


_COMPILED: Final = tuple((group, re.compile(pattern, re.IGNORECASE)) for group, pattern in GROUPS.items())
