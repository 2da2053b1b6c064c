"""What the subjects of facts share: parts of facts, and texts joined; what is not known is left out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.core.described import Facts


def part_of(facts: Facts, name: str) -> Mapping[str, Any]:
    """A part that has parts itself, or nothing where it is of another form."""
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def join_texts(*parts: object, by: str = ", ") -> str | None:
    """The known parts as one text; None where none is known."""
    return by.join(str(part) for part in parts if part not in (None, "", [])) or None


def join_list(values: Any) -> str | None:
    """The items of a list as one text; None where there are none."""
    return ", ".join(map(str, values)) if isinstance(values, list) and values else None


def count_words(part: Mapping[str, Any]) -> str:
    """How many there are, before their name; nothing of one."""
    return f"{part['count']} \u00d7 " if part.get("count", 1) > 1 else ""
