"""Named profiles: what a machine is commonly set to for one aim; what it lacks is skipped, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nicbench.registry import find
from nicbench.tuning.items.base import Item
from nicbench.tuning.wishes import Wish


@dataclass(frozen=True, slots=True)
class Step:
    """An item of a profile, its options, and why it is there; docs/tuning.md prints the reason."""

    item: str
    options: dict[str, Any]
    why: str


PROFILES: Final[dict[str, tuple[Step, ...]]] = {}


def wishes_of(profile: str, role: str) -> tuple[Wish, ...]:
    """The items of a profile for the hosts of a role."""
    kinds = find("nicbench.tuning.items", Item)
    return tuple(
        Wish(
            role=role,
            item=kinds[step.item],
            options=kinds[step.item].Options.model_validate(step.options),
            profile=profile,
        )
        for step in PROFILES[profile]
    )
