"""``frozen`` makes an immutable record of a class without the checks and the JSON of a model (``core/base.py``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Record = TypeVar("Record")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(record: type[Record]) -> type[Record]:
    """Returns the class as a dataclass that is frozen and has slots."""
    return dataclass(frozen=True, slots=True)(record)
