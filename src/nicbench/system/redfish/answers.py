"""What a management controller answers (DSP0266, DSP0268) as plain data: pure, bounded, of any maker.

Paths are taken only below ``/redfish/`` of the same controller. Values have the schema's names; one that is
missing is null. Passwords and names of persons, which some BIOSes list among their settings, are left out. BIOS
attributes that change network results stand first, by their names, which every maker chooses for himself: those of
Dell's and HPE's attribute registries, of Supermicro, Lenovo and of OpenBMC machines. A name that fits no pattern stands
among the others, and is disclosed all the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from nicbench.core.errors import HostError
from nicbench.core.lists import without_none

GROUPS: Final = {
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


def sort_by_relevance(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The same, those that matter first; within a group, and among the others, in the controller's order."""
    order = {group: place for place, group in enumerate(GROUPS)}
    return dict(sorted(attributes.items(), key=lambda pair: order.get(group_of(pair[0]) or "", len(order))))


_COMPILED: Final = tuple((group, re.compile(pattern, re.IGNORECASE)) for group, pattern in GROUPS.items())


_MOST_MEMBERS, _MOST_ATTRIBUTES = 64, 4000
_LONGEST_NAME, _LONGEST_TEXT, _LONGEST_PATH = 128, 256, 512
_PATH: Final = re.compile(r"/redfish/[!-~]*")
_SECRET: Final = re.compile(
    r"passw|passphrase|passcode|secret|chap|psk$|hash|privatekey|admin(name|phone|email|other)|owner|contact",
    re.IGNORECASE,
)
_IDENTITY: Final = (
    ("serials", re.compile(r"(serial_?(number|num|no)|service_?tag|chassis_?tag)$", re.IGNORECASE)),
    ("asset_tags", re.compile(r"asset_?(tag|number|id)$", re.IGNORECASE)),
    ("uuids", re.compile(r"(uuid|guid)$", re.IGNORECASE)),
    ("host_name", re.compile(r"(host|server|system)_?name$", re.IGNORECASE)),
)
"""Attributes that name the specimen, by the names under which the inventory's redaction knows them."""


class RedfishError(HostError):
    """The controller gives no answer; the message names no host, user or password, for it stands in the run folder."""


def parse_service(text: str) -> dict[str, Any]:
    """The service root: where its systems are (``/redfish/v1/Systems`` where it does not say)."""
    root = json_object(text)
    return {
        "systems": link_of(root.get("Systems")) or "/redfish/v1/Systems",
        "version": _text(root.get("RedfishVersion")),
    }


def parse_members(text: str) -> list[str]:
    """Paths of a collection's members."""
    members = json_object(text).get("Members")
    links = [link_of(member) for member in members[:_MOST_MEMBERS]] if isinstance(members, list) else []
    return without_none(links)


def parse_system(text: str) -> dict[str, Any]:
    """A ComputerSystem: what it is, ``bios`` as the path of its settings, and which specimen under ``identity``."""
    found = json_object(text)
    processors, memory = part_of(found, "ProcessorSummary"), part_of(found, "MemorySummary")
    gib = _number(memory.get("TotalSystemMemoryGiB"))
    identity = {
        # Dell gives the service tag as the SKU.
        "serials": [tag for tag in (_text(found.get("SerialNumber")), _text(found.get("SKU"))) if tag],
        "asset_tags": [tag for tag in (_text(found.get("AssetTag")),) if tag],
        "uuids": [tag for tag in (_text(found.get("UUID")),) if tag],
        "host_name": [tag for tag in (_text(found.get("HostName")),) if tag],
    }
    return {
        "bios": link_of(found.get("Bios")),
        "machine": {
            "vendor": _text(found.get("Manufacturer")),
            "model": _text(found.get("Model")),
            "bios_version": _text(found.get("BiosVersion")),
            "power_state": _text(found.get("PowerState")),
            "processors": _number(processors.get("Count")),
            "processor_model": _text(processors.get("Model")),
            "logical_processors": _number(processors.get("LogicalProcessorCount")),
            "memory_bytes": round(gib * 2**30) if gib is not None and 0 <= gib < 2**30 else None,
        },
        "identity": {name: values for name, values in identity.items() if values},
    }


def parse_bios(text: str) -> dict[str, Any]:
    """A Bios resource, or its settings object: attributes, those that change network results first.

    ``settings`` is the path of what is pending until a reboot, None where nothing can be.
    """
    found = json_object(text)
    attributes: dict[str, Any] = {}
    identity: dict[str, list[str]] = {}
    for name, value in list(part_of(found, "Attributes").items())[:_MOST_ATTRIBUTES]:
        name = _clean(name)
        if not name or len(name) > _LONGEST_NAME or _SECRET.search(name) or name.startswith("@"):
            continue
        kind = next((kind for kind, pattern in _IDENTITY if pattern.search(name)), None)
        if kind is not None:
            if isinstance(value, str) and _text(value):
                identity.setdefault(kind, []).append(_clean(value))
        elif value is None or isinstance(value, bool):
            attributes[name] = value
        elif isinstance(value, str):
            attributes[name] = _clean(value)
        elif _number(value) is not None:
            attributes[name] = value
    settings = part_of(found, "@Redfish.Settings")
    return {
        "attributes": sort_by_relevance(attributes),
        "registry": _text(found.get("AttributeRegistry")),
        "settings": link_of(settings.get("SettingsObject")),
        "identity": identity,
    }


def pending(attributes: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Of a settings object the values that are not in force. Some controllers list only those, others all."""
    return {name: value for name, value in asked.items() if value is not None and attributes.get(name) != value}


def json_object(text: str) -> dict[str, Any]:
    """Returns the resource of an answer; ValueError if the text is not one."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("the answer is no JSON object")
    return found


def part_of(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns the object of this name in a resource, empty if it has none."""
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}


def link_of(value: Any) -> str | None:
    """The path that a link names, below ``/redfish/`` of the same controller; None where it names no such path."""
    path = value.get("@odata.id") if isinstance(value, Mapping) else None
    sound = isinstance(path, str) and len(path) <= _LONGEST_PATH and _PATH.fullmatch(path) and ".." not in path
    return path.partition("#")[0] if isinstance(path, str) and sound else None


def _clean(value: str) -> str:
    return "".join(letter for letter in value[: 4 * _LONGEST_TEXT] if letter.isprintable())[:_LONGEST_TEXT].strip()


def _text(value: Any) -> str | None:
    return (_clean(value) or None) if isinstance(value, str) else None


def _number(value: Any) -> int | float | None:
    """A finite number of a size that a count or a setting may have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if (isinstance(value, int) or math.isfinite(value)) and abs(value) < 2**64 else None
