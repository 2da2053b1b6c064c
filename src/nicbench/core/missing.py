"""Values of which some may be missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Known = TypeVar("Known")


def without_none(values: Iterable[Known | None]) -> list[Known]:
    """Returns the values that are known, in order."""
    return [value for value in values if value is not None]
