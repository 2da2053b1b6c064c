"""The IOMMU: whether one is at work, and how its groups translate. Translation costs transfers of a card."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

# Units by name, then the type of each group: DMA, DMA-FQ (lazy), identity (passthrough).
_ASK = (
    'ls /sys/class/iommu 2>/dev/null | sed "s/^/unit /"; '
    'for f in /sys/kernel/iommu_groups/*/type; do [ -e "$f" ] && cat "$f"; done; true'
)


class _Iommu(TypedDict):
    """Whether it is at work; groups by how they translate."""

    active: bool
    units: list[str]
    groups: int
    groups_by_type: dict[str, int]


def _tell_iommu(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "iommu")
    if found.get("active") is None:
        return None
    groups = ", ".join(f"{count} groups {kind}" for kind, count in part_of(found, "groups_by_type").items())
    return join_texts("on" if found["active"] else "off", groups)


class Iommu(Fact):
    """From ``/sys/class/iommu`` and ``/sys/kernel/iommu_groups``."""

    kind = "iommu"
    shape = _Iommu
    of_machine = True
    subjects = (Subject("IOMMU", 260, _tell_iommu),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        try:
            return parse_iommu(await output_of(host, "sh", "-c", _ASK))
        except UnknownFactError:
            return parse_iommu("")  # neither units nor groups: it is off


def parse_iommu(text: str) -> dict[str, Any]:
    """Units, groups, and how many groups are of each type (Documentation/ABI/testing/sysfs-kernel-iommu_groups)."""
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    units = [row.removeprefix("unit ") for row in rows if row.startswith("unit ")]
    types = [row for row in rows if not row.startswith("unit ")]
    return {
        "active": bool(units or types),
        "units": units,
        "groups": len(types),
        "groups_by_type": {kind: types.count(kind) for kind in sorted(set(types))},
    }
