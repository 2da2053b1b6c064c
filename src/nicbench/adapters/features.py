"""``ethtool -k``: offloads, as JSON (5.8 and newer) or as text."""

from __future__ import annotations

import json
from dataclasses import dataclass

from nicbench.adapters._rows import rows_of, switch_of


@dataclass(frozen=True, slots=True)
class Feature:
    """An offload. ``fixed``: the driver lets nobody change it. ``requested``: what was asked for, where it differs."""

    on: bool
    fixed: bool = False
    requested: bool | None = None


def parse_features(text: str) -> dict[str, Feature]:
    """Every offload by its name, in ethtool's order; both of its layouts."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        return {name: _of_json(value) for name, value in answer.items() if isinstance(value, dict)}
    found: dict[str, Feature] = {}
    for name, value in rows_of(text):
        on = switch_of(value)
        if on is not None:
            requested = switch_of(value.partition("[requested ")[2].rstrip("]"))
            found[name] = Feature(on, fixed="[fixed]" in value, requested=requested)
    return found


def _of_json(value: dict[str, object]) -> Feature:
    on, fixed, requested = value.get("active"), value.get("fixed"), value.get("requested")
    different = isinstance(requested, bool) and requested != on and not fixed
    return Feature(on is True, fixed is True, bool(requested) if different else None)
