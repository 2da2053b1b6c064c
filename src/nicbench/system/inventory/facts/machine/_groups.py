"""Parts of a machine that are alike, told once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def group_alike(parts: Iterable[dict[str, Any]], each: Mapping[str, str]) -> list[dict[str, Any]]:
    """Alike parts as one with a ``count``; ``each`` names the fields that tell them apart, and the lists of those."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        alike = {name: value for name, value in part.items() if name not in each}
        key = tuple(alike.items())
        group = groups.setdefault(key, {"count": 0, **alike, **{plural: [] for plural in each.values()}})
        group["count"] += 1
        for name, plural in each.items():
            if part.get(name) is not None:
                group[plural].append(part[name])
    return list(groups.values())
